//! The connected workers, the frames queued for them, and which of them are silent.

use super::lost_workers::LostWorkers;
use crate::api::WorkerStatus;
use gristmill_scheduler::core::Core;
use gristmill_scheduler::event::Event;
use gristmill_scheduler::ids::{AttemptId, HostId, JobId, WorkerId};
use gristmill_scheduler::units::{Bytes, Span, Time};
use gristmill_worker::http::{Endpoint, Secret};
use gristmill_worker::protocol::{Heartbeat, Hello, MasterFrame, SLOTS_MAX, Slots, ended_proof, push_frame};
use gristmill_worker::sanitize;
use std::collections::{BTreeMap, BTreeSet};
use tokio::sync::mpsc::{UnboundedSender, unbounded_channel};

/// Maximum number of host names kept although no worker runs on them.
pub(super) const HOSTS_KEPT_MAX: usize = 1000;

/// A connected worker.
#[derive(serde::Serialize, serde::Deserialize)]
pub(crate) struct WorkerEntry {
    pub(super) hello: Hello,
    pub(super) endpoint: Endpoint,
    #[serde(skip, default = "without_receiver")]
    pub(super) frames: UnboundedSender<Vec<u8>>,
    /// Encoded frames that are sent when this instant has been handled.
    #[serde(skip)]
    pub(super) outbox: Vec<u8>,
    /// True if the worker is disconnected, or has reconnected and not yet reported what it holds. Frames queued
    /// meanwhile are sent again later.
    #[serde(skip, default = "yes")]
    pub(super) away: bool,
    /// Number of numbered frames entered from this worker, and up to which frame the worker knows that it need not keep
    /// them.
    pub(super) heard: u64,
    pub(super) heard_confirmed: u64,
    pub(super) jobs_known: BTreeSet<JobId>,
    /// Jobs of which it gathers or has gathered partitions.
    pub(super) gathers: BTreeSet<JobId>,
    /// Revision of the lane order last sent to it.
    #[serde(skip)]
    pub(super) lanes_revision_sent: u64,
    /// Attempts launched there that have not ended.
    pub(super) running: BTreeMap<AttemptId, u64>,
    /// Those of `running` that are suspended.
    pub(super) suspended: BTreeSet<AttemptId>,
    #[serde(skip)]
    pub(super) heartbeat: Heartbeat,
    pub(super) joined: Time,
    /// Time of its last sign of life.
    pub(super) last_heard: Time,
    /// True if that time is so long ago that it gets no new work.
    pub(super) silent: bool,
    /// The worker's clock minus the master's, from the ping with the shortest round trip.
    pub(super) offset_ns: i64,
    pub(super) round_trip_ns: u64,
}

/// Channel to a worker that is not connected; its frames are dropped.
pub(super) fn without_receiver() -> UnboundedSender<Vec<u8>> {
    unbounded_channel().0
}

fn yes() -> bool {
    true
}

/// Minimum time between two accepted changes of a worker's disk room, because each change is logged.
const ROOM_NOTICE_PAUSE: Span = Span::milliseconds(100);

/// Maximum number of frames of a worker entered before it is notified that it need not keep them.
const HEARD_AHEAD_MAX: u64 = 1024;

/// All workers together.
#[derive(Default)]
pub(crate) struct Fleet {
    pub(super) workers: BTreeMap<WorkerId, WorkerEntry>,
    /// Workers with a non-empty outbox.
    outboxes_filled: Vec<WorkerId>,
    /// Time at which a change of each worker's disk room was last accepted.
    room_noticed: BTreeMap<WorkerId, Time>,
    /// Process ids of the workers, which may be equal on several hosts.
    processes: BTreeSet<(u32, WorkerId)>,
    /// Number of slots of all workers.
    pub(super) slots: u32,
    /// Workers that are to leave and have not been ordered to exit yet.
    pub(super) draining: BTreeSet<WorkerId>,
    /// Workers lost because of their silence.
    pub(in super::super) silent_lost: LostWorkers,
    /// Network rate limit of each worker's shuffle as last reported to the core.
    pub(super) network: Option<Bytes>,
    /// Host numbers by name. When they are too many, hosts without workers are forgotten.
    pub(super) hosts: BTreeMap<String, HostId>,
    pub(super) hosts_given: u32,
}

impl WorkerEntry {
    /// True if it has separate slots for maps and reduces.
    pub(super) fn is_divided(&self) -> bool {
        matches!(self.hello.slots, Slots::Pools { .. })
    }

    /// Enters a ping that has come back. The shorter its round trip, the better it measures the worker's clock.
    pub(super) fn measure_clock(&mut self, now: Time, master_ns: u64, worker_ns: u64) {
        let round_trip = now.0.saturating_sub(master_ns);
        if round_trip <= self.round_trip_ns {
            self.round_trip_ns = round_trip;
            let halfway_ns = master_ns.wrapping_add(round_trip / 2);
            self.offset_ns = (worker_ns as i64).wrapping_sub(halfway_ns as i64);
        }
    }
}

impl Fleet {
    pub(super) fn get(&self, worker: WorkerId) -> Option<&WorkerEntry> {
        self.workers.get(&worker)
    }

    pub(super) fn get_mut(&mut self, worker: WorkerId) -> Option<&mut WorkerEntry> {
        self.workers.get_mut(&worker)
    }

    /// Number of workers and of their slots.
    pub(super) fn size(&self) -> (u32, u32) {
        (self.workers.len() as u32, self.slots)
    }

    /// Adds a worker.
    pub(super) fn insert(&mut self, worker: WorkerId, entry: WorkerEntry) {
        self.slots += entry.hello.slots.total();
        self.processes.insert((entry.hello.pid, worker));
        self.workers.insert(worker, entry);
    }

    /// Removes a worker.
    pub(super) fn remove(&mut self, worker: WorkerId) -> Option<WorkerEntry> {
        let gone = self.workers.remove(&worker)?;
        self.slots -= gone.hello.slots.total();
        self.processes.remove(&(gone.hello.pid, worker));
        self.draining.remove(&worker);
        Some(gone)
    }

    /// A worker's clock minus the master's, nanoseconds.
    pub(super) fn clock_offset(&self, worker: WorkerId) -> i64 {
        self.get(worker).map_or(0, |worker| worker.offset_ns)
    }

    /// Returns the number of a host. A forgotten host gets another number when it comes back: no data is then known to
    /// be on it.
    pub(super) fn host(&mut self, name: &str) -> HostId {
        if let Some(host) = self.hosts.get(name) {
            return *host;
        }
        if HOSTS_KEPT_MAX <= self.hosts.len() {
            let live: BTreeSet<&str> =
                self.workers.values().map(|worker| worker.hello.host.as_str()).collect();
            self.hosts.retain(|name, _| live.contains(name.as_str()));
        }
        let host = HostId(self.hosts_given);
        self.hosts_given = self.hosts_given.wrapping_add(1);
        self.hosts.insert(name.to_owned(), host);
        host
    }

    /// Reports the inbound network limit of the workers to the core: the smallest limit, if all workers have one.
    pub(super) fn learn_network(&mut self, events: &mut Vec<Event>) {
        if self.workers.is_empty() {
            return;
        }
        let rates = self.workers.values().map(|worker| worker.hello.nic_bytes_per_second);
        let least = rates.map(|rate| rate.unwrap_or(u64::MAX)).min();
        let all = self.workers.values().all(|worker| worker.hello.nic_bytes_per_second.is_some());
        let network = least.filter(|_| all).map(Bytes);
        if self.network != network {
            self.network = network;
            events.push(Event::NetworkRate { per_worker: network });
        }
    }

    /// Returns the live worker with this process id on this host. Only the process that started the worker has the key.
    pub(crate) fn worker_of_process(&self, host: &str, pid: u32, key: &Secret) -> Option<WorkerId> {
        let proof = ended_proof(key);
        let of_pid = self.processes.range((pid, WorkerId(0))..=(pid, WorkerId(u32::MAX)));
        let is_it = |hello: &Hello| hello.host == host && hello.ended_proof == proof;
        of_pid.map(|(_, worker)| *worker).find(|it| self.workers.get(it).is_some_and(|it| is_it(&it.hello)))
    }

    /// Workers without a sign of life since `limit`.
    pub(crate) fn silent_since(&self, limit: Time) -> Vec<WorkerId> {
        self.workers
            .iter()
            .filter(|(_, worker)| worker.last_heard < limit)
            .map(|(worker, _)| *worker)
            .collect()
    }

    /// Gives no new work to workers without a sign of life since `limit` until they give one.
    pub(crate) fn suspect_silent(&mut self, limit: Time, events: &mut Vec<Event>) {
        for (&worker, entry) in &mut self.workers {
            if entry.last_heard < limit && !entry.silent {
                entry.silent = true;
                events.push(Event::WorkerSilent { worker, silent: true });
                tracing::info!(%worker, "nothing is heard of it: it gets no new tasks");
            }
        }
    }

    /// Returns true if a change of a worker's disk room may be accepted now, given that it matters.
    pub(super) fn accept_room(
        &mut self,
        now: Time,
        worker: WorkerId,
        matters: impl FnOnce() -> bool,
    ) -> bool {
        let is_early = |at: &Time| now.0.saturating_sub(at.0) < ROOM_NOTICE_PAUSE.0;
        if self.room_noticed.get(&worker).is_some_and(is_early) || !matters() {
            return false;
        }
        self.room_noticed.insert(worker, now);
        true
    }

    /// Resets all silence after this process itself was suspended.
    pub(crate) fn reset_silence(&mut self, now: Time) {
        for worker in self.workers.values_mut() {
            worker.last_heard = now;
        }
    }

    /// Queues a frame to a worker; it is sent when this instant has been handled.
    pub(super) fn queue(&mut self, worker: WorkerId, frame: &MasterFrame) {
        if self.get(worker).is_some_and(|worker| !worker.away) {
            self.queue_frame(worker, frame);
        }
    }

    /// Queues a frame, also to a worker that has not yet reported what it holds.
    pub(super) fn queue_frame(&mut self, worker: WorkerId, frame: &MasterFrame) {
        let Some(entry) = self.workers.get_mut(&worker) else { return };
        if entry.outbox.is_empty() {
            self.outboxes_filled.push(worker);
        }
        if let Err(error) = push_frame(frame, &mut entry.outbox) {
            tracing::error!(%error, %worker, "a frame could not be sent");
        }
    }

    pub(super) fn queue_for_all(&mut self, frame: &MasterFrame) {
        for worker in self.workers.keys().copied().collect::<Vec<_>>() {
            self.queue(worker, frame);
        }
    }

    /// Sends the frames queued since the last call, to each worker together.
    pub(super) fn send_queued(&mut self) {
        for worker in std::mem::take(&mut self.outboxes_filled) {
            if let Some(worker) = self.workers.get_mut(&worker).filter(|worker| !worker.outbox.is_empty()) {
                // A closed channel means that the connection is ending. Its loss is reported separately.
                let _ = worker.frames.send(std::mem::take(&mut worker.outbox));
            }
        }
    }

    /// Sends a frame to all workers that are connected, before everything that is queued.
    pub(super) fn send_at_once(&self, frame: &MasterFrame) {
        let mut encoded = Vec::new();
        if push_frame(frame, &mut encoded).is_ok() {
            for entry in self.workers.values().filter(|entry| !entry.away) {
                let _ = entry.frames.send(encoded.clone());
            }
        }
    }

    /// Notifies workers of the frames that they need not keep any more, if the master is recoverable.
    pub(super) fn confirm_heard(&mut self, recoverable: bool) {
        let behind = |worker: &&WorkerId| self.workers[*worker].heard_confirmed < self.workers[*worker].heard;
        for worker in self.workers.keys().filter(behind).copied().collect::<Vec<_>>() {
            self.confirm_heard_of(worker, recoverable);
        }
    }

    /// Notifies one worker in the same manner, if it keeps very many frames.
    pub(crate) fn confirm_if_many(&mut self, worker: WorkerId, recoverable: bool) {
        let many = |entry: &WorkerEntry| HEARD_AHEAD_MAX <= entry.heard - entry.heard_confirmed;
        if self.get(worker).is_some_and(many) {
            self.confirm_heard_of(worker, recoverable);
        }
    }

    fn confirm_heard_of(&mut self, worker: WorkerId, recoverable: bool) {
        let Some(entry) = self.workers.get_mut(&worker).filter(|entry| !entry.away) else { return };
        entry.heard_confirmed = entry.heard;
        let through = entry.heard;
        // It is sent only after the received frames have been written down.
        if recoverable {
            self.queue(worker, &MasterFrame::Heard { through });
        }
    }

    /// Status of each worker.
    pub(super) fn statuses(&self, core: &Core) -> Vec<WorkerStatus> {
        self.workers
            .iter()
            .map(|(id, worker)| WorkerStatus {
                worker: *id,
                host: worker.hello.host.clone(),
                pid: worker.hello.pid,
                slots: worker.hello.slots.total(),
                slot_counts: worker.hello.slots,
                speed: worker.hello.speed,
                nic_bytes_per_second: worker.hello.nic_bytes_per_second,
                running: worker.running.keys().filter(|attempt| !worker.suspended.contains(attempt)).count()
                    as u32,
                endpoint: worker.endpoint.clone(),
                memory_budget_bytes: worker.hello.memory_bytes,
                memory_bytes: worker.heartbeat.memory_bytes,
                processors: worker.heartbeat.processors,
                disk_free_bytes: worker.heartbeat.disk_free_bytes,
                clock_offset_ns: worker.offset_ns,
                joined_ns: worker.joined.0,
                away: worker.away,
                disk_full: core.disk_full(*id),
            })
            .collect()
    }
}

/// Checks that a worker's slots and rates are valid. All workers have separate slots for maps and reduces, if `divided`.
pub(super) fn check_offer(hello: &Hello, divided: bool) -> Result<(), String> {
    let none = match hello.slots {
        Slots::Unified(slots) => slots == 0,
        Slots::Pools { map, reduce } => map == 0 || reduce == 0,
    };
    if none {
        return Err("it offers no slots of some kind".to_owned());
    }
    let most = match hello.slots {
        Slots::Unified(slots) => slots,
        Slots::Pools { map, reduce } => map.max(reduce),
    };
    if SLOTS_MAX < most {
        return Err(format!("it offers {most} slots of one kind; a worker has {SLOTS_MAX} at most"));
    }
    sanitize::check_name("its host's name", &hello.host).map_err(|error| error.to_string())?;
    if !hello.shuffle.host.is_empty() {
        let named = sanitize::check_name("the host of its shuffle server", &hello.shuffle.host);
        named.map_err(|error| error.to_string())?;
    }
    let is_divided = matches!(hello.slots, Slots::Pools { .. });
    if is_divided != divided {
        let (its, wanted, remedy) = match is_divided {
            true => ("map slots and reduce slots", "slots for both", "with"),
            false => ("slots for both maps and reduces", "map slots and reduce slots", "without"),
        };
        return Err(format!(
            "it offers {its}, and workers of this master have {wanted}: start the master {remedy} --divided-slots"
        ));
    }
    if !(0.0 < hello.speed && hello.speed <= 1.0) {
        return Err(format!("its speed {} is not above 0 and at most 1", hello.speed));
    }
    if hello.nic_bytes_per_second == Some(0) {
        return Err("its shuffle is held to 0 bytes in a second".to_owned());
    }
    Ok(())
}

/// Converts a worker's clock reading to the master's clock.
pub(super) fn shift(worker_ns: u64, offset_ns: i64) -> u64 {
    worker_ns.saturating_add_signed(offset_ns.saturating_neg())
}
