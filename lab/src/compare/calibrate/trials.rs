//! The jobs of a calibration, and the costs that follow from their times.
//!
//! Tasks that take no time are ordered and reported in batches, which makes a task or an output cheapest.
//! Other tasks arrive one by one. The batched tasks show the cost of an output, a segment and a byte. The
//! cost of a task and of a request is fitted with the simulator, from tasks of [`TINY_SECONDS`] (`fit`).

use crate::simulate::SystemCosts;

/// Sleep of a task on an idle cluster, in seconds.
pub(super) const IDLE_SECONDS: f64 = 0.005;

/// Sleep of the tasks that show the cost of tasks and requests, in seconds. It is so short that slots
/// wait for the system.
const TINY_SECONDS: f64 = 0.0002;

/// Number of tasks of a job of tiny tasks.
const TINY: u32 = 400;

/// Number of maps of a job that has only many maps.
const MAPS: u32 = 4000;

/// Number of reduces of a job with many segments.
const REDUCES: u32 = 400;

/// Number of maps of a job with many outputs, and of one with many segments.
const OUTPUTS: [u32; 2] = [800, 100];

/// Bytes that each map outputs for each keep, so that hardly any keep receives nothing.
const BYTES_PER_HOME: u32 = 400;

/// Bounds of the output bytes of the job with the largest output, which follows the largest job of the workload.
/// The first bytes use memory that was in use a moment ago. Later bytes cost more, on a virtual machine
/// whose host reclaims free memory.
const MANY_BYTES: [f64; 2] = [(32 << 20) as f64, (256 << 20) as f64];

/// Job that is only used for calibration.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(super) struct CalibrationTrial {
    pub maps: u32,
    pub reduces: u32,
    /// Output bytes of each map.
    pub bytes: u32,
    /// Sleep of each task.
    pub seconds: f64,
}

/// Name of a trial.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Which {
    Idle,
    Maps,
    Outputs,
    Segments,
    Reduces,
    Bytes,
    TinyMaps,
    TinyReduces,
    TinyOutputs,
}

impl Which {
    pub const ALL: [Self; 9] = [
        Self::Idle,
        Self::Maps,
        Self::Outputs,
        Self::Segments,
        Self::Reduces,
        Self::Bytes,
        Self::TinyMaps,
        Self::TinyReduces,
        Self::TinyOutputs,
    ];
}

/// Properties of a cluster that matter here.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(super) struct ClusterShape {
    pub workers: u32,
    pub slots: u32,
    pub cores: u32,
    /// True if the network has a rate limit.
    pub paced: bool,
    /// Output bytes of the workload's job with the largest output.
    pub bytes: f64,
}

impl ClusterShape {
    pub fn trial(self, which: Which) -> CalibrationTrial {
        let nothing = CalibrationTrial { maps: MAPS, reduces: 1, bytes: 0, seconds: 0.0 };
        let tiny = CalibrationTrial { maps: TINY, seconds: TINY_SECONDS, ..nothing };
        let bytes = BYTES_PER_HOME * self.workers;
        match which {
            Which::Idle => CalibrationTrial { maps: 2, reduces: 2, bytes, seconds: IDLE_SECONDS },
            Which::Maps => nothing,
            Which::Outputs => CalibrationTrial { maps: OUTPUTS[0], reduces: self.workers, bytes, ..nothing },
            Which::Segments => CalibrationTrial { maps: OUTPUTS[1], reduces: REDUCES, bytes, ..nothing },
            Which::Reduces => CalibrationTrial { maps: 1, reduces: REDUCES, ..nothing },
            // As many maps as processors, so that no map waits for another. One part for each worker, so
            // that the number of bytes from others is known.
            Which::Bytes => {
                let maps = self.cores.min(self.slots).max(1);
                let bytes = self.bytes.clamp(MANY_BYTES[0], MANY_BYTES[1]) / f64::from(maps);
                CalibrationTrial { maps, reduces: self.workers, bytes: bytes as u32, ..nothing }
            }
            Which::TinyMaps => tiny,
            // Each reduce merges a few segments.
            Which::TinyReduces => CalibrationTrial { maps: TINY / 8, reduces: TINY, bytes, ..tiny },
            Which::TinyOutputs => CalibrationTrial { reduces: self.workers, bytes, ..tiny },
        }
    }

    /// Returns the processors that work at once when every slot does.
    fn processors(self) -> f64 {
        f64::from(self.cores.min(self.slots).max(1))
    }
}

/// Measured times of the jobs, in seconds.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(super) struct TrialTimes {
    /// Times of a map and a reduce on an idle cluster beyond their sleep, from order to event.
    pub idle_task: [f64; 2],
    /// Time from the last map's end to the last segment, on an idle cluster.
    pub idle_fetch: f64,
    /// Flow time of a job on an idle cluster beyond the sleep of its tasks.
    pub idle_flow: f64,
    /// Time from its arrival to the last segment, beyond the sleep of its maps.
    pub idle_gathering: f64,
    /// Flow times of many maps and many reduces that take no time.
    pub many: [f64; 2],
    /// Times from the arrival to the last segment of many outputs, of many segments, and of as many
    /// partitions without segments.
    pub gathering: [f64; 3],
    /// Times of maps, of the shuffle after them, and of reduces of a job of many bytes.
    pub bytes: [f64; 3],
}

/// Returns the costs that explain these times: of tasks that arrive in batches, and without requests.
pub(super) fn costs(shape: ClusterShape, times: &TrialTimes) -> SystemCosts {
    let processors = shape.processors();
    let beyond = |flow: f64| (flow - times.idle_flow).max(0.0) * processors;
    let (maps, reduces) = (shape.trial(Which::Maps), shape.trial(Which::Reduces));
    let map = beyond(times.many[0]) / f64::from(maps.maps);
    let reduce = beyond(times.many[1]) / f64::from(reduces.reduces);
    let (byte_work, fetch_byte_work) = byte_work(shape, times, reduce);
    // Parts of the gathering time: outputs at keeps, fetches, and segments listed.
    let equation = |which: Which, gathering: f64, idle: f64| {
        let trial = shape.trial(which);
        let [maps, reduces] = [trial.maps, trial.reduces].map(f64::from);
        let others = f64::from(shape.workers - 1) / f64::from(shape.workers);
        let carried = maps * f64::from(trial.bytes) * (byte_work[0] + others * fetch_byte_work);
        let beyond = (gathering - idle).max(0.0) * processors;
        let seconds = (beyond - maps * map - carried).max(0.0);
        (seconds, maps * f64::from(shape.workers - 1), maps * reduces)
    };
    let few = equation(Which::Outputs, times.gathering[0], times.idle_gathering);
    let many = equation(Which::Segments, times.gathering[1], times.gathering[2].max(times.idle_gathering));
    let (fetch_work, segment_work) = solved(few, many);
    SystemCosts {
        task: times.idle_task,
        fetch: times.idle_fetch,
        cores: shape.cores,
        work: [map, reduce],
        request_work: 0.0,
        fetch_work,
        segment_work,
        byte_work,
        fetch_byte_work,
    }
}

/// Returns the cost of a byte of a map and of a reduce, and of a byte that comes from another worker.
fn byte_work(shape: ClusterShape, times: &TrialTimes, reduce: f64) -> ([f64; 2], f64) {
    let trial = shape.trial(Which::Bytes);
    let bytes = f64::from(trial.bytes) * f64::from(trial.maps);
    let workers = f64::from(shape.workers);
    let fetched = bytes * (workers - 1.0) / workers;
    let [map, fetch, reduces] = times.bytes;
    let map = (map - times.idle_task[0]) * f64::from(trial.maps) / bytes;
    // Time waiting for a network with a rate limit is not work.
    let fetch = match shape.paced || fetched == 0.0 {
        true => 0.0,
        false => (fetch - times.idle_fetch) * shape.processors() / fetched,
    };
    let rest = (reduces - times.idle_task[1]) * shape.processors() - f64::from(trial.reduces) * reduce;
    ([map.max(0.0), (rest / bytes).max(0.0)], fetch.max(0.0))
}

/// Solves for the cost of a fetch and of a segment from two jobs, each with its seconds, fetches and
/// segments. No cost is negative.
fn solved(few: (f64, f64, f64), many: (f64, f64, f64)) -> (f64, f64) {
    if few.1 == 0.0 {
        return (0.0, many.0 / many.2);
    }
    let determinant = few.1 * many.2 - many.1 * few.2;
    let segment = ((many.0 * few.1 - few.0 * many.1) / determinant).clamp(0.0, many.0 / many.2);
    (((few.0 - segment * few.2) / few.1).max(0.0), segment)
}

#[cfg(test)]
mod tests {
    use super::*;

    const SHAPE: ClusterShape = ClusterShape { workers: 4, slots: 8, cores: 2, paced: false, bytes: 0.0 };

    /// Returns the times of jobs under these costs of the system.
    fn times_of(costs: &SystemCosts) -> TrialTimes {
        let (idle_flow, idle_gathering) = (0.003, 0.002);
        // Three of four outputs are fetched.
        let gathering = |which: Which, maps: f64, reduces: f64| {
            let bytes = maps * f64::from(SHAPE.trial(which).bytes);
            let byte = costs.byte_work[0] + 0.75 * costs.fetch_byte_work;
            let outputs = maps * (costs.work[0] + 3.0 * costs.fetch_work + reduces * costs.segment_work);
            idle_gathering + (outputs + bytes * byte) / 2.0
        };
        // Two maps on two processors, then 3 of 4 bytes are fetched, then four reduces.
        let bytes = f64::from(SHAPE.trial(Which::Bytes).bytes);
        TrialTimes {
            idle_task: costs.task,
            idle_fetch: costs.fetch,
            idle_flow,
            idle_gathering,
            many: [idle_flow + 2000.0 * costs.work[0], idle_flow + 200.0 * costs.work[1]],
            gathering: [
                gathering(Which::Outputs, 800.0, 4.0),
                gathering(Which::Segments, 100.0, 400.0),
                idle_gathering,
            ],
            bytes: [
                costs.task[0] + bytes * costs.byte_work[0],
                costs.fetch + 0.75 * bytes * costs.fetch_byte_work,
                costs.task[1] + bytes * costs.byte_work[1] + 2.0 * costs.work[1],
            ],
        }
    }

    #[test]
    fn costs_that_are_found_are_those_that_the_times_were_made_of() {
        let truth = SystemCosts {
            task: [0.0008, 0.0012],
            fetch: 0.0003,
            cores: 2,
            work: [0.0002, 0.0007],
            request_work: 0.0,
            fetch_work: 0.00005,
            segment_work: 3e-6,
            byte_work: [4e-9, 3e-9],
            fetch_byte_work: 1e-9,
        };
        let found = costs(SHAPE, &times_of(&truth));
        let near =
            |found: f64, truth: f64| assert!((found / truth - 1.0).abs() < 1e-6, "{found} is not {truth}");
        for kind in [0, 1] {
            near(found.work[kind], truth.work[kind]);
            near(found.byte_work[kind], truth.byte_work[kind]);
        }
        near(found.fetch_byte_work, truth.fetch_byte_work);
        near(found.fetch_work, truth.fetch_work);
        near(found.segment_work, truth.segment_work);
        assert_eq!((found.task, found.fetch, found.cores), (truth.task, truth.fetch, truth.cores));
    }

    #[test]
    fn trial_of_many_bytes_moves_as_many_as_the_largest_job_within_bounds() {
        let moved = |bytes| {
            let trial = ClusterShape { bytes, ..SHAPE }.trial(Which::Bytes);
            f64::from(trial.maps) * f64::from(trial.bytes)
        };
        assert_eq!(moved(1e8), 1e8);
        assert_eq!([0.0, 1e12].map(moved), MANY_BYTES);
    }

    #[test]
    fn costs_are_never_negative_when_a_busy_machine_made_the_idle_jobs_slow() {
        let mut times = times_of(&SystemCosts { cores: 2, ..SystemCosts::default() });
        (times.idle_flow, times.idle_gathering) = (1.0, 1.0);
        let found = costs(SHAPE, &times);
        assert_eq!((found.work, found.fetch_work, found.segment_work), ([0.0; 2], 0.0, 0.0));
        let one = ClusterShape { workers: 1, ..SHAPE };
        assert_eq!(costs(one, &times).fetch_work, 0.0);
    }
}
