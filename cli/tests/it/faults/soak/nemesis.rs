//! Causes the faults of a soak: a random one of the menu at a time, each with an end of its own.

use super::super::cluster::Cluster;
use super::super::disks::{fill, flip_bits, small_disk};
use super::super::proxy::{Damage, Rule, Strike, Treatment, Way};
use super::flights::Flights;
use super::kind::{KINDS, Kind};
use super::{SPARED, WORKERS};
use crate::support::data::Random;
use crate::support::{Sandbox, process};
use rustix::process::Signal;
use std::collections::BTreeMap;
use std::fmt::Write;
use std::path::PathBuf;
use std::time::{Duration, Instant};

/// Maximum duration of a fault.
const FAULT_MILLISECONDS_MAX: usize = 7000;

/// Maximum duration of a fault that a worker must survive.
const SPARED_MILLISECONDS_MAX: usize = 3000;

/// Maximum absence of the master.
const MASTER_MILLISECONDS_MAX: usize = 3000;

/// Maximum time that a worker takes to leave.
const LEAVE_TIMEOUT: Duration = Duration::from_secs(100);

/// A fault that ends at a time of its own.
struct Lasting {
    kind: Kind,
    worker: usize,
    pid: u32,
    until: Instant,
    /// Counts of the worker's links before the fault.
    before: (u64, u64),
    /// Number of spill files that it has changed.
    flipped: u64,
}

/// Number of times that a kind was caused, and that it was seen to have an effect.
#[derive(Clone, Copy, Default, Debug)]
struct Count {
    caused: u32,
    met: u32,
}

/// Causes faults and ends them.
pub struct Nemesis {
    kinds: Vec<Kind>,
    lasting: Vec<Lasting>,
    counts: BTreeMap<Kind, Count>,
    /// Longest time that a restarted master took to come back.
    pub slowest_return: Duration,
}

impl Nemesis {
    /// All faults that this machine can cause.
    pub fn new(has_small_disks: bool, has_shim: bool) -> Self {
        let can = |kind: &Kind| {
            (has_small_disks || !kind.needs_a_small_disk()) && (has_shim || !kind.needs_the_shim())
        };
        let kinds: Vec<Kind> = KINDS.into_iter().filter(can).collect();
        let counts = kinds.iter().map(|kind| (*kind, Count::default())).collect();
        Self { kinds, lasting: Vec::new(), counts, slowest_return: Duration::ZERO }
    }

    fn lasts(&self, is: impl Fn(&Lasting) -> bool) -> bool {
        self.lasting.iter().any(is)
    }

    /// True if programs can talk to the master.
    pub fn has_master(&self) -> bool {
        !self.lasts(|fault| fault.kind.is_of_the_master())
    }

    /// Causes a fault of a random kind at a random target, unless it would disturb one that lasts.
    pub fn strike(&mut self, cluster: &mut Cluster<'_>, flights: &mut Flights, draw: &mut Random) {
        let (kind, worker) = (*draw.pick(&self.kinds), draw.below(WORKERS));
        let is_spared = worker == SPARED;
        let most = match kind {
            _ if kind.is_of_the_master() => MASTER_MILLISECONDS_MAX,
            _ if is_spared => SPARED_MILLISECONDS_MAX,
            _ => FAULT_MILLISECONDS_MAX,
        };
        let lasts = Duration::from_millis(draw.below(most) as u64);
        if is_spared && kind.costs_a_worker()
            || self.lasts(|fault| fault.kind == kind || fault.worker == worker)
        {
            return;
        }
        let Some(pid) = cluster.pid_now(worker) else { return };
        let before = cluster.fired_at(worker);
        let until = Instant::now() + if kind == Kind::Leave { LEAVE_TIMEOUT } else { lasts };
        let fault = Lasting { kind, worker, pid, until, before, flipped: 0 };
        if self.cause(&fault, cluster, flights) {
            self.counts.entry(kind).or_default().caused += 1;
            self.lasting.push(fault);
        }
    }

    /// Starts a fault. Returns false if that was impossible.
    fn cause(&mut self, fault: &Lasting, cluster: &mut Cluster<'_>, flights: &mut Flights) -> bool {
        let Lasting { kind, worker, pid, .. } = *fault;
        let to_master = cluster.to_master(worker);
        let strike = |damage| Strike { damage, way: Way::ToClient, at: 1000, times: 1 };
        match kind {
            Kind::KillWorker => process::kill(pid),
            Kind::StopWorker => process::signal(pid, Signal::STOP),
            Kind::SwitchOff => cluster.switch_off(worker),
            Kind::Leave => cluster.standing.workers[worker].signal(Signal::TERM),
            Kind::KillMaster => {
                flights.master_is_struck();
                cluster.kill_master();
            }
            Kind::StopMaster => {
                flights.master_is_struck();
                cluster.standing.master.signal(Signal::STOP);
            }
            Kind::KillSubmitter => return flights.kill_submitter(),
            Kind::SilentMaster => to_master.set([Rule::all(Treatment::Hold)]),
            Kind::DeafMaster => to_master.set([Rule::one_way(Treatment::Hold, Way::ToServer)]),
            Kind::ResetMaster => to_master.set([Rule::all(Treatment::Refuse)]),
            Kind::SilentPeers => cluster.set_rules(worker, [Rule::all(Treatment::Hold)]),
            Kind::SlowPeer => {
                cluster.set_rules(worker, [Rule::one_way(Treatment::Throttle(50_000), Way::ToClient)]);
            }
            Kind::LatePeer => {
                cluster.set_rules(worker, [Rule::all(Treatment::Delay(Duration::from_millis(100)))]);
            }
            Kind::DripPeer => {
                let drip = Treatment::Drip(Duration::from_millis(100));
                cluster.set_rules(worker, [Rule::one_way(drip, Way::ToClient)]);
            }
            Kind::ResetSegment => cluster.strike(worker, strike(Damage::Reset)),
            Kind::CutSegment => cluster.strike(worker, strike(Damage::Truncate)),
            Kind::FlipSegment => cluster.strike(worker, strike(Damage::Flip)),
            Kind::FullDisk => fill(&disk(cluster, fault).join("filler")),
            // Caused as soon as a spill file exists.
            Kind::FlippedDisk => {}
            Kind::FailedWrite => std::fs::write(token(cluster.sandbox, "shim.write.1"), "5 .spill").unwrap(),
            Kind::Clock => std::fs::write(token(cluster.sandbox, "shim.clock"), "315360000").unwrap(),
        }
        true
    }

    /// Ends the faults whose time is over, or all.
    pub fn heal(&mut self, cluster: &mut Cluster<'_>, flights: &mut Flights, all: bool) {
        let now = Instant::now();
        let is_over = |cluster: &Cluster<'_>, fault: &Lasting| match fault.kind {
            Kind::Leave => cluster.standing.workers[fault.worker].has_ended(),
            _ => all || fault.until <= now,
        };
        for mut fault in std::mem::take(&mut self.lasting) {
            if fault.kind == Kind::FlippedDisk && fault.flipped == 0 {
                fault.flipped = flip_bits(&disk(cluster, &fault));
            }
            if !is_over(cluster, &fault) {
                assert!(now < fault.until, "worker {} has not left within {LEAVE_TIMEOUT:?}", fault.worker);
                self.lasting.push(fault);
                continue;
            }
            if self.end(&fault, cluster, flights) {
                self.counts.entry(fault.kind).or_default().met += 1;
            }
        }
    }

    /// Fails if a supervisor of worker processes has ended, and no fault ended it.
    pub fn assert_workers_stay(&self, cluster: &Cluster<'_>) {
        for (number, worker) in cluster.standing.workers.iter().enumerate() {
            let ended = worker.has_ended();
            let made = self
                .lasts(|fault| fault.worker == number && matches!(fault.kind, Kind::SwitchOff | Kind::Leave));
            assert!(made || !ended, "worker {number} has ended by itself:\n{}", worker.stderr());
        }
    }

    /// True if no fault lasts any more.
    pub fn is_healed(&self) -> bool {
        self.lasting.is_empty()
    }

    /// Ends a fault. Returns true if it had an effect.
    fn end(&mut self, fault: &Lasting, cluster: &mut Cluster<'_>, flights: &mut Flights) -> bool {
        let Lasting { kind, worker, pid, before, .. } = *fault;
        let after = cluster.fired_at(worker);
        let (struck, treated) = (before.0 < after.0, before.1 < after.1);
        match kind {
            Kind::KillWorker => !process::is_alive(pid),
            Kind::StopWorker => {
                let stood = process::is_stopped(pid);
                process::signal(pid, Signal::CONT);
                stood
            }
            Kind::SwitchOff | Kind::Leave => {
                let code = cluster.switch_on(worker).code();
                code.is_none() == (kind == Kind::SwitchOff)
            }
            Kind::KillMaster => {
                let start = Instant::now();
                cluster.start_master();
                cluster.succeed();
                self.slowest_return = self.slowest_return.max(start.elapsed());
                true
            }
            Kind::StopMaster => {
                let master = cluster.standing.master.pid();
                let stood = process::is_stopped(master);
                process::signal(master, Signal::CONT);
                // Programs that talked to it meanwhile may fail until now.
                flights.master_is_struck();
                stood
            }
            Kind::KillSubmitter => true,
            Kind::FlippedDisk => 0 < fault.flipped,
            Kind::SilentMaster | Kind::DeafMaster | Kind::ResetMaster => {
                cluster.to_master(worker).heal();
                treated
            }
            Kind::SilentPeers | Kind::SlowPeer | Kind::LatePeer | Kind::DripPeer => {
                cluster.heal_door(worker);
                treated
            }
            Kind::ResetSegment | Kind::CutSegment | Kind::FlipSegment => {
                cluster.heal_door(worker);
                struck
            }
            Kind::FullDisk => std::fs::remove_file(disk(cluster, fault).join("filler")).is_ok(),
            Kind::FailedWrite => std::fs::remove_file(token(cluster.sandbox, "shim.write.1")).is_err(),
            Kind::Clock => {
                let _ = std::fs::remove_file(token(cluster.sandbox, "shim.clock"));
                std::fs::remove_file(token(cluster.sandbox, "shim.clock.hit")).is_ok()
            }
        }
    }

    /// Kinds that were never seen to have an effect.
    pub fn not_met(&self) -> Vec<Kind> {
        self.counts.iter().filter(|(_, count)| count.met == 0).map(|(kind, _)| *kind).collect()
    }

    /// Number of faults that were seen to have an effect.
    pub fn met(&self) -> u32 {
        self.counts.values().map(|count| count.met).sum()
    }

    /// Returns a line for each kind.
    pub fn report(&self) -> String {
        let mut text = String::new();
        for (kind, Count { caused, met }) in &self.counts {
            let _ = writeln!(
                text,
                "  {:<14} caused {caused:>4}, seen to do something {met:>4}",
                format!("{kind:?}")
            );
        }
        text
    }
}

fn token(sandbox: &Sandbox, name: &str) -> PathBuf {
    sandbox.path("faults").join(name)
}

/// Returns the small disk of a worker, as its processes see it.
fn disk(cluster: &Cluster<'_>, fault: &Lasting) -> PathBuf {
    let supervisor = cluster.standing.workers[fault.worker].pid();
    PathBuf::from(format!("/proc/{supervisor}/root{}", small_disk(cluster.sandbox, fault.worker)))
}
