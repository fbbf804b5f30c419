//! `synthetic`: a job that only takes time, so that a laptop can play a large cluster.
//!
//! Not here: the laws of its times (`times`).

mod times;

use crate::prelude::*;
use crate::size::parse_bytes;
use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::{Rng, SeedableRng};
use std::time::{Duration, Instant};
pub use times::{TimeLaw, TimeLawError};

/// After this time at the latest a task looks whether it has been cancelled.
const SLICE: Duration = Duration::from_millis(20);
/// Bytes of an emitted pair: a random key and a value of zeros.
const PAIR_BYTES: u64 = 100;
const KEY_BYTES: usize = 8;

/// Takes time like a job would
///
/// Its maps and reduces sleep or spin for times drawn from a law, and maps emit
/// bytes with random keys. A law is one time for all (50ms), exp:MEAN,
/// uniform:LEAST..MOST or lognormal:MEDIAN,SIGMA. Each part says how many pairs
/// and bytes reached it.
#[derive(clap::Args, Serialize, Deserialize, Clone, Debug)]
pub struct Synthetic {
    /// Map tasks
    #[arg(long, value_name = "N", default_value_t = 32, value_parser = clap::value_parser!(u32).range(1..))]
    pub maps: u32,
    /// How long each map task takes
    #[arg(long, value_name = "LAW", default_value = "50ms")]
    pub map_time: TimeLaw,
    /// How long each reduce task takes
    #[arg(long, value_name = "LAW", default_value = "50ms")]
    pub reduce_time: TimeLaw,
    /// Keep a processor busy instead of sleeping
    #[arg(long)]
    pub spin: bool,
    /// Bytes that each map task emits, after its time
    #[arg(long, value_name = "BYTES", default_value = "0", value_parser = parse_bytes)]
    pub map_bytes: u64,
    /// The same seed gives the same times and keys
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub seed: u64,
}

impl Job for Synthetic {
    const NAME: &'static str = "synthetic";

    fn plan(&self) -> Result<JobPlan, PlanError> {
        let (job, same) = (self.clone(), self.clone());
        Ok(JobPlan::map(Input::bare_tasks(self.maps), move || SyntheticMapper { job: job.clone(), task: 0 })
            .reduce(move || SyntheticReducer { job: same.clone(), pairs: 0, bytes: 0 }))
    }
}

/// Which random numbers a task draws.
#[derive(Clone, Copy)]
enum Stream {
    Map = 0,
    Reduce = 1,
}

impl Synthetic {
    /// The random numbers of one task: first its time, then its keys.
    fn draws(&self, stream: Stream, task: u32) -> ChaCha8Rng {
        let mut draws = ChaCha8Rng::seed_from_u64(self.seed);
        draws.set_stream(((stream as u64) << 32) + u64::from(task));
        draws
    }

    /// Passes `time` in slices, or less of it if the task is cancelled.
    fn pass(&self, time: Duration, mut is_cancelled: impl FnMut() -> bool) {
        let start = Instant::now();
        while !is_cancelled() {
            let rest = time.saturating_sub(start.elapsed()).min(SLICE);
            if rest.is_zero() {
                return;
            }
            if self.spin {
                let slice = Instant::now();
                while slice.elapsed() < rest {
                    std::hint::spin_loop();
                }
            } else {
                std::thread::sleep(rest);
            }
        }
    }
}

struct SyntheticMapper {
    job: Synthetic,
    task: u32,
}

impl Mapper for SyntheticMapper {
    type Key = ByteString;
    type Value = ByteString;

    fn setup(&mut self, task: &TaskContext) -> TaskResult {
        self.task = task.task().index;
        Ok(())
    }

    /// There are no records.
    fn map(&mut self, _: Record<'_>, _: &mut Emitter<ByteString, ByteString>) -> TaskResult {
        Ok(())
    }

    fn finish(&mut self, out: &mut Emitter<ByteString, ByteString>) -> TaskResult {
        let mut draws = self.job.draws(Stream::Map, self.task);
        let time = self.job.map_time.draw(&mut draws);
        self.job.pass(time, || out.is_cancelled());
        let zeros = [0; PAIR_BYTES as usize];
        let mut rest = self.job.map_bytes;
        while rest > 0 && !out.is_cancelled() {
            let pair = rest.min(PAIR_BYTES) as usize;
            let key = draws.next_u64().to_be_bytes();
            let key = &key[..pair.min(KEY_BYTES)];
            out.emit(key, &zeros[..pair - key.len()]);
            rest -= pair as u64;
        }
        Ok(())
    }
}

struct SyntheticReducer {
    job: Synthetic,
    pairs: u64,
    bytes: u64,
}

impl Reducer for SyntheticReducer {
    type Key = ByteString;
    type Value = ByteString;

    fn setup(&mut self, task: &TaskContext, out: &mut Output) -> TaskResult {
        let time = self.job.reduce_time.draw(&mut self.job.draws(Stream::Reduce, task.task().index));
        self.job.pass(time, || out.is_cancelled());
        Ok(())
    }

    fn reduce(
        &mut self,
        key: &[u8],
        values: &mut Values<'_, ByteString, ByteString>,
        _out: &mut Output,
    ) -> TaskResult {
        while let Some(value) = values.next()? {
            self.pairs += 1;
            self.bytes += (key.len() + value.len()) as u64;
        }
        Ok(())
    }

    fn finish(&mut self, out: &mut Output) -> TaskResult {
        out.pair(self.pairs, self.bytes);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::{Args, FromArgMatches};

    fn job(flags: &[&str]) -> Synthetic {
        let command = Synthetic::augment_args(clap::Command::new("synthetic").no_binary_name(true));
        Synthetic::from_arg_matches(&command.try_get_matches_from(flags).unwrap()).unwrap()
    }

    #[test]
    fn tasks_draw_different_times_that_depend_only_on_seed_and_task() {
        let job = job(&["--map-time", "exp:50ms", "--seed", "7"]);
        let time = |stream, task| job.map_time.draw(&mut job.draws(stream, task));
        assert_eq!(time(Stream::Map, 3), time(Stream::Map, 3));
        assert_ne!(time(Stream::Map, 3), time(Stream::Map, 4));
        assert_ne!(time(Stream::Map, 3), time(Stream::Reduce, 3));
    }

    #[test]
    fn passing_time_ends_as_soon_as_the_task_is_cancelled() {
        for flags in [&["--spin"][..], &[]] {
            let mut looks = 0;
            job(flags).pass(Duration::from_secs(3600), || {
                looks += 1;
                looks == 3
            });
            assert_eq!(looks, 3);
        }
    }

    #[test]
    fn passing_time_takes_at_least_that_time() {
        let start = Instant::now();
        let time = Duration::from_millis(25);
        job(&[]).pass(time, || false);
        assert!(start.elapsed() >= time);
    }

    #[test]
    fn parameters_travel_as_text() {
        let job = job(&["--map-time", "uniform:10ms..90ms", "--map-bytes", "1MiB"]);
        let text = serde_json::to_string(&job).unwrap();
        let back: Synthetic = serde_json::from_str(&text).unwrap();
        assert_eq!(back.map_time, job.map_time);
        assert_eq!(back.map_bytes, 1 << 20);
    }
}
