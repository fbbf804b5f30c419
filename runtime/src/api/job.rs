//! How a job stands: state, counts, totals, failure, outlook on its deadline.

use super::{BuiltPart, FailureCode};
use gristmill_scheduler::core::BackupTotals;
use gristmill_scheduler::ids::JobId;
use gristmill_worker::input::FilePath;
use gristmill_worker::protocol::Part;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

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
    /// Transfers of map outputs that came damaged though the copy at the other worker was whole, and were repeated.
    #[serde(default)]
    pub transfers_damaged: u64,
    /// Segments gathered at the homes of their partitions, of maps times reduces; those of a reduce that moved count again,
    /// and those that a second attempt of a reduce gathers beside it do not.
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
    /// Those of them that are of maps.
    #[serde(default)]
    pub maps_launched: u32,
    /// Failed by user code (charged).
    pub failed_user: u32,
    /// Failed otherwise (not charged).
    pub failed_other: u32,
    /// Lost with their worker.
    pub lost: u32,
    /// Told to stop.
    pub cancelled: u32,
    /// Of maps, queued on a worker, and taken back or lost with it before they began.
    #[serde(default)]
    pub returned: u32,
    /// Maps run again because their output was lost.
    pub maps_rerun: u32,
    /// Second attempts of slow tasks that were launched.
    #[serde(default)]
    pub backups: u32,
    /// Those of them that ended well before the first attempt of their task did.
    #[serde(default)]
    pub backups_won: u32,
    /// How long they held slots beside the first attempts, nanoseconds; those that still do are left out.
    #[serde(default)]
    pub backup_slot_ns: u64,
}

impl AttemptCounts {
    /// With what the core counts of backups.
    pub(crate) fn with_backups(self, totals: BackupTotals) -> Self {
        let BackupTotals { launched, won, slot_time } = totals;
        Self { backups: launched, backups_won: won, backup_slot_ns: slot_time.0, ..self }
    }
}

/// JSON text as what it says; files of before have the text itself.
mod json_text {
    use serde::{Deserialize, Deserializer, Serialize, Serializer};
    use serde_json::Value;

    pub(super) fn serialize<S: Serializer>(text: &str, serializer: S) -> Result<S::Ok, S::Error> {
        match serde_json::from_str::<Value>(text) {
            Ok(value) => value.serialize(serializer),
            Err(_) => serializer.serialize_str(text),
        }
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<String, D::Error> {
        Ok(match Value::deserialize(deserializer)? {
            Value::String(text) => text,
            value => value.to_string(),
        })
    }
}

/// Everything worth knowing of a job.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct JobStatus {
    /// [`SCHEMA`](super::SCHEMA).
    pub schema: u32,
    /// Its number.
    pub job: JobId,
    /// Its name.
    pub name: String,
    /// Role and label of the token that submitted it; `None` of jobs of masters that did not remember it.
    #[serde(default)]
    pub owner: Option<String>,
    /// Its parameters as JSON text; in JSON what that text says.
    #[serde(with = "json_text")]
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
    /// When no reduce lacked a segment any more, for the first time after the last map.
    pub shuffle_done_ns: Option<u64>,
    /// When it ended.
    pub ended_ns: Option<u64>,
    /// The master's clock when this was written.
    pub now_ns: u64,
    /// When it arrived, started and ended by the clock on the wall, as RFC 3339 has it; `None` from a master of before.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub submitted_at: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[expect(missing_docs, reason = "see `submitted_at`")]
    pub started_at: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[expect(missing_docs, reason = "see `submitted_at`")]
    pub ended_at: Option<String>,
    /// Sums.
    pub totals: JobTotals,
    /// Attempts.
    pub attempts: AttemptCounts,
    /// User counters.
    pub counters: BTreeMap<String, u64>,
    /// Float sums of user code, exact until they were rounded for this.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub sums: BTreeMap<String, f64>,
    /// Greatest numbers that user code said.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub maxima: BTreeMap<String, f64>,
    /// Published parts in order; while a job is followed, only once it has ended.
    pub parts: Vec<Part>,
    /// Where each of the parts was built, for whoever publishes them; nobody else is told.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub built: Vec<BuiltPart>,
    /// Records of the input that were left out because they are bad, and the one too many; in input order. Counted for
    /// each map once, however often it ran. Listed wherever parts are.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub bad_records: Vec<NamedBadRecord>,
    /// What went wrong on the way, newest last, at most [`INCIDENTS_MAX`].
    pub incidents: Vec<String>,
    /// Incidents left out of the list.
    pub incidents_omitted: u64,
    /// Why it did not succeed.
    pub failure: Option<JobFailure>,
    /// Remarks of the plan.
    pub remarks: Vec<String>,
    /// Live workers of the master, as of the job's end.
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
    /// The higher the sooner, under policies that look at it.
    #[serde(default)]
    pub priority: i32,
    /// When it should end, if somebody said so: the master's clock, nanoseconds.
    #[serde(default)]
    pub deadline_ns: Option<u64>,
    /// Whether that looked feasible when it arrived, in words, with what it needs.
    #[serde(default)]
    pub deadline_outlook: Option<DeadlineOutlook>,
    /// How much work it looks to be, until it ends.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub work: Option<WorkLeft>,
}

/// How much work a job looks to be, by the master's estimator: slot-seconds of maps, seconds of the network, slot-seconds of
/// reduces. Without an estimator tasks and segments.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct WorkLeft {
    /// All of it.
    pub whole: [f64; 3],
    /// What is left.
    pub left: [f64; 3],
}

/// A bad record.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct NamedBadRecord {
    /// Its file as the user named it.
    pub path: String,
    /// Where it begins in the file, bytes, after decompression.
    pub offset: u64,
    /// Why it was refused.
    pub reason: String,
}

/// What a deadline needs, as seen at the job's arrival.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct DeadlineOutlook {
    /// Whether the job can meet its deadline as far as estimates tell; `None` if nothing is known of its work.
    pub feasible: Option<bool>,
    /// Map slots that it needs from now on; `None` if no number of them is enough. JSON has no infinity.
    pub map_slots: Option<f64>,
    /// Reduce slots that it needs, likewise.
    pub reduce_slots: Option<f64>,
    /// In words.
    pub words: String,
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
