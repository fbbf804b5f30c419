//! A custom partitioner, and a job without a reduce.
//!
//! `by-initial` counts words into 27 parts: one for each letter, the last for all that start with
//! anything else. `cut` writes one field of each line, in the order of the input. Not here: parts of
//! equal size, which the default partitioner produces.

use gristmill::prelude::*;

/// Count words, with a part of the output for each initial letter
#[derive(clap::Args, Serialize, Deserialize)]
struct ByInitial {
    /// Text files, or directories of them
    #[arg(required = true, value_name = "INPUT")]
    inputs: Vec<String>,
}

impl Job for ByInitial {
    const NAME: &'static str = "by-initial";

    fn plan(&self) -> Result<JobPlan, PlanError> {
        let words = |line: Record<'_>, out: &mut Emitter<ByteString, u64>| {
            text::for_each_word(&line, |word| out.emit(word, 1));
            Ok(())
        };
        Ok(JobPlan::map_each(Input::lines(&self.inputs), words)
            .combine(Sum::<u64>::default)
            .partition(Initial)
            .reduces(LETTERS + 1)
            .reduce(WriteTotal::<ByteString, Sum<u64>>::default))
    }
}

/// Number of letters of the alphabet. The part after theirs takes the rest.
const LETTERS: u32 = 26;

struct Initial;

impl Partitioner for Initial {
    type Key = ByteString;

    fn partition(&self, word: &[u8], _partitions: u32) -> u32 {
        match word.first().map(u8::to_ascii_lowercase) {
            Some(letter @ b'a'..=b'z') => u32::from(letter - b'a'),
            _ => LETTERS,
        }
    }
}

/// Write one field of each line
#[derive(clap::Args, Serialize, Deserialize)]
struct Cut {
    /// Files with lines of fields
    #[arg(required = true, value_name = "INPUT")]
    inputs: Vec<String>,
    /// Which field, from 1; lines with fewer are left out
    #[arg(long, value_name = "N")]
    field: usize,
    /// Separator of fields
    #[arg(long, value_name = "CHARACTER", default_value_t = ',')]
    delimiter: char,
}

impl Job for Cut {
    const NAME: &'static str = "cut";

    fn plan(&self) -> Result<JobPlan, PlanError> {
        let refuse = |parameter: &str, value: String, reason: &str| {
            let (parameter, reason) = (parameter.to_owned(), reason.to_owned());
            PlanError::Parameter { parameter, value, reason }
        };
        let index = self.field.checked_sub(1);
        let index = index.ok_or_else(|| refuse("--field", "0".to_owned(), "the first field is 1"))?;
        let delimiter = u8::try_from(self.delimiter);
        let delimiter =
            delimiter.map_err(|_| refuse("--delimiter", self.delimiter.to_string(), "one byte must do"))?;
        Ok(JobPlan::map_only(Input::lines(&self.inputs), move || CutField {
            index,
            delimiter,
            short: Counter::default(),
        }))
    }
}

struct CutField {
    index: usize,
    delimiter: u8,
    short: Counter,
}

impl MapOnly for CutField {
    fn setup(&mut self, task: &TaskContext) -> TaskResult {
        self.short = task.counter("lines without the field");
        Ok(())
    }

    fn map(&mut self, line: Record<'_>, out: &mut Output) -> TaskResult {
        match text::fields(&line, self.delimiter).nth(self.index) {
            Some(field) => out.line(field),
            None => self.short.add(1),
        }
        Ok(())
    }
}

fn main() -> std::process::ExitCode {
    gristmill::cli::main(Registry::new().job::<ByInitial>().job::<Cut>())
}
