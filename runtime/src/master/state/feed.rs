//! What has changed since somebody last looked, for those who look several times a second: costs as much as has changed,
//! and a glance at each job that has not ended.

use super::MasterState;
use super::job::JobEntry;
use super::record::TaskRecords;
use crate::api::{FeedEnd, FeedFetch, FeedLine, FeedLoad, JobState, JobStatus, MasterStatus, WorkerStatus};
use gristmill_scheduler::ids::{JobId, WorkerId};
use gristmill_scheduler::units::{Span, Time};
use std::collections::{BTreeMap, BTreeSet};

/// Attempts and transfers of one line at most.
const RECORDS_OF_LINE_MAX: usize = 4_000;
/// Ended jobs that the first line tells of at most, the last ones.
const ENDED_AT_FIRST_MAX: usize = 200;
/// Of a job that ended so long ago the first look is told how it stands, and nothing of its attempts.
const RECENTLY: Span = Span::whole_seconds(300);
/// Memory of a worker that comes or goes is told when it is more than one of this many parts of what was told, and more than
/// [`MEMORY_STEP_BYTES`]; else all workers would be told of in each line.
const PARTS_OF_LOAD: u64 = 32;
/// See [`PARTS_OF_LOAD`].
const MEMORY_STEP_BYTES: u64 = 1 << 20;

/// How far somebody has looked.
#[derive(Default)]
pub(crate) struct FeedCursor {
    /// Workers as they were told of.
    workers: BTreeMap<WorkerId, WorkerStatus>,
    /// Jobs from this number on are new.
    next_job: u32,
    /// Those whose end has not been told.
    open: BTreeMap<JobId, JobCursor>,
}

/// How far somebody has looked at one job.
#[derive(Default)]
struct JobCursor {
    attempts: usize,
    fetches: usize,
    /// Attempts that were told of and had not ended, by their place, and how they stood.
    unended: BTreeMap<usize, FeedEnd>,
    /// How the job looked when it was told of.
    told: Option<JobLook>,
}

/// What shows that a job has changed: how it stands, tasks that are done and that run, bytes read and shuffled, records
/// out, incidents.
type JobLook = (JobState, [u32; 4], [u64; 4]);

impl MasterState {
    /// What has changed since `cursor`, which moves on. The workers are those of `master`.
    pub(crate) fn feed(&self, now: Time, cursor: &mut FeedCursor, mut master: MasterStatus) -> FeedLine {
        let mut jobs = self.newly_seen(now, cursor);
        let present = std::mem::take(&mut master.workers);
        let mut line = FeedLine {
            master,
            workers: Vec::new(),
            loads: Vec::new(),
            left: Vec::new(),
            jobs: Vec::new(),
            attempts: Vec::new(),
            fetches: Vec::new(),
            more: false,
        };
        tell_workers(&mut cursor.workers, present, &mut line);
        let mut told = BTreeSet::new();
        for (id, seen) in &mut cursor.open {
            let Some(job) = self.jobs.get(id) else {
                told.insert(*id);
                continue;
            };
            let room = RECORDS_OF_LINE_MAX.saturating_sub(line.attempts.len() + line.fetches.len());
            let whole = job.records.feed(*id, seen, room, &mut line);
            line.more |= !whole;
            let look = Some(self.look_of(*id, job));
            if look != seen.told {
                jobs.extend(self.followed_status_without_parts(now, *id));
                seen.told = look;
            }
            if whole && job.shown_state().ended() {
                told.insert(*id);
            }
        }
        cursor.open.retain(|id, _| !told.contains(id));
        line.jobs = jobs;
        line
    }

    fn look_of(&self, id: JobId, job: &JobEntry) -> JobLook {
        let running = self.core.job(id).map_or([0; 2], |job| [job.maps.running, job.reduces.running]);
        let (records, totals) = (&job.records, &job.records.sums.totals);
        let tasks = [records.maps_succeeded, running[0], job.output.reduces_done, running[1]];
        let read = totals.map_bytes_in.saturating_add(job.input.bytes_in_flight);
        let incidents = job.incidents.omitted + job.incidents.latest.len() as u64;
        (job.shown_state(), tasks, [read, totals.shuffle_bytes, totals.records_out, incidents])
    }

    /// Jobs that came since; gives those of them that had ended before the first look.
    fn newly_seen(&self, now: Time, cursor: &mut FeedCursor) -> Vec<JobStatus> {
        let first = cursor.next_job == 0;
        let mut ended = Vec::new();
        for (id, job) in self.jobs.range(JobId(cursor.next_job)..) {
            let past = job.times.ended.is_some_and(|ended| RECENTLY <= now.since(ended));
            if first && past && job.shown_state().ended() {
                ended.push(*id);
            } else {
                cursor.open.insert(*id, JobCursor::default());
            }
            cursor.next_job = id.0 + 1;
        }
        let ended = ended.iter().filter_map(|id| self.followed_status_without_parts(now, *id));
        // Those of earlier masters, of which nothing is told later.
        let past = self.register.past_jobs().filter(|_| first);
        let mut ended: Vec<_> = past.cloned().chain(ended).collect();
        ended.drain(..ended.len().saturating_sub(ENDED_AT_FIRST_MAX));
        cursor.next_job = cursor.next_job.max(1);
        ended
    }
}

/// Adds the workers that have come, changed or gone since they were told of.
fn tell_workers(
    told: &mut BTreeMap<WorkerId, WorkerStatus>,
    present: Vec<WorkerStatus>,
    line: &mut FeedLine,
) {
    let ids: BTreeSet<WorkerId> = present.iter().map(|worker| worker.worker).collect();
    line.left = told.keys().copied().filter(|id| !ids.contains(id)).collect();
    told.retain(|id, _| ids.contains(id));
    for worker in present {
        let id = worker.worker;
        let Some(before) = told.get_mut(&id) else {
            line.workers.push(worker.clone());
            told.insert(id, worker);
            continue;
        };
        if !is_alike(before, &worker) {
            line.workers.push(worker.clone());
            *before = worker;
        } else if has_other_load(before, &worker) {
            line.loads.push(FeedLoad(id.0, worker.running, worker.memory_bytes, worker.disk_free_bytes));
            *before = worker;
        }
    }
}

/// Whether two looks at a worker tell the same but for what it does.
fn is_alike(before: &WorkerStatus, now: &WorkerStatus) -> bool {
    let WorkerStatus { running, memory_bytes, disk_free_bytes, clock_offset_ns, .. } = *now;
    *now == WorkerStatus { running, memory_bytes, disk_free_bytes, clock_offset_ns, ..before.clone() }
}

/// Whether a worker does something else by now, small moves of its memory and disk left out.
fn has_other_load(before: &WorkerStatus, now: &WorkerStatus) -> bool {
    let moved = |before: u64, now: u64| {
        let least = MEMORY_STEP_BYTES.max(before / PARTS_OF_LOAD);
        least < before.abs_diff(now)
    };
    before.running != now.running
        || moved(before.memory_bytes, now.memory_bytes)
        || moved(before.disk_free_bytes, now.disk_free_bytes)
}

impl TaskRecords {
    /// Adds what has changed since `seen`, no more than `room` records; says whether that was all.
    fn feed(&self, job: JobId, seen: &mut JobCursor, room: usize, line: &mut FeedLine) -> bool {
        let end = line.attempts.len() + line.fetches.len() + room;
        let full = |line: &FeedLine| end <= line.attempts.len() + line.fetches.len();
        let open: Vec<(usize, FeedEnd)> = seen.unended.iter().map(|(at, stood)| (*at, *stood)).collect();
        for (at, stood) in open {
            let Some(now) = self.feed_attempt(job, at).filter(|now| now.8 != stood) else { continue };
            if full(line) {
                return false;
            }
            note(&mut seen.unended, at, now.8);
            line.attempts.push(now);
        }
        while let Some(attempt) = self.feed_attempt(job, seen.attempts) {
            if full(line) {
                return false;
            }
            note(&mut seen.unended, seen.attempts, attempt.8);
            line.attempts.push(attempt);
            seen.attempts += 1;
        }
        for fetch in self.fetches.iter().skip(seen.fetches) {
            if full(line) {
                return false;
            }
            let map = fetch.map.task.index;
            let (from, to) = (fetch.from.0, fetch.to.0);
            line.fetches.push(FeedFetch(job.0, map, from, to, fetch.bytes, fetch.started_ns, fetch.ended_ns));
            seen.fetches += 1;
        }
        true
    }
}

/// Remembers an attempt that has not ended.
fn note(unended: &mut BTreeMap<usize, FeedEnd>, at: usize, stands: FeedEnd) {
    match stands {
        FeedEnd::Running | FeedEnd::Suspended => unended.insert(at, stands),
        _ => unended.remove(&at),
    };
}
