//! `as-streaming`: the command line that runs one of our jobs on somebody's Hadoop, with this program as its mapper and its
//! reducer; and `stream-task`, which is what that command line calls.
//!
//! Not here: Hadoop Streaming on our own cluster (`streaming`), and what such a task does (`worker::foreign`).

use crate::places::quoted;
use crate::terminal::{stderr_line, stdout_line};
use crate::usage::usage;
use clap::{Arg, ArgMatches, Args, Command, ValueEnum};
use gristmill_runtime::exit;
use gristmill_runtime::registry::Registry;
use gristmill_worker::api::{JobPlan, PlanError, Submitter};
use gristmill_worker::foreign::{self, ForeignTasks};
use gristmill_worker::input::Input;
use gristmill_worker::input::plan::FirstRecord;
use std::fs::File;
use std::io;
use std::os::fd::AsFd;

/// Where Hadoop keeps what runs the job, as a shell finds it.
const JAR: &str = "\"$HADOOP_HOME\"/share/hadoop/tools/lib/hadoop-streaming-*.jar";

/// The name under which tasks find this program.
const PROGRAM: &str = "gristmill";

/// A line of output is a key as a whole, and nothing is written behind it.
const WHOLE_LINES: [&str; 3] = [
    "stream.num.map.output.key.fields=2147483647",
    "stream.num.reduce.output.key.fields=2147483647",
    "mapreduce.output.textoutputformat.separator=",
];

/// Pairs between maps and reduces are bytes.
const PAIRS: [&str; 2] = ["stream.map.output=rawbytes", "stream.reduce.input=rawbytes"];

/// `gristmill as-streaming`: one subcommand for each job.
pub fn command(registry: &Registry) -> Command {
    let flag = |name: &'static str, value: &'static str, help: &'static str| {
        Arg::new(name).long(name).value_name(value).help(help).global(true)
    };
    Command::new("as-streaming")
        .about("Write the Hadoop Streaming command line that runs a job on somebody's Hadoop")
        .long_about(
            "Write the Hadoop Streaming command line that runs a job on somebody's Hadoop.\n\nThe program is sent along: its \
             tasks read lines and exchange pairs as raw bytes. Paths of inputs mean what they mean there. Jobs that read lines of \
             one input can be written so; jobs of several rounds cannot.",
        )
        .arg(flag("output", "DIR", "Output directory there"))
        .arg(flag("reduces", "N", "Number of parts [default: as Hadoop says]").value_parser(clap::value_parser!(u32)))
        .arg(flag("jar", "FILE", "Hadoop Streaming's jar [default: in $HADOOP_HOME]"))
        .subcommand_required(true)
        .arg_required_else_help(true)
        .subcommand_value_name("JOB")
        .subcommands(registry.jobs().map(|job| job.command()))
}

/// Writes the command line.
pub fn as_streaming(registry: &Registry, flags: &ArgMatches) -> anyhow::Result<u8> {
    let (name, typed) = flags.subcommand().ok_or_else(|| usage("no job was named".to_owned()))?;
    let known = registry.find_job(name).ok_or_else(|| usage(format!("there is no job `{name}`")))?;
    let Some(output) = typed.get_one::<String>("output") else {
        return Err(usage("name the output directory with --output".to_owned()));
    };
    let mut job = known.parse(typed)?;
    job.prepare(&Elsewhere)?;
    let plan = job.plan()?;
    foreign::check(&plan).map_err(|error| usage(format!("{name}: {error}")))?;
    let reduces = reduces(name, &plan, typed.get_one::<u32>("reduces").copied())?;
    let program = std::env::current_exe()?;
    let program =
        program.to_str().ok_or_else(|| usage("this program lies at a path that is no UTF-8".to_owned()))?;
    let jar = typed.get_one::<String>("jar").map_or_else(|| JAR.to_owned(), |jar| quoted(jar));
    let parameters = hexadecimal(job.parameters()?.as_bytes());
    let task = |kind: &str| {
        quoted(&format!("./{PROGRAM} stream-task {kind} --job {name} --parameters {parameters}"))
    };
    let mut lines =
        vec![format!("hadoop jar {jar}"), format!("-D {}", quoted(&format!("mapreduce.job.name={name}")))];
    let pairs: &[&str] = if plan.is_map_only() { &[] } else { &PAIRS };
    lines.extend(WHOLE_LINES.iter().chain(pairs).map(|setting| format!("-D {setting}")));
    lines.push(format!("-files {}", quoted(&format!("{program}#{PROGRAM}"))));
    lines.extend(
        plan.inputs().iter().flat_map(|input| &input.paths).map(|path| format!("-input {}", quoted(path))),
    );
    lines.push(format!("-output {}", quoted(output)));
    lines.push(format!("-mapper {}", task("map")));
    if !plan.is_map_only() {
        lines.push(format!("-reducer {}", task("reduce")));
    }
    lines.extend(reduces.map(|number| format!("-numReduceTasks {number}")));
    stdout_line(&lines.join(" \\\n    "))?;
    Ok(exit::OK)
}

/// How many reduces the job is to have there; `None`: as Hadoop says.
fn reduces(name: &str, plan: &JobPlan, asked: Option<u32>) -> anyhow::Result<Option<u32>> {
    let most = match (plan.is_map_only(), foreign::needs_one_reduce(plan)) {
        (true, _) => 0,
        (false, true) => 1,
        (false, false) => return Ok(asked.or_else(|| plan.reduces())),
    };
    match asked {
        Some(other) if other != most => {
            let why = if most == 0 {
                "it has no reduce"
            } else {
                "Hadoop would not keep its order, or its groups, together"
            };
            Err(usage(format!("{name} cannot have {other} reduces there, only {most}: {why}")))
        }
        _ => Ok(Some(most)),
    }
}

/// A submitter that sees no input, as inputs lie on the other system.
struct Elsewhere;

impl Submitter for Elsewhere {
    fn size(&self, input: &Input) -> Result<u64, PlanError> {
        Err(unseen(input))
    }

    fn first_records(&self, input: &Input) -> Result<Vec<FirstRecord>, PlanError> {
        Err(unseen(input))
    }
}

fn unseen(input: &Input) -> PlanError {
    PlanError::Input {
        path: input.paths.join(", "),
        reason: "the job looks into it before it is planned, and under another system it lies elsewhere"
            .to_owned(),
    }
}

/// Bytes as digits, which mean nothing to a shell or to what Hadoop Streaming takes for one.
fn hexadecimal(bytes: &[u8]) -> String {
    use std::fmt::Write as _;
    bytes.iter().fold(String::with_capacity(2 * bytes.len()), |mut digits, byte| {
        let _ = write!(digits, "{byte:02x}");
        digits
    })
}

fn from_hexadecimal(digits: &str) -> Option<String> {
    let pairs = digits.as_bytes().chunks(2);
    let bytes = pairs.map(|pair| u8::from_str_radix(std::str::from_utf8(pair).ok()?, 16).ok());
    String::from_utf8(bytes.collect::<Option<Vec<u8>>>()?).ok()
}

/// Which task.
#[derive(ValueEnum, Clone, Copy)]
enum TaskKind {
    Map,
    Reduce,
}

/// One task of a job between standard input and standard output, as `as-streaming` asks for it
#[derive(Args)]
pub struct StreamTaskCommand {
    kind: TaskKind,
    #[arg(long)]
    job: String,
    /// As JSON, in hexadecimal digits
    #[arg(long)]
    parameters: String,
}

/// Runs one task in the folder where it was started.
pub fn stream_task(registry: &Registry, flags: &StreamTaskCommand) -> anyhow::Result<u8> {
    let name = &flags.job;
    let known = registry.find_job(name).ok_or_else(|| usage(format!("there is no job `{name}`")))?;
    let parameters = from_hexadecimal(&flags.parameters);
    let parameters =
        parameters.ok_or_else(|| usage("--parameters are no hexadecimal digits of text".to_owned()))?;
    let plan = known.plan(&parameters)?;
    let folder = std::env::current_dir()?;
    let tasks = ForeignTasks::new(&plan, &folder)?;
    let mut from = io::stdin().lock();
    let to = Box::new(File::from(io::stdout().as_fd().try_clone_to_owned()?));
    let stats = match flags.kind {
        TaskKind::Map => tasks.map(&mut from, to)?,
        TaskKind::Reduce => tasks.reduce(&mut from, to)?,
    };
    for (counter, count) in stats.counters {
        stderr_line(&format!("reporter:counter:{name},{},{count}", counter.replace([',', '\n'], " ")));
    }
    Ok(exit::OK)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parameters_come_back_from_their_digits() {
        for text in ["", r#"{"inputs":["it's"]}"#, "Größe\0\n\u{1f600}"] {
            let digits = hexadecimal(text.as_bytes());
            assert!(digits.bytes().all(|byte| byte.is_ascii_hexdigit()), "{digits}");
            assert_eq!(from_hexadecimal(&digits).as_deref(), Some(text));
        }
    }

    #[test]
    fn what_are_no_digits_is_refused() {
        for wrong in ["0g", "ff", "é0"] {
            assert_eq!(from_hexadecimal(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn words_are_quoted_so_that_a_shell_does_not_take_them_apart() {
        assert_eq!(quoted("two words"), "'two words'");
        assert_eq!(quoted("it's"), r"'it'\''s'");
        assert_eq!(quoted(""), "''");
    }
}
