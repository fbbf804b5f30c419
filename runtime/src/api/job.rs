//! Status of a job: state, counts, totals, failure, forecast for its deadline.

use super::failures::FailureCode;
use super::submission::BuiltPart;
use gristmill_scheduler::core::BackupTotals;
use gristmill_scheduler::ids::JobId;
use gristmill_worker::input::FilePath;
use gristmill_worker::protocol::Part;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// State of a job.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum JobState {
    /// No task has been launched.
    Waiting,
    /// A task runs or has run.
    Running,
    /// All its tasks are done, and its output is being published by its client or the master; that can still fail.
    Publishing,
    /// The output is complete.
    Succeeded,
    /// The job failed.
    Failed,
    /// The job was cancelled.
    Cancelled,
}

impl JobState {
    /// True if the job has ended.
    #[must_use]
    pub fn ended(self) -> bool {
        matches!(self, JobState::Succeeded | JobState::Failed | JobState::Cancelled)
    }

    /// Name of the state, for people and programs.
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

/// Counts of the tasks of one kind.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct TaskCounts {
    /// All tasks.
    pub total: u32,
    /// Running tasks.
    pub running: u32,
    /// Tasks that are done.
    pub done: u32,
}

/// Failure of a job.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct JobFailure {
    /// Code for programs.
    pub code: FailureCode,
    /// One sentence that names the task.
    pub message: String,
    /// The last report of the decisive attempt: attempt, worker, message.
    pub detail: Option<String>,
}

/// Sums over the successful attempts of a job.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct JobTotals {
    /// Records read by maps.
    pub map_records_in: u64,
    /// Bytes read by maps.
    pub map_bytes_in: u64,
    /// Pairs emitted by maps, before combining.
    pub map_records_out: u64,
    /// Bytes of map output.
    pub map_bytes_out: u64,
    /// Bytes received over HTTP from another worker.
    pub shuffle_bytes: u64,
    /// Transfers of map outputs that arrived damaged and were repeated; the source held an intact copy.
    pub transfers_damaged: u64,
    /// Segments gathered at the homes of their partitions, out of maps times reduces. The segments of a reduce that
    /// moved count again. Those gathered in addition for a speculative attempt do not count.
    pub shuffle_segments: u64,
    /// Records read by reduces.
    pub reduce_records_in: u64,
    /// Records of all parts.
    pub records_out: u64,
    /// Bytes of all parts.
    pub bytes_out: u64,
    /// Number of runs spilled to disk.
    pub spills: u64,
    /// Bytes of spilled runs.
    pub spilled_bytes: u64,
    /// CPU time of slots in nanoseconds.
    pub cpu_ns: u64,
    /// Time for which attempts held slots, nanoseconds; suspended time is excluded.
    pub slot_ns: u64,
    /// Part of that time in which slots were paced because they are slower than the machine, nanoseconds.
    pub paced_ns: u64,
    /// Time for which attempts were suspended, nanoseconds.
    pub suspended_ns: u64,
    /// Number of suspensions of attempts.
    pub suspensions: u64,
    /// Largest resident memory of any worker process that took part, bytes; mapped input counts too.
    pub worker_memory_peak_bytes: u64,
    /// Memory that each worker may use for collecting, keeping and merging, bytes.
    pub worker_memory_budget_bytes: u64,
    /// Maximum of the bytes that the outputs and gathered segments of any worker have used at once, as counted by its
    /// budget.
    pub worker_kept_peak_bytes: u64,
    /// Splits read from a disk of the worker.
    pub splits_local: u32,
    /// Splits read over HTTP from a process on the same host.
    pub splits_same_host: u32,
    /// Splits read over HTTP from another host.
    pub splits_remote: u32,
}

/// Number of attempts by outcome.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct AttemptCounts {
    /// All launched attempts.
    pub launched: u32,
    /// Launched attempts of maps.
    pub maps_launched: u32,
    /// Failed by user code (charged).
    pub failed_user: u32,
    /// Failed otherwise (not charged).
    pub failed_other: u32,
    /// Lost with their worker.
    pub lost: u32,
    /// Cancelled.
    pub cancelled: u32,
    /// Map attempts queued on a worker, and preempted or lost with it before they started.
    pub returned: u32,
    /// Maps run again because their output was lost.
    pub maps_rerun: u32,
    /// Speculative attempts launched.
    pub backups: u32,
    /// Speculative attempts that succeeded before the first attempt of their task.
    pub backups_won: u32,
    /// Time for which speculative attempts held slots, nanoseconds; those that still hold one are excluded.
    pub backup_slot_ns: u64,
}

impl AttemptCounts {
    /// Adds the core's counts of speculative attempts.
    pub(crate) fn with_backups(self, totals: BackupTotals) -> Self {
        let BackupTotals { launched, won, slot_time } = totals;
        Self { backups: launched, backups_won: won, backup_slot_ns: slot_time.0, ..self }
    }
}

/// Serializes JSON text as the value it encodes. Files of old versions have the text itself.
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

/// Status of a job.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct JobStatus {
    /// [`SCHEMA`](super::SCHEMA).
    pub schema: u32,
    /// Its number.
    pub job: JobId,
    /// Its name.
    pub name: String,
    /// Role and label of the token that submitted it; `None` if its master did not record it.
    pub owner: Option<String>,
    /// Its parameters as JSON text; serialized as the value it encodes.
    #[serde(with = "json_text")]
    pub parameters: String,
    /// Its state.
    pub state: JobState,
    /// Map tasks.
    pub maps: TaskCounts,
    /// Reduce tasks.
    pub reduces: TaskCounts,
    /// Segments to gather: maps times reduces.
    pub segments_total: u64,
    /// Bytes of input of all maps.
    pub input_bytes: u64,
    /// Bytes of input read so far, running attempts included.
    pub input_bytes_read: u64,
    /// Time of arrival.
    pub arrived_ns: u64,
    /// Time of the launch of its first task.
    pub started_ns: Option<u64>,
    /// Time of the end of its last map; the last such time if maps ran again.
    pub maps_done_ns: Option<u64>,
    /// First time after the last map at which no reduce lacked a segment.
    pub shuffle_done_ns: Option<u64>,
    /// Time of its end.
    pub ended_ns: Option<u64>,
    /// The master's clock when this was written.
    pub now_ns: u64,
    /// Arrival, start and end by the wall clock, as in RFC 3339; `None` from an older master.
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
    /// Published parts in order; listed for a follower only once the job has ended.
    pub parts: Vec<Part>,
    /// Places where the parts were built; sent only to the process that publishes them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub built: Vec<BuiltPart>,
    /// Bad records of the input that were skipped, and the one beyond the maximum, in input order. Each map counts
    /// once, however many attempts it had. They are listed wherever parts are.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub bad_records: Vec<NamedBadRecord>,
    /// Incidents, the newest last, at most 50.
    pub incidents: Vec<String>,
    /// Number of incidents dropped from the list.
    pub incidents_omitted: u64,
    /// Failure, if it did not succeed.
    pub failure: Option<JobFailure>,
    /// Remarks of the plan.
    pub remarks: Vec<String>,
    /// Number of live workers of the master; at the job's end once it has ended.
    pub workers: u32,
    /// Number of their slots.
    pub slots: u32,
    /// Output directory.
    pub output: FilePath,
    /// Share under a fair policy.
    #[serde(default)]
    pub weight: f64,
    /// Its pool.
    pub pool: Option<String>,
    /// Priority, used by some policies; higher is more urgent.
    #[serde(default)]
    pub priority: i32,
    /// Deadline, if there is one: the master's clock, nanoseconds.
    pub deadline_ns: Option<u64>,
    /// Forecast for the deadline, made at arrival.
    pub deadline_outlook: Option<DeadlineOutlook>,
    /// Estimated work, until the job ends.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub work: Option<WorkLeft>,
    /// Forecast of the time left, nanoseconds: what all live jobs have left, simulated under the current policy. From the
    /// end of the first map until the job ends.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub time_left_ns: Option<u64>,
    /// Interval of that time, nanoseconds: the forecasts of eight of ten earlier jobs of this master were off by as much.
    /// `None` before ten jobs with a forecast have ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub time_left_interval_ns: Option<[u64; 2]>,
    /// Parts of the flow time, which add up to it.
    #[serde(default)]
    pub flow_parts: FlowParts,
}

/// Parts of the flow time of a job, nanoseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct FlowParts {
    /// Attempts of it held slots.
    pub running_ns: u64,
    /// Tasks of it could have started, and none had a slot.
    pub waiting_ns: u64,
    /// No task of it could start: segments were on their way, or its output was published.
    pub blocked_ns: u64,
}

/// Estimated work of a job: slot-seconds of maps, seconds of the network, slot-seconds of reduces. Without an
/// estimator, numbers of tasks and segments.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct WorkLeft {
    /// All of it.
    pub whole: [f64; 3],
    /// Remaining work.
    pub left: [f64; 3],
}

/// A bad record.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct NamedBadRecord {
    /// Its file as the user named it.
    pub path: String,
    /// Offset of its start in the file after decompression, bytes.
    pub offset: u64,
    /// Reason for its rejection.
    pub reason: String,
}

/// Forecast for a deadline, made at the job's arrival.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct DeadlineOutlook {
    /// True if the job can meet its deadline according to estimates; `None` if its work is unknown.
    pub feasible: Option<bool>,
    /// Map slots that it needs from now on; `None` if no number is enough, because JSON has no infinity.
    pub map_slots: Option<f64>,
    /// Reduce slots that it needs from now on; `None` if no number is enough.
    pub reduce_slots: Option<f64>,
    /// The forecast in words.
    pub words: String,
}

/// Maximum number of incidents kept for one job.
pub(crate) const INCIDENTS_MAX: usize = 50;

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
