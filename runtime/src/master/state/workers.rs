//! The connected workers: how one joins, what is known of it, who has fallen silent.

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
use gristmill_worker::clean;
use gristmill_worker::http::{Endpoint, Secret};
use gristmill_worker::protocol::{
    DiskRoom, Heartbeat, Hello, MasterFrame, SLOTS_MAX, Session, SlotCounts, ended_proof, push_frame,
};
use std::collections::{BTreeMap, BTreeSet};
use tokio::sync::mpsc::{UnboundedSender, unbounded_channel};

/// Names of hosts that are kept although no worker is on them.
pub(super) const HOSTS_KEPT_MAX: usize = 1000;

/// Workers that come so soon after a job's first task count as there from its beginning.
const STARTING: Span = Span::whole_seconds(1);

/// A connected worker.
#[derive(serde::Serialize, serde::Deserialize)]
pub(crate) struct WorkerEntry {
    pub(super) hello: Hello,
    pub(super) endpoint: Endpoint,
    #[serde(skip, default = "to_nobody")]
    pub(super) frames: UnboundedSender<Vec<u8>>,
    /// Encoded frames that go out when this instant has been dealt with.
    #[serde(skip)]
    pub(super) outbox: Vec<u8>,
    /// Nobody is there, or has not said yet what it has: what it is told then is said anew.
    #[serde(skip, default = "yes")]
    pub(super) away: bool,
    /// Numbered frames of it that were entered, and of how many it was told that they need not be kept.
    pub(super) heard: u64,
    pub(super) heard_told: u64,
    pub(super) jobs_known: BTreeSet<JobId>,
    /// Jobs of which it gathers partitions, or has.
    pub(super) gathers: BTreeSet<JobId>,
    /// The revision of the order of lanes that it was told last.
    #[serde(skip)]
    pub(super) lanes_revision_sent: u64,
    /// Attempts launched there that have not ended.
    pub(super) running: BTreeMap<AttemptId, u64>,
    /// Those of them that are suspended.
    pub(super) suspended: BTreeSet<AttemptId>,
    /// Those that were told to hand over: user code of theirs runs outside slots.
    pub(super) handing_over: BTreeSet<AttemptId>,
    #[serde(skip)]
    pub(super) heartbeat: Heartbeat,
    pub(super) joined: Time,
    /// When it was last heard of.
    pub(super) last_heard: Time,
    /// That was so long ago that it gets nothing new.
    pub(super) silent: bool,
    /// The worker's clock minus master's, from the ping with the shortest way.
    pub(super) offset_ns: i64,
    pub(super) round_trip_ns: u64,
}

/// The way to a worker that is not there.
pub(super) fn to_nobody() -> UnboundedSender<Vec<u8>> {
    unbounded_channel().0
}

fn yes() -> bool {
    true
}

/// Pause between two changes of a worker's disk room that are believed: each one is logged.
const ROOM_NOTICE_PAUSE: Span = Span::milliseconds(100);

/// All workers together.
#[derive(Default)]
pub(super) struct Fleet {
    /// When a change of a worker's disk room was noticed last.
    pub(super) room_noticed: BTreeMap<WorkerId, Time>,
    /// Their process ids, which may be the same on several hosts.
    pub(super) processes: BTreeSet<(u32, WorkerId)>,
    /// Slots of all of them.
    pub(super) slots: u32,
    /// Those that are to leave and were not told to go yet.
    pub(super) draining: BTreeSet<WorkerId>,
    /// Those that are none any more, as nothing was heard of them.
    pub(super) given_up: GivenUpWorkers,
    /// What each worker's shuffle is held to, as the core was told.
    pub(super) network: Option<Bytes>,
    /// Numbers of hosts by their names; those that no worker is on are forgotten when they are too many.
    pub(super) hosts: BTreeMap<String, HostId>,
    pub(super) hosts_given: u32,
}

impl WorkerEntry {
    /// Whether it has slots for one kind of task only.
    pub(super) fn is_divided(&self) -> bool {
        matches!(self.hello.slots, SlotCounts::Pools { .. })
    }

    /// A ping has come back. The shorter its way, the better it tells the worker's clock.
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

    /// A worker introduces itself; its endpoint is one at which it is reached. `Err` is what it is told.
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
        let (host, slots) = (clean::message(&hello.host), hello.slots.total());
        self.enter_worker(now, worker, hello, frames);
        self.greet(now, worker);
        tracing::info!(%worker, host, slots, workers = self.workers.len(), "a worker joined");
        Ok(worker)
    }

    /// A worker is one of this master's from now on.
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

    /// Tells a worker that it is in.
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

    /// Whether a worker's slots and rates make sense, and go with those of the others.
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
        clean::check_name("its host's name", &hello.host).map_err(|error| error.to_string())?;
        if !hello.shuffle.host.is_empty() {
            let named = clean::check_name("the host of its shuffle server", &hello.shuffle.host);
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

    /// The number of a host. One that is forgotten gets another when it comes back: then nothing is known to lie there.
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

    /// Tells the core what each worker can take in from others: the least that any is held to, if all are.
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

    /// The live worker with this process id on this host, for whoever started it and so has the key.
    pub(crate) fn worker_of_process(&self, host: &str, pid: u32, key: &Secret) -> Option<WorkerId> {
        let proof = ended_proof(key);
        let of_pid = self.fleet.processes.range((pid, WorkerId(0))..=(pid, WorkerId(u32::MAX)));
        let is_it = |hello: &Hello| hello.host == host && hello.ended_proof == proof;
        of_pid.map(|(_, worker)| *worker).find(|it| self.workers.get(it).is_some_and(|it| is_it(&it.hello)))
    }

    /// Workers not heard of since `limit`.
    pub(crate) fn silent_since(&self, limit: Time) -> Vec<WorkerId> {
        self.workers
            .iter()
            .filter(|(_, worker)| worker.last_heard < limit)
            .map(|(worker, _)| *worker)
            .collect()
    }

    /// Workers not heard of since `limit` get nothing new until they are.
    pub(crate) fn suspect_silent(&mut self, limit: Time) {
        for (&worker, entry) in &mut self.workers {
            if entry.last_heard < limit && !entry.silent {
                entry.silent = true;
                self.events.push(Event::WorkerSilent { worker, silent: true });
                tracing::info!(%worker, "nothing is heard of it: it gets no new tasks");
            }
        }
    }

    /// So much room a worker has for spill files: where its disks are full by that, or are not any more, the core is told,
    /// and so are people.
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

    /// Somebody wants a worker to leave in good order. Answers whether there is such a worker.
    pub(crate) fn drain(&mut self, worker: WorkerId) -> bool {
        if !self.workers.contains_key(&worker) {
            return false;
        }
        self.fleet.draining.insert(worker);
        self.events.push(Event::WorkerDraining { worker });
        tracing::info!(%worker, "is to leave: it ends what it runs, and others fetch what they lack of it");
        true
    }

    /// Workers that are to leave go as soon as nobody needs them.
    pub(crate) fn dismiss_drained(&mut self, now: Time) {
        // One that is away is told when it is back.
        let here = |worker: &WorkerId| self.workers.get(worker).is_some_and(|entry| !entry.away);
        let may_leave = |worker: &WorkerId| here(worker) && self.core.may_leave(*worker, now);
        for worker in self.fleet.draining.iter().copied().filter(may_leave).collect::<Vec<_>>() {
            self.fleet.draining.remove(&worker);
            self.queue(worker, &MasterFrame::Shutdown);
        }
        self.flush();
    }

    /// This process itself has stood still: nobody's silence counts.
    pub(crate) fn reset_silence(&mut self, now: Time) {
        for worker in self.workers.values_mut() {
            worker.last_heard = now;
        }
    }

    /// Pings everyone, to learn clock offsets.
    pub(crate) fn ping(&mut self, now: Time) {
        self.confirm_heard();
        let ping = MasterFrame::Ping { master_ns: now.0 };
        if self.trouble().is_none() {
            return self.queue_for_all(&ping);
        }
        // All else waits for room on the disk; a master that says nothing would be taken for gone.
        let mut encoded = Vec::new();
        if push_frame(&ping, &mut encoded).is_ok() {
            for entry in self.workers.values().filter(|entry| !entry.away) {
                let _ = entry.frames.send(encoded.clone());
            }
        }
        self.flush();
    }

    /// Tells every worker to end.
    pub(crate) fn shutdown_workers(&mut self) {
        self.queue_for_all(&MasterFrame::Shutdown);
    }

    fn queue_for_all(&mut self, frame: &MasterFrame) {
        for worker in self.workers.keys().copied().collect::<Vec<_>>() {
            self.queue(worker, frame);
        }
        self.flush();
    }

    /// Whether the core has this attempt wait for its slot.
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

    /// An attempt does not run on this worker any more; says whether it did.
    pub(super) fn stopped_there(&mut self, worker: WorkerId, attempt: AttemptId) -> bool {
        let bytes = self.workers.get_mut(&worker).and_then(|worker| worker.running.remove(&attempt));
        let Some(bytes) = bytes else { return false };
        self.read_in_flight(attempt, bytes, 0);
        true
    }

    /// A running attempt has read so much, and had read so much before.
    pub(super) fn read_in_flight(&mut self, attempt: AttemptId, before: u64, bytes: u64) {
        if attempt.task.kind == TaskKind::Map
            && let Some(job) = self.jobs.get_mut(&attempt.task.job)
        {
            job.input.bytes_in_flight =
                job.input.bytes_in_flight.saturating_add(bytes).saturating_sub(before);
        }
    }
}

/// A worker's clock reading in the master's clock.
pub(super) fn shift(worker_ns: u64, offset_ns: i64) -> u64 {
    worker_ns.saturating_add_signed(offset_ns.saturating_neg())
}
