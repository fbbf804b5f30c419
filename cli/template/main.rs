//! Counts words: change `plan` into a job of your own.

use gristmill::prelude::*;

/// Count words
#[derive(clap::Args, Serialize, Deserialize)]
struct MyJob {
    /// Files to read, or directories of them
    #[arg(required = true)]
    inputs: Vec<String>,
}

impl Job for MyJob {
    const NAME: &'static str = "my-job";

    fn plan(&self) -> Result<JobPlan, PlanError> {
        let words = |line: Record<'_>, out: &mut Emitter<String, u64>| {
            for word in line.text().split_whitespace() {
                out.emit(word, 1);
            }
            Ok(())
        };
        Ok(JobPlan::map_each(Input::lines(&self.inputs), words)
            .combine(Sum::new)
            .reduce(WriteTotal::<String, Sum<u64>>::default))
    }
}

fn main() -> std::process::ExitCode {
    gristmill::cli::main(Registry::standard().job::<MyJob>())
}

#[test]
fn words_are_counted() {
    let job = MyJob { inputs: vec!["in".to_owned()] };
    let written = gristmill::testing::Trial::new(job).file("in", "b a b\n").run().unwrap();
    assert_eq!(written.lines(), ["a\t1", "b\t2"]);
}
