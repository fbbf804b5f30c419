//! From a job and its options to a submission: lists files, cuts splits, samples keys and claims the output directory.
//!
//! All of this runs on the submitter, blocking, before any task starts; what names, sizes and
//! settings show to be wrong is reported here.

use crate::api::{BatchPlace, ExactWork, SCHEMA, Submission};
use crate::cluster_view::{ClusterListing, ClusterSubmitter, ClusterView};
use crate::output_dir::{ClaimedOutput, OutputError, refuse_inputs};
use crate::plural::counted;
use crate::prepared::PreparedJob;
use crate::sample::cut_ranges;
use data_encoding::HEXLOWER;
use gristmill_scheduler::units::REDUCES_MAX;
use gristmill_worker::api::{JobPlan, KeyOrder, PlanError, TaskError};
use gristmill_worker::directory::id_of;
use gristmill_worker::exit::{self, Exit, ExitsWith};
use gristmill_worker::fault;
use gristmill_worker::http::{ListenAddress, Secret};
use gristmill_worker::input::plan::{FileCuts, SplitRules, plan_side, plan_splits};
use gristmill_worker::input::{FilePath, Input, InputError, InputLimits, Piece, Place, Split, check_tables};
use gristmill_worker::output::PartFormat;
use gristmill_worker::record::RecordFormat;
use gristmill_worker::task::{Fault, TaskFailure};
use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, Metadata};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// Options with which a job is run.
#[derive(Clone, Debug)]
pub struct JobOptions {
    /// Output directory, whose parent must exist, or the URL of a prefix of an object store: `s3://bucket/prefix`,
    /// `gs://...`, `az://...`.
    pub output: PathBuf,
    /// True to replace an existing output: a non-empty output directory is moved aside, and deleted once the job has
    /// succeeded. In a store only the output of a job is replaced.
    pub overwrite: bool,
    /// Number of parts; `None` for one for each slot of the cluster. A job may require its own number.
    pub reduces: Option<u32>,
    /// Bytes of input of one map task.
    pub split_bytes: u64,
    /// Rule for cutting files of lines, for compatibility with other systems.
    pub cuts: FileCuts,
    /// Share under a fair policy.
    pub weight: f64,
    /// Pool under a fair policy; `None` for a pool of its own.
    pub pool: Option<String>,
    /// Label of this job; jobs of one label are treated as alike. `None` if it is the name.
    pub label: Option<String>,
    /// Priority, used by some policies; higher is more urgent.
    pub priority: i32,
    /// Target for the time from arrival to end; not a limit.
    pub deadline: Option<Duration>,
    /// The job's work as measured before, for experiments.
    pub exact: Option<ExactWork>,
    /// Number of charged failures of one task after which the job fails.
    pub attempts_max: u32,
    /// Format of the files of parts; `None` for that of the job's plan.
    pub part_format: Option<PartFormat>,
    /// True to sync parts and `_SUCCESS` to disk before they count.
    pub sync: bool,
    /// Longest record, bytes.
    pub record_bytes_max: u64,
    /// Maximum number of decompressed bytes for each byte of a compressed file; not applied to small files.
    pub expansion_max: u32,
    /// Maximum number of bad records of the input to skip, at most [`BAD_RECORDS_MAX`](crate::api::BAD_RECORDS_MAX).
    pub bad_records_max: u64,
    /// Time without reads and writes after which user code counts as hanging.
    pub hang: Duration,
    /// Address, with optional ports, on which inputs are served to workers that cannot see them, and parts are
    /// received. `None` for the address by which the master is reached, without serving if that is a loopback address.
    pub serve: Option<ListenAddress>,
    /// Directory in which standard input is stored until the job has ended, if an input is `-`; `None` to reject that
    /// input.
    pub standard_input: Option<PathBuf>,
    /// True to read subdirectories of input directories too.
    pub recursive: bool,
    /// Columns that jobs of lines read from Parquet and Arrow files, in this order; all if empty.
    pub read_columns: Vec<String>,
    /// Place of the job in a batch: it arrives together with the others, which must be submitted at the same time.
    pub batch: Option<BatchPlace>,
    /// Files that this process will write when the job has ended, such as a trace. None of them may be an input, or be
    /// in the output directory.
    pub written: Vec<PathBuf>,
}

impl JobOptions {
    /// Defaults: splits of 64 MiB, 4 attempts, synced output, records up to 64 MiB, 600 s until user code hangs.
    #[must_use]
    pub fn new(output: impl Into<PathBuf>) -> Self {
        Self {
            output: output.into(),
            overwrite: false,
            reduces: None,
            split_bytes: SplitRules::default().split_bytes,
            cuts: FileCuts::default(),
            weight: 1.0,
            pool: None,
            label: None,
            priority: 0,
            deadline: None,
            exact: None,
            attempts_max: 4,
            part_format: None,
            sync: true,
            record_bytes_max: InputLimits::default().record_max,
            expansion_max: InputLimits::default().expansion_max,
            bad_records_max: 0,
            hang: Duration::from_secs(600),
            serve: None,
            standard_input: None,
            recursive: false,
            read_columns: Vec::new(),
            batch: None,
            written: Vec::new(),
        }
    }
}

/// Reason for which a job could not be submitted.
#[derive(Debug, thiserror::Error)]
#[expect(missing_docs, reason = "the messages say what the fields are")]
#[non_exhaustive]
pub enum SubmitError {
    /// Invalid parameters or options.
    #[error("the job cannot be planned")]
    Plan {
        #[source]
        source: PlanError,
    },
    /// Settings of the plan that exclude each other.
    #[error("the job cannot be planned: {reason}")]
    Settings { reason: TaskError },
    /// Unusable inputs.
    #[error("the input cannot be used")]
    Input {
        #[source]
        source: InputError,
    },
    /// User code failed on the sample of keys.
    #[error("the keys could not be sampled")]
    Sample {
        #[source]
        source: TaskFailure,
    },
    /// The job's own code panicked while it was planned or its keys were sampled.
    #[error("the job's code panicked while it was planned")]
    Panicked,
    /// The output directory cannot be used.
    #[error(transparent)]
    Output { source: OutputError },
    /// A file that is to be written when the job has ended is an input of it.
    #[error(
        "{written} would be written over input {input} of the same job; nothing was run, name another place"
    )]
    Overwritten { written: FilePath, input: FilePath },
    /// A file that is to be written when the job has ended is in its output directory.
    #[error(
        "{written} would be written into the output directory {output} of the same job, which holds nothing but what the job \
         writes; nothing was run, name another place"
    )]
    WithinOutput { written: FilePath, output: FilePath },
    /// The caller was interrupted.
    #[error("the job was given up while it was planned")]
    GivenUp,
    /// No secret could be generated.
    #[error("no key could be made for the job")]
    Key {
        #[source]
        source: gristmill_worker::http::SecretError,
    },
}

impl ExitsWith for SubmitError {
    fn exit(&self) -> Exit {
        match self {
            Self::Output { source } => source.exit(),
            Self::Input { source } => source.exit(),
            Self::Plan { source: PlanError::Input { .. } } => {
                Exit::hinted(exit::INPUT, "check the name of the file and its content")
            }
            Self::Plan { .. }
            | Self::Settings { .. }
            | Self::Overwritten { .. }
            | Self::WithinOutput { .. } => Exit::with(exit::USAGE),
            Self::Panicked => Exit::with(exit::FAILED),
            Self::Sample { source } => Exit::with(match source.class() {
                Fault::Credentials => exit::UNAUTHORISED,
                Fault::Input => exit::INPUT,
                Fault::User => exit::FAILED,
                Fault::Config => exit::USAGE,
                _ => exit::ENVIRONMENT,
            }),
            _ => Exit::with(exit::ENVIRONMENT),
        }
    }
}

/// A submission with the data that stays with the submitter.
pub(crate) struct Planned {
    pub submission: Submission,
    pub key: Secret,
    pub permit_key: Secret,
    pub output: ClaimedOutput,
    /// Files that may be served to workers.
    pub files: BTreeSet<FilePath>,
}

/// Gate before the claim of a job's output: if the caller is interrupted while the job is planned, no claim may be left
/// behind.
#[derive(Default)]
pub(crate) struct ClaimGate(Mutex<ClaimState>);

#[derive(Clone, Copy, PartialEq, Eq, Default)]
enum ClaimState {
    #[default]
    Open,
    Passed,
    Shut,
}

impl ClaimGate {
    fn state(&self) -> MutexGuard<'_, ClaimState> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Closes the gate. Returns false if the output is already claimed. Waits for a claim in progress.
    pub(crate) fn give_up(&self) -> bool {
        let mut state = self.state();
        if *state == ClaimState::Open {
            *state = ClaimState::Shut;
        }
        *state == ClaimState::Shut
    }

    /// Claims, unless the gate is closed.
    fn pass<T>(&self, claim: impl FnOnce() -> Result<T, SubmitError>) -> Result<T, SubmitError> {
        let mut state = self.state();
        if *state == ClaimState::Shut {
            return Err(SubmitError::GivenUp);
        }
        let claimed = claim()?;
        *state = ClaimState::Passed;
        Ok(claimed)
    }
}

/// The inputs with the requested columns, if lines are read.
fn with_columns<'a>(inputs: &'a [Input], columns: &[String]) -> Result<Cow<'a, [Input]>, SubmitError> {
    if columns.is_empty() {
        return Ok(inputs.into());
    }
    let mut inputs = inputs.to_vec();
    let mut by_lines = inputs.iter_mut().filter(|input| input.format == RecordFormat::Lines).peekable();
    if by_lines.peek().is_none() {
        let reason =
            "--read-columns is for jobs that read lines; this one finds columns by their names itself";
        return Err(SubmitError::Settings { reason: TaskError::config(reason) });
    }
    by_lines.for_each(|input| input.columns = columns.to_vec());
    Ok(inputs.into())
}

/// Memory for a segment that a worker has fetched, though its bytes are in a file, bytes: 90 measured.
const FETCHED_SEGMENT_BYTES: u64 = 96;

/// Rejects a job whose segments take more memory than its workers may use, were each map to have pairs for each reduce.
fn check_segments(maps: usize, reduces: u32, cluster: &ClusterView) -> Result<(), String> {
    let memory: u64 = cluster.workers.iter().map(|worker| worker.memory_budget_bytes).sum();
    let segments = maps as u64 * u64::from(reduces);
    let needed = segments.saturating_mul(FETCHED_SEGMENT_BYTES);
    if cluster.workers.is_empty() || needed <= memory {
        return Ok(());
    }
    Err(format!(
        "{maps} maps for {reduces} reduces make up to {segments} segments, whose places alone take {needed} bytes of \
         memory, and the workers have {memory}: use fewer --reduces, a larger --split-size or more --memory"
    ))
}

/// Rejects settings that do not fit each other or the cluster.
fn check_settings(
    inputs: &[Input],
    part_format: PartFormat,
    maps: usize,
    reduces: u32,
    exact: Option<&ExactWork>,
    cluster: &ClusterView,
) -> Result<(), TaskError> {
    let fixed = |input: &Input| matches!(input.format, RecordFormat::Fixed { .. });
    if matches!(part_format, PartFormat::Table(_)) && inputs.iter().any(fixed) {
        return Err(TaskError::config(
            "records of fixed length are no lines, which tables by columns (--output-format) are made of",
        ));
    }
    if reduces > REDUCES_MAX {
        let reason = format!("{reduces} parts are more than the {REDUCES_MAX} that a job can have");
        return Err(TaskError::config(reason));
    }
    check_segments(maps, reduces, cluster).map_err(TaskError::config)?;
    exact.map_or(Ok(()), |exact| check_exact(exact, maps, reduces))
}

/// Plans a job and claims its output directory. Blocking.
pub(crate) fn plan(
    job: &mut dyn PreparedJob,
    options: &JobOptions,
    cluster: &ClusterView,
    (attached, gate): (bool, &ClaimGate),
) -> Result<Planned, SubmitError> {
    let limits = limits(options);
    let refuse = |source| SubmitError::Plan { source };
    job.prepare(&ClusterSubmitter(cluster, limits)).map_err(refuse)?;
    let plan = job.plan().map_err(refuse)?;
    plan.validate().map_err(|reason| SubmitError::Settings { reason })?;
    let listing = ClusterListing(cluster);
    let input = |source| SubmitError::Input { source };
    fault::place("split");
    let inputs = with_columns(plan.inputs(), &options.read_columns)?;
    let splits = with_bare_tasks(&plan, plan_splits(&inputs, &listing, rules(options)).map_err(input)?);
    let side = plan_side(plan.side_inputs(), &listing).map_err(input)?;
    check_tables(&splits).and_then(|()| check_tables(&side)).map_err(input)?;
    let part_format = options.part_format.unwrap_or(plan.part_format());
    let reduces = plan.reduces().or(options.reduces).unwrap_or_else(|| cluster.slots().max(1));
    check_settings(&inputs, part_format, splits.len(), reduces, options.exact.as_ref(), cluster)
        .map_err(|reason| SubmitError::Settings { reason })?;
    let cuts = match plan.order() {
        KeyOrder::Total if 1 < reduces => cut_ranges(&plan, &splits, &side, cluster, &limits, reduces)
            .map_err(|source| SubmitError::Sample { source })?,
        _ => Vec::new(),
    };
    let key = Secret::generate().map_err(|source| SubmitError::Key { source })?;
    let permit_key = Secret::generate().map_err(|source| SubmitError::Key { source })?;
    let pieces = splits.iter().chain(&side).flat_map(|split| &split.pieces);
    let output = claim_output(options, &pieces, (cluster, gate), &key)?;
    let files =
        pieces.filter(|piece| piece.place == Place::Submitter).map(|piece| piece.path.clone()).collect();
    let submission = Submission {
        schema: SCHEMA,
        build: gristmill_worker::build_id(),
        owner: None,
        name: job.name().to_owned(),
        parameters: job.parameters().map_err(refuse)?,
        label: options.label.clone(),
        splits,
        reduces,
        combines: Some(plan.combines()),
        cuts: cuts.iter().map(|cut| HEXLOWER.encode(cut)).collect(),
        side,
        output: FilePath::from(output.path().as_path()),
        output_probe: output.probe().clone(),
        output_made: output.is_made(),
        part_format,
        submitter: None,
        key: key.to_text().to_string(),
        permit_key: permit_key.to_text().to_string(),
        weight: options.weight,
        pool: options.pool.clone(),
        priority: options.priority,
        deadline_ns: options.deadline.map(|span| span.as_nanos() as u64),
        exact: options.exact.clone(),
        attempts_max: options.attempts_max,
        sync: options.sync,
        record_bytes_max: options.record_bytes_max,
        expansion_max: options.expansion_max,
        bad_records_max: options.bad_records_max,
        hang_ms: options.hang.as_millis() as u64,
        attached,
        batch: options.batch.clone(),
        remarks: job.remarks(),
        columns: job.columns(),
    };
    Ok(Planned { submission, key, permit_key, output, files })
}

fn limits(options: &JobOptions) -> InputLimits {
    InputLimits {
        record_max: options.record_bytes_max,
        expansion_max: options.expansion_max,
        bad_records_max: options.bad_records_max,
        ..InputLimits::default()
    }
}

/// Claims the output directory, unless the job would overwrite its own input.
fn claim_output<'a>(
    options: &JobOptions,
    pieces: &(impl Iterator<Item = &'a Piece> + Clone),
    (cluster, gate): (&ClusterView, &ClaimGate),
    key: &Secret,
) -> Result<ClaimedOutput, SubmitError> {
    let failed = |source| SubmitError::Output { source };
    refuse_inputs(&options.output, pieces.clone()).map_err(failed)?;
    refuse_overwritten(&options.written, pieces, cluster.standard_input.source().as_ref())?;
    refuse_within(&options.written, &options.output)?;
    // The probe's name is not secret, but must not be guessed by chance, so it is part of a hash of the key.
    let nonce = key.derive("output probe").to_text()[..16].to_owned();
    gate.pass(|| {
        ClaimedOutput::claim(&options.output, options.overwrite, options.sync, &nonce).map_err(failed)
    })
}

/// Rejects files to be written that are pieces of input, under any name, or the file from which standard input was
/// read.
fn refuse_overwritten<'a>(
    written: &[PathBuf],
    pieces: &(impl Iterator<Item = &'a Piece> + Clone),
    standard_input: Option<&Metadata>,
) -> Result<(), SubmitError> {
    for path in written {
        // A file that does not exist yet cannot be an input.
        let Ok(there) = fs::metadata(path) else { continue };
        let is_it = |found: &Metadata| id_of(found) == id_of(&there);
        let is_read = |piece: &&Piece| {
            piece.stamp.inode == there.ino()
                && fs::metadata(piece.path.to_path()).is_ok_and(|found| is_it(&found))
        };
        let input = match pieces.clone().find(is_read) {
            Some(piece) => piece.name.clone(),
            None if standard_input.is_some_and(is_it) => FilePath::from("-"),
            None => continue,
        };
        return Err(SubmitError::Overwritten { written: FilePath::from(path.as_path()), input });
    }
    Ok(())
}

/// Rejects files to be written into the output directory, under any name, or into a directory in it.
fn refuse_within(written: &[PathBuf], output: &Path) -> Result<(), SubmitError> {
    let whole = resolved(output);
    match written.iter().find(|path| resolved(path).starts_with(&whole)) {
        None => Ok(()),
        Some(path) => {
            let [written, output] = [path, output].map(FilePath::from);
            Err(SubmitError::WithinOutput { written, output })
        }
    }
}

/// Maximum number of links followed to the place of a file to be written.
const LINKS_MAX: u32 = 40;

/// A path without links. For a file that does not exist yet, its future path, as far as that can be determined.
#[must_use]
pub fn resolved(path: &Path) -> PathBuf {
    let mut path = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
    for _ in 0..LINKS_MAX {
        // A write to a dangling link creates its target.
        match (fs::canonicalize(&path), fs::read_link(&path), path.parent()) {
            (Ok(whole), ..) => return whole,
            (Err(_), Ok(target), Some(directory)) => path = directory.join(target),
            _ => break,
        }
    }
    let of_ancestor = |ancestor: &Path| {
        let rest = path.strip_prefix(ancestor).ok()?;
        Some(fs::canonicalize(ancestor).ok()?.join(rest))
    };
    path.ancestors().find_map(of_ancestor).unwrap_or_else(|| path.clone())
}

/// Checks that work measured before belongs to a job with these numbers of tasks.
fn check_exact(exact: &ExactWork, maps: usize, reduces: u32) -> Result<(), TaskError> {
    exact.validate().map_err(TaskError::config)?;
    let (known_maps, known_reduces) = (exact.map_seconds.len(), exact.reduce_seconds.len());
    if (known_maps, known_reduces) == (maps, reduces as usize) {
        return Ok(());
    }
    let known_maps = counted(known_maps as u64, "map", "maps");
    let known_reduces = counted(known_reduces as u64, "reduce", "reduces");
    Err(TaskError::config(format!(
        "its exact work is that of {known_maps} and {known_reduces}, but it has {maps} and {reduces}"
    )))
}

fn rules(options: &JobOptions) -> SplitRules {
    SplitRules { split_bytes: options.split_bytes, cuts: options.cuts, ..SplitRules::default() }
}

/// Adds the tasks without records, in the order of inputs. Side inputs are read by at least one task, so that their
/// errors are reported even if there is no other input.
fn with_bare_tasks(plan: &JobPlan, splits: Vec<Split>) -> Vec<Split> {
    let mut by_input: BTreeMap<u32, Vec<Split>> = BTreeMap::new();
    for split in splits {
        by_input.entry(split.input).or_default().push(split);
    }
    for (index, input) in plan.inputs().iter().enumerate().filter(|(_, input)| 0 < input.bare_tasks) {
        by_input.entry(index as u32).or_default().extend(input.bare_splits(index as u32));
    }
    if by_input.is_empty() && !plan.side_inputs().is_empty() {
        return vec![Split { input: 0, format: RecordFormat::Lines, pieces: Vec::new() }];
    }
    by_input.into_values().flatten().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn output_is_claimed_or_given_up_and_never_both() {
        let gate = ClaimGate::default();
        assert!(gate.give_up());
        assert!(matches!(gate.pass(|| -> Result<(), _> { unreachable!() }), Err(SubmitError::GivenUp)));
        let gate = ClaimGate::default();
        assert!(matches!(gate.pass(|| Err::<(), _>(SubmitError::Panicked)), Err(SubmitError::Panicked)));
        gate.pass(|| Ok(())).unwrap();
        assert!(!gate.give_up(), "the owner of the claim is waited for");
    }
}
