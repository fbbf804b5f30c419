//! Side inputs: files that every task of a job may read as a whole, such as a lookup table.
//!
//! What a task builds of them is kept for the job's other tasks on this worker.
//!
//! Not here: sending them to workers; they are read like any other input.

use super::{Blocks, FileAccess, InputError, InputLimits, Split, open_split};
use crate::api::{FailureKind, TaskError, TaskResult};
use crate::record::RecordFormat;
use std::any::Any;
use std::sync::{Arc, Mutex, PoisonError};

/// Bytes a side input may have after decompression: it is held in memory.
const SIDE_BYTES_MAX: usize = 1 << 30;

/// The side inputs of one job on one worker.
pub struct SideInputs {
    inputs: Vec<SideInput>,
    access: Option<Arc<dyn FileAccess>>,
    limits: InputLimits,
}

struct SideInput {
    files: Split,
    built: Mutex<Option<Arc<dyn Any + Send + Sync>>>,
}

impl SideInputs {
    /// Side inputs in the order of the plan, each with its whole files as
    /// [`plan_side`](super::plan::plan_side) lists them. Nothing is read yet.
    #[must_use]
    pub fn new(files: Vec<Split>, access: Arc<dyn FileAccess>, limits: InputLimits) -> Self {
        let inputs = files.into_iter().map(|files| SideInput { files, built: Mutex::new(None) }).collect();
        Self { inputs, access: Some(access), limits }
    }

    /// For jobs that have none.
    #[must_use]
    pub fn none() -> Self {
        Self { inputs: Vec::new(), access: None, limits: InputLimits::default() }
    }

    /// What `build` makes of the records of side input `index`: their bytes with line ends, header rows left
    /// out, a line end added between files where one lacks it. Built by the first caller; others wait. If
    /// that fails, the next caller tries again.
    ///
    /// # Errors
    /// An index the plan does not have, a type that differs from the one built, input that cannot be read or
    /// is larger than 1 GiB, or the error of `build`.
    pub fn get<T: Any + Send + Sync>(
        &self,
        index: usize,
        build: impl FnOnce(&[u8]) -> TaskResult<T>,
    ) -> TaskResult<Arc<T>> {
        let (Some(input), Some(access)) = (self.inputs.get(index), &self.access) else {
            let count = self.inputs.len();
            return Err(TaskError::config(format!(
                "the plan has no side input {index}, but {count} of them"
            )));
        };
        // A `build` that panicked has stored nothing: the place is as good as new.
        let mut built = input.built.lock().unwrap_or_else(PoisonError::into_inner);
        let whole = match &*built {
            Some(whole) => whole.clone(),
            None => {
                let bytes = read_all(&input.files, &**access, &self.limits).map_err(task_error)?;
                let whole: Arc<dyn Any + Send + Sync> = Arc::new(build(&bytes)?);
                *built = Some(whole.clone());
                whole
            }
        };
        whole.downcast::<T>().map_err(|_| {
            let wanted = std::any::type_name::<T>();
            TaskError::config(format!("side input {index} was built as another type than {wanted}"))
        })
    }
}

fn read_all(files: &Split, access: &dyn FileAccess, limits: &InputLimits) -> Result<Vec<u8>, InputError> {
    let fixed = matches!(files.format, RecordFormat::Fixed { .. });
    let mut bytes = Vec::new();
    let mut blocks = open_split(files, access, limits);
    while let Some(block) = blocks.next_block()? {
        if SIDE_BYTES_MAX - bytes.len() <= block.bytes().len() {
            let path = block.source().path.as_str().into();
            return Err(InputError::SideTooLarge { path, limit: SIDE_BYTES_MAX as u64 });
        }
        if !fixed && bytes.last().is_some_and(|&last| last != b'\n') {
            bytes.push(b'\n');
        }
        bytes.extend_from_slice(block.bytes());
    }
    Ok(bytes)
}

fn task_error(error: InputError) -> TaskError {
    let at_fault = error.is_input_fault();
    let mut error = TaskError::from(error);
    if at_fault {
        error.kind = FailureKind::Input;
    }
    error
}
