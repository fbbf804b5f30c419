//! Drives a core by hand and formats its commands as text, one per line.

use crate::command::{Command, LaunchReason};
use crate::core::{Core, CoreConfig, JobSnapshot};
use crate::event::{Event, Failure, Slots};
use crate::ids::{AttemptId, HostId, JobId, TaskId, WorkerId};
use crate::job::{JobSpec, MapSpec};
use crate::placement::Pull;
use crate::policy::{Fifo, Policy};
use crate::units::{Bytes, Span, Time};

pub(super) const JOB: JobId = JobId(1);

/// Returns the attempt of a map of the first job.
pub(super) fn map(index: u32, epoch: u32) -> AttemptId {
    TaskId::map(JOB, index).attempt(epoch)
}

/// Returns the attempt of a reduce of the first job.
pub(super) fn reduce(index: u32, epoch: u32) -> AttemptId {
    TaskId::reduce(JOB, index).attempt(epoch)
}

/// Returns a job of maps that may run anywhere.
pub(super) fn plain(maps: usize, reduces: u32) -> JobSpec {
    JobSpec::new(vec![MapSpec::anywhere(Bytes::mib(1)); maps], reduces)
}

/// Core with a clock.
pub(super) struct Table {
    pub(super) core: Core,
    pub(super) now: Time,
    jobs: u32,
    workers: u32,
    pub(super) reasons: Vec<LaunchReason>,
}

impl Table {
    /// Builds a table where no task pauses after a worker's fault. The test of the pause has its own table.
    pub(super) fn new(policy: impl Policy + 'static) -> Self {
        Self::with_config(policy, CoreConfig { backoff: Span(0), ..CoreConfig::default() })
    }

    /// Builds a table under a policy of a catalogue.
    pub(super) fn with_boxed(policy: Box<dyn Policy>) -> Self {
        let core = Core::new(CoreConfig::default(), policy, Box::new(Pull::new()));
        Table { core, now: Time::ZERO, jobs: 0, workers: 0, reasons: Vec::new() }
    }

    pub(super) fn with_config(policy: impl Policy + 'static, config: CoreConfig) -> Self {
        let core = Core::new(config, Box::new(policy), Box::new(Pull::new()));
        Table { core, now: Time::ZERO, jobs: 0, workers: 0, reasons: Vec::new() }
    }

    /// Builds a table under fifo, with workers of these slots, each on its own host.
    pub(super) fn with_workers(slots: &[u32]) -> Self {
        let mut table = Self::new(Fifo::new());
        for &slots in slots {
            table.join(slots);
        }
        table
    }

    /// Enters events a millisecond after the last, audits, and formats the commands.
    pub(super) fn handle(&mut self, events: &[Event]) -> Vec<String> {
        self.now = self.now + Span::milliseconds(1);
        let mut commands = Vec::new();
        self.core.handle(self.now, events, &mut commands);
        if let Err(violations) = self.core.audit() {
            panic!("after {events:?}: {violations:#?}");
        }
        for command in &commands {
            if let Command::Launch { reason, .. } = command {
                self.reasons.push(*reason);
            }
        }
        commands.iter().map(words).collect()
    }

    pub(super) fn join(&mut self, slots: u32) -> Vec<String> {
        self.join_host(slots, self.workers + 1)
    }

    pub(super) fn join_host(&mut self, slots: u32, host: u32) -> Vec<String> {
        self.workers += 1;
        let worker = WorkerId(self.workers);
        self.handle(&[Event::WorkerJoined { worker, host: HostId(host), slots: Slots::Unified(slots) }])
    }

    pub(super) fn lose(&mut self, worker: u32) -> Vec<String> {
        self.handle(&[Event::WorkerLost { worker: WorkerId(worker), culprit: Vec::new() }])
    }

    pub(super) fn submit(&mut self, spec: JobSpec) -> Vec<String> {
        self.jobs += 1;
        self.handle(&[Event::JobArrived { job: JobId(self.jobs), spec: spec.into() }])
    }

    /// Finishes a map that took too long for queuing.
    pub(super) fn map_done(&mut self, attempt: AttemptId) -> Vec<String> {
        self.handle(&[map_finished(attempt, Span::whole_seconds(1))])
    }

    /// Finishes a map that took this long.
    pub(super) fn map_done_in(&mut self, attempt: AttemptId, took: Span) -> Vec<String> {
        self.handle(&[map_finished(attempt, took)])
    }

    pub(super) fn reduce_done(&mut self, attempt: AttemptId) -> Vec<String> {
        self.handle(&[Event::ReduceFinished { attempt, output_bytes: Bytes(5), took: Span::default() }])
    }

    pub(super) fn ask_commit(&mut self, attempt: AttemptId) -> Vec<String> {
        self.handle(&[Event::CommitRequested { attempt }])
    }

    pub(super) fn fail(&mut self, attempt: AttemptId, class: Failure) -> Vec<String> {
        self.handle(&[Event::AttemptFailed { attempt, class }])
    }

    pub(super) fn fetched(&mut self, home: u32, map: AttemptId, partitions: &[u32]) -> Vec<String> {
        let job = map.task.job;
        self.handle(&[Event::Fetched { job, home: WorkerId(home), map, partitions: partitions.to_vec() }])
    }

    pub(super) fn fetch_failed(&mut self, home: u32, map: AttemptId, class: Failure) -> Vec<String> {
        self.handle(&[Event::FetchFailed { job: map.task.job, home: WorkerId(home), map, class }])
    }

    pub(super) fn job(&self, id: JobId) -> JobSnapshot {
        self.core.job(id).expect("a job that was submitted")
    }
}

/// Returns the end of a map with some output.
pub(super) fn map_finished(attempt: AttemptId, took: Span) -> Event {
    Event::MapFinished { attempt, output_bytes: Bytes(10), took, fingerprint: None }
}

/// Formats a command as a line of text, without the name of the first job.
pub(super) fn words(command: &Command) -> String {
    let text = match command {
        Command::Launch { attempt, worker, .. } => format!("launch {attempt} on {worker}"),
        Command::Suspend { attempt, worker } => format!("suspend {attempt} on {worker}"),
        Command::Resume { attempt, worker, .. } => format!("resume {attempt} on {worker}"),
        Command::Recall { attempt, worker } => format!("recall {attempt} on {worker}"),
        Command::Kill { attempt, worker } => format!("kill {attempt} on {worker}"),
        Command::Home { job, partition, worker } => format!("home {job}/{partition} at {worker}"),
        Command::Unhome { job, partition, worker } => format!("unhome {job}/{partition} at {worker}"),
        Command::Announce { map, from, to, .. } => format!("announce {map} from {from} to {to}"),
        Command::Retract { map, to, .. } => format!("retract {map} to {to}"),
        Command::GrantCommit { attempt, .. } => format!("grant {attempt}"),
        Command::RefuseCommit { attempt, .. } => format!("refuse {attempt}"),
        Command::Forget { job, worker } => format!("forget {job} at {worker}"),
        Command::JobEnded { job, outcome } => format!("{job} {outcome}"),
        Command::Divide { attempt, worker, at_once } => {
            format!("divide {attempt} on {worker}{}", if *at_once { " at once" } else { "" })
        }
        Command::ReduceAdded { attempt, rest, .. } => format!("{attempt} is cut, reduce-{rest} is new"),
        Command::MapAdded { attempt, kept, rest } => format!("{attempt} keeps {}, map-{rest} is new", kept.0),
        Command::WakeAt { time } => format!("wake at {time}"),
    };
    text.replace("job-1/", "").replace("worker-", "w")
}

/// Checks the commands, written as lines.
#[track_caller]
pub(super) fn check(orders: &[String], expected: &str) {
    let expected: Vec<&str> = expected.lines().map(str::trim).filter(|line| !line.is_empty()).collect();
    assert_eq!(orders, expected);
}
