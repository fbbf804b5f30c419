//! An inverted index: for each word, the files it occurs in, sorted. Positions and ranking are not here.

use gristmill::prelude::*;

/// List for each word the files it occurs in
#[derive(clap::Args, Serialize, Deserialize)]
struct InvertedIndex {
    /// Text files, or directories of them
    #[arg(required = true)]
    inputs: Vec<String>,
}

impl Job for InvertedIndex {
    const NAME: &'static str = "inverted-index";

    fn plan(&self) -> Result<JobPlan, PlanError> {
        Ok(JobPlan::map(Input::lines(&self.inputs), || Words).combine(|| Union).reduce(|| WriteFiles))
    }
}

type Files = std::collections::BTreeSet<String>;

struct Words;
impl Mapper for Words {
    type Key = String;
    type Value = Files;

    fn map(&mut self, line: Record<'_>, out: &mut Emitter<String, Files>) -> TaskResult {
        for word in text::unicode_words(&line.text()) {
            out.emit(&word.to_lowercase(), Files::from([line.source().path.clone()]));
        }
        Ok(())
    }
}

/// Union of sets. It is associative and commutative, as a combiner must be.
struct Union;
impl Combiner for Union {
    type Value = Files;

    fn combine(&mut self, files: &mut Files, more: Files) {
        files.extend(more);
    }
}

struct WriteFiles;
impl Reducer for WriteFiles {
    type Key = String;
    type Value = Files;

    fn reduce(&mut self, word: &str, sets: &mut Values<'_, String, Files>, out: &mut Output) -> TaskResult {
        out.pair(word, Vec::from_iter(sets.iter().flatten()).join(" "));
        Ok(())
    }
}

fn main() -> std::process::ExitCode {
    gristmill::cli::main(Registry::new().job::<InvertedIndex>())
}
