//! Table 3-1: delayed tailed distributions fitted to task times, generated and measured.
//!
//! `measured.txt` holds the times of 300 map tasks each of three jobs on this system, in microseconds.
//! They are archived so that the page is the same on every machine. Not here: the fit
//! (`gristmill_scheduler::estimate::dtd`).

use super::WORDS;
use crate::prelude::*;
use gristmill_scheduler::estimate::dtd::{Fit, fit};
use gristmill_scheduler::queueing::Dtd;
use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::SeedableRng;

/// Benchmark, printed rate, printed mean squared error.
const PRINTED: [(&str, f64, f64); 10] = [
    ("Bing Search Engine", 1.5196, 0.0465),
    ("Facebook", 1.6715, 0.0345),
    ("Cloudera Customer (a)", 1.7122, 0.0328),
    ("Cloudera Customer (b)", 1.7868, 0.0273),
    ("Cloudera Customer (c)", 1.6491, 0.0334),
    ("Cloudera Customer (d)", 1.7123, 0.0345),
    ("Cloudera Customer (e)", 1.7671, 0.0266),
    ("OpenCloud", 1.6862, 0.0352),
    ("M45", 1.7162, 0.0361),
    ("WebMining", 1.7805, 0.0360),
];
const MEASURED: &str = include_str!("measured.txt");
/// Largest error that the thesis considers small.
const ERROR_MAX: f64 = 0.05;

/// Section on fits to times drawn with the printed exponents.
pub(super) fn generated(context: &Context<'_>) -> anyhow::Result<Section> {
    let draws: u32 = context.scaled(2_000, 20_000, 200_000);
    let mut random = ChaCha8Rng::seed_from_u64(context.first_seed);
    let mut rows = Vec::new();
    let mut worst = (0.0_f64, 0.0_f64);
    for (name, rate, error) in PRINTED {
        let dtd = Dtd::new(0.0, rate, 1.0)?;
        let times: Vec<f64> = (0..draws).map(|_| dtd.sample(&mut random)).collect();
        let fit = fit(&times)?;
        worst = (worst.0.max((fit.dtd.b / rate - 1.0).abs()), worst.1.max(fit.mean_squared_error));
        let numbers = [rate, error, fit.dtd.b, fit.dtd.a, fit.mean_squared_error];
        rows.push([Cell::text(name)].into_iter().chain(numbers.map(Cell::number)).collect());
    }
    let table = WORDS.table("table-3-1", holes![draws], rows);
    Ok(WORDS.section("table-3-1", holes![], vec![table, Block::Claims(vec![rates_recovered(worst)])]))
}

/// Judges the largest relative error of an exponent, and the largest mean squared error.
pub(super) fn rates_recovered((rate, error): (f64, f64)) -> Claim {
    let recovered = rate <= ERROR_MAX && error <= ERROR_MAX;
    WORDS.claim("rates-recovered", recovered, holes![rate = 100.0 * rate, error])
}

/// Number of times of one job, and the fit to them.
struct FittedTimes {
    name: &'static str,
    count: usize,
    fit: Fit,
}

impl FittedTimes {
    /// Parses a line of the archive: a name, then microseconds.
    fn read(line: &'static str) -> anyhow::Result<Self> {
        let mut words = line.split(' ');
        let name = words.next().unwrap_or_default();
        // The `1 + x` of the distribution has a unit: milliseconds, the scale of these times.
        let times =
            words.map(|word| Ok(word.parse::<f64>()? / 1000.0)).collect::<anyhow::Result<Vec<f64>>>()?;
        Ok(Self { name, count: times.len(), fit: fit(&times)? })
    }

    fn row(&self) -> Vec<Cell> {
        let Fit { dtd, mean_squared_error, .. } = &self.fit;
        let numbers = [self.count as f64, dtd.offset, dtd.a, dtd.b, *mean_squared_error];
        [Cell::text(self.name)].into_iter().chain(numbers.map(Cell::number)).collect()
    }
}

/// Section on fits to measured times.
pub(super) fn measured() -> anyhow::Result<Section> {
    let all = MEASURED.lines().map(FittedTimes::read).collect::<anyhow::Result<Vec<_>>>()?;
    let table = WORDS.table("measured", holes![], all.iter().map(FittedTimes::row).collect());
    let worst = all.iter().map(|job| job.fit.mean_squared_error).fold(0.0, f64::max);
    let blocks = vec![table, Block::Claims(vec![small_errors(worst)])];
    Ok(WORDS.section("table-3-1-measured", holes![], blocks))
}

/// Judges the largest error of all jobs.
pub(super) fn small_errors(worst: f64) -> Claim {
    WORDS.claim("small-errors", worst <= ERROR_MAX, holes![worst = 100.0 * worst])
}
