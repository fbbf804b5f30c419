//! Explains in sentences why a job waits: what it lacks, which jobs hold the slots, and which have priority.
//!
//! The order is that of `turns`.

use crate::core::Core;
use crate::core::queue_order::{SLOTS_MAX, SlotRange};
use crate::core::show::view_of;
use crate::estimate::Sizes;
use crate::estimate::completion::{Need, need};
use crate::ids::{JobId, TaskKind};
use crate::ledger::quotas;
use crate::station::PerStation;
use crate::view::{Handle, Row, Station};
use std::collections::BTreeMap;

/// Maximum number of jobs named in one sentence.
const NAMED_MAX: usize = 3;

/// Fractions of a slot below this are rounding errors.
const ROUNDING: f64 = 1e-9;

/// Requirements of a deadline.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Outlook {
    /// True if the cluster's slots suffice; `None` if the job's work is unknown.
    pub feasible: Option<bool>,
    /// Map slots required from now on.
    pub map_slots: f64,
    /// Reduce slots required after its maps.
    pub reduce_slots: f64,
    /// Slots of live workers by station.
    pub slots: PerStation<f64>,
    /// Free slots among them.
    pub free: PerStation<f64>,
}

impl Core {
    /// Returns the current size estimate of a live job: slot-seconds of maps, seconds of the network, slot-seconds of
    /// reduces. Without an estimator the sizes are tasks and segments.
    #[must_use]
    pub fn sizes(&self, job: JobId) -> Option<Sizes> {
        let handle = self.ledger.jobs.get(&job)?.handle?;
        let row = self.rows.get(handle.index())?;
        Some(Sizes { whole: row.whole, left: row.left })
    }

    /// Returns the outlook of a live job for its deadline; `None` for a job without deadline.
    #[must_use]
    pub fn outlook(&self, id: JobId) -> Option<Outlook> {
        let job = self.ledger.jobs.get(&id)?;
        let row = self.rows.get(job.handle?.index())?;
        let seconds = row.deadline?.since(self.ledger.now).seconds();
        let slots = Self::capacity(&self.ledger);
        let workers = &self.ledger.workers;
        let free = |kind| f64::from(workers.free_of(kind));
        let free = PerStation::new(free(TaskKind::Map), 1.0, free(TaskKind::Reduce));
        let known = self
            .estimator
            .as_ref()
            .is_some_and(|estimator| estimator.knows(&super::show::facts(job, &self.ledger)));
        let tasks = [f64::from(row.pend[Station::Map]), f64::from(row.pend[Station::Reduce])];
        let Need { map_slots, reduce_slots, possible } = need(row.left, tasks, seconds);
        let fits = match workers.pooled {
            true => {
                map_slots <= slots[Station::Map] + ROUNDING
                    && reduce_slots <= slots[Station::Reduce] + ROUNDING
            }
            // The phases run one after the other.
            false => map_slots.max(reduce_slots) <= slots[Station::Map] + ROUNDING,
        };
        Some(Outlook { feasible: known.then_some(possible && fits), map_slots, reduce_slots, slots, free })
    }

    /// Explains in sentences what a job does or waits for, main reason first. Empty for a job that is not live.
    pub fn explain(&mut self, id: JobId) -> Vec<String> {
        let Some(handle) = self.ledger.jobs.get(&id).and_then(|job| job.handle) else { return Vec::new() };
        let rows = &self.rows_now()[..];
        let turns = self.turns_among(rows, SLOTS_MAX);
        let view = view_of(&self.ledger, (rows, &self.runs), &[]);
        let mut sentences = Vec::new();
        if self.ledger.workers.count() == 0 {
            sentences.push("there is no worker".to_owned());
            return sentences;
        }
        sentences.extend(self.explain_quota(id));
        for station in [Station::Map, Station::Reduce] {
            self.explain_station(rows, handle, station, &turns, &mut sentences);
        }
        self.explain_gathering(id, &mut sentences);
        sentences.extend(self.policy.explain(view, handle));
        if sentences.is_empty() {
            sentences.push("it waits for nothing: all its tasks run or are done".to_owned());
        }
        sentences
    }

    /// Explains that its owner's quota denies the job more slots, if it does.
    fn explain_quota(&self, id: JobId) -> Option<String> {
        let job = self.ledger.jobs.get(&id)?;
        let quota = job.spec.quota.filter(|_| !quotas::has_room(&self.ledger, job))?;
        let waits =
            0 < job.counts.maps_waiting || job.reduce_queue.ready.at.values().any(|line| !line.is_empty());
        waits.then(|| {
            format!(
                "its token's jobs hold all {} slots of their quota: it gets no other before one of them ends",
                quota.slots_max
            )
        })
    }

    /// Explains what the job waits for at a station, if it waits.
    fn explain_station(
        &self,
        rows: &[Row],
        handle: Handle,
        station: Station,
        turns: &[SlotRange],
        sentences: &mut Vec<String>,
    ) {
        let row = &rows[handle.index()];
        let kind = if station == Station::Map { TaskKind::Map } else { TaskKind::Reduce };
        let waits = row.can[station];
        if waits <= 0.0 {
            return;
        }
        let (noun, policy) = (kind.to_string(), self.policy_name());
        let workers = &self.ledger.workers;
        let (slots, free) = (workers.slots_of(kind), workers.free_of(kind));
        let holders = self.holders(rows, station);
        let held = row.held[station];
        let taken = if holders.is_empty() { String::new() } else { format!(" ({})", holders.join(", ")) };
        sentences.push(format!(
            "{waits:.0} of its {noun}s could start; it holds {held:.0} slots, and {free} of {slots} {noun} slots are \
             free{taken}"
        ));
        let draws =
            |turn: &SlotRange| turn.station == station || !workers.pooled && turn.station != Station::Shuffle;
        let own = turns.iter().position(|turn| turn.job == handle && turn.station == station);
        let Some(own) = own else {
            sentences.push(match free {
                0 => format!("policy `{policy}` would give it no {noun} slot even if all were free"),
                _ => format!("policy `{policy}` leaves slots free and gives it none now"),
            });
            return;
        };
        let mut before: BTreeMap<Handle, u32> = BTreeMap::new();
        for turn in turns[..own].iter().filter(|turn| draws(turn) && turn.job != handle) {
            *before.entry(turn.job).or_default() += turn.slots;
        }
        let tasks: u32 = before.values().sum();
        let mut named: Vec<String> = before
            .iter()
            .take(NAMED_MAX)
            .map(|(&job, tasks)| format!("{tasks} of {}", self.name_of(job)))
            .collect();
        if NAMED_MAX < before.len() {
            named.push(format!("others of {} jobs", before.len() - NAMED_MAX));
        }
        let line = match tasks {
            0 => format!("by policy `{policy}` it is next for a {noun} slot"),
            1 => format!("by policy `{policy}` one task comes before it: {}", named.join(", ")),
            _ => format!("by policy `{policy}` {tasks} tasks come before it: {}", named.join(", ")),
        };
        sentences.push(format!("{line}; its own reason: {}", turns[own].reason));
    }

    /// Returns the jobs that hold slots of a station, largest number first.
    fn holders(&self, rows: &[Row], station: Station) -> Vec<String> {
        let both = !self.ledger.workers.pooled;
        let held = |row: &Row| match both {
            true => row.held[Station::Map] + row.held[Station::Reduce],
            false => row.held[station],
        };
        let mut holders: Vec<(f64, Handle)> = rows
            .iter()
            .enumerate()
            .filter(|(_, row)| row.live && 0.0 < held(row))
            .map(|(place, row)| (held(row), Handle(place as u32)))
            .collect();
        holders.sort_by(|a, b| b.0.total_cmp(&a.0).then(a.1.cmp(&b.1)));
        let more = holders.len().saturating_sub(NAMED_MAX);
        let mut words: Vec<String> = holders
            .iter()
            .take(NAMED_MAX)
            .map(|&(held, job)| format!("{} holds {held:.0}", self.name_of(job)))
            .collect();
        if 0 < more {
            words.push(format!("{more} other jobs hold the rest"));
        }
        words
    }

    /// Explains which segments its reduces wait for.
    fn explain_gathering(&self, id: JobId, sentences: &mut Vec<String>) {
        let Some(job) = self.ledger.jobs.get(&id) else { return };
        let snapshot = crate::core::JobSnapshot::from_job(job, None);
        if 0 < snapshot.reduces.pending {
            sentences.push(format!("{} of its reduces have no home yet", snapshot.reduces.pending));
        }
        if 0 < snapshot.reduces.gathering {
            let segments = job.maps.len() as u64 * job.reduces.len() as u64;
            let maps_left = job.maps.len() as u32 - snapshot.maps.done;
            let maps = match maps_left {
                0 => "all its maps are done".to_owned(),
                left => format!("{left} maps are not done"),
            };
            sentences.push(format!(
                "{} of its reduces gather segments: {} of {segments} are in, and {maps}",
                snapshot.reduces.gathering, snapshot.segments_fetched
            ));
        }
    }

    fn name_of(&self, job: Handle) -> String {
        let id = self.handles.get(job.index()).copied().flatten();
        id.map_or_else(|| "a job that has just left".to_owned(), |id| id.to_string())
    }
}
