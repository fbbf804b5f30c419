//! `streaming`, and `hadoop jar`: a job of Hadoop Streaming on an embedded cluster, or on a running master.
//!
//! Output and exit codes are those of Hadoop, as its callers expect them. The job itself is in
//! `gristmill_streaming`.

mod archive;
mod code;
mod error;
mod file_names;
mod glob;
mod hadoop;
mod json_progress;
mod kept;
mod log;
mod names;
mod options;
mod report;
mod shell;

pub use error::StreamError;
pub use file_names::DefaultSystem;
pub use hadoop::{is_called_as_hadoop, main as hadoop_main};

use crate::flags::{ClusterFlags, MasterFlags, Spread, size};
use crate::interruption::watch_interruptions;
use crate::settings::Settings;
use crate::terminal::{self, stderr_line};
use anyhow::Context as _;
use clap::{Args, FromArgMatches};
use file_names::FileNames;
use gristmill_runtime::api::ErrorCode;
use gristmill_runtime::client::{AsyncClient, Client, ClientError, JobReport};
use gristmill_runtime::cluster::{Cluster, ClusterConfig};
use gristmill_runtime::output_dir::OutputError;
use gristmill_runtime::registry::Registry;
use gristmill_runtime::scratch::ScratchDirectory;
use gristmill_runtime::submit::{JobOptions, SubmitError};
use gristmill_streaming::{BUNDLE_BYTES_MAX, LineInput, ShippedFile, write_bundle};
use gristmill_worker::http::{Endpoint, JoinLine};
use gristmill_worker::input::plan::{FileCuts, SplitGoal};
use gristmill_worker::objects::Scheme;
use gristmill_worker::output::PartFormat;
use json_progress::JsonProgress;
use log::{Level, log};
use options::{TypedJob, TypedOptions};
use report::JobReporter;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

/// Variable with flags such as `--workers 4`, for drivers that cannot pass them.
const FLAGS_VARIABLE: &str = "GRISTMILL_STREAMING_FLAGS";

/// Bytes of a block of Hadoop's file system, which bounds a split.
const BLOCK_BYTES: u64 = 128 << 20;

/// Number of maps that Hadoop aims at by default.
const MAPS: u64 = 2;

/// Run a job of Hadoop Streaming: commands that read lines and write lines
///
/// Accepts the options of `hadoop jar hadoop-streaming.jar` after its own, reads and writes as Hadoop does, and ends with
/// Hadoop's codes. Paths without a scheme are files of this machine; hdfs:/// is the directory in GRISTMILL_HDFS_ROOT.
/// The book's chapter "Hadoop Streaming" lists the differences from Hadoop.
#[derive(Args)]
#[command(
    disable_help_flag = true,
    after_help = "\
Example:
  gristmill streaming --workers 2 -input books -output counts \\
      -mapper 'tr -s \" \" \"\\n\"' -reducer 'uniq -c' -numReduceTasks 3"
)]
pub struct StreamingCommand {
    /// Options of Hadoop Streaming: -input, -output, -mapper, -combiner, -reducer, -numReduceTasks, -file, -files,
    /// -cmdenv, -D NAME=VALUE, -partitioner, -inputformat, -lazyOutput, ...
    #[arg(value_name = "HADOOP OPTIONS", allow_hyphen_values = true, trailing_var_arg = true)]
    words: Vec<String>,
    #[command(flatten)]
    flags: StreamingFlags,
}

/// Flags of the cluster, in front of Hadoop's options.
#[derive(Args, Clone, Debug)]
struct StreamingFlags {
    /// Run the job on the master whose join line is in this file, instead of on a cluster of its own
    #[arg(long, value_name = "FILE")]
    join: Option<PathBuf>,
    /// Address of that master, if not the one in its join line
    #[arg(long, value_name = "HOST:PORT")]
    master: Option<Endpoint>,
    /// Do not wait until the output is on disk
    #[arg(long)]
    no_sync: bool,
    /// Maximum length of a line that ends with a newline [default: 64MiB]
    #[arg(long, value_name = "SIZE")]
    max_record: Option<String>,
    /// Print the job's progress as lines of JSON on stdout, for programs; if stdin is a pipe, the job ends when it closes
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    cluster: ClusterFlags,
}

/// `gristmill streaming`.
pub fn streaming(settings: &Settings, command: &StreamingCommand) -> u8 {
    run(settings, &command.flags, &command.words, DefaultSystem::Local)
}

/// Runs the job of these words, with flags from the environment; see [`FLAGS_VARIABLE`].
fn run_with_flags_of_environment(settings: &Settings, words: &[String], default: DefaultSystem) -> u8 {
    let typed = std::env::var(FLAGS_VARIABLE).unwrap_or_default();
    let typed = [vec![FLAGS_VARIABLE.to_owned()], gristmill_streaming::split_command(&typed)].concat();
    let parsed = StreamingFlags::augment_args(clap::Command::new(FLAGS_VARIABLE)).try_get_matches_from(typed);
    match parsed.and_then(|matches| StreamingFlags::from_arg_matches(&matches)) {
        Ok(flags) => run(settings, &flags, words, default),
        Err(error) => failed(&StreamError::configuration(format!("{FLAGS_VARIABLE}: {error}"))),
    }
}

/// Prints an error.
fn failed(error: &StreamError) -> u8 {
    log(Level::Error, "streaming.StreamJob", &error.message);
    if error.code == code::FAILED {
        stderr_line("Try -help for more information");
    }
    stderr_line("Streaming Command Failed!");
    error.code
}

fn run(settings: &Settings, flags: &StreamingFlags, words: &[String], default: DefaultSystem) -> u8 {
    match options::read(words) {
        Ok(typed) if typed.help => {
            let mut command =
                StreamingCommand::augment_args(clap::Command::new("gristmill streaming").max_term_width(80));
            // A closed stdout is not an error.
            let _ = terminal::stdout_line(&command.render_help());
            code::OK
        }
        Ok(typed) => carry_out(settings, flags, &typed, default).unwrap_or_else(|error| {
            JsonProgress::new(flags.json).error(&error);
            failed(&error)
        }),
        Err(error) => failed(&error),
    }
}

/// Number that distinguishes jobs of different times, milliseconds since 1970.
fn stamp() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_millis() as u64)
}

fn carry_out(
    settings: &Settings,
    flags: &StreamingFlags,
    typed: &TypedOptions,
    default: DefaultSystem,
) -> Result<u8, StreamError> {
    if flags.json {
        json_progress::end_with_listener().map_err(anyhow::Error::from)?;
    }
    let places = FileNames::new(typed.default_system()?.unwrap_or(default))?;
    let stamp = stamp();
    typed.properties.check().map_err(StreamError::configuration)?;
    let job = typed.job(&places, stamp)?;
    typed.remarks.iter().for_each(|words| log(Level::Warn, "streaming.StreamJob", words));
    check_paths(&job, &places)?;
    let options = job_options(flags, settings, typed, &job)?;
    if let Some(parent) = job.output.parent() {
        fs::create_dir_all(parent)
            .with_context(|| format!("-output: could not create the directory {}", parent.display()))?;
    }
    let runtime = Arc::new(gristmill_worker::threads::runtime().map_err(anyhow::Error::from)?);
    let reporter = |line: &JoinLine| {
        // Drivers end jobs by Hadoop's commands and read the logs of tasks, too.
        let is_kept = default == DefaultSystem::Hdfs && places.known_root().is_some();
        JobReporter::new(stamp, places, &line.endpoint, is_kept, JsonProgress::new(flags.json))
    };
    match standing(flags, settings)? {
        Some(line) => run_on(&runtime, &line, None, job, &options, reporter(&line)),
        None => {
            let config = flags.cluster.config(settings, Spread::Together)?;
            let cluster = runtime.block_on(Cluster::start(&config)).map_err(anyhow::Error::from)?;
            let line = cluster.join_line();
            let result = run_on(&runtime, &line, Some((&cluster, &config)), job, &options, reporter(&line));
            runtime.block_on(cluster.stop());
            result
        }
    }
}

/// Returns the join line of the named master, if any.
fn standing(flags: &StreamingFlags, settings: &Settings) -> anyhow::Result<Option<JoinLine>> {
    if flags.join.is_none() && flags.master.is_none() {
        return Ok(None);
    }
    let (master, join) = (flags.master.clone(), flags.join.clone());
    MasterFlags { master, join, ..MasterFlags::default() }.join_line(settings).map(Some)
}

/// Refuses paths that Hadoop refuses before it submits.
fn check_paths(job: &TypedJob, places: &FileNames) -> Result<(), StreamError> {
    if fs::symlink_metadata(&job.output).is_ok() {
        let said = format!("Output directory {} already exists", places.uri(&job.output));
        return Err(StreamError::new(code::OUTPUT, said));
    }
    let is_absent = |path: &&PathBuf| {
        let name = path.to_string_lossy();
        !path.exists() && !glob::is_pattern(&name) && Scheme::from_url(&name).is_none()
    };
    match job.inputs.iter().find(is_absent) {
        Some(missing) => {
            let said = format!("Input path does not exist: {}", places.uri(missing));
            Err(StreamError::new(code::INPUT, said))
        }
        None => Ok(()),
    }
}

/// Options of the job, and splits of its input.
fn job_options(
    flags: &StreamingFlags,
    settings: &Settings,
    typed: &TypedOptions,
    job: &TypedJob,
) -> Result<JobOptions, StreamError> {
    let mut options = JobOptions::new(&job.output);
    options.sync = !(flags.no_sync || settings.no_sync.unwrap_or(false));
    if let Some(text) = &flags.max_record {
        options.record_bytes_max = size("--max-record", text).map_err(StreamError::configuration)?;
    }
    options.label = typed.properties.get("mapreduce.job.name").map(str::to_owned);
    // Hadoop's queue of jobs that name none.
    let queue = typed.properties.get("mapreduce.job.queuename").filter(|queue| *queue != "default");
    options.pool = queue.map(str::to_owned);
    options.priority = match typed.properties.get("mapreduce.job.priority") {
        Some("VERY_HIGH") => 2,
        Some("HIGH") => 1,
        Some("LOW") => -1,
        Some("VERY_LOW") => -2,
        _ => 0,
    };
    let attempts =
        [typed.number("mapreduce.map.maxattempts")?, typed.number("mapreduce.reduce.maxattempts")?];
    if let Some(attempts) = attempts.into_iter().flatten().max() {
        options.attempts_max = u32::try_from(attempts.max(1)).unwrap_or(u32::MAX);
    }
    options.recursive = typed.truth("mapreduce.input.fileinputformat.input.dir.recursive").unwrap_or(false);
    let bytes_min = typed.number("mapreduce.input.fileinputformat.split.minsize")?.unwrap_or(1);
    let bytes_max =
        typed.number("mapreduce.input.fileinputformat.split.maxsize")?.unwrap_or(BLOCK_BYTES).max(1);
    let maps = typed.number("mapreduce.job.maps")?.unwrap_or(MAPS);
    let goal = match job.job.line_input {
        // The start of a pair cannot be found within a file.
        LineInput::Pairs => None,
        _ => Some(SplitGoal { maps, bytes_min, bytes_max }),
    };
    options.split_bytes = u64::MAX;
    options.part_format = typed.compression()?.map(PartFormat::from);
    let lines = (job.job.line_input == LineInput::Numbered)
        .then(|| typed.number("mapreduce.input.lineinputformat.linespermap"))
        .transpose()?
        .map(|lines| lines.unwrap_or(1));
    options.cuts = FileCuts { alone: true, goal, lines };
    Ok(options)
}

/// Runs the job on the master of this join line; `cluster` if it is this process's own.
fn run_on(
    runtime: &Arc<tokio::runtime::Runtime>,
    line: &JoinLine,
    cluster: Option<(&Cluster, &ClusterConfig)>,
    typed: TypedJob,
    options: &JobOptions,
    mut reporter: JobReporter,
) -> Result<u8, StreamError> {
    let submit = |error: String| StreamError::new(code::SUBMIT, error);
    let mut core = AsyncClient::new(line);
    core.set_interrupted(watch_interruptions().map_err(anyhow::Error::from)?);
    let mut client = Client::within(runtime.clone(), core);
    if let Some((_, config)) = cluster {
        client.wait_for_workers(config.workers.count);
    }
    let mut job = typed.job;
    let ships = cluster.is_none() && !job.files.is_empty();
    // Creating one waits for the disk, and few jobs need one.
    let scratch =
        (ships || !typed.archives.is_empty()).then(|| ScratchDirectory::new("streaming-")).transpose();
    let scratch = scratch.context("could not create a directory for archives")?;
    let directory = scratch.as_ref().map(ScratchDirectory::path).unwrap_or(Path::new(""));
    for ShippedFile { name, path: archive } in &typed.archives {
        let path = directory.join("archives").join(name);
        archive::unpack(archive, &path, BUNDLE_BYTES_MAX).map_err(|error| {
            submit(format!("-archives {}: {}", archive.display(), gristmill_runtime::chain(&error)))
        })?;
        job.files.push(ShippedFile { name: name.clone(), path });
    }
    if cluster.is_none() && !job.files.is_empty() {
        // Workers on other machines see other files.
        let bundle = directory.join("bundle");
        write_bundle(&job.files, &bundle).context("could not bundle the files to ship")?;
        job.files.clear();
        job.bundle = Some(bundle.to_string_lossy().into_owned());
    }
    let has_reduces = 0 < job.reduces;
    let result = client.run_prepared(Box::new(job), options, &mut |status| reporter.show(status));
    match result {
        Ok(report) => {
            close_output(&report, typed.lazy_output);
            reporter.succeeded(&report.status, &typed.output, has_reduces);
            reporter.json.end(&report.status, &typed.output, &client);
            Ok(code::OK)
        }
        Err(ClientError::Job { status }) => {
            reporter.failed(&status, has_reduces);
            reporter.json.end(&status, &typed.output, &client);
            log(Level::Error, "streaming.StreamJob", "Job not successful!");
            stderr_line("Streaming Command Failed!");
            Ok(code::FAILED)
        }
        Err(error) => Err(submit_error(&error)),
    }
}

/// Leaves the output directory as Hadoop does: `_SUCCESS` is empty, so that readers of all files read nothing from it.
fn close_output(report: &JobReport, lazy: bool) {
    // The result exists, so errors do not matter.
    let _ = fs::File::create(report.output.join("_SUCCESS"));
    if lazy {
        let empty = report.status.parts.iter().filter(|part| part.records == 0);
        empty.for_each(|part| drop(fs::remove_file(report.output.join(&part.name))));
    }
}

/// Error with the exit code of a job that did not run.
fn submit_error(error: &ClientError) -> StreamError {
    let code = match error {
        ClientError::Interrupted { .. } => code::INTERRUPTED,
        ClientError::Submit { source } => match &**source {
            SubmitError::Input { .. } => code::INPUT,
            SubmitError::Output {
                source:
                    OutputError::NotEmpty { .. }
                    | OutputError::NotADirectory { .. }
                    | OutputError::DanglingLink { .. },
            } => code::OUTPUT,
            SubmitError::Plan { .. } | SubmitError::Settings { .. } => code::CONFIGURATION,
            _ => code::SUBMIT,
        },
        _ => code::SUBMIT,
    };
    let mut message = gristmill_runtime::chain(error);
    if let ClientError::Refused { error } = error
        && error.code == ErrorCode::JobName
    {
        message.push_str("; start the master with --allow-commands to let its users run any command");
    }
    StreamError::new(code, message)
}

/// Returns the registry with streaming jobs, for workers and for masters that accept them.
#[must_use]
pub fn registered(registry: Registry) -> Registry {
    registry.inner_job::<gristmill_streaming::StreamingJob>()
}
