//! Side inputs: files that every task of a job may read as a whole, such as a lookup table.
//!
//! What a task builds of them is kept for the job's other tasks on this worker.

use super::refusal::refuse_record;
use super::{FailureKind, Progress, TaskError, TaskResult};
use crate::clean;
use crate::input::{
    BadRecords, Block, Blocks, FileAccess, InputError, InputLimits, Piece, Record, Source, Split, open_split,
};
use crate::narration::{ITEMS_MAX, KeptInputs, PieceTold, RecordNarrator, RecordTold, Told};
use std::any::Any;
use std::ops::Range;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

/// Bytes a side input may have after decompression: it is held in memory.
const SIDE_BYTES_MAX: usize = 1 << 30;

/// The side inputs of one job on one worker.
pub struct SideInputs {
    inputs: Vec<SideInput>,
    access: Option<Arc<dyn FileAccess>>,
    limits: InputLimits,
    narrates: bool,
}

struct SideInput {
    files: Split,
    built: Mutex<Option<BuiltSide>>,
    /// Its records, for a person; nothing until it was read.
    told: OnceLock<KeptInputs>,
}

/// What was built of a side input, and the bad records that were left out.
type BuiltSide = (Arc<dyn Any + Send + Sync>, BadRecords);

impl SideInputs {
    /// Side inputs in the order of the plan, each with its whole files as
    /// [`plan_side`](crate::input::plan::plan_side) lists them. Nothing is read yet.
    #[must_use]
    pub fn new(files: Vec<Split>, access: Arc<dyn FileAccess>, limits: InputLimits) -> Self {
        let input = |files| SideInput { files, built: Mutex::new(None), told: OnceLock::new() };
        let inputs = files.into_iter().map(input).collect();
        Self { inputs, access: Some(access), limits, narrates: false }
    }

    /// Keeps the records that are read, within bounds, for [`SideInputs::told`].
    pub(crate) fn narrated(self, narrates: bool) -> Self {
        Self { narrates, ..self }
    }

    /// What was read of those that tasks have asked for, if it is to be told.
    pub(crate) fn told(&self) -> Vec<KeptInputs> {
        self.inputs.iter().filter_map(|input| input.told.get().cloned()).collect()
    }

    /// For jobs that have none.
    #[must_use]
    pub fn none() -> Self {
        Self { inputs: Vec::new(), access: None, limits: InputLimits::default(), narrates: false }
    }

    /// What `build` makes of the files of side input `index`, in input order: one block for each with all its
    /// records, the header left out; files without records are left out. Built by the first caller; others wait.
    /// If that fails, the next caller tries again.
    ///
    /// # Errors
    /// An index the plan does not have, a type that differs from the one built, input that cannot be read or
    /// is larger than 1 GiB, or the error of `build`.
    pub fn get<T: Any + Send + Sync>(
        &self,
        index: usize,
        build: impl FnOnce(&[Block<'_>]) -> TaskResult<T>,
    ) -> TaskResult<Arc<T>> {
        self.get_watched(index, None, |blocks, _| build(blocks)).map(|(built, _)| built)
    }

    /// As [`SideInputs::get`], also with the bad records that were left out; whoever watches the attempt sees that it waits
    /// for others and for files, and that only `build` is user code.
    pub(crate) fn get_watched<T: Any + Send + Sync>(
        &self,
        index: usize,
        progress: Option<&Arc<Progress>>,
        build: impl FnOnce(&[Block<'_>], &dyn Fn(Record<'_>, TaskError) -> TaskResult) -> TaskResult<T>,
    ) -> TaskResult<(Arc<T>, BadRecords)> {
        let (Some(input), Some(access)) = (self.inputs.get(index), &self.access) else {
            let count = self.inputs.len();
            return Err(TaskError::config(format!(
                "the plan has no side input {index}, but {count} of them"
            )));
        };
        // A `build` that panicked has stored nothing: the place is as good as new.
        let engine = progress.map(|progress| progress.engine());
        let mut built = input.built.lock().unwrap_or_else(PoisonError::into_inner);
        let (whole, bad) = match &*built {
            Some(whole) => whole.clone(),
            None => {
                let bad = BadRecords::up_to(self.limits.bad_records_max);
                let read = SideContents::read(&input.files, &**access, &self.limits, &bad);
                let files = read.map_err(task_error)?;
                let blocks = files.blocks(&input.files);
                if self.narrates {
                    input.told.get_or_init(|| told(&input.files, &blocks));
                }
                drop(engine);
                let refuse = |record: Record<'_>, error| refuse_record(&bad, record, error);
                let whole: Arc<dyn Any + Send + Sync> = Arc::new(build(&blocks, &refuse)?);
                built.insert((whole, bad)).clone()
            }
        };
        let typed = whole.downcast::<T>().map_err(|_| {
            let wanted = std::any::type_name::<T>();
            TaskError::config(format!("side input {index} was built as another type than {wanted}"))
        });
        Ok((typed?, bad))
    }
}

/// All files of a side input. Each ends with itself: what a file's last record lacks is not made up by the next.
#[derive(Default)]
struct SideContents {
    bytes: Vec<u8>,
    files: Vec<SideFile>,
}

/// One file in them.
struct SideFile {
    source: Source,
    /// Where its first record lies in the file.
    offset: u64,
    /// Where its records lie in the bytes of all files.
    range: Range<usize>,
}

impl SideContents {
    fn read(
        side: &Split,
        access: &dyn FileAccess,
        limits: &InputLimits,
        bad: &BadRecords,
    ) -> Result<Self, InputError> {
        let mut contents = Self::default();
        for piece in &side.pieces {
            let file = Split { pieces: vec![piece.clone()], ..*side };
            contents.read_file(&file, access, limits, bad)?;
        }
        Ok(contents)
    }

    fn read_file(
        &mut self,
        file: &Split,
        access: &dyn FileAccess,
        limits: &InputLimits,
        bad: &BadRecords,
    ) -> Result<(), InputError> {
        let begin = self.bytes.len();
        let mut first = None;
        let mut blocks = open_split(file, access, limits).leaving_out_into(bad);
        while let Some(block) = blocks.next_block()? {
            if SIDE_BYTES_MAX - self.bytes.len() <= block.bytes().len() {
                let path = block.source().path.as_str().into();
                return Err(InputError::SideTooLarge { path, limit: SIDE_BYTES_MAX as u64 });
            }
            if first.is_none() {
                first = Some((block.source().clone(), block.offset()));
            }
            self.bytes.extend_from_slice(block.bytes());
        }
        if let Some((source, offset)) = first {
            self.files.push(SideFile { source, offset, range: begin..self.bytes.len() });
        }
        Ok(())
    }

    fn blocks(&self, side: &Split) -> Vec<Block<'_>> {
        let files = self.files.iter();
        files
            .map(|file| Block::new(&self.bytes[file.range.clone()], file.offset, side.format, &file.source))
            .collect()
    }
}

fn told(side: &Split, blocks: &[Block<'_>]) -> KeptInputs {
    let mut narrator = RecordNarrator::default();
    for block in blocks {
        block.records().for_each(|record| narrator.record(record.offset(), record.bytes()));
    }
    kept_inputs(side, narrator.records)
}

/// The stretches of files in a split, with these records.
pub(crate) fn kept_inputs(split: &Split, records: Told<RecordTold>) -> KeptInputs {
    let told = |piece: &Piece| {
        let path = clean::line(&piece.name.to_text(), clean::MESSAGE_BYTES_MAX);
        PieceTold { path, offset: piece.offset, length: piece.length }
    };
    KeptInputs { pieces: split.pieces.iter().take(ITEMS_MAX).map(told).collect(), records }
}

fn task_error(error: InputError) -> TaskError {
    let kind = if error.is_input_fault() { FailureKind::Input } else { FailureKind::Unavailable };
    let mut error = TaskError::from(error);
    error.kind = kind;
    error
}
