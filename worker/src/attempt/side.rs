//! Side inputs: files that every task of a job may read as a whole, such as a lookup table.
//!
//! The value that a task builds of them is kept for the job's other tasks on this worker.

use super::refusal::refuse_record;
use super::{FailureKind, Progress, TaskError, TaskResult};
use crate::input::{
    BadRecords, Block, Blocks, FileAccess, FilePath, InputError, InputLimits, Piece, Record, Source, Split,
    open_split,
};
use crate::narration::{ITEMS_MAX, KeptInputs, RecordNarrator, StoryPiece, StoryRecord, Told};
use crate::sanitize;
use std::any::Any;
use std::ops::Range;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

/// Maximum bytes of a side input after decompression: it is held in memory.
const SIDE_BYTES_MAX: usize = 1 << 30;

/// Side inputs of one job on one worker.
pub struct SideInputs {
    inputs: Vec<SideInput>,
    access: Option<Arc<dyn FileAccess>>,
    limits: InputLimits,
    narrates: bool,
}

struct SideInput {
    files: Split,
    built: Mutex<Option<BuiltSide>>,
    /// Recorded records, for display; empty until it was read.
    told: OnceLock<KeptInputs>,
}

/// Value built of a side input, and the bad records that were skipped.
type BuiltSide = (Arc<dyn Any + Send + Sync>, BadRecords);

impl SideInputs {
    /// Creates side inputs in the order of the plan, each with its whole files as listed by
    /// [`plan_side`](crate::input::plan::plan_side). Nothing is read yet.
    #[must_use]
    pub fn new(files: Vec<Split>, access: Arc<dyn FileAccess>, limits: InputLimits) -> Self {
        let input = |files| SideInput { files, built: Mutex::new(None), told: OnceLock::new() };
        let inputs = files.into_iter().map(input).collect();
        Self { inputs, access: Some(access), limits, narrates: false }
    }

    /// Records the records that are read, within limits, for [`SideInputs::kept_inputs`].
    pub(crate) fn narrated(self, narrates: bool) -> Self {
        Self { narrates, ..self }
    }

    /// Returns the records read of the side inputs that tasks have requested, if they are recorded.
    pub(crate) fn kept_inputs(&self) -> Vec<KeptInputs> {
        self.inputs.iter().filter_map(|input| input.told.get().cloned()).collect()
    }

    /// Creates the side inputs of a job without any.
    #[must_use]
    pub fn none() -> Self {
        Self { inputs: Vec::new(), access: None, limits: InputLimits::default(), narrates: false }
    }

    /// Returns the value that `build` creates of the files of side input `index`, in input order. There is
    /// one block for each file with all its records, without the header. Files without records are left out.
    /// Built by the first caller; others wait. If it fails, the next caller tries again.
    ///
    /// # Errors
    /// An index that the plan does not have, or a type that differs from the one built. Input that cannot be
    /// read or is larger than 1 GiB, or the error of `build`.
    pub fn get<T: Any + Send + Sync>(
        &self,
        index: usize,
        build: impl FnOnce(&[Block<'_>]) -> TaskResult<T>,
    ) -> TaskResult<Arc<T>> {
        self.get_watched(index, None, |blocks, _| build(blocks)).map(|(built, _)| built)
    }

    /// As [`SideInputs::get`], with the skipped bad records. Observers of the attempt see that it waits for others and
    /// for files, and that only `build` is user code.
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
        // A `build` that panicked has stored nothing, so the state is valid.
        let engine = progress.map(|progress| progress.engine());
        let mut built = input.built.lock().unwrap_or_else(PoisonError::into_inner);
        let (whole, bad) = match &*built {
            Some(whole) => whole.clone(),
            None => {
                let bad = BadRecords::up_to(self.limits.bad_records_max);
                let read = SideContents::read(&input.files, &**access, &self.limits);
                let files = read.map_err(task_error)?;
                let blocks = files.blocks(&input.files);
                if self.narrates {
                    input.told.get_or_init(|| kept_records(&input.files, &blocks));
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

/// All files of a side input. Each file is separate: an incomplete last record is not continued in the next file.
#[derive(Default)]
struct SideContents {
    bytes: Vec<u8>,
    files: Vec<SideFile>,
}

/// One file in them.
struct SideFile {
    source: Source,
    /// Offset of its first record in the file.
    offset: u64,
    /// Range of its records in the bytes of all files.
    range: Range<usize>,
}

impl SideContents {
    fn read(side: &Split, access: &dyn FileAccess, limits: &InputLimits) -> Result<Self, InputError> {
        let mut contents = Self::default();
        for piece in &side.pieces {
            let file = Split { pieces: vec![piece.clone()], ..*side };
            contents.read_file(&file, access, limits)?;
        }
        Ok(contents)
    }

    fn read_file(
        &mut self,
        file: &Split,
        access: &dyn FileAccess,
        limits: &InputLimits,
    ) -> Result<(), InputError> {
        let begin = self.bytes.len();
        let mut first = None;
        let mut blocks = open_split(file, access, limits);
        while let Some(block) = blocks.next_block()? {
            if SIDE_BYTES_MAX - self.bytes.len() <= block.bytes().len() {
                return Err(InputError::refused(format!(
                    "side input {} makes more than {SIDE_BYTES_MAX} bytes, too much to hold in memory",
                    FilePath::from(block.source().path.as_str())
                )));
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

fn kept_records(side: &Split, blocks: &[Block<'_>]) -> KeptInputs {
    let mut narrator = RecordNarrator::default();
    for block in blocks {
        block.records().for_each(|record| narrator.record(record.offset(), record.bytes()));
    }
    kept_inputs(side, narrator.records)
}

/// Returns the ranges of files in a split, with these records.
pub(crate) fn kept_inputs(split: &Split, records: Told<StoryRecord>) -> KeptInputs {
    let told = |piece: &Piece| {
        let path = sanitize::line(&piece.name.to_text(), sanitize::MESSAGE_BYTES_MAX);
        StoryPiece { path, offset: piece.offset, length: piece.length }
    };
    KeptInputs { pieces: split.pieces.iter().take(ITEMS_MAX).map(told).collect(), records }
}

fn task_error(error: InputError) -> TaskError {
    let kind = if error.is_input_fault() { FailureKind::Input } else { FailureKind::Unavailable };
    let mut error = TaskError::from(error);
    error.kind = kind;
    error
}
