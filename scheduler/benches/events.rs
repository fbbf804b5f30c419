//! Cost of one event in the core, in virtual time: one job of empty maps on simulated workers. Also the cost
//! of one decision under every live policy with 100 jobs waiting, and the cost of a lost output. The latter
//! should not grow with the partitions.
//!
//! Prints nanoseconds for each call, event and task, for growing numbers of tasks and of workers: the
//! columns should stay flat. `cargo bench -p gristmill-scheduler`. Not here: frames, sockets and threads,
//! which cost more than the core does.

#![allow(
    clippy::disallowed_methods,
    clippy::disallowed_types,
    clippy::disallowed_macros,
    clippy::print_stdout,
    reason = "a measurement reads clocks and prints"
)]

use gristmill_scheduler::command::Command;
use gristmill_scheduler::core::{Core, CoreConfig};
use gristmill_scheduler::event::{Event, Failure, Slots};
use gristmill_scheduler::ids::{HostId, JobId, TaskKind, WorkerId};
use gristmill_scheduler::job::{JobSpec, MapSpec};
use gristmill_scheduler::placement::Pull;
use gristmill_scheduler::policy::{self, Fair, Fifo, Policy};
use gristmill_scheduler::units::{Bytes, Span, Time};
use std::collections::{BTreeMap, VecDeque};
use std::time::Instant;

const JOB: JobId = JobId(1);

/// One setting.
#[derive(Clone, Copy)]
struct CoreSetting {
    tasks: u32,
    workers: u32,
    slots: u32,
    /// Number of other jobs that wait behind this one.
    waiting: u32,
    /// Size of a map output. With 0 nothing is fetched.
    output: Bytes,
    fair: bool,
}

/// Numbers of events and calls until all maps and the reduce are done.
#[derive(Default)]
struct Counts {
    facts: u64,
    calls: u64,
}

fn policy(fair: bool) -> Box<dyn Policy> {
    if fair { Box::new(Fair::new()) } else { Box::new(Fifo::new()) }
}

fn spec(maps: u32) -> JobSpec {
    JobSpec::new(vec![MapSpec::anywhere(Bytes(0)); maps as usize], 1)
}

fn run(setting: CoreSetting) -> (Counts, f64) {
    let mut core = Core::new(CoreConfig::default(), policy(setting.fair), Box::new(Pull::new()));
    let mut commands = Vec::new();
    let joined = |worker| Event::WorkerJoined {
        worker: WorkerId(worker),
        host: HostId(worker),
        slots: Slots::Unified(setting.slots),
    };
    let mut events: Vec<Event> = (1..=setting.workers).map(joined).collect();
    events.push(Event::JobArrived { job: JOB, spec: spec(setting.tasks).into() });
    for job in 0..setting.waiting {
        events.push(Event::JobArrived { job: JobId(2 + job), spec: spec(4).into() });
    }
    core.handle(Time::ZERO, &events, &mut commands);
    let mut counts = Counts::default();
    let start = Instant::now();
    let mut now = 0;
    let mut over = false;
    while !over {
        events.clear();
        for command in commands.drain(..) {
            over |= matches!(command, Command::JobEnded { job: JOB, .. });
            events.extend(answer(&command, setting.output));
        }
        // Like a busy master: events that have arrived meanwhile are entered together, a few at a time.
        for some in events.chunks(8) {
            now += 10_000;
            counts.calls += 1;
            counts.facts += some.len() as u64;
            core.handle(Time(now), some, &mut commands);
        }
        assert!(over || !events.is_empty(), "the job stands still");
    }
    (counts, start.elapsed().as_secs_f64())
}

fn answer(command: &Command, output_bytes: Bytes) -> Option<Event> {
    Some(match *command {
        Command::Launch { attempt, .. } if attempt.task.kind == TaskKind::Map => {
            Event::MapFinished { attempt, output_bytes, took: Span(20_000), print: None }
        }
        Command::Launch { attempt, .. } => Event::CommitRequested { attempt },
        Command::GrantCommit { attempt, .. } => {
            Event::ReduceFinished { attempt, output_bytes, took: Span::milliseconds(1) }
        }
        Command::Announce { job, map, to, .. } => Event::Fetched { job, home: to, map, partitions: vec![0] },
        _ => return None,
    })
}

/// Number of jobs that wait, and of decisions that are measured.
const WAITING: u32 = 100;
const DECISIONS: u32 = 40_000;

/// Number of jobs whose reduces hold half of the slots and do not end.
const HOLDING: u32 = 4;

/// Returns a job that waits, with more maps the later it arrives.
fn waiting_job(job: u32) -> Event {
    let maps = vec![MapSpec::anywhere(Bytes(0)); 1_000 + 7 * (job % WAITING) as usize];
    Event::JobArrived { job: JobId(job), spec: JobSpec::new(maps, 1 + job % 3).into() }
}

/// Returns the event that follows an order of the core when only maps end, and reduces of jobs that waited.
fn follow(command: &Command) -> Option<Event> {
    let took = Span::milliseconds(400);
    Some(match *command {
        Command::Launch { attempt, .. } if attempt.task.kind == TaskKind::Map => {
            Event::MapFinished { attempt, output_bytes: Bytes(0), took, print: None }
        }
        Command::Launch { attempt, .. } | Command::Resume { attempt, .. } if HOLDING < attempt.task.job.0 => {
            Event::CommitRequested { attempt }
        }
        Command::GrantCommit { attempt, .. } => {
            Event::ReduceFinished { attempt, output_bytes: Bytes(1), took }
        }
        Command::Suspend { attempt, .. } => Event::AttemptSuspended { attempt },
        Command::HandOver { attempt, .. } => Event::AttemptHandedOver { attempt },
        _ => return None,
    })
}

/// Returns the nanoseconds of a call of the core with one event, mostly the end of a map, while
/// [`WAITING`] jobs wait for its slot. Returns the median and the 99th percentile, which other programs
/// on the machine disturb less than a mean.
fn decision(policy: &str) -> (f64, f64) {
    let policy = policy::by_name(policy).expect("a name of the catalogue");
    let mut core = Core::new(CoreConfig::default(), policy, Box::new(Pull::new()));
    let slots = Slots::Unified(4);
    let joined = |worker| Event::WorkerJoined { worker: WorkerId(worker), host: HostId(worker), slots };
    let mut events: Vec<Event> = (1..=20).map(joined).collect();
    let holding = |job| Event::JobArrived { job: JobId(job), spec: JobSpec::new(Vec::new(), 10).into() };
    events.extend((1..=HOLDING).map(holding));
    let mut commands = Vec::new();
    core.handle(Time::ZERO, &events, &mut commands);
    let mut jobs = HOLDING + WAITING;
    events = (HOLDING + 1..=jobs).map(waiting_job).collect();
    let mut now = 1_000_000_000;
    core.handle(Time(now), &events, &mut commands);
    let (mut wake, mut waiting, mut times) = (None, VecDeque::new(), Vec::new());
    while times.len() < DECISIONS as usize {
        for command in commands.drain(..) {
            match command {
                Command::WakeAt { time } => wake = Some(time),
                Command::JobEnded { .. } => {
                    jobs += 1;
                    waiting.push_front(waiting_job(jobs));
                }
                command => waiting.extend(follow(&command)),
            }
        }
        now += 10_000_000;
        let mut facts: Vec<Event> = waiting.pop_front().into_iter().collect();
        if wake.take_if(|wake: &mut Time| wake.0 <= now).is_some() {
            facts.push(Event::Tick);
        }
        assert!(!facts.is_empty() || wake.is_some(), "no job gets a slot");
        let start = Instant::now();
        core.handle(Time(now), &facts, &mut commands);
        times.push(start.elapsed().as_nanos() as f64);
    }
    times.sort_by(f64::total_cmp);
    (times[times.len() / 2], times[times.len() * 99 / 100])
}

fn decisions() {
    println!(
        "\npolicy                   ns/decision  99th percentile  ({WAITING} jobs wait, 20 workers x 4 slots)"
    );
    let live = policy::catalogue().into_iter().filter(|entry| entry.only_simulated.is_none());
    let names = live.map(|entry| entry.name).chain(["asrpt:preemptive=yes", "lrpt:preemptive=yes"]);
    for name in names {
        let (median, longest) = decision(name);
        println!("{name:24} {median:11.0} {longest:16.0}");
    }
}

/// Number of workers and of maps of the job whose outputs are lost.
const LOSING: u32 = 20;
const LOST_MAPS: u32 = 200;

/// Returns the nanoseconds for an output that could not be read, of a job with this many partitions. All
/// keeps but the last have everything, and the core determines for each which lack a map.
fn lost_output(partitions: u32) -> f64 {
    let mut core = Core::new(CoreConfig::default(), policy(false), Box::new(Pull::new()));
    let joined = |worker| Event::WorkerJoined {
        worker: WorkerId(worker),
        host: HostId(worker),
        slots: Slots::Unified(LOST_MAPS / LOSING),
    };
    let mut events: Vec<Event> = (1..=LOSING).map(joined).collect();
    let maps = vec![MapSpec::anywhere(Bytes(0)); LOST_MAPS as usize];
    events.push(Event::JobArrived { job: JOB, spec: JobSpec::new(maps, partitions).into() });
    let mut commands = Vec::new();
    core.handle(Time(1), &events, &mut commands);
    let took = Span::whole_seconds(1);
    let done = |command: &Command| match *command {
        Command::Launch { attempt, .. } => {
            Some(Event::MapFinished { attempt, output_bytes: Bytes(1), took, print: None })
        }
        _ => None,
    };
    let events: Vec<Event> = commands.drain(..).filter_map(|command| done(&command)).collect();
    core.handle(Time(2), &events, &mut commands);
    let last = WorkerId(LOSING);
    let at = |home| (0..partitions).filter(|&p| core.home(JOB, p) == Some(home)).collect::<Vec<_>>();
    let homes: BTreeMap<WorkerId, Vec<u32>> =
        (1..=LOSING).map(|id| (WorkerId(id), at(WorkerId(id)))).collect();
    let (mut fetched, mut lost) = (Vec::new(), Vec::new());
    for command in commands.drain(..) {
        match command {
            Command::Announce { job, map, from, to } if to == last && from != last => {
                lost.push(Event::FetchFailed { job, home: to, map, class: Failure::Corrupt });
            }
            Command::Announce { job, map, to, .. } if to != last => {
                fetched.push(Event::Fetched { job, home: to, map, partitions: homes[&to].clone() });
            }
            _ => {}
        }
    }
    core.handle(Time(3), &fetched, &mut commands);
    let start = Instant::now();
    core.handle(Time(4), &lost, &mut commands);
    start.elapsed().as_nanos() as f64 / lost.len() as f64
}

fn lost_outputs() {
    println!("\npartitions   ns/lost output  ({LOST_MAPS} maps, {LOSING} workers)");
    for partitions in [100, 1_000, 10_000, 100_000] {
        let fastest = (0..3).map(|_| lost_output(partitions)).min_by(f64::total_cmp);
        println!("{partitions:10} {:16.0}", fastest.expect("there is at least one run"));
    }
}

fn main() {
    println!("policy  tasks    workers x slots  waiting jobs  output   ns/call  ns/fact  ns/task");
    let base = CoreSetting { tasks: 0, workers: 2, slots: 1, waiting: 0, output: Bytes(0), fair: false };
    let mut settings = Vec::new();
    for tasks in [100, 1_000, 10_000, 100_000] {
        settings.push(CoreSetting { tasks, ..base });
    }
    for workers in [2, 20, 200] {
        settings.push(CoreSetting { tasks: 100_000, workers, slots: 4, ..base });
    }
    settings.push(CoreSetting { tasks: 100_000, workers: 200, slots: 4, fair: true, ..base });
    settings.push(CoreSetting { tasks: 100_000, workers: 200, slots: 4, output: Bytes(100), ..base });
    for fair in [false, true] {
        settings.push(CoreSetting { tasks: 100_000, workers: 20, slots: 4, waiting: 1_000, fair, ..base });
    }
    for setting in settings {
        let runs = (100_000 / setting.tasks).clamp(3, 100);
        let (counts, seconds) = (0..runs)
            .map(|_| run(setting))
            .min_by(|a, b| a.1.total_cmp(&b.1))
            .expect("there is at least one run");
        println!(
            "{:6} {:7} {:9} x {:2} {:13} {:8} {:9.0} {:8.0} {:8.0}",
            if setting.fair { "fair" } else { "fifo" },
            setting.tasks,
            setting.workers,
            setting.slots,
            setting.waiting,
            setting.output.get(),
            seconds * 1e9 / counts.calls as f64,
            seconds * 1e9 / counts.facts as f64,
            seconds * 1e9 / f64::from(setting.tasks),
        );
    }
    decisions();
    lost_outputs();
}
