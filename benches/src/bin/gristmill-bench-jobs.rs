//! Job that is only for measuring: many small jobs on a warm cluster.
//!
//! This is a separate program, because the workers of a cluster run the submitting program.

use gristmill::jobs::Synthetic;
use gristmill::jobs::synthetic::TimeLaw;
use gristmill::prelude::*;
use serde_json::json;
use std::fs;
use std::sync::Barrier;
use std::time::Instant;

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
struct ClientMeasurements {
    seconds: Vec<f64>,
    tasks: u32,
}

impl WarmJobs {
    /// Runs one job after another; waits for `begin` before the counted ones.
    fn run_jobs(
        &self,
        client: &mut Client,
        name: &str,
        begin: &Barrier,
    ) -> anyhow::Result<ClientMeasurements> {
        let at_once: TimeLaw = "0ms".parse()?;
        let job = Synthetic {
            maps: self.maps,
            map_time: at_once.clone(),
            reduce_time: at_once,
            ..Synthetic::default()
        };
        let mut measured = ClientMeasurements { seconds: Vec::new(), tasks: 0 };
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
        let measured: Vec<ClientMeasurements> = measured
            .into_iter()
            .map(|joined| joined.unwrap_or_else(|_| Err(anyhow::anyhow!("a client has panicked"))))
            .collect::<anyhow::Result<_>>()?;
        let tasks = measured.first().map_or(0, |client| client.tasks);
        let seconds: Vec<f64> = measured.into_iter().flat_map(|client| client.seconds).collect();
        Ok(json!({"seconds": seconds, "tasks": tasks, "whole_seconds": whole.as_secs_f64()}).to_string())
    }
}

fn main() -> std::process::ExitCode {
    gristmill::cli::main(Registry::standard().rounds::<WarmJobs>())
}
