//! `gristmill-bench`: measures Gristmill compared with other systems, and small jobs.
//!
//! `scripts/bench.sh` sets up what this needs and starts it. Missing systems are reported and skipped. Micro benchmarks
//! of single parts are run by `cargo bench`.

mod archive;
mod bench;
mod check;
mod latency;
mod machine;
mod measure;
mod places;
mod process;
mod report;
mod rows;
mod stats;
mod table;

use crate::archive::{Archive, latest, now};
use crate::bench::Bench;
use crate::machine::MachineFacts;
use crate::places::{Places, Roots};
use crate::rows::{BenchRow, ROWS};
use anyhow::{Context, bail};
use clap::{Args, Parser, Subcommand};
use std::fs;
use std::io::Write;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

/// Measures Gristmill as whole processes and writes a report
///
/// Exit code 0: measured, whether targets are met or not. 1: something failed, or outputs differ.
#[derive(Parser)]
#[command(max_term_width = 100)]
struct BenchArguments {
    #[command(flatten)]
    common: Common,
    #[command(subcommand)]
    what: Option<What>,
}

#[derive(Args)]
struct Common {
    /// Directory for programs made for measuring, outputs and spills
    #[arg(
        long,
        value_name = "DIR",
        env = "GRISTMILL_BENCH_HOME",
        default_value = "target/bench",
        global = true
    )]
    home: PathBuf,
    /// Directory with the inputs [default: data in the home directory]
    #[arg(long, value_name = "DIR", env = "GRISTMILL_BENCH_DATA", global = true)]
    data: Option<PathBuf>,
    /// Directory with the other systems' jobs
    #[arg(
        long,
        value_name = "DIR",
        env = "GRISTMILL_BENCH_PEERS",
        default_value = "../shared/peers",
        global = true
    )]
    peers: PathBuf,
    /// Gristmill program
    #[arg(long, value_name = "FILE", default_value = "target/dist/gristmill", global = true)]
    program: PathBuf,
    /// Gristmill program with jobs made for measuring [default: next to this one]
    #[arg(long, value_name = "FILE", global = true)]
    jobs: Option<PathBuf>,
    /// Directory for results [default: benches/results/ and the day]
    #[arg(long, value_name = "DIR", global = true)]
    results: Option<PathBuf>,
    /// Counted runs of the table [default: 5]
    #[arg(long, value_name = "N", global = true, value_parser = clap::value_parser!(u32).range(1..))]
    rounds: Option<u32>,
    /// Maximum time of a run, seconds
    #[arg(long, value_name = "S", default_value_t = 900, global = true)]
    timeout: u64,
}

#[derive(Subcommand)]
enum What {
    /// Everything, one after another; also without a command
    All,
    /// Whole jobs compared with other systems
    Table {
        /// Rows [default: all]
        rows: Vec<String>,
        /// Only Gristmill and the limit
        #[arg(long)]
        no_peers: bool,
    },
    /// Small jobs and many tasks
    Latency {
        /// Cold starts
        #[arg(long, value_name = "N", default_value_t = 50)]
        cold_runs: u32,
        /// Jobs on a warm cluster
        #[arg(long, value_name = "N", default_value_t = 200)]
        warm_jobs: u32,
    },
}

fn main() -> ExitCode {
    match run(BenchArguments::parse()) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}

/// Runs the command. Returns true if everything ran as expected.
fn run(arguments: BenchArguments) -> anyhow::Result<bool> {
    let invocation = now();
    let common = arguments.common;
    let home = absolute(&common.home)?;
    let _lock = places::lock(&home)?;
    let own = std::env::current_exe().context("this program does not know where it is")?;
    let roots = Roots {
        data: absolute(&common.data.unwrap_or_else(|| home.join("data")))?,
        peers: absolute(&common.peers)?,
        program: absolute(&common.program)?,
        jobs: absolute(&common.jobs.unwrap_or_else(|| own.with_file_name("gristmill-bench-jobs")))?,
        home,
    };
    let day = gristmill::wall_time::date(invocation);
    let results = common.results.unwrap_or_else(|| PathBuf::from("benches/results").join(&day));
    let mut bench = Bench {
        places: Places::new(&roots),
        archive: Archive::open(&results)?,
        invocation,
        timeout: Duration::from_secs(common.timeout),
        failed: false,
    };
    let outcome = measure(&mut bench, arguments.what.unwrap_or(What::All), common.rounds.unwrap_or(5));
    write_machine(&bench, day)?;
    // Measurements made before an error are also reported.
    let text = write_report(&bench);
    outcome?;
    print(&text?)?;
    Ok(!bench.failed)
}

fn measure(bench: &mut Bench, what: What, rounds: u32) -> anyhow::Result<()> {
    match what {
        What::All => {
            let options = table::TableOptions { rounds, no_peers: false };
            ROWS.iter().try_for_each(|row| table::measure_row(bench, row, options))?;
            latency::measure_all(bench, latency::LatencyOptions { cold_runs: 50, warm_jobs: 200 })
        }
        What::Table { rows, no_peers } => {
            let options = table::TableOptions { rounds, no_peers };
            chosen(&rows)?.iter().try_for_each(|row| table::measure_row(bench, row, options))
        }
        What::Latency { cold_runs, warm_jobs } => {
            latency::measure_all(bench, latency::LatencyOptions { cold_runs, warm_jobs })
        }
    }
}

/// Returns the rows of these names, or all if there are none.
fn chosen(names: &[String]) -> anyhow::Result<Vec<BenchRow>> {
    if names.is_empty() {
        return Ok(ROWS.to_vec());
    }
    let by_name = |name: &String| {
        rows::row(name).with_context(|| {
            let known: Vec<&str> = ROWS.iter().map(|row| row.name).collect();
            format!("there is no row `{name}`; there is {}", known.join(", "))
        })
    };
    names.iter().map(by_name).collect()
}

fn write_machine(bench: &Bench, day: String) -> anyhow::Result<()> {
    let path = bench.archive.directory().join("machine.json");
    let text = serde_json::to_string_pretty(&MachineFacts::read(&bench.places, day))?;
    fs::write(&path, text + "\n").with_context(|| format!("could not write {}", path.display()))
}

fn write_report(bench: &Bench) -> anyhow::Result<String> {
    let directory = bench.archive.directory();
    let entries = latest(bench.archive.entries()?);
    if entries.is_empty() {
        bail!("nothing has been measured in {}", directory.display());
    }
    let machine = directory.join("machine.json");
    let machine =
        fs::read_to_string(&machine).with_context(|| format!("could not read {}", machine.display()))?;
    let text = report::report(&entries, &serde_json::from_str(&machine)?, &bench.places.legend());
    let path = directory.join("report.md");
    fs::write(&path, &text).with_context(|| format!("could not write {}", path.display()))?;
    eprintln!("report: {}", path.display());
    Ok(text)
}

/// A reader that stops early is not an error.
fn print(text: &str) -> anyhow::Result<()> {
    match std::io::stdout().lock().write_all(text.as_bytes()) {
        Err(error) if error.kind() != std::io::ErrorKind::BrokenPipe => Err(error.into()),
        _ => Ok(()),
    }
}

fn absolute(path: &std::path::Path) -> anyhow::Result<PathBuf> {
    std::path::absolute(path).with_context(|| format!("could not make {} absolute", path.display()))
}
