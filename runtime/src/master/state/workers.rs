//! The connected workers: how a worker joins, what the master knows of it, and which workers are silent.

use super::super::recovery::RecoveryNote;
use super::super::tokens::list_key;
use super::super::translate;
use super::MasterState;
use super::given_up::GivenUpWorkers;
use crate::api::WorkerStatus;
use crate::journal::{Encoded, JournalRecord};
use gristmill_scheduler::event::Event;
use gristmill_scheduler::ids::{AttemptId, HostId, JobId, TaskKind, WorkerId};
use gristmill_scheduler::units::{Bytes, Span, Time};
use gristmill_worker::http::{Endpoint, Secret};
use gristmill_worker::protocol::{
    DiskRoom, Heartbeat, Hello, MasterFrame, SLOTS_MAX, Session, SlotCounts, ended_proof, push_frame,
};
use gristmill_worker::sanitize;
use std::collections::{BTreeMap, BTreeSet};
use tokio::sync::mpsc::{UnboundedSender, unbounded_channel};

/// Maximum number of host names kept although no worker runs on them.
pub(super) const HOSTS_KEPT_MAX: usize = 1000;

/// Workers that join within this time after a job's first task count as present from its start.
const STARTING: Span = Span::whole_seconds(1);

/// A connected worker.
#[derive(serde::Serialize, serde::Deserialize)]
pub(crate) struct WorkerEntry {
    pub(super) hello: Hello,
    pub(super) endpoint: Endpoint,
    #[serde(skip, default = "to_nobody")]
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
    pub(super) heard_told: u64,
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
    /// Those of `running` that were ordered to hand over: their user code runs outside slots.
    pub(super) handing_over: BTreeSet<AttemptId>,
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
pub(super) fn to_nobody() -> UnboundedSender<Vec<u8>> {
    unbounded_channel().0
}

fn yes() -> bool {
    true
}

/// Minimum time between two accepted changes of a worker's disk room, because each change is logged.
const ROOM_NOTICE_PAUSE: Span = Span::milliseconds(100);

/// All workers together.
#[derive(Default)]
pub(super) struct Fleet {
    /// Time at which a change of each worker's disk room was last accepted.
    pub(super) room_noticed: BTreeMap<WorkerId, Time>,
    /// Process ids of the workers, which may be equal on several hosts.
    pub(super) processes: BTreeSet<(u32, WorkerId)>,
    /// Number of slots of all workers.
    pub(super) slots: u32,
    /// Workers that are to leave and have not been ordered to exit yet.
    pub(super) draining: BTreeSet<WorkerId>,
    /// Workers lost because of their silence.
    pub(super) given_up: GivenUpWorkers,
    /// Network rate limit of each worker's shuffle as last reported to the core.
    pub(super) network: Option<Bytes>,
    /// Host numbers by name. When they are too many, hosts without workers are forgotten.
    pub(super) hosts: BTreeMap<String, HostId>,
    pub(super) hosts_given: u32,
}

impl WorkerEntry {
    /// True if it has separate slots for maps and reduces.
    pub(super) fn is_divided(&self) -> bool {
        matches!(self.hello.slots, SlotCounts::Pools { .. })
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

impl MasterState {
    /// A worker's clock minus the master's, nanoseconds.
    pub(super) fn clock_offset(&self, worker: WorkerId) -> i64 {
        self.workers.get(&worker).map_or(0, |worker| worker.offset_ns)
    }

    /// Registers a worker; its `endpoint` is where it can be reached. An `Err` is sent to the worker.
    ///
    /// # Errors
    /// Another build or protocol.
    pub(crate) fn join(
        &mut self,
        now: Time,
        hello: Hello,
        frames: UnboundedSender<Vec<u8>>,
    ) -> Result<WorkerId, String> {
        if hello.build != self.join_terms.build {
            return Err(format!(
                "its program differs from the master's (build {} instead of {}): user functions are compiled in, \
                 so start the same executable everywhere",
                hello.build, self.join_terms.build
            ));
        }
        if let Some(before) = hello.rejoin {
            return self.rejoin(now, &hello, before, frames);
        }
        self.check_offer(&hello)?;
        let worker = self.register.next_worker();
        self.journal.note(|| JournalRecord::Worker {
            worker,
            speed: hello.speed,
            nic_bytes_per_second: hello.nic_bytes_per_second,
        });
        self.journal.keep(|| RecoveryNote::Joined { at: now, worker, hello: Encoded::of(&hello) });
        let (host, slots) = (sanitize::message(&hello.host), hello.slots.total());
        self.enter_worker(now, worker, hello, frames);
        self.greet(now, worker);
        tracing::info!(%worker, host, slots, workers = self.workers.len(), "a worker joined");
        Ok(worker)
    }

    /// Adds a worker to this master's workers.
    pub(super) fn enter_worker(
        &mut self,
        now: Time,
        worker: WorkerId,
        hello: Hello,
        frames: UnboundedSender<Vec<u8>>,
    ) {
        let host = self.host(&hello.host);
        let offset_ns = (hello.worker_ns as i64).wrapping_sub(now.0 as i64);
        self.events.push(Event::WorkerJoined { worker, host, slots: translate::slots(hello.slots) });
        let entry = WorkerEntry {
            endpoint: hello.shuffle.clone(),
            hello,
            frames,
            outbox: Vec::new(),
            away: self.reliving,
            heard: 0,
            heard_told: 0,
            jobs_known: BTreeSet::new(),
            gathers: BTreeSet::new(),
            lanes_revision_sent: 0,
            running: BTreeMap::new(),
            suspended: BTreeSet::new(),
            handing_over: BTreeSet::new(),
            heartbeat: Heartbeat::default(),
            joined: now,
            last_heard: now,
            silent: false,
            offset_ns,
            round_trip_ns: u64::MAX,
        };
        for job in self.jobs.values_mut().filter(|job| !job.state.ended()) {
            let is_late = job.times.started.is_some_and(|started| STARTING < now.since(started));
            job.shared |= is_late || entry.is_divided();
        }
        self.fleet.slots += entry.hello.slots.total();
        self.fleet.processes.insert((entry.hello.pid, worker));
        self.workers.insert(worker, entry);
        self.learn_network();
    }

    /// Sends a worker the confirmation that it has joined.
    pub(super) fn greet(&mut self, now: Time, worker: WorkerId) {
        let list_key = list_key(&self.join_terms.list_secret, worker);
        let Some(entry) = self.workers.get_mut(&worker) else { return };
        entry.heard_told = entry.heard;
        let session = Session {
            generation: self.join_terms.generation,
            returns: self.journal.is_recoverable(),
            heard: entry.heard,
        };
        let heartbeat_ms = self.join_terms.heartbeat_ms;
        self.say(worker, &MasterFrame::Welcome { worker, heartbeat_ms, list_key, session });
        self.say(worker, &MasterFrame::Ping { master_ns: now.0 });
    }

    /// Checks that a worker's slots and rates are valid and consistent with those of the other workers.
    fn check_offer(&self, hello: &Hello) -> Result<(), String> {
        let none = match hello.slots {
            SlotCounts::Unified(slots) => slots == 0,
            SlotCounts::Pools { map, reduce } => map == 0 || reduce == 0,
        };
        if none {
            return Err("it offers no slots of some kind".to_owned());
        }
        let most = match hello.slots {
            SlotCounts::Unified(slots) => slots,
            SlotCounts::Pools { map, reduce } => map.max(reduce),
        };
        if SLOTS_MAX < most {
            return Err(format!("it offers {most} slots of one kind; a worker has {SLOTS_MAX} at most"));
        }
        sanitize::check_name("its host's name", &hello.host).map_err(|error| error.to_string())?;
        if !hello.shuffle.host.is_empty() {
            let named = sanitize::check_name("the host of its shuffle server", &hello.shuffle.host);
            named.map_err(|error| error.to_string())?;
        }
        let is_divided = matches!(hello.slots, SlotCounts::Pools { .. });
        if is_divided != self.join_terms.divided_slots {
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

    /// Returns the number of a host. A forgotten host gets another number when it comes back: no data is then known to
    /// be on it.
    fn host(&mut self, name: &str) -> HostId {
        if let Some(host) = self.fleet.hosts.get(name) {
            return *host;
        }
        if HOSTS_KEPT_MAX <= self.fleet.hosts.len() {
            let live: BTreeSet<&str> =
                self.workers.values().map(|worker| worker.hello.host.as_str()).collect();
            self.fleet.hosts.retain(|name, _| live.contains(name.as_str()));
        }
        let host = HostId(self.fleet.hosts_given);
        self.fleet.hosts_given = self.fleet.hosts_given.wrapping_add(1);
        self.fleet.hosts.insert(name.to_owned(), host);
        host
    }

    /// Reports the inbound network limit of the workers to the core: the smallest limit, if all workers have one.
    pub(super) fn learn_network(&mut self) {
        if self.workers.is_empty() {
            return;
        }
        let rates = self.workers.values().map(|worker| worker.hello.nic_bytes_per_second);
        let least = rates.map(|rate| rate.unwrap_or(u64::MAX)).min();
        let all = self.workers.values().all(|worker| worker.hello.nic_bytes_per_second.is_some());
        let network = least.filter(|_| all).map(Bytes);
        if self.fleet.network != network {
            self.fleet.network = network;
            self.events.push(Event::NetworkRate { per_worker: network });
        }
    }

    /// Returns the live worker with this process id on this host. Only the process that started the worker has the key.
    pub(crate) fn worker_of_process(&self, host: &str, pid: u32, key: &Secret) -> Option<WorkerId> {
        let proof = ended_proof(key);
        let of_pid = self.fleet.processes.range((pid, WorkerId(0))..=(pid, WorkerId(u32::MAX)));
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
    pub(crate) fn suspect_silent(&mut self, limit: Time) {
        for (&worker, entry) in &mut self.workers {
            if entry.last_heard < limit && !entry.silent {
                entry.silent = true;
                self.events.push(Event::WorkerSilent { worker, silent: true });
                tracing::info!(%worker, "nothing is heard of it: it gets no new tasks");
            }
        }
    }

    /// Enters the room that a worker has for spill files. If this makes its disks full, or no longer full, the core and
    /// the users are notified.
    pub(super) fn notice_disk_room(&mut self, now: Time, worker: WorkerId, room: DiskRoom) {
        let (free, reserve) = (Bytes(room.free_bytes), Bytes(room.reserve_bytes));
        let is_early = |at: &Time| now.0.saturating_sub(at.0) < ROOM_NOTICE_PAUSE.0;
        if self.fleet.room_noticed.get(&worker).is_some_and(is_early)
            || !self.core.room_matters(worker, free, reserve)
        {
            return;
        }
        self.fleet.room_noticed.insert(worker, now);
        self.events.push(Event::WorkerDiskRoom { worker, free, reserve });
        let text = match self.core.disk_full(worker) {
            true => format!("{worker} has room on its spill disks again: {free} are free"),
            false => format!(
                "the spill disks of {worker} are full: {free} are free, and {reserve} are to stay free (--disk-reserve); it \
                 gets no new tasks until there is room, if others have some"
            ),
        };
        tracing::warn!("{text}");
        for job in self.jobs.values_mut().filter(|job| !job.state.ended()) {
            job.incident(now, &text);
            job.touch();
        }
    }

    /// Starts to drain a worker. Returns true if the worker exists.
    pub(crate) fn drain(&mut self, worker: WorkerId) -> bool {
        if !self.workers.contains_key(&worker) {
            return false;
        }
        self.fleet.draining.insert(worker);
        self.events.push(Event::WorkerDraining { worker });
        tracing::info!(%worker, "is to leave: it ends what it runs, and others fetch what they lack of it");
        true
    }

    /// Orders draining workers to exit as soon as none of their data is needed.
    pub(crate) fn dismiss_drained(&mut self, now: Time) {
        // A disconnected worker gets the order when it is back.
        let here = |worker: &WorkerId| self.workers.get(worker).is_some_and(|entry| !entry.away);
        let may_leave = |worker: &WorkerId| here(worker) && self.core.may_leave(*worker, now);
        for worker in self.fleet.draining.iter().copied().filter(may_leave).collect::<Vec<_>>() {
            self.fleet.draining.remove(&worker);
            self.queue(worker, &MasterFrame::Shutdown);
        }
        self.flush();
    }

    /// Resets all silence after this process itself was suspended.
    pub(crate) fn reset_silence(&mut self, now: Time) {
        for worker in self.workers.values_mut() {
            worker.last_heard = now;
        }
    }

    /// Pings every worker to measure clock offsets.
    pub(crate) fn ping(&mut self, now: Time) {
        self.confirm_heard();
        let ping = MasterFrame::Ping { master_ns: now.0 };
        if self.trouble().is_none() {
            return self.queue_for_all(&ping);
        }
        // A ping does not wait for disk space: a silent master would be considered gone.
        let mut encoded = Vec::new();
        if push_frame(&ping, &mut encoded).is_ok() {
            for entry in self.workers.values().filter(|entry| !entry.away) {
                let _ = entry.frames.send(encoded.clone());
            }
        }
        self.flush();
    }

    /// Orders every worker to exit.
    pub(crate) fn shutdown_workers(&mut self) {
        self.queue_for_all(&MasterFrame::Shutdown);
    }

    fn queue_for_all(&mut self, frame: &MasterFrame) {
        for worker in self.workers.keys().copied().collect::<Vec<_>>() {
            self.queue(worker, frame);
        }
        self.flush();
    }

    /// True if the attempt waits for its slot.
    pub(super) fn is_queued(&self, attempt: AttemptId) -> bool {
        self.core.attempt(attempt).is_some_and(|attempt| attempt.queued)
    }

    /// Live workers.
    pub(crate) fn workers(&self) -> Vec<WorkerStatus> {
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
                disk_free_bytes: worker.heartbeat.disk_free_bytes,
                clock_offset_ns: worker.offset_ns,
                joined_ns: worker.joined.0,
                away: worker.away,
                disk_full: self.core.disk_full(*id),
            })
            .collect()
    }

    /// Notes that an attempt no longer runs on this worker. Returns true if it did.
    pub(super) fn stopped_there(&mut self, worker: WorkerId, attempt: AttemptId) -> bool {
        let bytes = self.workers.get_mut(&worker).and_then(|worker| worker.running.remove(&attempt));
        let Some(bytes) = bytes else { return false };
        self.read_in_flight(attempt, bytes, 0);
        true
    }

    /// Enters that a running attempt has read `bytes` bytes in total, after `before` at the last report.
    pub(super) fn read_in_flight(&mut self, attempt: AttemptId, before: u64, bytes: u64) {
        if attempt.task.kind == TaskKind::Map
            && let Some(job) = self.jobs.get_mut(&attempt.task.job)
        {
            job.input.bytes_in_flight =
                job.input.bytes_in_flight.saturating_add(bytes).saturating_sub(before);
        }
    }
}

/// Converts a worker's clock reading to the master's clock.
pub(super) fn shift(worker_ns: u64, offset_ns: i64) -> u64 {
    worker_ns.saturating_add_signed(offset_ns.saturating_neg())
}
