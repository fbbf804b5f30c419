//! Injects the faults of a scenario into simulated processes and links, and ends them again.

use super::fault::Fault;
use super::process::{Process, ProcessId};
use super::scenario::PlacePlan;
use super::transport::{Node, Parcel, SimEvent};
use super::world::World;
use crate::api::PolicyChange;
use gristmill_scheduler::ids::{AttemptId, JobId};
use gristmill_scheduler::units::Span;
use rand::RngExt as _;

const SIGKILL: i32 = 9;

impl World {
    fn stop(&mut self, id: ProcessId, span: Span) {
        let until = self.now + span;
        self.calm_at = self.calm_at.max(until);
        if let Some(process) = self.processes.get_mut(&id) {
            process.stopped_until = Some(process.stopped_until.map_or(until, |before| before.max(until)));
            self.schedule(until, SimEvent::Continue(id));
        }
    }

    pub fn go_on(&mut self, id: ProcessId) {
        let now = self.now;
        if let Some(process) = self.processes.get_mut(&id) {
            process.stopped_until.take_if(|until| *until <= now);
        }
    }

    pub fn stop_in_commit(&mut self, id: ProcessId) {
        let span = self.processes.get_mut(&id).and_then(|process| process.stop_in_commit.take());
        if let Some(span) = span {
            self.fires("stop in commit");
            self.stop(id, span);
        }
    }

    /// Injects a fault.
    pub fn inject(&mut self, number: usize) {
        let planned = self.scenario.faults[number].clone();
        self.trace(|| format!("{planned}"));
        let (fault, place, lasts) = (&planned.fault, planned.place, planned.lasts);
        match fault {
            Fault::Cancel(job) => return self.cancel(*job),
            Fault::DecideBy(policy) => return self.decide_by(*policy),
            Fault::Join => return self.one_more(),
            Fault::KillMaster => return self.doom_master(),
            Fault::DamageTransfers(count) => return self.transfers_to_damage += count,
            Fault::BreakTransfers(count) => return self.transfers_to_break += count,
            _ => {}
        }
        let Some(id) = self.places[place] else { return };
        self.calm_at = self.calm_at.max(self.now + lasts);
        match fault {
            Fault::Kill => {
                self.fires("kill");
                let end = self.ended_by(id, SIGKILL, None);
                self.lose_under_way(id);
                self.die(id, Some(end), lasts);
            }
            Fault::Stop => {
                self.fires("stop");
                self.stop(id, lasts);
            }
            Fault::Disconnect => {
                self.fires("disconnect");
                self.lose_under_way(id);
                self.send_up(id, Parcel::Closed, Span::default());
                self.send_down(id, Parcel::Closed);
            }
            Fault::LoseOutputs(count) => {
                let Some(process) = self.processes.get_mut(&id) else { return };
                let lost: Vec<AttemptId> = process.outputs.iter().take(*count).copied().collect();
                process.lost.extend(&lost);
                if !lost.is_empty() {
                    self.fires("lose outputs");
                }
            }
            Fault::Repeat(count) => drop(self.repeats.insert(id, *count)),
            _ => {
                let Some(process) = self.processes.get_mut(&id) else { return };
                // Faults of a future attempt or commit count as fired when that happens.
                let ways = if process.suffers(fault, lasts) { Vec::new() } else { self.ways(place, fault) };
                if !ways.is_empty() || matches!(fault, Fault::Slow(_)) {
                    self.fires(fault.name());
                }
                ways.iter().for_each(|&(from, to)| self.cuts.cut(from, to));
                self.ways_cut.insert(number, ways);
                self.schedule(self.now + lasts, SimEvent::Over(number));
            }
        }
    }

    /// Drops the frames in flight on a breaking connection, except those that arrive first.
    pub fn lose_under_way(&mut self, id: ProcessId) {
        let Some(link) = self.links.get_mut(&id) else { return };
        for lane in [&mut link.up, &mut link.down] {
            let arrives = self.rng.random_range(0..=lane.under_way.len());
            lane.break_after(arrives);
        }
    }

    /// Routes that a fault cuts.
    fn ways(&self, place: usize, fault: &Fault) -> Vec<(Node, Node)> {
        let here = Node::Place(place);
        match fault {
            Fault::CutPair { other, .. } if *other == place => Vec::new(),
            Fault::CutPair { other, both: false } => vec![(here, Node::Place(*other))],
            Fault::CutPair { other, both: true } => {
                vec![(here, Node::Place(*other)), (Node::Place(*other), here)]
            }
            Fault::Deafen => vec![(Node::Master, here)],
            Fault::Mute => vec![(here, Node::Master)],
            Fault::Isolate => {
                let others = (0..self.places.len()).map(Node::Place).chain([Node::Master]);
                others
                    .filter(|other| *other != here)
                    .flat_map(|other| [(here, other), (other, here)])
                    .collect()
            }
            _ => Vec::new(),
        }
    }

    /// Ends a fault that lasts.
    pub fn relent(&mut self, number: usize) {
        let planned = self.scenario.faults[number].clone();
        for (from, to) in self.ways_cut.remove(&number).unwrap_or_default() {
            self.cuts.mend(from, to);
        }
        let process = self.places[planned.place].and_then(|id| self.processes.get_mut(&id));
        let Some(process) = process else { return };
        match planned.fault {
            Fault::Fill => process.full = false,
            Fault::Slow(_) => process.slowness = 1,
            _ => {}
        }
    }

    /// Ends all faults. A stopped process continues when its time has come.
    pub fn heal(&mut self) {
        self.cuts.mend_all();
        self.ways_cut.clear();
        self.processes.values_mut().for_each(Process::heal);
        (self.transfers_to_break, self.transfers_to_damage) = (0, 0);
        self.repeats.clear();
        if let Some(recovery) = &mut self.recovery {
            recovery.relent();
        }
    }

    fn cancel(&mut self, number: usize) {
        let job = JobId(number as u32 + 1);
        if self.submitted.contains_key(&job) && !self.over.contains(&job) {
            self.fires("cancel");
            self.oracle.cancelled.insert(job);
            self.state.cancel(job);
        }
    }

    fn decide_by(&mut self, number: usize) {
        let policy = self.live.policies[number % self.live.policies.len()].clone();
        let change = PolicyChange { policy: Some(policy), placement: None };
        self.state.change_policy(self.now, change).expect("it is a policy for live clusters");
        self.fires("decide by");
    }

    fn one_more(&mut self) {
        let PlacePlan { slots, .. } = self.scenario.places[0];
        self.fires("join");
        self.scenario.places.push(PlacePlan { host: 0, slots });
        self.places.push(None);
        self.schedule(self.now, SimEvent::Start(self.places.len() - 1));
    }
}
