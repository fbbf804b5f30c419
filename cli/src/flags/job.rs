//! Flags of a job, and the options that result from them and the settings file.

use super::above_zero;
use crate::settings::Settings;
use crate::usage::usage;
use clap::{Args, ValueEnum, value_parser};
use gristmill_runtime::api::{BAD_RECORDS_MAX, ExactWork};
use gristmill_runtime::size::parse_bytes;
use gristmill_runtime::submit::JobOptions;
use gristmill_scheduler::units::{REDUCES_MAX, Span};
use gristmill_worker::http::ListenAddress;
use gristmill_worker::input::{Compression, TableKind};
use gristmill_worker::output::PartFormat;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Flags of a job.
#[derive(Args, Clone, Debug)]
#[command(next_help_heading = "Job")]
pub struct JobFlags {
    /// Output directory, or a prefix in an object store (s3://bucket/prefix); it must be empty or not exist
    #[arg(short, long, global = true, value_name = "DIR")]
    pub output: Option<PathBuf>,
    /// Replace an existing output of a job, and the file of --trace
    #[arg(long, global = true)]
    pub overwrite: bool,
    /// Compress the parts: part-00000.gz, .zst or .bz2 [default: set by the job, usually none]
    #[arg(long, global = true, value_name = "HOW", hide_short_help = true)]
    pub compress_output: Option<CompressOutput>,
    /// Write the parts as columnar tables with a row for each line: part-00000.parquet or .arrow
    #[arg(
        long,
        global = true,
        value_name = "FORMAT",
        conflicts_with = "compress_output",
        requires = "output",
        hide_short_help = true
    )]
    pub output_format: Option<OutputFormat>,
    /// Number of parts [default: one for each slot]
    #[arg(long, global = true, value_name = "N")]
    pub reduces: Option<u32>,
    /// Input of one map task [default: 64MiB]
    #[arg(long, global = true, value_name = "SIZE", hide_short_help = true)]
    pub split_size: Option<String>,
    /// Read subdirectories of input directories too
    #[arg(long, global = true)]
    pub recursive: bool,
    /// Columns of Parquet and Arrow inputs that jobs of lines read, in this order, separated by tabs: `a,b`; a comma
    /// in a name is written `\,`, a backslash `\\` [default: all]
    #[arg(long, global = true, value_name = "NAMES", hide_short_help = true)]
    pub read_columns: Vec<String>,
    #[command(flatten)]
    pub rank: RankFlags,
    /// Attempts of a task before the job fails
    #[arg(long, global = true, value_name = "N", default_value_t = 4, value_parser = value_parser!(u32).range(1..), hide_short_help = true)]
    pub attempts: u32,
    /// Do not wait until the output is on disk
    #[arg(long, global = true, hide_short_help = true)]
    pub no_sync: bool,
    /// Longest record
    #[arg(long, global = true, value_name = "SIZE", default_value = "64MiB", hide_short_help = true)]
    pub max_record: String,
    /// Largest ratio of uncompressed to compressed bytes of an input
    #[arg(long, global = true, value_name = "N", default_value_t = 200, hide_short_help = true)]
    pub max_expansion: u32,
    /// Bad input records that may be skipped; `_BAD_RECORDS` in the output directory lists them
    #[arg(long, global = true, value_name = "N", default_value_t = 0, value_parser = value_parser!(u64).range(..=BAD_RECORDS_MAX), hide_short_help = true)]
    pub skip_bad_records: u64,
    /// Seconds without a record after which user code is treated as hanging
    #[arg(long, global = true, value_name = "S", default_value_t = 600.0, value_parser = seconds, hide_short_help = true)]
    pub hang_after: f64,
    #[command(flatten)]
    pub report: ReportFlags,
    /// Address on which inputs are served to workers that cannot read them, with or without a range of ports:
    /// 192.0.2.1, 192.0.2.1:7200-7209
    #[arg(long, global = true, value_name = "ADDR[:PORT-PORT]", hide_short_help = true)]
    pub serve: Option<ListenAddress>,
}

/// Formats of tables.
#[derive(ValueEnum, Clone, Copy, Debug)]
pub enum OutputFormat {
    /// Apache Parquet, compressed by snappy
    Parquet,
    /// Apache Arrow
    Arrow,
}

impl From<OutputFormat> for PartFormat {
    fn from(format: OutputFormat) -> Self {
        PartFormat::Table(match format {
            OutputFormat::Parquet => TableKind::Parquet,
            OutputFormat::Arrow => TableKind::Arrow,
        })
    }
}

/// Compression of parts.
#[derive(ValueEnum, Clone, Copy, Debug)]
pub enum CompressOutput {
    /// gzip, level 6
    Gzip,
    /// Zstandard, level 3
    Zstd,
    /// bzip2, level 9
    Bzip2,
    /// No compression, even if the job sets one
    None,
}

impl From<CompressOutput> for Compression {
    fn from(how: CompressOutput) -> Self {
        match how {
            CompressOutput::Gzip => Compression::Gzip,
            CompressOutput::Zstd => Compression::Zstd,
            CompressOutput::Bzip2 => Compression::Bzip2,
            CompressOutput::None => Compression::None,
        }
    }
}

/// Input of policies and estimators.
#[derive(Args, Clone, Debug)]
pub struct RankFlags {
    /// Weight compared with other jobs, for the policies `fair`, `gristmill`, `ps` and `k-lps`
    #[arg(long, global = true, value_name = "W", default_value_t = 1.0, value_parser = above_zero, hide_short_help = true)]
    pub weight: f64,
    /// Pool for the policy `fair` [default: a pool of its own]
    #[arg(long, global = true, value_name = "NAME", hide_short_help = true)]
    pub pool: Option<String>,
    /// Label of the job: history treats jobs with one label as similar [default: its name]
    #[arg(long, global = true, value_name = "TEXT", hide_short_help = true)]
    pub label: Option<String>,
    /// Priority for the policy `fifo`; higher runs first
    #[arg(
        long,
        global = true,
        value_name = "N",
        default_value_t = 0,
        allow_negative_numbers = true,
        hide_short_help = true
    )]
    pub priority: i32,
    /// Target time from arrival to end, such as 30s or 5min: reports compare with it, `min-scheduler` and
    /// `max-scheduler` plan by it
    #[arg(long, global = true, value_name = "TIME", allow_hyphen_values = true, hide_short_help = true)]
    pub deadline: Option<String>,
    /// For experiments: file with the job's measured work, for the estimator `oracle`
    #[arg(long, global = true, value_name = "FILE", hide_short_help = true)]
    pub exact: Option<PathBuf>,
}

/// Output about the job.
#[derive(Args, Clone, Debug)]
pub struct ReportFlags {
    /// Print the report as JSON on stdout
    #[arg(long, global = true)]
    pub json: bool,
    /// Write a trace for ui.perfetto.dev or chrome://tracing
    #[arg(long, global = true, value_name = "FILE", hide_short_help = true)]
    pub trace: Option<PathBuf>,
    /// Print nothing on stderr but errors
    #[arg(long, global = true)]
    pub quiet: bool,
}

impl JobFlags {
    /// Returns the options of a job that writes to `output`.
    ///
    /// # Errors
    /// Invalid values.
    pub fn options(&self, settings: &Settings, output: PathBuf) -> anyhow::Result<JobOptions> {
        let reduces = self.reduces.or(settings.reduces);
        self.check_numbers(reduces)?;
        let mut options = JobOptions::new(output);
        if let Some(text) = self.split_size.as_ref().or(settings.split_size.as_ref()) {
            options.split_bytes = size("--split-size", text)?;
        }
        options.overwrite = self.overwrite;
        let compressed = self.compress_output.map(|how| Compression::from(how).into());
        options.part_format = self.output_format.map(PartFormat::from).or(compressed);
        options.reduces = reduces;
        options.weight = self.rank.weight;
        options.pool = self.rank.pool.clone();
        options.label = self.rank.label.clone();
        options.priority = self.rank.priority;
        options.deadline = self.rank.deadline.as_deref().map(deadline).transpose()?;
        options.exact = self.rank.exact.as_deref().map(exact).transpose()?;
        options.attempts_max = self.attempts;
        options.sync = !(self.no_sync || settings.no_sync.unwrap_or(false));
        options.record_bytes_max = size("--max-record", &self.max_record)?;
        options.expansion_max = self.max_expansion;
        options.bad_records_max = self.skip_bad_records;
        options.hang = Duration::from_secs_f64(self.hang_after);
        options.serve = self.serve;
        options.recursive = self.recursive;
        options.read_columns = self.read_columns.iter().flat_map(|names| columns(names)).collect();
        options.written.extend(self.report.trace.clone());
        Ok(options)
    }

    /// Refuses numbers that are out of range.
    fn check_numbers(&self, reduces: Option<u32>) -> anyhow::Result<()> {
        if reduces == Some(0) {
            return Err(usage("--reduces must be at least 1".to_owned()));
        }
        if reduces.is_some_and(|reduces| REDUCES_MAX < reduces) {
            return Err(usage(format!("--reduces is more than {REDUCES_MAX}")));
        }
        Ok(())
    }
}

/// Reads a number of seconds from 0.1 to 1,000,000.
fn seconds(text: &str) -> Result<f64, String> {
    let seconds = text.parse().ok().filter(|seconds| (0.1..=1e6).contains(seconds));
    seconds.ok_or_else(|| "it must be from 0.1 to 1000000 seconds".to_owned())
}

/// Splits a list of columns at commas. A backslash escapes a comma or a backslash.
fn columns(names: &str) -> Vec<String> {
    let (mut columns, mut name) = (Vec::new(), String::new());
    let mut characters = names.chars().peekable();
    while let Some(character) = characters.next() {
        let escaped = characters.next_if(|&next| character == '\\' && matches!(next, ',' | '\\'));
        match (character, escaped) {
            (_, Some(escaped)) => name.push(escaped),
            (',', None) => columns.push(std::mem::take(&mut name)),
            (character, None) => name.push(character),
        }
    }
    columns.push(name);
    columns
}

/// Reads a size behind a flag, bytes; at least one.
///
/// # Errors
/// An invalid size.
pub fn size(flag: &str, text: &str) -> anyhow::Result<u64> {
    match parse_bytes(text) {
        Ok(0) => Err(usage(format!("{flag} must be at least 1"))),
        Ok(bytes) => Ok(bytes),
        Err(error) => Err(usage(format!("{flag}: {error}"))),
    }
}

/// Parses a time from the job's arrival.
fn deadline(text: &str) -> anyhow::Result<Duration> {
    let wrong = |reason: &str| usage(format!("--deadline {text}: {reason}"));
    if text.starts_with('-') {
        return Err(wrong("a deadline cannot be in the past"));
    }
    let span: Span = text.parse().map_err(|error| wrong(&format!("{error}")))?;
    match span {
        Span(0) => Err(wrong("it must be above 0")),
        Span(ns) => Ok(Duration::from_nanos(ns)),
    }
}

/// Reads the measured work of a job.
fn exact(path: &Path) -> anyhow::Result<ExactWork> {
    let wrong = |reason: String| usage(format!("--exact {}: {reason}", path.display()));
    let text = std::fs::read(path).map_err(|error| wrong(error.to_string()))?;
    let work: ExactWork = serde_json::from_slice(&text).map_err(|error| wrong(error.to_string()))?;
    work.validate().map_err(wrong)?;
    Ok(work)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_are_cut_at_commas_but_not_at_those_behind_a_backslash() {
        for (names, expected) in [
            ("text", &["text"] as &[&str]),
            ("text,id", &["text", "id"]),
            (r"last\,first,id", &["last,first", "id"]),
            (r"a\\,b", &[r"a\", "b"]),
            (r"a\b", &[r"a\b"]),
            ("a,,", &["a", "", ""]),
        ] {
            assert_eq!(columns(names), expected, "{names}");
        }
    }
}
