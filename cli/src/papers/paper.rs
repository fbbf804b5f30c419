//! `gristmill lab paper`: runs the experiments of papers and writes their page.
//!
//! The experiments and the page are implemented in the laboratory (`gristmill_papers`,
//! `gristmill_lab::report`).

use crate::interruption::watch_interruptions;
use crate::terminal::stdout_line;
use crate::text_table;
use crate::usage::usage;
use clap::Args;
use gristmill_lab::compare::{self, CompareProgress, Options, Workload};
use gristmill_lab::report::{Circumstances, Tally};
use gristmill_papers::{
    Context, FailedPaper, Interrupted, PAPERS, Paper, PaperDirectory, PaperScale, REAL_PAPERS, RealContext,
    Run, RunsDirectory, first_seed,
};
use gristmill_runtime::exit;
use gristmill_runtime::registry::Registry;
use gristmill_scheduler::catalogue::nearest;
use std::path::PathBuf;
use std::sync::Mutex;
use std::time::{Duration, Instant};

/// Name of all papers together.
const ALL: &str = "all";

/// Run the experiments of the papers again and write their figures and tables
#[derive(Args)]
#[command(
    after_help = "Examples:\n  gristmill lab paper overlap --quick\n  gristmill lab paper all --out report --overwrite\n  gristmill lab paper pairs --real"
)]
pub struct PaperCommand {
    /// asrpt, overlap, pairs, deadlines, stragglers, or all
    paper: String,
    /// Run on real processes: a cluster on this machine for each run, an hour for all papers; an interrupted call can
    /// be repeated and continues
    #[arg(long)]
    real: bool,
    /// Run for seconds per paper: the shapes, with wide intervals
    #[arg(long, conflicts_with = "full")]
    quick: bool,
    /// Use the sizes of the papers
    #[arg(long)]
    full: bool,
    /// Seed of all random numbers; two seeds share no run
    #[arg(long, value_name = "S", default_value_t = 1)]
    seed: u64,
    /// Directory for the page and its files [default: paper-NAME]
    #[arg(short, long, alias = "output", value_name = "DIR")]
    out: Option<PathBuf>,
    /// Replace the files of an earlier run
    #[arg(long)]
    overwrite: bool,
    /// Keep the runs of --real, traces and all, in the directory beside the page
    #[arg(long, requires = "real")]
    keep_runs: bool,
    /// Print the results as JSON
    #[arg(long)]
    json: bool,
    /// Print nothing on stderr but errors
    #[arg(long)]
    quiet: bool,
}

/// `gristmill lab paper NAME`.
pub fn paper(registry: &Registry, flags: &PaperCommand) -> anyhow::Result<u8> {
    if !flags.real {
        return run(PAPERS, flags, |experiment, context| experiment(context));
    }
    // Runs and inputs are stored here until the page contains the results, so that the same command can
    // continue.
    let interrupted = watch_interruptions()?;
    let runs = RunsDirectory::lock(&RunsDirectory::for_page(&flags.out_directory()))?;
    let kept = runs.path().display().to_string();
    let carry_out = |workload: &Workload, options: &Options, told: &mut dyn FnMut(CompareProgress<'_>)| {
        compare::run(registry, workload, options, Some(interrupted.clone()), told)
    };
    let code = run(REAL_PAPERS, flags, |experiment, context| {
        experiment(&RealContext {
            scale: context.scale,
            first_seed: context.first_seed,
            progress: context.progress,
            directory: runs.path(),
            carry_out: &carry_out,
        })
    });
    match &code {
        Ok(exit::OK) if !flags.keep_runs => runs.remove()?,
        Err(error) if error.is::<Interrupted>() => {
            say!("finished runs are kept in {kept}: the same command continues there");
        }
        _ => say!("finished runs are kept in {kept}"),
    }
    code
}

/// Runs the experiments of the chosen papers and writes their page. A failed paper is left out.
fn run<E: Copy>(
    papers: &[(&'static str, E)],
    flags: &PaperCommand,
    carry_out: impl Fn(&E, &Context<'_>) -> anyhow::Result<Paper>,
) -> anyhow::Result<u8> {
    let chosen = chosen(papers, &flags.paper)?;
    let directory = PaperDirectory::claim(&flags.out_directory(), flags.overwrite)?;
    let mut run = Run {
        asked: flags.paper.clone(),
        real: flags.real,
        scale: flags.scale(),
        seed: flags.seed,
        papers: Vec::new(),
        failures: Vec::new(),
    };
    let mut seconds = Vec::new();
    for (name, experiment) in chosen {
        let progress = PaperProgress::start(name, flags.quiet);
        let tell = |words: &str| progress.print(words);
        let context = Context { scale: run.scale, first_seed: first_seed(run.seed), progress: &tell };
        let result = carry_out(&experiment, &context);
        let taken = progress.end();
        match result {
            Ok(paper) => {
                run.papers.push(paper);
                seconds.push((name.to_owned(), taken.as_secs_f64()));
            }
            // Partial results make no page: nothing is written.
            Err(error) if error.is::<Interrupted>() => return Err(error),
            Err(error) => {
                let error = gristmill_runtime::chain(error.as_ref());
                say!("error: {name}: {error}");
                run.failures.push(FailedPaper { name: name.to_owned(), error });
            }
        }
    }
    if run.papers.is_empty() {
        return Ok(exit::FAILED);
    }
    write_page(&run, directory, seconds, flags)?;
    Ok(if run.failures.is_empty() { exit::OK } else { exit::FAILED })
}

/// Writes the page and prints the results.
fn write_page(
    run: &Run,
    directory: PaperDirectory,
    seconds: Vec<(String, f64)>,
    flags: &PaperCommand,
) -> anyhow::Result<()> {
    let command: Vec<String> = std::env::args().skip(1).collect();
    let circumstances = Circumstances::now(format!("gristmill {}", command.join(" ")), seconds);
    let page = directory.path().join("index.html");
    directory.write(&run.files(&circumstances)?)?;
    let taken = &circumstances.seconds;
    stdout_line(&if flags.json { json(run, taken)? } else { table(run, taken) })?;
    if !flags.quiet {
        say!("{}", page.display());
    }
    Ok(())
}

impl PaperCommand {
    fn out_directory(&self) -> PathBuf {
        let real = if self.real { "-real" } else { "" };
        self.out.clone().unwrap_or_else(|| PathBuf::from(format!("paper-{}{real}", self.paper)))
    }

    fn scale(&self) -> PaperScale {
        match (self.quick, self.full) {
            (true, _) => PaperScale::Quick,
            (_, true) => PaperScale::Full,
            _ => PaperScale::Normal,
        }
    }
}

/// Returns the papers of this name.
fn chosen<E: Copy>(papers: &[(&'static str, E)], name: &str) -> anyhow::Result<Vec<(&'static str, E)>> {
    if name == ALL && !papers.is_empty() {
        return Ok(papers.to_vec());
    }
    if let Some(&found) = papers.iter().find(|(known, _)| *known == name) {
        return Ok(vec![found]);
    }
    let known: Vec<&str> = papers.iter().map(|(known, _)| *known).chain([ALL]).collect();
    let meant = nearest(name, known.iter().copied()).map(|near| format!("did you mean `{near}`? "));
    let list = known.join(", ");
    Err(usage(format!("paper `{name}` does not exist; {}Papers: {list}", meant.unwrap_or_default())))
}

/// Results, a line for each paper.
fn table(run: &Run, seconds: &[(String, f64)]) -> String {
    let header = [
        "paper",
        "printed",
        "agree",
        "reference",
        "agree",
        "claims",
        "hold",
        "partly",
        "fail",
        "open",
        "seconds",
    ];
    let rows = run.papers.iter().zip(seconds).map(|(paper, (_, seconds))| {
        let Tally { printed, reference, claims } = Tally::count(&paper.sections);
        let agreement = [printed.total(), printed.holds, reference.total(), reference.holds];
        let claims = [claims.total(), claims.holds, claims.partly, claims.fails, claims.open];
        let counts = agreement.iter().chain(&claims).map(ToString::to_string);
        std::iter::once(paper.name.to_owned())
            .chain(counts)
            .chain([format!("{seconds:.1}")])
            .collect::<Vec<_>>()
    });
    text_table::table(&header, rows)
}

fn json(run: &Run, seconds: &[(String, f64)]) -> anyhow::Result<String> {
    let papers: Vec<serde_json::Value> = run
        .papers
        .iter()
        .zip(seconds)
        .map(|(paper, (_, seconds))| {
            let Tally { printed, reference, claims } = Tally::count(&paper.sections);
            serde_json::json!({
                "paper": paper.name, "printed": printed, "reference": reference, "claims": claims, "seconds": seconds
            })
        })
        .collect();
    let whole = serde_json::json!({
        "schema": gristmill_papers::SCHEMA,
        "command": run.command(),
        "papers": papers,
        "failures": run.failures,
    });
    Ok(serde_json::to_string_pretty(&whole)?)
}

/// Minimum pause between lines of progress.
const LINE_PAUSE: Duration = Duration::from_secs(2);

/// Printer of a paper's progress.
struct PaperProgress {
    name: &'static str,
    quiet: bool,
    start: Instant,
    /// Time of the last line.
    last: Mutex<Instant>,
}

impl PaperProgress {
    fn start(name: &'static str, quiet: bool) -> Self {
        let start = Instant::now();
        if !quiet {
            say!("{name}: started");
        }
        Self { name, quiet, start, last: Mutex::new(start) }
    }

    fn print(&self, words: &str) {
        // A panic elsewhere while the lock was held does not invalidate a time.
        let mut last = self.last.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        if !self.quiet && last.elapsed() >= LINE_PAUSE {
            *last = Instant::now();
            // The name is already in the line.
            let words =
                words.strip_prefix(self.name).and_then(|rest| rest.strip_prefix(": ")).unwrap_or(words);
            say!("{} {:.0} s: {words}", self.name, self.start.elapsed().as_secs_f64());
        }
    }

    fn end(self) -> Duration {
        let taken = self.start.elapsed();
        if !self.quiet {
            say!("{}: done in {:.1} s", self.name, taken.as_secs_f64());
        }
        taken
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use gristmill_lab::report::{Block, Claim, Compared, Section, Verdict};
    use gristmill_papers::{Experiment, Paper};
    use std::path::Path;

    /// Seven numbers, of which four agree, and a claim for each verdict.
    fn made_up() -> Paper {
        use Verdict::{Fails, Holds, Open, Partly};
        let number = |verdict| Compared {
            what: "load 0.75".to_owned(),
            printed: Some(3.32),
            reference: None,
            ours: 3.33,
            half_width: None,
            verdict,
            note: String::new(),
        };
        let claim = |verdict| Claim {
            place: "Corollary 4".to_owned(),
            statement: "the mean is at most twice the optimum".to_owned(),
            verdict,
            evidence: "437 instances".to_owned(),
        };
        let numbers = [Holds, Holds, Partly, Holds, Fails, Holds, Open].map(number).to_vec();
        let claims = [Holds, Partly, Fails, Open].map(claim).to_vec();
        let blocks = vec![Block::Comparison(numbers), Block::Claims(claims)];
        let section = Section::new("table-2", "Table 2: means", [""; 0], blocks);
        Paper { name: "demo", title: "A Paper Made Up", about: Vec::new(), sections: vec![section] }
    }

    fn demo(context: &Context<'_>) -> anyhow::Result<Paper> {
        (context.progress)("drawing");
        let mut paper = made_up();
        paper.about.push(format!("{:?} from {}", context.scale, context.first_seed));
        Ok(paper)
    }

    fn fails(_: &Context<'_>) -> anyhow::Result<Paper> {
        Err(anyhow::anyhow!("no trace").context("could not run figure 1"))
    }

    const DEMOS: &[(&str, Experiment)] = &[("demo", demo), ("fails", fails)];

    fn flags(paper: &str, out: &Path) -> PaperCommand {
        PaperCommand {
            paper: paper.to_owned(),
            real: false,
            quick: true,
            full: false,
            seed: 5,
            out: Some(out.to_path_buf()),
            overwrite: false,
            keep_runs: false,
            json: false,
            quiet: true,
        }
    }

    fn carry_out(flags: &PaperCommand) -> anyhow::Result<u8> {
        run(DEMOS, flags, |experiment, context| experiment(context))
    }

    #[test]
    fn run_writes_the_page_with_the_scale_and_the_seed() {
        let root = tempfile::tempdir().unwrap();
        let out = root.path().join("out");
        assert_eq!(carry_out(&flags("demo", &out)).unwrap(), exit::OK);
        let page = std::fs::read_to_string(out.join("index.html")).unwrap();
        let from = format!("Quick from {}", first_seed(5));
        assert!(page.contains(&from) && page.contains("gristmill lab paper demo --quick --seed 5"));
    }

    #[test]
    fn paper_that_fails_is_named_on_the_page_of_the_others() {
        let root = tempfile::tempdir().unwrap();
        let out = root.path().join("out");
        assert_eq!(carry_out(&flags("all", &out)).unwrap(), exit::FAILED);
        let page = std::fs::read_to_string(out.join("index.html")).unwrap();
        assert!(page.contains("<code>fails</code> is missing: could not run figure 1: no trace"));
        let alone = root.path().join("alone");
        assert_eq!(carry_out(&flags("fails", &alone)).unwrap(), exit::FAILED);
        assert!(!alone.exists(), "there is nothing to write");
    }

    #[test]
    fn unknown_paper_names_the_nearest() {
        let error = carry_out(&flags("dmeo", Path::new("never"))).unwrap_err().to_string();
        assert_eq!(error, "paper `dmeo` does not exist; did you mean `demo`? Papers: demo, fails, all");
    }

    #[test]
    fn table_has_a_line_for_each_paper() {
        let papers = vec![made_up()];
        let run = Run {
            asked: "all".to_owned(),
            real: false,
            scale: PaperScale::Full,
            seed: 1,
            papers,
            failures: Vec::new(),
        };
        let text = table(&run, &[("demo".to_owned(), 12.34)]);
        let words: Vec<Vec<&str>> = text.lines().map(|line| line.split_whitespace().collect()).collect();
        let numbers = ["printed", "agree", "reference", "agree"];
        let claims = ["claims", "hold", "partly", "fail", "open"];
        assert_eq!(words[0], [&["paper"][..], &numbers, &claims, &["seconds"]].concat());
        assert_eq!(words[1], ["demo", "7", "4", "0", "0", "4", "1", "1", "1", "1", "12.3"]);
        assert_eq!(json(&run, &[("demo".to_owned(), 1.0)]).unwrap().lines().next(), Some("{"));
    }
}
