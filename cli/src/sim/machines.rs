//! Simulated system: machines, workers, slots, network.

use crate::flags::{DEFAULT_ESTIMATOR, above_zero};
use crate::number_table::NumberTable;
use crate::usage::usage;
use clap::{Args, value_parser};
use gristmill_runtime::rate::parse_rate;
use gristmill_scheduler::event::Slots;
use gristmill_scheduler::queueing::Dtd;
use gristmill_scheduler::sim::cluster::{Config, NetworkConfig, SimWorker};
use std::path::Path;

/// The simulated system.
#[derive(Args)]
#[command(next_help_heading = "Machines")]
pub struct MachineFlags {
    /// Machines of the slotted model
    #[arg(long, value_name = "N", default_value_t = 100, value_parser = value_parser!(u32).range(1..=10_000_000))]
    pub machines: u32,
    /// Allow interrupting reduces and spreading them over machines (slotted model)
    #[arg(long)]
    pub preemptive: bool,
    /// Seconds of a slot, to which work is rounded up (slotted model)
    #[arg(long, value_name = "S", default_value_t = 1.0, value_parser = above_zero, hide_short_help = true)]
    pub slot_length: f64,
    /// Number of workers, or a table with the columns count, slots, speed, a, b, t: the service time of a task of one
    /// second is DTD(a, b, t) [default: 10; fluid model: 1]
    #[arg(long, value_name = "N|FILE")]
    pub workers: Option<String>,
    /// Slots of each worker
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = value_parser!(u32).range(1..=i64::from(SLOTS_MAX)))]
    pub slots: u32,
    /// Slots of each worker for maps, and those for reduces
    #[arg(long, value_name = "M,R", conflicts_with = "slots", hide_short_help = true)]
    pub pools: Option<String>,
    /// Rate of the whole network, such as 500MB/s or 10Gbit/s, `none` for no limit (cluster model) [default: 1GB/s]
    #[arg(long, value_name = "RATE", hide_short_help = true)]
    pub network: Option<String>,
    /// Longest task, in seconds, when work of a job without tasks is cut (cluster model) [default: 1]
    #[arg(long, value_name = "S", value_parser = above_zero, hide_short_help = true)]
    pub task_length: Option<f64>,
    /// Placement of tasks (cluster model)
    #[arg(long, value_name = "PLACEMENT", default_value = "pull")]
    pub placement: String,
    /// Estimator of job sizes for policies (cluster model; the other models use exact sizes)
    #[arg(long, value_name = "ESTIMATOR", default_value = DEFAULT_ESTIMATOR)]
    pub estimator: String,
}

/// Maximum number of workers of a simulated cluster.
const WORKERS_MAX: u32 = 1_000_000;
/// Default number of workers.
const WORKERS: u32 = 10;
/// Default length of the longest task into which work is cut, in seconds: a slot of the slotted model.
const TASK_SECONDS: f64 = 1.0;
/// Maximum number of slots of one worker.
const SLOTS_MAX: u32 = 10_000;

impl MachineFlags {
    /// Bytes per second of the whole network on the command line; `None` for the default and for no limit.
    pub fn network(&self) -> anyhow::Result<Option<f64>> {
        match self.network.as_deref() {
            None | Some("none") => Ok(None),
            Some(text) => {
                let rate = parse_rate(text).map_err(|error| usage(format!("--network: {error}")))?;
                Ok(Some(rate.get() as f64))
            }
        }
    }

    /// Divisor that turns slot-seconds of map work into time of the whole map station of the fluid model.
    pub fn fluid_slots(&self) -> anyhow::Result<f64> {
        let workers = match &self.workers {
            None => 1,
            Some(text) => count("--workers", text, WORKERS_MAX)?,
        };
        let slots = match self.slots_of_worker()? {
            Slots::Unified(slots) => slots,
            Slots::Pools { map, .. } => map,
        };
        Ok(f64::from(workers) * f64::from(slots))
    }

    /// Returns the simulated cluster; the seed is set for each run.
    pub fn cluster(&self, whole_network: f64) -> anyhow::Result<Config> {
        let slots = self.slots_of_worker()?;
        let mut config = match &self.workers {
            None => Config::uniform(WORKERS, slots),
            Some(text) if text.parse::<u64>().is_ok() => {
                Config::uniform(count("--workers", text, WORKERS_MAX)?, slots)
            }
            Some(path) => {
                Config { workers: read_workers(Path::new(path), slots)?, ..Config::uniform(1, slots) }
            }
        };
        if self.network.as_deref() != Some("none") {
            // Each worker has an equal share, inbound and outbound.
            let rate = whole_network / config.workers.len() as f64;
            config.network = NetworkConfig { in_rate: rate, out_rate: rate, ..NetworkConfig::default() };
        }
        config.task_seconds = self.task_length.unwrap_or(TASK_SECONDS);
        Ok(config)
    }

    fn slots_of_worker(&self) -> anyhow::Result<Slots> {
        let Some(pools) = &self.pools else {
            return Ok(Slots::Unified(self.slots));
        };
        let Some((map, reduce)) = pools.split_once(',') else {
            return Err(usage(format!(
                "--pools {pools} must be two numbers with a comma between, such as 2,1"
            )));
        };
        Ok(Slots::Pools {
            map: count("--pools", map, SLOTS_MAX)?,
            reduce: count("--pools", reduce, SLOTS_MAX)?,
        })
    }
}

fn count(flag: &str, text: &str, most: u32) -> anyhow::Result<u32> {
    let count = text.trim().parse().ok().filter(|count| (1..=most).contains(count));
    count.ok_or_else(|| usage(format!("{flag} {text} must be a whole number from 1 to {most}")))
}

/// Reads workers from a table: `count` equal ones, with their `slots` (default: from the flags), `speed` (1),
/// and the distribution of their service times (exact).
fn read_workers(path: &Path, slots: Slots) -> anyhow::Result<Vec<SimWorker>> {
    let columns = ["count", "slots", "speed", "a", "b", "t"];
    let table = NumberTable::read(path, &columns)?;
    let mut workers: Vec<SimWorker> = Vec::new();
    for row in table.rows() {
        let count = row.count("count", 1, WORKERS_MAX)?;
        let slots = match row.get("slots") {
            None => slots,
            Some(_) => Slots::Unified(row.count("slots", 1, SLOTS_MAX)?),
        };
        let service = match (row.get("a"), row.get("b"), row.get("t")) {
            (None, None, None) => None,
            (a, b, t) => {
                let zero = |value: Option<f64>| value.unwrap_or(0.0);
                Some(Dtd::new(zero(a), zero(b), zero(t)).map_err(|error| row.refuse(&error))?)
            }
        };
        let speed = row.above_zero("speed", Some(1.0))?;
        if WORKERS_MAX as usize - workers.len() < count as usize {
            return Err(row.refuse(&format!("with it the table has more than {WORKERS_MAX} workers")).into());
        }
        for _ in 0..count {
            let host = workers.len() as u32;
            workers.push(SimWorker { speed, service, ..SimWorker::new(slots, host) });
        }
    }
    Ok(workers)
}
