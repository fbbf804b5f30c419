//! What the literal readings of MaxSRPT and SplitSRPT give: queues that grow without end.
//!
//! Not here: the readings that give the printed numbers (`table`).

use super::super::{
    Axis, Block, Cell, Chart, ChartKind, Claim, Column, Context, Section, Series, Table, each,
};
use super::{judged, simulate};
use gristmill_scheduler::workload::overlap::Poisson;

const LOAD: f64 = 0.75;

/// Lengths of the runs, as parts of the longest: a queue without a steady state keeps its largest jobs for as long as the
/// run lasts, so that the mean grows with the length.
const LENGTHS: [f64; 5] = [1.0 / 16.0, 1.0 / 8.0, 1.0 / 4.0, 1.0 / 2.0, 1.0];

/// Name, call, whether it should be stable.
const READINGS: [(&str, &str, bool); 5] = [
    ("MaxSRPT", "max-srpt", true),
    ("SplitSRPT", "split-srpt", true),
    ("MaxSRPT, shuffle serves the head only", "max-srpt:shuffle=head", false),
    ("SplitSRPT, unused shares lost (as printed)", "split-srpt:idle=lost", false),
    ("SplitSRPT, shares handed over only by an empty class", "split-srpt:idle=empty", false),
];

/// A reading counts as unstable if the longest run's mean is this many times that of the one of an eighth of it.
const GROWTH: f64 = 2.0;

pub(super) fn section(context: &Context<'_>) -> anyhow::Result<Section> {
    let jobs = context.scaled(100_000, 400_000, 1_000_000);
    let items: Vec<(&str, usize)> = LENGTHS
        .iter()
        .rev()
        .flat_map(|part| READINGS.map(|(_, call, _)| (call, (jobs as f64 * part) as usize)))
        .collect();
    let results = each(&items, |&(call, jobs)| {
        (context.progress)(&format!("overlap: {call}, {jobs} jobs"));
        mean_and_most(call, jobs, context.seed)
    });
    let results = results.into_iter().collect::<anyhow::Result<Vec<[f64; 2]>>>()?;
    let (mut series, mut rows, mut claims) = (Vec::new(), Vec::new(), Vec::new());
    for (name, call, stable) in READINGS {
        let runs = items.iter().zip(&results).rev().filter(|((other, _), _)| *other == call);
        let runs: Vec<(f64, [f64; 2])> = runs.map(|(&(_, jobs), &result)| (jobs as f64, result)).collect();
        let [_, (short, [early, _]), .., (long, [late, most])] = runs[..] else {
            anyhow::bail!("`{call}` has {} runs", runs.len());
        };
        let grows = GROWTH < late / early;
        let points = runs.iter().map(|&(jobs, [mean, _])| (jobs, mean)).collect();
        series.push(Series { name: name.to_owned(), points, ..Series::default() });
        rows.push(
            [Cell::text(name)]
                .into_iter()
                .chain(runs.iter().map(|&(_, [mean, _])| Cell::number(mean)))
                .collect(),
        );
        claims.push(Claim {
            place: "sections 4 and 5".to_owned(),
            statement: format!("{name}: {} at load {LOAD}.", if stable { "stable" } else { "unstable" }),
            verdict: judged(context, grows != stable),
            evidence: format!(
                "mean response {early:.1} after {short} jobs, {late:.1} after {long}; at most {most} jobs at once"
            ),
        });
    }
    let chart = Chart {
        id: "literal-readings".to_owned(),
        caption: format!("mean response against the length of the run, load {LOAD}"),
        x: Axis::logarithmic("jobs"),
        y: Axis::logarithmic("mean response"),
        kind: ChartKind::Lines,
        series,
    };
    let lengths = LENGTHS.map(|part| Column::new(&format!("{} jobs", (jobs as f64 * part) as usize), ""));
    let table = Table {
        id: "literal-readings-table".to_owned(),
        caption: "mean response by length of the run".to_owned(),
        columns: [Column::new("reading", "")].into_iter().chain(lengths).collect(),
        rows,
    };
    let seed = format!(
        "Runs of up to {jobs} jobs for each reading, the first jobs of seed {}; all jobs are waited for.",
        context.seed
    );
    Ok(super::section(
        "literal-readings",
        "The literal readings of Algorithms 1 and 2 do not carry the paper's loads",
        &[
            "Section 4.1 asks of MaxSRPT's shuffle only that it serves the head of the order; while the head is map-heavy \
             the rest of the network idles. Algorithm 2 gives SplitSRPT's classes fixed shares; each class brings 0.784 of \
             the load to its heavy station, but gets b/(1+b) of it, and b, the least imbalance of any job present, tends to \
             1 as the system fills. Neither can be what section 5 ran: these queues grow without end; the mean response then depends on how long one looks.",
            &seed,
        ],
        vec![Block::Chart(chart), Block::Table(table), Block::Claims(claims)],
    ))
}

/// Mean response, and most jobs present.
fn mean_and_most(call: &str, jobs: usize, seed: u64) -> anyhow::Result<[f64; 2]> {
    let mut flow = 0.0;
    let summary = simulate(call, Poisson::new(LOAD, seed)?.take(jobs), |record| flow += record.flow())?;
    Ok([flow / jobs as f64, summary.jobs_max as f64])
}
