//! Table 3-1: delayed tailed distributions fitted to task times, generated and measured.
//!
//! `measured.txt` holds the times of 300 map tasks each of three jobs on this system, in microseconds. They are
//! archived so that the page comes out the same everywhere. Not here: the fit (`scheduler::estimate::dtd`).

use super::{lines, series};
use crate::paper::{Axis, Block, Cell, Claim, Column, Context, Section, Table};
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
/// The error that the thesis finds small enough.
const ERROR_MAX: f64 = 0.05;

/// Fits to times drawn with the printed exponents.
pub(super) fn generated(context: &Context<'_>) -> anyhow::Result<Section> {
    let draws = context.scaled(2_000, 20_000, 200_000);
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
    let table = Table::new(
        "table-3-1",
        format!("Fits to {draws} times drawn with the printed rate as the exponent b, a = 0, T = 1 s."),
        Column::list(&[
            ("Benchmark", ""),
            ("printed rate", ""),
            ("printed mean squared error", ""),
            ("fitted b", ""),
            ("fitted a", "1/s"),
            ("mean squared error", ""),
        ]),
        rows,
    );
    Ok(Section::new(
        "table-3-1",
        "Table 3-1: rates and errors of fitted distributions, on generated times",
        ["The thesis fits published task times of ten workloads, which are not available; it does not \
             define its rate, which is read as the exponent b of the logarithmic part. Stand-in: times \
             drawn from the distribution with the printed rates."],
        vec![Block::Table(table), Block::Claims(vec![rates_recovered(worst)])],
    ))
}

/// The worst error of an exponent, relative, and the largest mean squared error.
pub(super) fn rates_recovered(worst: (f64, f64)) -> Claim {
    Claim::new(
        "section 3-2",
        "Maximum likelihood recovers the rate of a heavy tail, with an error of at most 5 %.",
        worst.0 <= ERROR_MAX && worst.1 <= ERROR_MAX,
        format!(
            "the exponents come back within {:.1} %, the mean squared error is at most {:.1e}: printed \
             errors of 0.03 to 0.05 measure how far the published times are from this family, not how well \
             it can be fitted",
            100.0 * worst.0,
            worst.1
        ),
    )
}

/// The times of one job and what was fitted to them.
struct Measured {
    name: &'static str,
    /// In milliseconds.
    times: Vec<f64>,
    fit: Fit,
}

impl Measured {
    /// From a line of the archive: a name, then microseconds.
    fn read(line: &'static str) -> anyhow::Result<Self> {
        let mut words = line.split(' ');
        let name = words.next().unwrap_or_default();
        // The distribution has a unit in its `1 + x`: milliseconds, the size of these times.
        let times =
            words.map(|word| Ok(word.parse::<f64>()? / 1000.0)).collect::<anyhow::Result<Vec<f64>>>()?;
        Ok(Self { name, fit: fit(&times)?, times })
    }

    fn row(&self) -> Vec<Cell> {
        let Fit { dtd, mean_squared_error, .. } = &self.fit;
        let numbers = [self.times.len() as f64, dtd.offset, dtd.a, dtd.b, *mean_squared_error];
        [Cell::text(self.name)].into_iter().chain(numbers.map(Cell::number)).collect()
    }
}

/// Fits to measured times.
pub(super) fn measured() -> anyhow::Result<Section> {
    let all = MEASURED.lines().map(Measured::read).collect::<anyhow::Result<Vec<_>>>()?;
    let table = Table::new(
        "measured",
        "Fits to measured times of map tasks, in milliseconds.",
        Column::list(&[
            ("job", ""),
            ("tasks", ""),
            ("T", "ms"),
            ("a", "1/ms"),
            ("b", ""),
            ("mean squared error", ""),
        ]),
        all.iter().map(Measured::row).collect(),
    );
    let worst = all.iter().map(|job| job.fit.mean_squared_error).fold(0.0, f64::max);
    let claim = small_errors(worst);
    let mut blocks = vec![Block::Table(table)];
    blocks.extend(all.into_iter().map(|job| chart(job.name, job.times, &job.fit)));
    blocks.push(Block::Claims(vec![claim]));
    Ok(Section::new(
        "table-3-1-measured",
        "Table 3-1 on measured times: map tasks of this system",
        ["300 map tasks of 1 MiB each of wordcount, grep and sort, run with 2 workers on 2 cores that \
             other programs used as well (`gristmill run --workers 2 --split-size 1MiB --trace FILE JOB`); \
             the times are archived with the program. Since x stands in ln(1 + x), the fit depends on the \
             unit of time: milliseconds here."],
        blocks,
    ))
}

/// By the largest error of all jobs.
pub(super) fn small_errors(worst: f64) -> Claim {
    Claim::new(
        "section 3-2",
        "The mean squared error is not greater than 5 % for any workload.",
        worst <= ERROR_MAX,
        format!("the largest of three jobs is {:.2} %", 100.0 * worst),
    )
}

fn chart(name: &str, mut times: Vec<f64>, fit: &Fit) -> Block {
    times.sort_by(f64::total_cmp);
    let count = times.len() as f64;
    let empirical = times.iter().enumerate().map(|(i, time)| (*time, (i + 1) as f64 / count)).collect();
    let end = times[times.len() - 1];
    let fitted = (0..=200).map(|i| end * f64::from(i) / 200.0).map(|t| (t, fit.dtd.cdf(t))).collect();
    lines(
        &format!("measured-{name}"),
        &format!("{name}: measured times and the fitted distribution."),
        Axis::linear("time of a map task, ms"),
        Axis::linear("part of tasks that took at most so long"),
        vec![series("measured", empirical), series("fitted", fitted)],
    )
}
