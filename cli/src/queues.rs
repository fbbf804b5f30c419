//! `lab place` and `lab size`: workers as queues. They split arriving tasks over workers, and choose how many workers
//! to buy.

use crate::files::InputFileError;
use crate::flags::above_zero;
use crate::number_table::NumberTable;
use crate::terminal::stdout_result;
use crate::text_table::aligned;
use crate::usage::usage;
use clap::Args;
use gristmill_lab::report::number::number;
use gristmill_runtime::plural::counted;
use gristmill_scheduler::placement::{PlaceError, Placed, place};
use gristmill_scheduler::queueing::sizing::{Spend, WorkerMix, WorkerPrice, best_mix};
use gristmill_scheduler::queueing::{QueueError, Server, WORKERS_MAX};
use serde_json::{Value, json};
use std::path::{Path, PathBuf};

/// Split arriving tasks over workers
///
/// Prints the tasks per second of each worker, and the mean sojourn time (MST) of a job with one task on
/// each. This is the mean time of its slowest task, with a lower and an upper bound.
#[derive(Args)]
#[command(
    override_usage = "gristmill lab place --placement <NAME> --workers <FILE> --rate <R>",
    after_help = "\
Examples:
  printf 'count,mu\\n20,0.8\\n20,1.0\\n' > workers.csv
  gristmill lab place --placement m-ep --workers workers.csv --rate 10
  gristmill lab place --placement m-ep:d=100 --workers workers.csv --rate 10"
)]
pub struct PlaceCommand {
    /// NAME or NAME:PARAMETER=VALUE,...: fair-split, pure-deterministic, m-ep, ...
    #[arg(long, value_name = "NAME")]
    placement: String,
    /// Table of workers (.csv): mu (tasks per second), optional count, offset (seconds), variability (squared)
    #[arg(long, value_name = "FILE")]
    workers: PathBuf,
    /// Tasks that arrive per second
    #[arg(long, value_name = "R", value_parser = above_zero, allow_negative_numbers = true)]
    rate: f64,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// Choose how many workers of which kind to buy
///
/// Prints the mix with the smallest mean sojourn time within the budget.
#[derive(Args)]
#[command(after_help = "\
Example:
  printf 'mu,price\\n0.5,400\\n1.0,800\\n' > menu.csv
  gristmill lab size --menu menu.csv --budget 20000 --rate 5")]
pub struct SizeCommand {
    /// Kinds of workers (.csv): mu (tasks per second), price (in the unit of the budget)
    #[arg(long, value_name = "FILE")]
    menu: PathBuf,
    /// Budget, in the unit of the prices
    #[arg(long, value_name = "B", value_parser = above_zero, allow_negative_numbers = true)]
    budget: f64,
    /// Tasks that arrive per second
    #[arg(long, value_name = "R", value_parser = above_zero, allow_negative_numbers = true)]
    rate: f64,
    /// Spend exactly the budget
    #[arg(long)]
    exactly: bool,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// `gristmill lab place`.
pub fn run_place(flags: &PlaceCommand) -> anyhow::Result<u8> {
    let (servers, kinds) = read_workers(&flags.workers)?;
    let placed = place(&flags.placement, &servers, flags.rate).map_err(|error| match error {
        PlaceError::Name(error) => usage(error.to_string()),
        PlaceError::Queue(error @ QueueError::Setting { .. }) => usage(error.to_string()),
        other => InputFileError::new(&flags.workers, other).into(),
    })?;
    stdout_result(flags.json, || placed_json(&servers, &placed), || placed_text(&servers, &kinds, &placed))
}

/// Returns all workers, and for each row of the table their number.
fn read_workers(path: &Path) -> Result<(Vec<Server>, Vec<usize>), InputFileError> {
    let table = NumberTable::read(path, &["count", "mu", "offset", "variability"])?;
    let (mut servers, mut kinds) = (Vec::new(), Vec::new());
    for row in table.rows() {
        let count = row.count("count", 1, WORKERS_MAX as u32)? as usize;
        if WORKERS_MAX - servers.len() < count {
            return Err(row.refuse(&format!("with it the table has more than {WORKERS_MAX} workers")));
        }
        let not_below_zero = |column: &'static str, default: f64| match row.get(column).unwrap_or(default) {
            value if 0.0 <= value => Ok(value),
            value => Err(row.refuse(&format!("`{column}` is `{value}`, which is not a number at least 0"))),
        };
        let server = Server {
            offset: not_below_zero("offset", 0.0)?,
            variability: not_below_zero("variability", 1.0)?,
            ..Server::exponential(row.above_zero("mu", None)?)
        };
        servers.extend(std::iter::repeat_n(server, count));
        kinds.push(count);
    }
    Ok((servers, kinds))
}

fn placed_text(servers: &[Server], kinds: &[usize], placed: &Placed) -> String {
    let mut first = 0;
    let rows = kinds.iter().map(|&count| {
        // Workers of one row are equal, and get equal shares.
        let place = first;
        first += count;
        let workers = if count == 1 { format!("{first}") } else { format!("{}-{first}", place + 1) };
        vec![
            workers,
            number(servers[place].mu),
            number(placed.rates[place]),
            number(placed.rates[place] / servers[place].mu),
            number(placed.means[place]),
        ]
    });
    let mut text = aligned(&["WORKER", "MU, 1/s", "LAMBDA, 1/s", "LOAD", "MEAN TIME, s"], rows);
    text.push_str(&format!(
        "\nmean sojourn time {} s, from {} to {} s by its bounds\n",
        number(placed.mean),
        number(placed.bounds.lower),
        number(placed.bounds.upper)
    ));
    if placed.rates.iter().any(|&rate| rate < 0.0) {
        text.push_str("a negative rate means that this worker hands tasks on to others\n");
    }
    text
}

fn placed_json(servers: &[Server], placed: &Placed) -> Value {
    let workers: Vec<Value> = servers
        .iter()
        .zip(placed.rates.iter().zip(&placed.means))
        .map(|(server, (rate, mean))| json!({"mu": server.mu, "lambda": rate, "mean_time": finite(*mean)}))
        .collect();
    json!({
        "workers": workers,
        "level": placed.level,
        "mean_sojourn_time": finite(placed.mean),
        "bounds": {"lower": finite(placed.bounds.lower), "upper": finite(placed.bounds.upper)},
    })
}

/// A number as JSON; infinity is a string.
fn finite(value: f64) -> Value {
    if value.is_finite() { json!(value) } else { json!("inf") }
}

/// `gristmill lab size`.
pub fn run_size(flags: &SizeCommand) -> anyhow::Result<u8> {
    let table = NumberTable::read(&flags.menu, &["mu", "price"])?;
    let mut menu = Vec::new();
    for row in table.rows() {
        menu.push(WorkerPrice { mu: row.above_zero("mu", None)?, price: row.above_zero("price", None)? });
    }
    let refuse = |error: QueueError| InputFileError::new(&flags.menu, error);
    let spend = if flags.exactly { Spend::Exactly } else { Spend::AtMost };
    let mix = best_mix(&menu, flags.rate, flags.budget, spend).map_err(refuse)?;
    let Some(mix) = mix else {
        let words = format!("no mix that {} buys carries {} tasks per second", flags.budget, flags.rate);
        return Err(InputFileError::new(&flags.menu, words).into());
    };
    stdout_result(flags.json, || size_json(&menu, &mix), || size_text(&menu, &mix))
}

fn size_text(menu: &[WorkerPrice], mix: &WorkerMix) -> String {
    let row =
        |(offer, count): (&WorkerPrice, &u32)| vec![number(offer.mu), number(offer.price), count.to_string()];
    let rows = menu.iter().zip(&mix.counts).map(row);
    let mut text = aligned(&["MU, 1/s", "PRICE", "IN THE MIX"], rows);
    let count: u32 = mix.counts.iter().sum();
    text.push_str(&format!(
        "\nbest mix: {} for {}, mean sojourn time {} s\n",
        counted(u64::from(count), "worker", "workers"),
        number(mix.cost),
        number(mix.mean)
    ));
    text
}

fn size_json(menu: &[WorkerPrice], mix: &WorkerMix) -> Value {
    let kind =
        |(offer, count): (&WorkerPrice, &u32)| json!({"mu": offer.mu, "price": offer.price, "count": count});
    let kinds: Vec<Value> = menu.iter().zip(&mix.counts).map(kind).collect();
    json!({"kinds": kinds, "cost": mix.cost, "mean_sojourn_time": mix.mean})
}
