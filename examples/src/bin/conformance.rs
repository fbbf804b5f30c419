//! Jobs that `tests/oracles/conformance.py` requires of every MapReduce: word count, an index, and a word
//! count whose calls report their actions and can be ordered to wait or die.
//! `tests/oracles/conformance.py --protocol` documents each mark and order.

use gristmill::prelude::*;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};
use std::{fs, io, process, thread};

/// Sleep of a call that is ordered to stall.
const STALL: Duration = Duration::from_secs(300);
/// Maximum wait, after which the test that would end it has ended.
const HOLD_MAX: Duration = Duration::from_secs(120);
const LOOK: Duration = Duration::from_millis(10);

/// Count words
#[derive(clap::Args, Serialize, Deserialize)]
struct WordCount {
    /// Text files
    inputs: Vec<String>,
}

impl Job for WordCount {
    const NAME: &'static str = "wc";

    fn plan(&self) -> Result<JobPlan, PlanError> {
        let count = |line: Record<'_>, out: &mut Emitter<String, u64>| {
            words(&line.text()).for_each(|word| out.emit(word, 1));
            Ok(())
        };
        let totals = WriteTotal::<String, Sum<u64>>::default;
        Ok(JobPlan::map_each(Input::lines(&self.inputs), count).combine(Sum::new).reduce(totals))
    }
}

/// List for each word the files it occurs in
#[derive(clap::Args, Serialize, Deserialize)]
struct Index {
    /// Text files
    inputs: Vec<String>,
}

impl Job for Index {
    const NAME: &'static str = "indexer";

    fn plan(&self) -> Result<JobPlan, PlanError> {
        let name_files = |line: Record<'_>, out: &mut Emitter<String, String>| {
            words(&line.text()).for_each(|word| out.emit(word, name_of(&line.source().path)));
            Ok(())
        };
        Ok(JobPlan::map_each(Input::lines(&self.inputs), name_files).reduce_each(|word, names, out| {
            let names = std::collections::BTreeSet::from_iter(names.iter());
            let listed = Vec::from_iter(names.iter().map(String::as_str)).join(",");
            out.pair(word, format!("{} {listed}", names.len()));
            Ok(())
        }))
    }
}

/// Count words, with a mark around each call
#[derive(clap::Args, Serialize, Deserialize)]
struct Marked {
    /// Directory of marks and orders
    #[arg(long, env = "MR_MARKS", value_name = "DIR")]
    marks: PathBuf,
    /// Text files
    inputs: Vec<String>,
}

impl Job for Marked {
    const NAME: &'static str = "marked";

    fn plan(&self) -> Result<JobPlan, PlanError> {
        let (of_maps, of_reduces) = (self.marks.clone(), self.marks.clone());
        let mapper = move || MarkedWords { marks: of_maps.clone(), call: None };
        Ok(JobPlan::map(Input::lines(&self.inputs), mapper).reduce_each(move |word: &str, counts, out| {
            let call = Call::start(&of_reduces, "reduce", word)?;
            out.pair(word, counts.iter().sum::<u64>());
            Ok(call.end()?)
        }))
    }
}

/// One object processes one file here, so the time between its first line and its end is one call.
struct MarkedWords {
    marks: PathBuf,
    call: Option<Call>,
}

impl Mapper for MarkedWords {
    type Key = String;
    type Value = u64;

    fn map(&mut self, line: Record<'_>, out: &mut Emitter<String, u64>) -> TaskResult {
        if self.call.is_none() {
            self.call = Some(Call::start(&self.marks, "map", &name_of(&line.source().path))?);
        }
        words(&line.text()).for_each(|word| out.emit(word, 1));
        Ok(())
    }

    fn finish(&mut self, _out: &mut Emitter<String, u64>) -> TaskResult {
        Ok(self.call.take().map_or(Ok(()), Call::end)?)
    }
}

/// Call in progress.
struct Call {
    mark: PathBuf,
}

impl Call {
    /// Reports the start of the call, and executes the orders it finds.
    fn start(marks: &Path, kind: &str, name: &str) -> io::Result<Self> {
        static NUMBERS: AtomicU64 = AtomicU64::new(0);
        let number = NUMBERS.fetch_add(1, Ordering::Relaxed);
        let mark = marks.join(format!("{kind}.{name}.{}.{number}", process::id()));
        fs::write(mark.with_added_extension("began"), "")?;
        if fs::remove_file(marks.join(format!("crash.{kind}.{name}"))).is_ok() {
            process::exit(1);
        }
        if fs::remove_file(marks.join(format!("stall.{kind}.{name}"))).is_ok() {
            thread::sleep(STALL);
        }
        let (hold, begun) = (marks.join(format!("hold.{kind}")), Instant::now());
        while hold.exists() {
            if HOLD_MAX < begun.elapsed() {
                process::exit(3);
            }
            thread::sleep(LOOK);
        }
        Ok(Self { mark })
    }

    fn end(self) -> io::Result<()> {
        fs::write(self.mark.with_added_extension("ended"), "")
    }
}

fn words(line: &str) -> impl Iterator<Item = &str> {
    line.split(|letter: char| !letter.is_ascii_alphabetic()).filter(|word| !word.is_empty())
}

/// Returns the name of a file without its directory.
fn name_of(path: &str) -> String {
    path.rsplit('/').next().unwrap_or(path).to_owned()
}

fn main() -> process::ExitCode {
    gristmill::cli::main(Registry::new().job::<WordCount>().job::<Index>().job::<Marked>())
}
