//! Narration of the decisions in a journal: the events, the queue, the jobs that each policy chose and why, and the orders.
//!
//! Other policies are asked in the state that the recorded policy made. `whatif` simulates a run under another policy from
//! its start.

use crate::terminal::stdout_text;
use gristmill_runtime::registry::Registry;
use gristmill_runtime::replay::ReplayFollower;
use gristmill_scheduler::command::Command;
use gristmill_scheduler::core::{Core, Observation, Preference};
use gristmill_scheduler::event::Event;
use gristmill_scheduler::ids::{JobId, TaskKind};
use gristmill_scheduler::plan::Reason;
use gristmill_scheduler::policy::Policy;
use gristmill_scheduler::station::Station;
use gristmill_scheduler::units::Time;
use std::collections::BTreeMap;
use std::fmt::Write;

/// Items of one kind that are named in one line; the rest is counted.
const NAMED_MAX: usize = 4;

/// Printer of decisions while a journal is replayed.
pub struct Decisions<'a> {
    registry: &'a Registry,
    /// Observing policies, as text.
    beside: Vec<String>,
    names: BTreeMap<JobId, String>,
    tally: Tally,
    /// Error of stdout; nothing is printed after it.
    pub failed: Option<anyhow::Error>,
}

/// Number of decisions in which other jobs would have been served.
#[derive(Default)]
struct Tally {
    /// Decisions in which slots were given.
    given: u64,
    /// Of these, with tasks of several jobs waiting.
    contested: u64,
    /// By observing policy, the number of decisions in which it would have served other jobs.
    others: Vec<u64>,
}

impl<'a> Decisions<'a> {
    pub fn new(registry: &'a Registry, beside: Vec<String>) -> Self {
        let tally = Tally { others: vec![0; beside.len()], ..Tally::default() };
        Self { registry, beside, names: BTreeMap::new(), tally, failed: None }
    }

    /// Number of decisions that gave slots, and of those in which each other policy would have served other jobs.
    pub fn summary(&self) -> String {
        let Tally { given, contested, others } = &self.tally;
        let mut text =
            format!("decisions   {given} gave slots, {contested} of them with several jobs in line\n");
        for (policy, others) in self.beside.iter().zip(others) {
            // Writing to a string cannot fail.
            let _ = writeln!(text, "beside      {policy} would have served other jobs in {others}");
        }
        text
    }

    fn name(&self, job: JobId) -> String {
        self.names.get(&job).map_or_else(|| job.to_string(), |name| format!("{job} ({name})"))
    }

    fn decision(
        &mut self,
        at: Time,
        facts: &[Event],
        orders: &[Command],
        seen: &Observation,
    ) -> Option<String> {
        let done: Vec<String> = orders.iter().filter_map(done).collect();
        let arrived = facts.iter().any(|fact| matches!(fact, Event::JobArrived { .. }));
        if done.is_empty() && !arrived {
            return None;
        }
        let given: Vec<Station> = orders.iter().filter_map(given).collect();
        let mut text = format!("{:>9.3} s  {}\n", at.seconds(), named(&self.happened(facts)));
        let mut line = |what: &str, words: &str| {
            let _ = writeln!(text, "             {what:<14} {words}");
        };
        line("line", &self.waiting(seen));
        let own = served(seen.preferences.first()?, &given, seen.unified);
        for (place, wish) in seen.preferences.iter().enumerate() {
            let others = served(wish, &given, seen.unified) != own;
            line(&wish.policy, &format!("{}{}", self.wish(wish), if others { "   <- others" } else { "" }));
            if let Some(count) = place.checked_sub(1).and_then(|place| self.tally.others.get_mut(place)) {
                *count += u64::from(others);
            }
        }
        let nothing = || "nothing starts".to_owned();
        line("so", &if done.is_empty() { nothing() } else { named(&done) });
        self.tally.given += u64::from(!given.is_empty());
        let in_line =
            seen.jobs.iter().filter(|job| 0 < job.can[Station::Map] + job.can[Station::Reduce]).count();
        self.tally.contested += u64::from(!given.is_empty() && 1 < in_line);
        Some(text)
    }

    /// Returns facts that lead to decisions; others are counted.
    fn happened(&self, facts: &[Event]) -> Vec<String> {
        let mut words = Vec::new();
        let (mut fetched, mut other) = (0, 0);
        for fact in facts {
            match fact {
                Event::JobArrived { job, spec } => words.push(format!(
                    "{} arrives: {}, {}",
                    self.name(*job),
                    tasks(spec.maps.len() as u32, TaskKind::Map),
                    tasks(spec.reduces, TaskKind::Reduce)
                )),
                Event::MapFinished { attempt, .. } | Event::ReduceFinished { attempt, .. } => {
                    words.push(format!("{attempt} has ended"));
                }
                Event::AttemptFailed { attempt, class } => {
                    words.push(format!("{attempt} has failed: {class}"));
                }
                Event::AttemptSuspended { attempt } => words.push(format!("{attempt} is suspended")),
                Event::WorkerJoined { worker, .. } => words.push(format!("{worker} joins")),
                Event::WorkerLost { worker, .. } => words.push(format!("{worker} is lost")),
                Event::JobCancelled { job } => words.push(format!("{job} is cancelled")),
                Event::Fetched { .. } => fetched += 1,
                Event::Tick => words.push("a timer fires".to_owned()),
                _ => other += 1,
            }
        }
        for (count, what) in [(fetched, "segments come in"), (other, "other facts")] {
            if 0 < count {
                words.push(format!("{count} {what}"));
            }
        }
        words
    }

    /// Returns the free slots, and which jobs hold slots and want some.
    fn waiting(&self, seen: &Observation) -> String {
        let (map, reduce) = (seen.free[Station::Map], seen.free[Station::Reduce]);
        let free = if map == reduce {
            format!("{map} slot{} free", if map == 1 { "" } else { "s" })
        } else {
            format!("{map} map and {reduce} reduce slots free")
        };
        let jobs = seen.jobs.iter().filter_map(|job| {
            let can = [(job.can[Station::Map], TaskKind::Map), (job.can[Station::Reduce], TaskKind::Reduce)];
            let can = can.iter().filter(|(count, _)| 0 < *count);
            let can: Vec<String> = can.map(|&(count, kind)| tasks(count, kind)).collect();
            let held = job.held[Station::Map] + job.held[Station::Reduce];
            let wants = !can.is_empty();
            (wants || 0 < held).then(|| {
                let wants =
                    if wants { format!(" and could start {}", can.join(" and ")) } else { String::new() };
                format!("{} holds {held}{wants}", self.name(job.job))
            })
        });
        let jobs: Vec<String> = jobs.collect();
        if jobs.is_empty() { free } else { format!("{free}; {}", named(&jobs)) }
    }

    /// Returns the jobs that a policy would serve: the first with its reason, then the rest of the queue.
    fn wish(&self, wish: &Preference) -> String {
        let turn = |turn: &gristmill_scheduler::core::Turn| {
            let kind = if turn.station == Station::Map { TaskKind::Map } else { TaskKind::Reduce };
            format!("{} of {}", tasks(turn.slots, kind), turn.job)
        };
        let Some((first, rest)) = wish.turns.split_first() else { return "wants nothing".to_owned() };
        let rest: Vec<String> = rest.iter().map(turn).collect();
        let then = if rest.is_empty() { String::new() } else { format!("; then {}", named(&rest)) };
        format!("{}, because {}{then}", turn(first), first.reason)
    }
}

impl ReplayFollower for Decisions<'_> {
    fn observers(&self) -> Result<Vec<Box<dyn Policy>>, String> {
        self.beside.iter().map(|policy| self.registry.make_policy(policy)).collect()
    }

    fn job(&mut self, job: JobId, name: &str) {
        self.names.insert(job, name.to_owned());
    }

    fn instant(&mut self, at: Time, facts: &[Event], orders: &[Command], core: &Core) {
        if self.failed.is_some() {
            return;
        }
        let text = core.observation().and_then(|seen| self.decision(at, facts, orders, seen));
        if let Some(text) = text {
            self.failed = stdout_text(&text).err();
        }
    }
}

/// Number of tasks of a kind, in words.
fn tasks(count: u32, kind: TaskKind) -> String {
    format!("{count} {kind}{}", if count == 1 { "" } else { "s" })
}

/// Effect of an order on a slot, in words.
fn done(order: &Command) -> Option<String> {
    match order {
        Command::Launch { attempt, worker, reason } => {
            let backup = if matches!(reason.grant, Reason::Backup { .. }) { " speculatively" } else { "" };
            Some(format!("{attempt} starts at {worker}{backup} ({})", reason.locality))
        }
        Command::Resume { attempt, worker, .. } => Some(format!("{attempt} resumes at {worker}")),
        Command::Suspend { attempt, worker } => Some(format!("{attempt} at {worker} is preempted")),
        _ => None,
    }
}

/// Kind of the slot that an order gives because of the policy.
fn given(order: &Command) -> Option<Station> {
    match order {
        Command::Launch { attempt, reason, .. } | Command::Resume { attempt, reason, .. } => {
            let station = if attempt.task.kind == TaskKind::Map { Station::Map } else { Station::Reduce };
            (!matches!(reason.grant, Reason::Backup { .. })).then_some(station)
        }
        _ => None,
    }
}

/// Slots that each job would get by a wish. Unless slots are `unified`, those for maps and for reduces go to turns of
/// their kind.
fn served(wish: &Preference, given: &[Station], unified: bool) -> BTreeMap<JobId, u32> {
    let pool = |station: Station| if unified { Station::Map } else { station };
    let mut left: BTreeMap<Station, u32> = BTreeMap::new();
    for &station in given {
        *left.entry(pool(station)).or_default() += 1;
    }
    let mut served = BTreeMap::new();
    for turn in &wish.turns {
        let Some(left) = left.get_mut(&pool(turn.station)) else { continue };
        let slots = turn.slots.min(*left);
        *left -= slots;
        if 0 < slots {
            *served.entry(turn.job).or_default() += slots;
        }
    }
    served
}

fn named(words: &[String]) -> String {
    let more = words.len().saturating_sub(NAMED_MAX);
    let mut text = words[..words.len() - more].join(", ");
    if 0 < more {
        let _ = write!(text, ", and {more} more");
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use gristmill_scheduler::core::Turn;

    fn wish(turns: &[(u32, u32)]) -> Preference {
        let turn = |&(job, slots): &(u32, u32)| Turn {
            job: JobId(job),
            station: Station::Map,
            slots,
            reason: Reason::Oldest,
        };
        Preference { policy: "any".to_owned(), turns: turns.iter().map(turn).collect() }
    }

    #[test]
    fn wishes_are_alike_if_the_slots_at_hand_go_to_the_same_jobs_in_any_order() {
        let given = [Station::Map; 3];
        let of = |turns: &[(u32, u32)]| served(&wish(turns), &given, true);
        assert_eq!(of(&[(1, 2), (2, 5)]), of(&[(2, 1), (1, 2)]));
        assert_ne!(of(&[(1, 2), (2, 5)]), of(&[(2, 2), (1, 5)]));
        assert!(served(&wish(&[(1, 2)]), &[], true).is_empty());
    }

    #[test]
    fn slots_for_reduces_are_no_turn_of_maps_unless_both_draw_on_the_same() {
        let maps_first = wish(&[(1, 2), (2, 5)]);
        let given = [Station::Reduce, Station::Map];
        assert_eq!(served(&maps_first, &given, true), BTreeMap::from([(JobId(1), 2)]));
        assert_eq!(served(&maps_first, &given, false), BTreeMap::from([(JobId(1), 1)]));
    }

    #[test]
    fn long_lists_are_cut_and_say_by_how_much() {
        let words: Vec<String> = (1..=6).map(|number| number.to_string()).collect();
        assert_eq!(named(&words), "1, 2, 3, 4, and 2 more");
        assert_eq!(named(&words[..4]), "1, 2, 3, 4");
    }
}
