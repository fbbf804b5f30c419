//! `synthetic`: a job that only takes time, so that a laptop can emulate a large cluster.
//!
//! A reduce spends its time in slices, each ended by a border: a key that some map emits only for that purpose. This
//! makes its progress visible, and it can be suspended at the end of a slice. A map counts steps, and can be divided
//! between them; what it emits does not depend on that.

mod measured;
mod times;

use crate::ExactWork;
use crate::size::parse_bytes;
use gristmill_worker::prelude::*;
pub use measured::MeasuredTasks;
use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::{Rng, SeedableRng};
use serde::{Deserialize, Serialize};
use std::ops::Range;
use std::path::PathBuf;
use std::time::{Duration, Instant};
pub use times::{TimeLaw, TimeLawError};

/// Steps of a map, between which it shows its progress and can be divided.
const STEPS: u32 = 128;
/// Mean map time from which a job has steps, or longest one that was measured: each costs about a microsecond.
const STEPPING_MIN: Duration = Duration::from_millis(200);
/// Minimum time that a map sleeps or spins at once, but for its last step.
const STEP_MIN: Duration = Duration::from_millis(5);
/// Interval at which a task checks for its cancellation.
const SLICE: Duration = Duration::from_millis(20);
/// Bytes of an emitted pair: a random key and a random value, so that compressed spills keep its size.
const PAIR_BYTES: u64 = 100;
const KEY_BYTES: usize = 8;
/// Time between two borders of a reduce, unless there would be too many.
const BORDER_EVERY: Duration = Duration::from_millis(25);
/// Maximum number of borders of one reduce.
const BORDERS_MAX: u32 = 1024;
/// Default time of a task.
const TIME_DEFAULT: &str = "50ms";

/// Takes time like a real job
///
/// Its maps and reduces sleep or spin for times drawn from a distribution, and maps emit bytes with random keys. A
/// distribution is one time for all (50ms), exp:MEAN, delayed:LEAST,MEAN (the minimum plus an exponential time),
/// uniform:LEAST..MOST or lognormal:MEDIAN,SIGMA. Each part contains the number of pairs and bytes that reached it.
#[derive(clap::Args, Serialize, Deserialize, Clone, Debug)]
pub struct Synthetic {
    /// Map tasks
    #[arg(long, value_name = "N", default_value_t = 32, value_parser = clap::value_parser!(u32).range(1..))]
    pub maps: u32,
    /// Time of each map task
    #[arg(long, value_name = "LAW", default_value = TIME_DEFAULT)]
    pub map_time: TimeLaw,
    /// Time of each reduce task
    #[arg(long, value_name = "LAW", default_value = TIME_DEFAULT)]
    pub reduce_time: TimeLaw,
    /// Keep a processor busy instead of sleeping
    #[arg(long)]
    pub spin: bool,
    /// Bytes that each map task emits, after its time
    #[arg(long, value_name = "BYTES", default_value = "0", value_parser = parse_bytes)]
    pub map_bytes: u64,
    /// Seed of the times and keys
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub seed: u64,
    /// Replay a measured job: JSON with map_seconds, reduce_seconds and shuffle_bytes, as for --exact
    #[arg(long, value_name = "FILE", conflicts_with_all = ["maps", "map_time", "reduce_time", "map_bytes"])]
    #[serde(skip)]
    pub times: Option<PathBuf>,
    /// Content of that file.
    #[arg(skip)]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub measured: Option<MeasuredTasks>,
}

impl Default for Synthetic {
    /// The job without any flag: 32 maps, and 50 ms for each task.
    fn default() -> Self {
        let time: TimeLaw = TIME_DEFAULT.parse().expect("a law of times: tested");
        Self {
            maps: 32,
            map_time: time.clone(),
            reduce_time: time,
            spin: false,
            map_bytes: 0,
            seed: 1,
            times: None,
            measured: None,
        }
    }
}

impl Job for Synthetic {
    const NAME: &'static str = "synthetic";

    fn prepare(&mut self, _submitter: &dyn Submitter) -> Result<(), PlanError> {
        if let Some(path) = &self.times {
            self.measured = Some(MeasuredTasks::read(path)?);
        }
        Ok(())
    }

    fn plan(&self) -> Result<JobPlan, PlanError> {
        let (job, same) = (self.clone(), self.clone());
        match self.measured.as_ref().map(MeasuredTasks::reduces) {
            Some(0) => {
                let input = Input::bare_tasks(self.map_tasks());
                Ok(JobPlan::map_only(input, move || SyntheticMapOnly { job: job.clone(), task: 0 }))
            }
            reduces => {
                let input = Input::steps(self.map_tasks(), self.steps());
                let plan = JobPlan::map(input, move || SyntheticMapper {
                    stepping: Stepping::new(job.clone()),
                    task: 0,
                    partitions: 0,
                })
                .partition(SpreadPartitioner);
                let plan = match reduces {
                    Some(reduces) => plan.reduces(reduces),
                    None => plan,
                };
                Ok(plan.reduce(move || SyntheticReducer::new(same.clone())))
            }
        }
    }
}

/// Kind of random numbers of a task.
#[derive(Clone, Copy)]
enum TaskStream {
    Map = 0,
    Reduce = 1,
    Pairs = 2,
}

impl Synthetic {
    /// Durations and output of its tasks with this many reduces, as far as known before it runs. `None` if it replays a
    /// file that was not read yet.
    #[must_use]
    pub fn work(&self, reduces: u32) -> Option<ExactWork> {
        if self.times.is_some() {
            return None;
        }
        let maps: Vec<(Duration, u64)> = (0..self.map_tasks())
            .map(|task| self.map_work(task, &mut self.draws(TaskStream::Map, task)))
            .collect();
        Some(ExactWork {
            map_seconds: maps.iter().map(|(time, _)| time.as_secs_f64()).collect(),
            shuffle_bytes: maps.iter().map(|(_, bytes)| *bytes as f64).sum(),
            reduce_seconds: (0..reduces).map(|task| self.reduce_work(task).as_secs_f64()).collect(),
        })
    }

    /// Steps of each map: none if they are so short that a division cannot pay.
    fn steps(&self) -> u32 {
        let time = self.measured.as_ref().map_or_else(|| self.map_time.mean(), MeasuredTasks::longest_map);
        if time >= STEPPING_MIN { STEPS } else { 0 }
    }

    fn map_tasks(&self) -> u32 {
        self.measured.as_ref().map_or(self.maps, MeasuredTasks::maps)
    }

    /// Random numbers of one task.
    fn draws(&self, stream: TaskStream, task: u32) -> ChaCha8Rng {
        let mut draws = ChaCha8Rng::seed_from_u64(self.seed);
        draws.set_stream(((stream as u64) << 32) + u64::from(task));
        draws
    }

    /// Spends the time of a map at once. Returns the bytes it emits.
    fn pass_map(&self, task: u32, is_cancelled: impl FnMut() -> bool) -> u64 {
        let (time, bytes) = self.map_work(task, &mut self.draws(TaskStream::Map, task));
        self.pass(time, is_cancelled);
        bytes
    }

    /// Time of a map and bytes it emits.
    fn map_work(&self, task: u32, draws: &mut ChaCha8Rng) -> (Duration, u64) {
        match &self.measured {
            Some(measured) => (measured.map_time(task), measured.map_bytes(task)),
            None => (self.map_time.draw(draws), self.map_bytes),
        }
    }

    fn reduce_work(&self, task: u32) -> Duration {
        match &self.measured {
            Some(measured) => measured.reduce_time(task),
            None => self.reduce_time.draw(&mut self.draws(TaskStream::Reduce, task)),
        }
    }

    /// Spends `time` in slices, or less if the task is cancelled. Only time slept or spun here counts. A slower slot
    /// delays the task during its checks, and that delay is additional. Returns the time slept or spun.
    fn pass(&self, time: Duration, mut is_cancelled: impl FnMut() -> bool) -> Duration {
        let (mut rest, mut spent) = (time, Duration::ZERO);
        while !is_cancelled() && !rest.is_zero() {
            let (begun, slice) = (Instant::now(), rest.min(SLICE));
            if self.spin {
                while begun.elapsed() < slice {
                    std::hint::spin_loop();
                }
            } else {
                std::thread::sleep(slice);
            }
            let slept = begun.elapsed();
            (rest, spent) = (rest.saturating_sub(slept), spent + slept);
        }
        spent
    }
}

/// Number of borders of a reduce that takes this time.
fn borders(time: Duration) -> u32 {
    let slices = time.as_nanos().div_ceil(BORDER_EVERY.as_nanos());
    slices.min(u128::from(BORDERS_MAX)) as u32
}

/// A key that ends a slice of a reduce's time: its place among all keys, the partition, and the index of the border.
/// Other keys are shorter.
struct Border {
    partition: u32,
    index: u32,
}

impl Border {
    const BYTES: usize = 16;

    /// Key of this one of `count` borders, which are as far apart as random keys on average.
    fn key(&self, count: u32) -> [u8; Self::BYTES] {
        let place = (u64::MAX / u64::from(count.max(1))).saturating_mul(u64::from(self.index));
        let mut key = [0; Self::BYTES];
        key[..8].copy_from_slice(&place.to_be_bytes());
        key[8..12].copy_from_slice(&self.partition.to_be_bytes());
        key[12..].copy_from_slice(&self.index.to_be_bytes());
        key
    }

    /// The border of a key; `None` for other keys.
    fn from_key(key: &[u8]) -> Option<Self> {
        let key: &[u8; Self::BYTES] = key.try_into().ok()?;
        let word = |at: usize| u32::from_be_bytes([key[at], key[at + 1], key[at + 2], key[at + 3]]);
        Some(Self { partition: word(8), index: word(12) })
    }
}

/// Sends borders to their partition and spreads all other keys evenly.
struct SpreadPartitioner;

impl Partitioner for SpreadPartitioner {
    type Key = ByteString;

    fn partition(&self, key: &[u8], partitions: u32) -> u32 {
        match Border::from_key(key) {
            Some(border) => border.partition,
            None => {
                // FNV-1a, whose upper bits are even enough for keys that are random already.
                let hash = key.iter().fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
                    (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3)
                });
                ((u128::from(hash) * u128::from(partitions)) >> 64) as u32
            }
        }
    }
}

/// Map whose time passes in steps, or at once if it has none.
struct Stepping {
    job: Synthetic,
    /// Task of the current step, and its time and bytes.
    task: Option<(u32, Duration, u64)>,
    /// Part of the time that is spent, by the clock.
    passed: Duration,
}

/// Steps of a map that are over.
struct Passed {
    task: u32,
    bytes: u64,
    steps: Range<u64>,
}

impl Stepping {
    fn new(job: Synthetic) -> Self {
        Self { job, task: None, passed: Duration::ZERO }
    }

    /// Spends the time of a step.
    fn step(&mut self, record: Record<'_>, is_cancelled: impl FnMut() -> bool) -> Passed {
        let (task, step) = ((record.offset() / u64::from(STEPS)) as u32, record.offset() % u64::from(STEPS));
        let (_, time, bytes) = *self.task.get_or_insert_with(|| {
            let (time, bytes) = self.job.map_work(task, &mut self.job.draws(TaskStream::Map, task));
            self.passed = time.mul_f64(step as f64 / f64::from(STEPS));
            (task, time, bytes)
        });
        let due = time.mul_f64((step + 1) as f64 / f64::from(STEPS));
        let owed = due.saturating_sub(self.passed);
        if owed >= STEP_MIN || step + 1 == u64::from(STEPS) {
            self.passed += self.job.pass(owed, is_cancelled);
        }
        Passed { task, bytes, steps: step..step + 1 }
    }
}

struct SyntheticMapper {
    stepping: Stepping,
    task: u32,
    partitions: u32,
}

impl SyntheticMapper {
    /// Emits the pairs of steps, which do not depend on how a map was divided.
    fn emit(&self, Passed { task, bytes, steps }: &Passed, out: &mut Emitter<ByteString, ByteString>) {
        let (job, pairs) = (&self.stepping.job, bytes.div_ceil(PAIR_BYTES));
        let [first, end] = [steps.start, steps.end].map(|step| pairs * step / u64::from(STEPS));
        let mut draws = job.draws(TaskStream::Pairs, *task);
        draws.set_word_pos(u128::from(first * PAIR_BYTES / 4));
        let mut room = [0; PAIR_BYTES as usize];
        for pair in first..end {
            if out.is_cancelled() {
                break;
            }
            let emitted = &mut room[..(bytes - pair * PAIR_BYTES).min(PAIR_BYTES) as usize];
            draws.fill_bytes(emitted);
            let (key, value) = emitted.split_at(emitted.len().min(KEY_BYTES));
            out.emit(key, value);
        }
        // The maps take turns, so that no map emits the borders of all reduces.
        let bordered = if steps.start == 0 { self.partitions } else { 0 };
        for partition in (*task..bordered).step_by(job.map_tasks().max(1) as usize) {
            let count = borders(job.reduce_work(partition));
            for index in 0..count {
                out.emit(&Border { partition, index }.key(count), &[]);
            }
        }
    }
}

impl Mapper for SyntheticMapper {
    type Key = ByteString;
    type Value = ByteString;

    fn setup(&mut self, task: &TaskContext) -> TaskResult {
        (self.task, self.partitions) = (task.task().index, task.partitions());
        Ok(())
    }

    /// Spends the time of a step and emits its pairs.
    fn map(&mut self, record: Record<'_>, out: &mut Emitter<ByteString, ByteString>) -> TaskResult {
        let passed = self.stepping.step(record, || out.is_cancelled());
        self.emit(&passed, out);
        Ok(())
    }

    fn finish(&mut self, out: &mut Emitter<ByteString, ByteString>) -> TaskResult {
        if self.stepping.task.is_none() {
            let bytes = self.stepping.job.pass_map(self.task, || out.is_cancelled());
            self.emit(&Passed { task: self.task, bytes, steps: 0..u64::from(STEPS) }, out);
        }
        Ok(())
    }
}

struct SyntheticReducer {
    job: Synthetic,
    time: Duration,
    borders: u32,
    /// Spent part of `time`.
    passed: Duration,
    pairs: u64,
    bytes: u64,
}

impl SyntheticReducer {
    fn new(job: Synthetic) -> Self {
        Self { job, time: Duration::ZERO, borders: 0, passed: Duration::ZERO, pairs: 0, bytes: 0 }
    }

    fn pass_until(&mut self, due: Duration, out: &Output) {
        self.job.pass(due.saturating_sub(self.passed), || out.is_cancelled());
        self.passed = self.passed.max(due);
    }
}

impl Reducer for SyntheticReducer {
    type Key = ByteString;
    type Value = ByteString;

    fn setup(&mut self, task: &TaskContext, _out: &mut Output) -> TaskResult {
        self.time = self.job.reduce_work(task.task().index);
        self.borders = borders(self.time);
        Ok(())
    }

    fn reduce(
        &mut self,
        key: &[u8],
        values: &mut Values<'_, ByteString, ByteString>,
        out: &mut Output,
    ) -> TaskResult {
        if let Some(border) = Border::from_key(key) {
            let share = f64::from(border.index + 1) / f64::from(self.borders.max(1));
            self.pass_until(self.time.mul_f64(share.min(1.0)), out);
            return Ok(());
        }
        while let Some(value) = values.next()? {
            self.pairs += 1;
            self.bytes += (key.len() + value.len()) as u64;
        }
        Ok(())
    }

    fn finish(&mut self, out: &mut Output) -> TaskResult {
        self.pass_until(self.time, out);
        out.pair(self.pairs, self.bytes);
        Ok(())
    }
}

/// A map of a job without reduces, which is never divided.
struct SyntheticMapOnly {
    job: Synthetic,
    task: u32,
}

impl MapOnly for SyntheticMapOnly {
    fn setup(&mut self, task: &TaskContext) -> TaskResult {
        self.task = task.task().index;
        Ok(())
    }

    /// There are no records.
    fn map(&mut self, _: Record<'_>, _: &mut Output) -> TaskResult {
        Ok(())
    }

    fn finish(&mut self, out: &mut Output) -> TaskResult {
        self.job.pass_map(self.task, || out.is_cancelled());
        Ok(())
    }
}

#[cfg(test)]
mod tests;
