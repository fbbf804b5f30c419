//! A typical student submission: counts words, each multiplied by the number at the end of the program's own
//! file. Copies with other numbers appended are therefore other programs with other results.
//!
//! ```text
//! cp target/debug/examples/exercise mine && printf 'answer %09d' 42 >> mine
//! ./mine submit --ship exercise README.md
//! ```

use gristmill::prelude::*;
use std::fs::File;
use std::io::{Read, Seek, SeekFrom};

/// Bytes of the number with the word before it.
const ANSWER_BYTES: i64 = 16;

/// Count words, each times this program's own number
#[derive(clap::Args, Serialize, Deserialize, Clone, Debug)]
struct Exercise {
    /// Text files
    #[arg(required = true, value_name = "INPUT")]
    inputs: Vec<String>,
    /// Run maps to lines only, without a reduce
    #[arg(long)]
    map_only: bool,
}

/// Returns the number at the end of the running program's file; 1 if there is none.
fn answer() -> Result<u64, TaskError> {
    let read = || {
        let mut file = File::open("/proc/self/exe")?;
        file.seek(SeekFrom::End(-ANSWER_BYTES))?;
        let mut bytes = Vec::new();
        file.read_to_end(&mut bytes)?;
        Ok::<_, std::io::Error>(String::from_utf8_lossy(&bytes).into_owned())
    };
    let text = read().map_err(|error| TaskError::new(error.to_string()))?;
    Ok(text.strip_prefix("answer ").and_then(|number| number.parse().ok()).unwrap_or(1))
}

struct Words;

impl Mapper for Words {
    type Key = String;
    type Value = u64;

    fn map(&mut self, line: Record<'_>, out: &mut Emitter<String, u64>) -> TaskResult {
        let times = answer()?;
        line.text().split_whitespace().for_each(|word| out.emit(word, times));
        Ok(())
    }
}

struct Sum;

impl Reducer for Sum {
    type Key = String;
    type Value = u64;

    fn reduce(&mut self, word: &str, counts: &mut Values<'_, String, u64>, out: &mut Output) -> TaskResult {
        // Both factors are visible: the mapper's number is in the sum.
        let sum: u64 = counts.iter().sum();
        out.pair(word, format!("{sum} by {}", answer()?));
        Ok(())
    }
}

struct Lines;

impl MapOnly for Lines {
    fn map(&mut self, line: Record<'_>, out: &mut Output) -> TaskResult {
        out.pair(answer()?, &*line.text());
        Ok(())
    }
}

impl Job for Exercise {
    const NAME: &'static str = "exercise";

    fn plan(&self) -> Result<JobPlan, PlanError> {
        let input = Input::lines(&self.inputs);
        Ok(match self.map_only {
            true => JobPlan::map_only(input, || Lines),
            false => JobPlan::map(input, || Words).reduce(|| Sum),
        })
    }
}

fn main() -> std::process::ExitCode {
    gristmill::cli::main(Registry::standard().job::<Exercise>())
}
