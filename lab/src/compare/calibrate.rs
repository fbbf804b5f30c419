//! What the system itself takes for tasks on a cluster of this shape, measured before the first run by a few jobs whose
//! tasks do nothing: on an idle cluster, and with every slot in use.
//!
//! With all slots in use, the time that a job takes beyond one of few tasks is shared among its tasks, and counted as
//! work of as many processors as its slots can use. Not here: what a simulation makes of the costs (`simulate`).

use super::record::Contender;
use super::run::{JOURNAL, Order, Ran, Runner};
use super::store::{self, Store};
use super::workload::{DrawnJob, Kind, Workload};
use super::{CompareError, Site};
use crate::simulate::{Measured, SystemCosts};
use gristmill_runtime::api::{ExactWork, JobTrace};
use std::path::Path;

/// Jobs on an idle cluster.
const IDLE_JOBS: usize = 12;

/// Times that each job with all slots in use is run; the middle one counts.
const ROUNDS: usize = 3;

/// Time that a task passes on an idle cluster, seconds.
const IDLE_SECONDS: f64 = 0.005;

/// Maps of a job that has many and does nothing else.
const MAPS: u32 = 4000;

/// Reduces of a job that has many.
const REDUCES: u32 = 400;

/// Maps of a job that has many outputs, and of one that has many segments.
const OUTPUTS: [u32; 2] = [800, 100];

/// Bytes that each map puts out for each home, so that hardly any home goes without.
const BYTES_PER_HOME: u32 = 400;

/// Bytes of each map that puts out many.
const MANY_BYTES: u32 = 4 << 20;

/// A job that only calibrates.
#[derive(Clone, Copy, PartialEq, Debug)]
struct Trial {
    maps: u32,
    reduces: u32,
    /// That each map puts out.
    bytes: u32,
    /// That each task passes.
    seconds: f64,
}

/// The shape of a cluster as far as it matters here.
#[derive(Clone, Copy, PartialEq, Debug)]
struct Shape {
    workers: u32,
    slots: u32,
    cores: u32,
    /// Whether the network is held to a rate.
    paced: bool,
}

impl Shape {
    /// The jobs in the order of [`Times`].
    fn trials(self) -> [Trial; 6] {
        let busy = Trial { maps: MAPS, reduces: 1, bytes: 0, seconds: 0.0 };
        let bytes = BYTES_PER_HOME * self.workers;
        [
            Trial { maps: 2, reduces: 2, bytes, seconds: IDLE_SECONDS },
            busy,
            Trial { maps: 1, reduces: REDUCES, ..busy },
            Trial { maps: OUTPUTS[0], reduces: self.workers, bytes, ..busy },
            Trial { maps: OUTPUTS[1], reduces: REDUCES, bytes, ..busy },
            Trial { maps: self.slots, reduces: self.slots, bytes: MANY_BYTES, ..busy },
        ]
    }

    /// Processors that work at once when every slot does.
    fn processors(self) -> f64 {
        f64::from(self.cores.min(self.slots).max(1))
    }
}

/// What the jobs took, in seconds.
#[derive(Clone, Copy, PartialEq, Debug)]
struct Times {
    /// Of a map and a reduce on an idle cluster, beyond what they pass, from order to fact.
    idle_task: [f64; 2],
    /// From the last map's end to the last segment, on an idle cluster.
    idle_fetch: f64,
    /// The flow time of a job on an idle cluster beyond what its tasks pass.
    idle_flow: f64,
    /// The flow times of many maps, many reduces, many outputs at all homes, and many segments.
    many: [f64; 4],
    /// Maps and the rest of a job of many bytes.
    bytes: [f64; 2],
}

/// The costs that explain these times.
fn costs(shape: Shape, times: &Times) -> SystemCosts {
    let processors = shape.processors();
    let [_, maps, reduces, outputs, segments, bytes] = shape.trials();
    let beyond = |flow: f64| (flow - times.idle_flow).max(0.0) * processors;
    let [map, reduce] =
        [beyond(times.many[0]) / f64::from(maps.maps), beyond(times.many[1]) / f64::from(reduces.reduces)];
    let all_bytes = f64::from(bytes.maps) * f64::from(bytes.bytes);
    let byte = [(times.bytes[0], map, bytes.maps), (times.bytes[1], reduce, bytes.reduces)]
        .map(|(took, each, tasks)| ((took * processors - each * f64::from(tasks)) / all_bytes).max(0.0));
    // Tasks and bytes of a job.
    let rest = |trial: Trial| {
        let carried = f64::from(trial.maps) * f64::from(trial.bytes) * (byte[0] + byte[1]);
        f64::from(trial.maps) * map + f64::from(trial.reduces) * reduce + carried
    };
    // Two equations: outputs come to homes, in few segments or in many.
    let fetched = |trial: Trial| f64::from(trial.maps) * f64::from(shape.workers - 1);
    let listed = |trial: Trial| f64::from(trial.maps) * f64::from(trial.reduces);
    let [few, many] = [(outputs, 2), (segments, 3)]
        .map(|(trial, place)| (beyond(times.many[place]) - rest(trial)).max(0.0));
    let determinant = fetched(outputs) * listed(segments) - fetched(segments) * listed(outputs);
    let segment_work = match shape.workers {
        1 => many / listed(segments),
        _ => ((many * fetched(outputs) - few * fetched(segments)) / determinant)
            .clamp(0.0, many / listed(segments)),
    };
    let fetch_work = match shape.workers {
        1 => 0.0,
        _ => ((few - segment_work * listed(outputs)) / fetched(outputs)).max(0.0),
    };
    SystemCosts {
        task: times.idle_task,
        fetch: times.idle_fetch,
        cores: shape.cores,
        work: [map, reduce],
        fetch_work,
        segment_work,
        byte_work: byte,
    }
}

/// Measures the costs; `None` if somebody interrupted. What was measured in an earlier call is taken from the folder.
pub(super) fn measure(runner: &Runner<'_>, store: &Store) -> Result<Option<SystemCosts>, CompareError> {
    if let Some(known) = store.costs()? {
        return Ok(Some(known));
    }
    let Site::Embedded(config) = runner.site else { return Ok(None) };
    let cores = std::thread::available_parallelism().map_or(1, |cores| cores.get() as u32);
    let workers = config.workers.count;
    let slots = workers * config.workers.each.slots.total();
    let shape = Shape { workers, slots, cores, paced: config.workers.each.nic_bytes_per_second.is_some() };
    let trials = shape.trials();
    let workload = Workload::batch("calibration", trials.iter().map(kind).collect());
    let of = |kind: usize, index: usize| DrawnJob {
        index,
        kind,
        arrival: 0.0,
        arguments: workload.kinds[kind].arguments.clone(),
    };
    let order = (0..IDLE_JOBS).map(|_| 0).chain((0..ROUNDS).flat_map(|_| 1..trials.len()));
    let jobs: Vec<DrawnJob> = order.enumerate().map(|(index, kind)| of(kind, index)).collect();
    let folder = store.path().join("calibration");
    store::remove_tree(&folder)?;
    let ran = run(runner, &workload, &jobs, &folder);
    let measured = Measured::read(&folder.join(JOURNAL));
    store::remove_tree(&folder)?;
    let Some(ran) = ran? else { return Ok(None) };
    let measured = measured.map_err(|source| CompareError::Calibration { source })?;
    let found = costs(shape, &times(shape, &jobs, &ran.traces, &measured));
    store.keep_costs(&found)?;
    Ok(Some(found))
}

fn kind(trial: &Trial) -> Kind {
    let seconds = format!("{}us", (trial.seconds * 1e6).round());
    let [maps, bytes] = [trial.maps, trial.bytes].map(|number| number.to_string());
    let arguments =
        ["--maps", &maps, "--map-time", &seconds, "--reduce-time", &seconds, "--map-bytes", &bytes];
    let exact = ExactWork {
        map_seconds: vec![trial.seconds; trial.maps as usize],
        shuffle_bytes: f64::from(trial.bytes) * f64::from(trial.maps),
        reduce_seconds: vec![trial.seconds; trial.reduces as usize],
    };
    Kind { reduces: Some(trial.reduces), exact: Some(exact), ..Kind::new("synthetic", &arguments) }
}

/// The jobs one after the other.
fn run(
    runner: &Runner<'_>,
    workload: &Workload,
    jobs: &[DrawnJob],
    folder: &Path,
) -> Result<Option<Ran>, CompareError> {
    let name = "calibration".to_owned();
    let contender = Contender { name, policy: "fifo".to_owned(), placement: "pull".to_owned() };
    let exact: Vec<Option<ExactWork>> =
        jobs.iter().map(|job| workload.kinds[job.kind].exact.clone()).collect();
    let order = Order { contender: &contender, jobs, exact: &exact, folder, one_by_one: true };
    Runner {
        workload,
        interrupted: runner.interrupted.clone(),
        runtime: runner.runtime.clone(),
        data: runner.data.clone(),
        knowledge: runner.knowledge.clone(),
        ..*runner
    }
    .run(&order)
}

/// What the jobs took; medians of jobs that are alike.
fn times(shape: Shape, jobs: &[DrawnJob], traces: &[JobTrace], measured: &Measured) -> Times {
    let seconds =
        |from: Option<u64>, to: Option<u64>| to.unwrap_or(0).saturating_sub(from.unwrap_or(0)) as f64 / 1e9;
    let of = |kind: usize, time: &dyn Fn(&JobTrace) -> f64| {
        let alike = jobs.iter().zip(traces).filter(|(job, _)| job.kind == kind);
        median(alike.map(|(_, trace)| time(trace)).collect())
    };
    let flow = |trace: &JobTrace| trace.status.flow_ns() as f64 / 1e9;
    let idle = measured.jobs.iter().take(IDLE_JOBS);
    let beyond = |tasks: &[f64], overheads: &[Option<f64>]| -> Vec<f64> {
        let of = |(took, overhead): (&f64, &Option<f64>)| Some((took + (*overhead)? - IDLE_SECONDS).max(0.0));
        tasks.iter().zip(overheads).filter_map(of).collect()
    };
    Times {
        idle_task: [
            median(idle.clone().flat_map(|job| beyond(&job.map_seconds, &job.map_overheads)).collect()),
            median(idle.flat_map(|job| beyond(&job.reduce_seconds, &job.reduce_overheads)).collect()),
        ],
        idle_fetch: of(0, &|trace| seconds(trace.status.maps_done_ns, trace.status.shuffle_done_ns)),
        idle_flow: (of(0, &flow) - 2.0 * IDLE_SECONDS).max(0.0),
        many: [1, 2, 3, 4].map(|kind| of(kind, &flow)),
        bytes: [
            of(5, &|trace| seconds(trace.status.started_ns, trace.status.maps_done_ns)),
            of(5, &|trace| {
                // What waits for a network that is held to a rate is no work.
                let status = &trace.status;
                let from = if shape.paced { status.shuffle_done_ns } else { status.maps_done_ns };
                seconds(from, status.ended_ns)
            }),
        ],
    }
}

/// The middle one; 0 of none.
fn median(mut samples: Vec<f64>) -> f64 {
    samples.sort_by(f64::total_cmp);
    samples.get(samples.len() / 2).copied().unwrap_or(0.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    const SHAPE: Shape = Shape { workers: 4, slots: 8, cores: 2, paced: false };

    /// The times that jobs take for which the system takes this.
    fn times_of(costs: &SystemCosts) -> Times {
        let [_, maps, reduces, outputs, segments, bytes] = SHAPE.trials();
        let idle_flow = 0.003;
        let flow = |trial: Trial, homes: f64| {
            let all =
                f64::from(trial.maps) * f64::from(trial.bytes) * (costs.byte_work[0] + costs.byte_work[1]);
            let tasks = f64::from(trial.maps) * costs.work[0] + f64::from(trial.reduces) * costs.work[1];
            let fetched = f64::from(trial.maps) * homes * costs.fetch_work;
            let listed = f64::from(trial.maps) * f64::from(trial.reduces) * costs.segment_work;
            let listed = if homes == 0.0 { 0.0 } else { listed };
            idle_flow + (tasks + fetched + listed + all) / 2.0
        };
        // One task of the other kind is among the many.
        let one = |work: f64| work / 2.0;
        let bytes_of =
            |kind: usize| 8.0 * (costs.work[kind] + f64::from(bytes.bytes) * costs.byte_work[kind]) / 2.0;
        Times {
            idle_task: costs.task,
            idle_fetch: costs.fetch,
            idle_flow,
            many: [
                flow(maps, 0.0) - one(costs.work[1]),
                flow(reduces, 0.0) - one(costs.work[0]),
                flow(outputs, 3.0),
                flow(segments, 3.0),
            ],
            bytes: [bytes_of(0), bytes_of(1)],
        }
    }

    #[test]
    fn costs_that_are_found_are_those_that_the_times_were_made_of() {
        let truth = SystemCosts {
            task: [0.0008, 0.0012],
            fetch: 0.0003,
            cores: 2,
            work: [0.0002, 0.0007],
            fetch_work: 0.00005,
            segment_work: 3e-6,
            byte_work: [4e-9, 3e-9],
        };
        let found = costs(SHAPE, &times_of(&truth));
        let near =
            |found: f64, truth: f64| assert!((found / truth - 1.0).abs() < 1e-6, "{found} is not {truth}");
        for kind in [0, 1] {
            near(found.work[kind], truth.work[kind]);
            near(found.byte_work[kind], truth.byte_work[kind]);
        }
        near(found.fetch_work, truth.fetch_work);
        near(found.segment_work, truth.segment_work);
        assert_eq!((found.task, found.fetch, found.cores), (truth.task, truth.fetch, truth.cores));
    }

    #[test]
    fn costs_are_never_negative_when_a_busy_machine_made_the_idle_jobs_slow() {
        let mut times = times_of(&SystemCosts { cores: 2, ..SystemCosts::default() });
        times.idle_flow = 1.0;
        let found = costs(SHAPE, &times);
        assert_eq!((found.work, found.fetch_work, found.segment_work), ([0.0; 2], 0.0, 0.0));
        let one = Shape { workers: 1, ..SHAPE };
        assert_eq!(costs(one, &times).fetch_work, 0.0);
    }
}
