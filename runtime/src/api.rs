//! What clients and master say to each other: the JSON bodies of `/api/v1`.
//!
//! The schema is versioned by [`SCHEMA`], which every body that leaves the program carries. Fields are only
//! ever added within a version. Times are nanoseconds since the master started unless a name says otherwise.
//! Not here: frames between master and workers (`gristmill_worker::protocol`).

mod failures;

pub use self::failures::{AttemptEnd, AttemptFailure, ErrorCode, FailureCode};
pub use crate::role::Role;
use gristmill_scheduler::ids::{AttemptId, JobId, WorkerId};
use gristmill_worker::folder::PlainName;
use gristmill_worker::http::Endpoint;
use gristmill_worker::input::{FilePath, FileStamp, Split};
use gristmill_worker::protocol::{AttemptReport, Part, SlotCounts};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Version of everything in this file.
pub const SCHEMA: u32 = 1;

/// Root of all routes.
pub const ROOT: &str = "/api/v1";

/// Longest submission in bytes.
pub const SUBMISSION_BYTES_MAX: usize = 256 << 20;

/// A job with its input cut into splits. Body of `POST /api/v1/jobs`.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Submission {
    /// [`SCHEMA`].
    pub schema: u32,
    /// Identifies the submitting program, as [`MasterStatus::build`] does the cluster's: user functions are compiled
    /// in, so the two must be the same.
    #[serde(default)]
    pub build: String,
    /// Name of the job in the registry.
    pub name: String,
    /// Its parameters as JSON text.
    pub parameters: String,
    /// What the submitter calls it: jobs of one label are alike, for estimators that keep history; `None`: its name.
    #[serde(default)]
    pub label: Option<String>,
    /// One map task each, in input order.
    pub splits: Vec<Split>,
    /// Number of parts; 0 for a map-only job.
    pub reduces: u32,
    /// Ends of ranges for a totally ordered job, as hexadecimal text.
    pub cuts: Vec<String>,
    /// Side inputs.
    pub side: Vec<Split>,
    /// Output directory, absolute.
    pub output: FilePath,
    /// Name of the file in `_temporary` by which a worker knows the directory.
    pub output_probe: PlainName,
    /// The directory was made for this job.
    pub output_made: bool,
    /// Where the submitter serves its files and takes parts.
    pub submitter: Option<Endpoint>,
    /// What opens the job's segments and files, as text; made by the submitter because it serves files too.
    pub key: String,
    /// What the permits to send in parts are made of, as text: the master and the submitter know it, workers do not.
    pub permit_key: String,
    /// Share under a fair policy; 1 is usual.
    pub weight: f64,
    /// Pool under a fair policy; `None`: a pool of its own.
    pub pool: Option<String>,
    /// Urgency, for policies that look at it; the higher the sooner.
    #[serde(default)]
    pub priority: i32,
    /// The job should end within this time of its arrival, nanoseconds; a wish, not a limit.
    #[serde(default)]
    pub deadline_ns: Option<u64>,
    /// The job's work as measured before, for experiments: policies see it through the oracle estimator.
    #[serde(default)]
    pub exact: Option<ExactWork>,
    /// Charged failures of one task after which the job fails.
    pub attempts_max: u32,
    /// Whether parts are synced to disk before they count as published.
    pub sync: bool,
    /// Longest record, bytes.
    pub record_bytes_max: u64,
    /// Bytes that may come out of a compressed file for each that goes in.
    pub expansion_max: u32,
    /// User code that reads and writes nothing for this long hangs, milliseconds.
    pub hang_ms: u64,
    /// The job is cancelled when the connection that submitted it closes.
    pub attached: bool,
    /// Remarks of the job's plan, for the summary.
    pub remarks: Vec<String>,
    /// What the columns of the output mean, for `_SUCCESS`.
    pub columns: Option<Vec<String>>,
}

/// The work of a job task by task, from an earlier run of it alone.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ExactWork {
    /// Seconds that each map holds a slot of a worker of speed 1.
    pub map_seconds: Vec<f64>,
    /// Bytes that all maps put out.
    pub shuffle_bytes: f64,
    /// Seconds that each reduce holds such a slot.
    pub reduce_seconds: Vec<f64>,
}

impl ExactWork {
    /// Checks the numbers.
    ///
    /// # Errors
    /// A number that is negative or not finite, in words.
    pub fn validate(&self) -> Result<(), String> {
        let lists = [
            ("map_seconds", &self.map_seconds[..]),
            ("shuffle_bytes", std::slice::from_ref(&self.shuffle_bytes)),
            ("reduce_seconds", &self.reduce_seconds[..]),
        ];
        for (name, numbers) in lists {
            if let Some(number) = numbers.iter().find(|number| !(number.is_finite() && 0.0 <= **number)) {
                return Err(format!("{name} holds {number}, which is not a number of at least 0"));
            }
        }
        Ok(())
    }
}

/// How a job stands.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum JobState {
    /// Nothing of it has been launched.
    Waiting,
    /// Something runs or has run.
    Running,
    /// All its tasks are done, and its output is being published, by its client or the master; that can still fail.
    Publishing,
    /// The output is complete.
    Succeeded,
    /// Given up.
    Failed,
    /// Somebody cancelled it.
    Cancelled,
}

impl JobState {
    /// Whether nothing will happen any more.
    #[must_use]
    pub fn ended(self) -> bool {
        matches!(self, JobState::Succeeded | JobState::Failed | JobState::Cancelled)
    }

    /// As people and programs read it.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            JobState::Waiting => "waiting",
            JobState::Running => "running",
            JobState::Publishing => "publishing",
            JobState::Succeeded => "succeeded",
            JobState::Failed => "failed",
            JobState::Cancelled => "cancelled",
        }
    }
}

/// Tasks of one kind.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct TaskCounts {
    /// All.
    pub total: u32,
    /// Running now.
    pub running: u32,
    /// Done.
    pub done: u32,
}

/// Why a job did not succeed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct JobFailure {
    /// What programs decide by.
    pub code: FailureCode,
    /// One sentence with the task.
    pub message: String,
    /// The last report of the attempt that decided it: attempt, worker, words.
    pub detail: Option<String>,
}

/// Sums over the attempts of a job that succeeded.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct JobTotals {
    /// Records read by maps.
    pub map_records_in: u64,
    /// Bytes read by maps.
    pub map_bytes_in: u64,
    /// Pairs emitted by maps, before combining.
    pub map_records_out: u64,
    /// Bytes of map output.
    pub map_bytes_out: u64,
    /// Bytes that came over HTTP from another worker.
    pub shuffle_bytes: u64,
    /// Segments gathered, of maps times reduces.
    pub shuffle_segments: u64,
    /// Records read by reduces.
    pub reduce_records_in: u64,
    /// Records of all parts.
    pub records_out: u64,
    /// Bytes of all parts.
    pub bytes_out: u64,
    /// Runs that went to disk.
    pub spills: u64,
    /// Bytes of those.
    pub spilled_bytes: u64,
    /// CPU time of slots in nanoseconds.
    pub cpu_ns: u64,
    /// Time that attempts held slots, nanoseconds; while they were suspended they held none.
    #[serde(default)]
    pub slot_ns: u64,
    /// Time of that in which slots were made to wait because they are slower than the machine, nanoseconds.
    #[serde(default)]
    pub paced_ns: u64,
    /// Time that attempts were suspended, nanoseconds.
    #[serde(default)]
    pub suspended_ns: u64,
    /// Times that attempts were suspended.
    #[serde(default)]
    pub suspensions: u64,
    /// Largest resident memory of any worker process that took part, bytes; mapped input counts too.
    pub worker_memory_peak_bytes: u64,
    /// Memory that each worker may use for collecting, keeping and merging, bytes.
    #[serde(default)]
    pub worker_memory_budget_bytes: u64,
    /// Most bytes that the outputs and gathered segments of any worker have taken at once, as far as its budget
    /// counts them.
    #[serde(default)]
    pub worker_kept_peak_bytes: u64,
    /// Splits whose bytes were read from a disk that the worker sees.
    pub splits_local: u32,
    /// Splits read over HTTP from a process on the same host.
    pub splits_same_host: u32,
    /// Splits read over HTTP from another host.
    pub splits_remote: u32,
}

/// Attempts by how they ended.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct AttemptCounts {
    /// Launched in all.
    pub launched: u32,
    /// Failed by user code (charged).
    pub failed_user: u32,
    /// Failed otherwise (not charged).
    pub failed_other: u32,
    /// Lost with their worker.
    pub lost: u32,
    /// Told to stop.
    pub cancelled: u32,
    /// Queued on a worker, and taken back or lost with it before they began.
    #[serde(default)]
    pub returned: u32,
    /// Maps run again because their output was lost.
    pub maps_rerun: u32,
}

/// Everything worth knowing of a job.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct JobStatus {
    /// [`SCHEMA`].
    pub schema: u32,
    /// Its number.
    pub job: JobId,
    /// Its name.
    pub name: String,
    /// Its parameters as JSON text.
    pub parameters: String,
    /// How it stands.
    pub state: JobState,
    /// Map tasks.
    pub maps: TaskCounts,
    /// Reduce tasks.
    pub reduces: TaskCounts,
    /// Segments to gather: maps times reduces.
    pub segments_total: u64,
    /// Bytes of input of all maps.
    pub input_bytes: u64,
    /// Bytes of input read so far, with running attempts.
    pub input_bytes_read: u64,
    /// When it arrived.
    pub arrived_ns: u64,
    /// When its first task was launched.
    pub started_ns: Option<u64>,
    /// When its last map ended (the last time, if maps were run again).
    pub maps_done_ns: Option<u64>,
    /// When the last segment was in.
    pub shuffle_done_ns: Option<u64>,
    /// When it ended.
    pub ended_ns: Option<u64>,
    /// The master's clock when this was written.
    pub now_ns: u64,
    /// Sums.
    pub totals: JobTotals,
    /// Attempts.
    pub attempts: AttemptCounts,
    /// User counters.
    pub counters: BTreeMap<String, u64>,
    /// Published parts in order; while a job is followed, only once it has ended.
    pub parts: Vec<Part>,
    /// Where each of the parts was built, for whoever publishes them; nobody else is told.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub built: Vec<BuiltPart>,
    /// What went wrong on the way, newest last, at most [`INCIDENTS_MAX`].
    pub incidents: Vec<String>,
    /// Incidents left out of the list.
    pub incidents_omitted: u64,
    /// Why it did not succeed.
    pub failure: Option<JobFailure>,
    /// Remarks of the plan.
    pub remarks: Vec<String>,
    /// Live workers of the master.
    pub workers: u32,
    /// Their slots.
    pub slots: u32,
    /// Output directory.
    pub output: FilePath,
    /// Share under a fair policy.
    #[serde(default)]
    pub weight: f64,
    /// Its pool.
    #[serde(default)]
    pub pool: Option<String>,
    /// Urgency.
    #[serde(default)]
    pub priority: i32,
    /// When it should end, if somebody said so: the master's clock, nanoseconds.
    #[serde(default)]
    pub deadline_ns: Option<u64>,
    /// Whether that looked feasible when it arrived, in words, with what it needs.
    #[serde(default)]
    pub deadline_outlook: Option<Outlook>,
}

/// What a deadline needs, as seen at the job's arrival.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Outlook {
    /// Whether the job can meet its deadline as far as estimates tell; `None` if nothing is known of its work.
    pub feasible: Option<bool>,
    /// Map slots that it needs from now on; `None` if no number of them is enough. JSON has no infinity.
    pub map_slots: Option<f64>,
    /// Reduce slots that it needs, likewise.
    pub reduce_slots: Option<f64>,
    /// In words.
    pub words: String,
}

/// Body of `POST /api/v1/jobs/JOB/closed`: the client that follows a job has closed its output.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct OutputClosed {
    /// Why the output is not there, if it could not be finished.
    pub failed: Option<String>,
}

/// Where a part lies until it is published.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct BuiltPart {
    /// The attempt that built it, and was allowed to.
    pub attempt: AttemptId,
    /// Its file as it was when the attempt was done with it.
    pub stamp: FileStamp,
}

/// Incidents kept for one job.
pub const INCIDENTS_MAX: usize = 50;

impl JobStatus {
    /// Completion minus arrival, or the time since arrival.
    #[must_use]
    pub fn flow_ns(&self) -> u64 {
        self.ended_ns.unwrap_or(self.now_ns).saturating_sub(self.arrived_ns)
    }

    /// First task start minus arrival, or the time since arrival.
    #[must_use]
    pub fn waiting_ns(&self) -> u64 {
        let started = self.started_ns.or(self.ended_ns).unwrap_or(self.now_ns);
        started.saturating_sub(self.arrived_ns)
    }
}

/// A worker as the master sees it.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct WorkerStatus {
    /// Its number.
    pub worker: WorkerId,
    /// Name of its machine.
    pub host: String,
    /// Its process id there.
    pub pid: u32,
    /// Attempts it can run at once.
    pub slots: u32,
    /// The same by kind.
    pub slot_counts: SlotCounts,
    /// How fast its slots are made to be; 1 is as fast as they can.
    pub speed: f64,
    /// What its shuffle is held to in each direction, bytes in a second.
    pub nic_bytes_per_second: Option<u64>,
    /// Attempts it runs.
    pub running: u32,
    /// Where its shuffle server listens.
    pub endpoint: Endpoint,
    /// Its memory budget, bytes.
    pub memory_budget_bytes: u64,
    /// Anonymous and shared memory it uses, bytes.
    pub memory_bytes: u64,
    /// Free bytes on its fullest spill directory.
    pub disk_free_bytes: u64,
    /// Its clock minus the master's, nanoseconds, as measured.
    pub clock_offset_ns: i64,
    /// When it joined.
    pub joined_ns: u64,
}

/// Answer of `GET /api/v1/cluster`: what planning a job needs, for those who may submit one.
#[derive(Clone, Serialize, Deserialize)]
pub struct ClusterStatus {
    /// As `GET /api/v1/status` has it.
    pub master: MasterStatus,
    /// What opens each worker's listings and samples of its files: secrets.
    pub list_keys: BTreeMap<WorkerId, String>,
}

/// Body of `POST /api/v1/tokens`.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct NewToken {
    /// What it may do.
    pub role: Role,
    /// What it is called besides, so that it can be revoked alone.
    pub label: Option<String>,
}

/// Its answer.
#[derive(Clone, Serialize, Deserialize)]
pub struct MadeToken {
    /// `NAME:KEY`: a secret.
    pub token: String,
}

/// Body of `POST /api/v1/tokens/revoke`.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RevokeToken {
    /// The token's name.
    pub name: String,
}

/// Body of `POST /api/v1/tokens/rotate`.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RotateTokens {
    /// For how long the tokens of before are taken too, seconds.
    pub grace_seconds: u64,
}

/// The master as a whole.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct MasterStatus {
    /// [`SCHEMA`].
    pub schema: u32,
    /// Version of the program.
    pub version: String,
    /// Identifies the executable.
    pub build: String,
    /// The policy that chooses jobs.
    pub policy: String,
    /// The placement that chooses workers.
    pub placement: String,
    /// The estimator that tells policies how large jobs are.
    #[serde(default)]
    pub estimator: String,
    /// Times that the policy panicked since it decides; `fifo` decided in its place.
    #[serde(default)]
    pub policy_panics: u64,
    /// What it said the last time; empty if it never did.
    #[serde(default)]
    pub policy_panic: String,
    /// The master's clock.
    pub now_ns: u64,
    /// Live workers.
    pub workers: Vec<WorkerStatus>,
    /// Jobs that have not ended.
    pub jobs_live: u32,
}

/// Estimates kept of one job; when there are more, every second one is left out.
pub const ESTIMATES_MAX: usize = 512;

/// One attempt, for the trace.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct AttemptRecord {
    /// The attempt.
    pub attempt: AttemptId,
    /// Where it ran.
    pub worker: WorkerId,
    /// When the master launched it.
    pub launched_ns: u64,
    /// When it began on the worker, in the master's clock.
    pub started_ns: Option<u64>,
    /// When it ended, in the master's clock.
    pub ended_ns: Option<u64>,
    /// How it ended.
    pub end: AttemptEnd,
    /// Why this job, why there.
    pub reason: String,
    /// What it did, once it has ended.
    pub report: Option<AttemptReport>,
    /// From when until when it was suspended, in the master's clock; while it is, the end is the time of the look.
    #[serde(default)]
    pub suspensions: Vec<(u64, u64)>,
    /// Whether it is suspended now.
    #[serde(default)]
    pub suspended: bool,
}

/// One transfer of segments, for the trace.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct FetchRecord {
    /// Whose output.
    pub map: AttemptId,
    /// Who had it.
    pub from: WorkerId,
    /// Who fetched it.
    pub to: WorkerId,
    /// Number of partitions.
    pub partitions: u32,
    /// Bytes; 0 if read in place.
    pub bytes: u64,
    /// When the request began, in the master's clock.
    pub started_ns: u64,
    /// When it ended.
    pub ended_ns: u64,
}

/// Everything that happened to a job.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct JobTrace {
    /// How it stands.
    pub status: JobStatus,
    /// Attempts in the order of launching.
    pub attempts: Vec<AttemptRecord>,
    /// Transfers in the order of their end.
    pub fetches: Vec<FetchRecord>,
    /// How large the job looked, from arrival to end, at most [`ESTIMATES_MAX`].
    #[serde(default)]
    pub estimates: Vec<EstimateRecord>,
    /// Records left out because there were too many.
    pub omitted: u64,
}

/// How large a job looked at some moment.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct EstimateRecord {
    /// When, in the master's clock.
    pub at_ns: u64,
    /// Maps done then.
    pub maps_done: u32,
    /// Slot-seconds of maps, seconds of the network, slot-seconds of reduces: all work.
    pub whole: [f64; 3],
    /// What was left of it.
    pub left: [f64; 3],
}

/// Why something ran where and when it did, or why it waits, in words. Answer to `GET /jobs/JOB/explain`, which takes
/// `?task=map-3` or `?task=reduce-0` for one task.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Explanation {
    /// [`SCHEMA`].
    pub schema: u32,
    /// Sentences, the answer first.
    pub sentences: Vec<String>,
}

/// Who decides from now on. Body of `PUT /policy`; the answer is the [`MasterStatus`].
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PolicyChange {
    /// Policy as text; `None`: stays, and starts anew.
    pub policy: Option<String>,
    /// Placement as text; `None`: stays, and starts anew.
    pub placement: Option<String>,
}

/// What user code wrote, for one attempt.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct LogEntry {
    /// The attempt; `None` if several ran when it was written.
    pub attempt: Option<AttemptId>,
    /// Where it ran.
    pub worker: WorkerId,
    /// The words, bytes that are not UTF-8 replaced.
    pub text: String,
    /// Bytes left out.
    pub omitted_bytes: u64,
}

/// A worker process has ended; said by whoever started it.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct WorkerEnded {
    /// Its process id.
    pub pid: u32,
    /// Name of its machine.
    pub host: String,
    /// By which the master believes this: the worker said what the key gives when it joined.
    pub key: String,
    /// The signal that ended it.
    pub signal: Option<i32>,
    /// The kernel ended it because memory ran out.
    #[serde(default)]
    pub out_of_memory: bool,
    /// Its exit code, if no signal did.
    pub code: Option<i32>,
    /// The last words of user code.
    pub last_words: String,
    /// What its slots began last; they may have ended it well.
    #[serde(default)]
    pub begun: Vec<AttemptId>,
    /// The attempt on whose thread the process was brought down from within; `None` if none is known to have done that.
    #[serde(default)]
    pub culprit: Option<AttemptId>,
}

/// One line of the answer to a submission or a watch.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum WatchLine {
    /// How the job stands now, but for its parts; the last line has an ended state, or the state `publishing` for whoever publishes.
    Status(Box<JobStatus>),
    /// Some parts of the status that comes next, in order, with where they were built if that is told.
    Parts {
        /// The parts.
        parts: Vec<Part>,
        /// Where they were built.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        built: Vec<BuiltPart>,
    },
}

/// Most parts that one line tells of: some 300 KiB.
pub const PARTS_OF_LINE_MAX: usize = 1000;

impl WatchLine {
    /// The lines that tell a status.
    pub fn of(mut status: JobStatus) -> impl Iterator<Item = Self> {
        let mut parts = std::mem::take(&mut status.parts).into_iter();
        let mut built = std::mem::take(&mut status.built).into_iter();
        let mut status = Some(Box::new(status));
        std::iter::from_fn(move || match parts.len() {
            0 => status.take().map(Self::Status),
            _ => {
                let parts = parts.by_ref().take(PARTS_OF_LINE_MAX).collect();
                Some(Self::Parts { parts, built: built.by_ref().take(PARTS_OF_LINE_MAX).collect() })
            }
        })
    }
}

/// The body of every answer that is not a success.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct ApiError {
    /// What programs decide by.
    pub code: ErrorCode,
    /// For a person.
    pub message: String,
}
