//! Jobs that are only for measuring: one group larger than memory, and many small jobs on a warm cluster.
//!
//! This is a separate program, because the workers of a cluster run the submitting program.

use gristmill::jobs::Synthetic;
use gristmill::jobs::synthetic::TimeLaw;
use gristmill::prelude::*;
use gristmill::size::parse_bytes;
use serde_json::json;
use std::fs;
use std::sync::Barrier;
use std::time::Instant;
use xxhash_rust::xxh3::xxh3_64;

/// Bytes of a value of the one group.
const VALUE_BYTES: u64 = 1024;

/// Put all bytes into a single group
///
/// Each map task emits values of 1 KiB that do not compress, all with one key;
/// the only reduce task reads them one after another. Fails if it does not see
/// every value once.
#[derive(clap::Args, Serialize, Deserialize, Clone)]
struct OneGroup {
    /// Bytes of all values
    #[arg(long, value_name = "BYTES", default_value = "4GiB", value_parser = parse_bytes)]
    group_bytes: u64,
    /// Bytes of values of one map task
    #[arg(long, value_name = "BYTES", default_value = "64MiB", value_parser = parse_bytes)]
    map_bytes: u64,
}

impl OneGroup {
    fn values_of_a_map(&self) -> u64 {
        self.map_bytes / VALUE_BYTES
    }

    fn maps(&self) -> u32 {
        u32::try_from(self.group_bytes / self.map_bytes.max(1)).unwrap_or(u32::MAX).max(1)
    }
}

impl Job for OneGroup {
    const NAME: &'static str = "one-group";

    fn plan(&self) -> Result<JobPlan, PlanError> {
        let values = self.values_of_a_map();
        let expected = values * u64::from(self.maps());
        Ok(JobPlan::map(Input::bare_tasks(self.maps()), move || EmitValues { values, map: 0 })
            .reduces(1)
            .reduce(move || CheckGroup { expected }))
    }
}

struct EmitValues {
    values: u64,
    map: u64,
}

/// Fills the values of a map in turn: a multiplicative generator fills eight bytes at a time.
fn fill(value: &mut [u8; VALUE_BYTES as usize], number: u64) {
    let mut state = xxh3_64(&number.to_le_bytes()) | 1;
    for word in value.chunks_exact_mut(8) {
        state = state.wrapping_mul(0x2545_f491_4f6c_dd1d).rotate_left(29) | 1;
        word.copy_from_slice(&state.to_le_bytes());
    }
    value[..8].copy_from_slice(&number.to_le_bytes());
}

impl Mapper for EmitValues {
    type Key = ();
    type Value = ByteString;

    fn setup(&mut self, task: &TaskContext) -> TaskResult {
        self.map = u64::from(task.task().index);
        Ok(())
    }

    /// The input has no records.
    fn map(&mut self, _: Record<'_>, _: &mut Emitter<(), ByteString>) -> TaskResult {
        Ok(())
    }

    fn finish(&mut self, out: &mut Emitter<(), ByteString>) -> TaskResult {
        let mut value = [0; VALUE_BYTES as usize];
        for number in self.map * self.values..(self.map + 1) * self.values {
            fill(&mut value, number);
            out.emit((), &value[..]);
            if out.is_cancelled() {
                break;
            }
        }
        Ok(())
    }
}

struct CheckGroup {
    expected: u64,
}

impl Reducer for CheckGroup {
    type Key = ();
    type Value = ByteString;

    /// Values are in the order of maps and positions, which is that of their numbers.
    fn reduce(&mut self, (): (), values: &mut Values<'_, (), ByteString>, out: &mut Output) -> TaskResult {
        let (mut count, mut expected) = (0_u64, [0; VALUE_BYTES as usize]);
        while let Some(value) = values.next()? {
            fill(&mut expected, count);
            if value[..] != expected[..] {
                return Err(TaskError::input(format!("value {count} is not what was emitted")));
            }
            count += 1;
        }
        if count != self.expected {
            return Err(TaskError::input(format!("{count} values came, {} were emitted", self.expected)));
        }
        out.pair(count, VALUE_BYTES);
        Ok(())
    }
}

/// Run the same small job many times on one cluster
///
/// Prints, as JSON, the seconds from submission to committed output of each
/// counted job, and the total time of all counted jobs.
#[derive(clap::Args)]
struct WarmJobs {
    /// Counted jobs of each client
    #[arg(long, value_name = "N", default_value_t = 200)]
    jobs: u32,
    /// Uncounted jobs of each client before them
    #[arg(long, value_name = "N", default_value_t = 10)]
    warm_up: u32,
    /// Empty map tasks of each job
    #[arg(long, value_name = "N", default_value_t = 1)]
    maps: u32,
    /// Concurrent clients, each with its own permanent connection, and one job after another
    #[arg(long, value_name = "N", default_value_t = 1)]
    clients: u32,
}

/// Measurements of one client.
struct Measured {
    seconds: Vec<f64>,
    tasks: u32,
}

impl WarmJobs {
    /// Runs one job after another; waits for `begin` before the counted ones.
    fn run_jobs(&self, client: &mut Client, name: &str, begin: &Barrier) -> anyhow::Result<Measured> {
        let at_once: TimeLaw = "0ms".parse()?;
        let job = Synthetic {
            maps: self.maps,
            map_time: at_once.clone(),
            reduce_time: at_once,
            ..Synthetic::default()
        };
        let mut measured = Measured { seconds: Vec::new(), tasks: 0 };
        let mut outputs = Vec::new();
        let mut run = |number: u32| -> anyhow::Result<f64> {
            let options = client.options(&format!("{name}-{number}"));
            let start = Instant::now();
            let report = client.run(job.clone(), &options)?;
            let seconds = start.elapsed().as_secs_f64();
            measured.tasks = report.status.maps.total + report.status.reduces.total;
            outputs.push(report.output);
            Ok(seconds)
        };
        let warmed: anyhow::Result<Vec<f64>> = (0..self.warm_up).map(&mut run).collect();
        // A failed client also waits here, so that no other waits for it.
        begin.wait();
        warmed?;
        let counted = self.warm_up..self.warm_up + self.jobs;
        measured.seconds = counted.map(run).collect::<anyhow::Result<_>>()?;
        // Not after each job: ext4 skips every recently deleted inode when it creates one, and users do not delete the
        // output of a job as soon as it exists.
        outputs.iter().try_for_each(fs::remove_dir_all)?;
        Ok(measured)
    }
}

impl Rounds for WarmJobs {
    const NAME: &'static str = "warm-jobs";

    fn drive(&self, client: &mut Client) -> anyhow::Result<String> {
        let begin = Barrier::new(self.clients as usize + 1);
        let mut clients: Vec<Client> =
            (0..self.clients).map(|_| client.another()).collect::<Result<_, _>>()?;
        let (measured, whole) = std::thread::scope(|scope| {
            let threads: Vec<_> = clients
                .iter_mut()
                .enumerate()
                .map(|(number, client)| {
                    let begin = &begin;
                    scope.spawn(move || self.run_jobs(client, &format!("job-{number}"), begin))
                })
                .collect();
            begin.wait();
            let start = Instant::now();
            let joined = threads.into_iter().map(|thread| thread.join());
            let measured: Vec<_> = joined.collect();
            (measured, start.elapsed())
        });
        let measured: Vec<Measured> = measured
            .into_iter()
            .map(|joined| joined.unwrap_or_else(|_| Err(anyhow::anyhow!("a client has panicked"))))
            .collect::<anyhow::Result<_>>()?;
        let tasks = measured.first().map_or(0, |client| client.tasks);
        let seconds: Vec<f64> = measured.into_iter().flat_map(|client| client.seconds).collect();
        Ok(json!({"seconds": seconds, "tasks": tasks, "whole_seconds": whole.as_secs_f64()}).to_string())
    }
}

fn main() -> std::process::ExitCode {
    gristmill::cli::main(Registry::standard().job::<OneGroup>().rounds::<WarmJobs>())
}
