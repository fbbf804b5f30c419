//! The scheduler in a browser: a scenario as JSON in, its schedule and every decision as JSON out.
//!
//! A page writes a scenario into the memory that [`room`] returns, calls [`simulate`], and reads the answer of [`length`]
//! bytes. So no generator of bindings is needed, and tests call [`schedule`] with the same text.

use gristmill_scheduler::command::Command;
use gristmill_scheduler::core::ShuffleOrder;
use gristmill_scheduler::event::{Event, Slots};
use gristmill_scheduler::ids::{AttemptId, TaskId, TaskKind, WorkerId};
use gristmill_scheduler::sim::cluster::{
    self, Config, Deciders, Mechanisms, NetworkConfig, Observer, SimWorker, Takeover, TaskRun, TransferRun,
};
use gristmill_scheduler::units::Time;
use gristmill_scheduler::workload::Job;
use gristmill_scheduler::{estimate, policy};
use serde::{Deserialize, Serialize};
use std::sync::{Mutex, PoisonError};

/// Maximum number of workers, of slots of one, of jobs, and of tasks of all jobs.
const WORKERS_MAX: usize = 64;
const SLOTS_MAX: u32 = 64;
const JOBS_MAX: usize = 2_000;
const TASKS_MAX: usize = 50_000;

/// Largest error of a time that was written as JSON, seconds.
const ROUNDING_SECONDS: f64 = 1e-10;

/// Cluster, jobs and one policy.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Scenario {
    workers: Vec<Worker>,
    /// Bytes per second that each worker can send and receive; no limit if absent.
    network: Option<f64>,
    policy: String,
    takeover: Option<ScenarioTakeover>,
    estimator: String,
    #[serde(default)]
    seed: u64,
    jobs: Vec<ScenarioJob>,
}

/// Policy, without mechanisms, that decides from the decision at this time on.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ScenarioTakeover {
    at: f64,
    policy: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Worker {
    slots: u32,
    speed: f64,
}

/// Times are seconds on a worker of speed 1.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ScenarioJob {
    #[serde(default)]
    name: Option<String>,
    arrival: f64,
    maps: Vec<f64>,
    reduces: Vec<f64>,
    /// Bytes that the maps put out.
    shuffle: f64,
    #[serde(default)]
    deadline: Option<f64>,
    #[serde(default)]
    weight: f64,
    #[serde(default)]
    pool: Option<u32>,
}

/// Schedule of a scenario. Jobs and workers are numbered from 0, times are seconds.
#[derive(Serialize, Default)]
struct Schedule {
    jobs: Vec<EndedJob>,
    tasks: Vec<Task>,
    transfers: Vec<Transfer>,
    decisions: Vec<Decision>,
}

#[derive(Serialize, Clone, Default)]
struct EndedJob {
    start: f64,
    maps_done: f64,
    end: f64,
}

#[derive(Serialize)]
struct Task {
    job: u64,
    map: bool,
    index: u32,
    worker: u32,
    slot: u32,
    from: f64,
    to: f64,
    /// False if it left the slot before its end: suspended, or stopped because another attempt has ended.
    ended: bool,
}

#[derive(Serialize)]
struct Transfer {
    job: u64,
    from_worker: u32,
    to_worker: u32,
    bytes: f64,
    from: f64,
    to: f64,
}

/// Orders of one instant.
#[derive(Serialize)]
struct Decision {
    at: f64,
    /// Events that led to them, such as `map 3 of job 1 ended`; periodic ones are left out.
    because: Vec<String>,
    orders: Vec<Order>,
}

#[derive(Serialize)]
struct Order {
    kind: &'static str,
    job: u32,
    map: bool,
    index: u32,
    worker: u32,
    why: String,
}

fn name_of(task: TaskId) -> String {
    let kind = if task.kind == TaskKind::Map { "map" } else { "reduce" };
    format!("{kind} {} of job {}", task.index, task.job.0 - 1)
}

fn because(event: &Event) -> Option<String> {
    Some(match event {
        Event::JobArrived { job, .. } => format!("job {} arrived", job.0 - 1),
        Event::MapFinished { attempt, .. } | Event::ReduceFinished { attempt, .. } => {
            format!("{} ended", name_of(attempt.task))
        }
        Event::AttemptSuspended { attempt } => format!("{} was suspended", name_of(attempt.task)),
        Event::AttemptFailed { attempt, .. } => {
            format!("an attempt of {} was stopped", name_of(attempt.task))
        }
        Event::MapDivided { attempt, .. } | Event::ReduceDivided { attempt, .. } => {
            format!("{} was divided", name_of(attempt.task))
        }
        Event::Fetched { job, home, .. } => {
            format!("segments of job {} arrived at worker {}", job.0 - 1, home.0 - 1)
        }
        _ => return None,
    })
}

fn order(command: &Command) -> Option<Order> {
    let order = |kind, attempt: &AttemptId, worker: &WorkerId, why: String| Order {
        kind,
        job: attempt.task.job.0 - 1,
        map: attempt.task.kind == TaskKind::Map,
        index: attempt.task.index,
        worker: worker.0 - 1,
        why,
    };
    Some(match command {
        Command::Launch { attempt, worker, reason } => {
            order("start", attempt, worker, reason.grant.to_string())
        }
        Command::Resume { attempt, worker, reason } => {
            order("resume", attempt, worker, reason.grant.to_string())
        }
        Command::Suspend { attempt, worker } => {
            order("suspend", attempt, worker, "a more urgent job can use the slot".to_owned())
        }
        Command::Kill { attempt, worker } => {
            order("stop", attempt, worker, "another attempt of the task has ended".to_owned())
        }
        Command::Divide { attempt, worker, .. } => {
            order("divide", attempt, worker, "another slot can do part of it".to_owned())
        }
        _ => return None,
    })
}

impl Observer for Schedule {
    fn task(&mut self, run: &TaskRun) {
        self.add(run, true);
    }

    fn suspended(&mut self, run: &TaskRun) {
        self.add(run, false);
    }

    fn transfer(&mut self, run: &TransferRun) {
        let &TransferRun { seq, from, to, bytes, start, end, .. } = run;
        let transfer = Transfer { job: seq, from_worker: from, to_worker: to, bytes, from: start, to: end };
        self.transfers.push(transfer);
    }

    fn instant(&mut self, now: Time, events: &[Event], commands: &[Command], _: &ShuffleOrder) {
        let orders: Vec<Order> = commands.iter().filter_map(order).collect();
        if !orders.is_empty() {
            let because = events.iter().filter_map(because).collect();
            self.decisions.push(Decision { at: now.seconds(), because, orders });
        }
    }
}

impl Schedule {
    fn add(&mut self, run: &TaskRun, ended: bool) {
        let &TaskRun { seq, task, worker, slot, start, end } = run;
        let map = task.kind == TaskKind::Map;
        self.tasks.push(Task { job: seq, map, index: task.index, worker, slot, from: start, to: end, ended });
    }
}

impl Scenario {
    fn check(&self) -> Result<(), String> {
        let tasks: usize = self.jobs.iter().map(|job| job.maps.len() + job.reduces.len()).sum();
        for (what, count, most) in [
            ("workers", self.workers.len(), WORKERS_MAX),
            ("jobs", self.jobs.len(), JOBS_MAX),
            ("tasks", tasks, TASKS_MAX),
        ] {
            if !(1..=most).contains(&count) {
                return Err(format!("{count} {what}: there may be 1 to {most}"));
            }
        }
        match self.workers.iter().find(|worker| SLOTS_MAX < worker.slots) {
            Some(worker) => Err(format!("{} slots: a worker may have 1 to {SLOTS_MAX}", worker.slots)),
            None => Ok(()),
        }
    }

    fn run(self) -> Result<Schedule, String> {
        self.check()?;
        let (policy, mechanisms) = Mechanisms::split(&self.policy);
        let deciders = Deciders {
            estimator: Some(estimate::by_name(&self.estimator).map_err(|error| error.to_string())?),
            ..Deciders::with_policy(policy::by_name(policy).map_err(|error| error.to_string())?)
        };
        let worker = |(host, worker): (usize, &Worker)| SimWorker {
            speed: worker.speed,
            ..SimWorker::new(Slots::Unified(worker.slots), host as u32)
        };
        let rate = self.network.unwrap_or(f64::INFINITY);
        let mut config = Config {
            workers: self.workers.iter().enumerate().map(worker).collect(),
            network: NetworkConfig { in_rate: rate, out_rate: rate, ..NetworkConfig::default() },
            seed: self.seed,
            ..Config::uniform(1, Slots::Unified(1))
        };
        mechanisms.set(&mut config.core);
        let mut schedule =
            Schedule { jobs: vec![EndedJob::default(); self.jobs.len()], ..Schedule::default() };
        let jobs = self.jobs.into_iter().map(|job| Job {
            arrival: job.arrival,
            work: [job.maps.iter().sum(), 0.0, job.reduces.iter().sum()].into(),
            maps: job.maps,
            reduces: job.reduces,
            shuffle_bytes: job.shuffle,
            deadline: job.deadline,
            weight: job.weight,
            pool: job.pool,
            name: job.name,
            ..Job::default()
        });
        let mut ends = Vec::new();
        let mut sink = |record: &gristmill_scheduler::metrics::JobRecord| ends.push(*record);
        let takeover = |ScenarioTakeover { at, policy }| {
            // Its time has been printed and read again.
            policy::by_name(&policy).map(|policy| Takeover { at: at - ROUNDING_SECONDS, policy })
        };
        let takeover = self.takeover.map(takeover).transpose().map_err(|error| error.to_string())?;
        let run = cluster::run_taken_over(&config, deciders, takeover, jobs, &mut schedule, &mut sink);
        run.map_err(|error| error.to_string())?;
        for record in ends {
            schedule.jobs[record.seq as usize] =
                EndedJob { start: record.start, maps_done: record.maps_done, end: record.completion };
        }
        Ok(schedule)
    }
}

/// Returns the schedule of a scenario as JSON, or `{"error": ...}`.
#[must_use]
pub fn schedule(scenario: &str) -> String {
    let run = serde_json::from_str(scenario).map_err(|error| error.to_string()).and_then(Scenario::run);
    let text = match run {
        Ok(schedule) => serde_json::to_string(&schedule),
        Err(error) => serde_json::to_string(&serde_json::json!({"error": error})),
    };
    text.unwrap_or_else(|error| format!("{{\"error\": \"{}\"}}", error.to_string().escape_default()))
}

/// Returns the policies that can be simulated, as JSON: name, summary and parameters with their defaults.
#[must_use]
pub fn policies() -> String {
    let entries = policy::catalogue().into_iter().filter(|entry| entry.only_simulated.is_none());
    let shown = |entry: &gristmill_scheduler::catalogue::Entry<dyn policy::Policy>| {
        let parameters = entry.parameters.iter().map(|one| [one.name, one.default, one.meaning]);
        serde_json::json!({"name": entry.name, "summary": entry.summary, "paper": entry.paper, "parameters": parameters.collect::<Vec<_>>()})
    };
    serde_json::Value::from(entries.map(shown).collect::<Vec<_>>()).to_string()
}

/// Text from the page, and the answer to it.
static INPUT: Mutex<Vec<u8>> = Mutex::new(Vec::new());
static ANSWER: Mutex<String> = Mutex::new(String::new());

fn answer(text: String) -> *const u8 {
    let mut answer = ANSWER.lock().unwrap_or_else(PoisonError::into_inner);
    *answer = text;
    answer.as_ptr()
}

/// Returns memory for a scenario of this many bytes, until the next call.
#[expect(unsafe_code, reason = "the name is what the page looks for; no other export has it")]
#[unsafe(no_mangle)]
pub extern "C" fn room(bytes: usize) -> *mut u8 {
    let mut input = INPUT.lock().unwrap_or_else(PoisonError::into_inner);
    *input = vec![0; bytes];
    input.as_mut_ptr()
}

/// Simulates the scenario in that memory. Returns the answer, which lives until the next call.
#[expect(unsafe_code, reason = "the name is what the page looks for; no other export has it")]
#[unsafe(no_mangle)]
pub extern "C" fn simulate() -> *const u8 {
    let input = INPUT.lock().unwrap_or_else(PoisonError::into_inner).clone();
    answer(schedule(&String::from_utf8_lossy(&input)))
}

/// Returns the answer of [`policies`], which lives until the next call.
#[expect(unsafe_code, reason = "the name is what the page looks for; no other export has it")]
#[unsafe(no_mangle)]
pub extern "C" fn catalogue() -> *const u8 {
    answer(policies())
}

/// Returns the number of bytes of the last answer.
#[expect(unsafe_code, reason = "the name is what the page looks for; no other export has it")]
#[unsafe(no_mangle)]
pub extern "C" fn length() -> usize {
    ANSWER.lock().unwrap_or_else(PoisonError::into_inner).len()
}
