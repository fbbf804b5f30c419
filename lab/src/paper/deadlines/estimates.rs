//! Experiment one, figures 1 to 3: each application by itself, the lengths of its tasks, and how far the estimate of its
//! completion time is off while it runs.
//!
//! Not here: several jobs at once (`goals`).

use super::super::{Axis, Block, Chart, ChartKind, Claim, Compared, Context, Section, Series, Verdict, each};
use super::isolated::{Isolated, isolated};
use super::section;
use crate::paper::judge::in_runs;
use gristmill_scheduler::metrics::Interval;
use gristmill_scheduler::workload::deadlines::Joins;

struct Application {
    job: usize,
    figure: u32,
    name: &'static str,
    printed: f64,
    lengths: &'static str,
}

const APPLICATIONS: [Application; 3] = [
    Application {
        job: 1,
        figure: 1,
        name: "WordCount",
        printed: 1264.0,
        lengths: "738 maps of 76 to 106 s; the first 60 take 105 to 125 s, of the others one in fifty 106 \
                  to 170 s; one reduce",
    },
    Application {
        job: 2,
        figure: 2,
        name: "Join",
        printed: 101.0,
        lengths: "1000 maps; with slow-first-half, as in the paper's figure, the first 500 take 5 to 15 s \
                  (short ones likelier), the others 1 to 4 s; stationary is the same lengths shuffled; \
                  slow-first-120 is 120 maps of 5 to 15 s, then 1 to 8.6 s; four reduces",
    },
    Application {
        job: 0,
        figure: 3,
        name: "Simulator",
        printed: 3549.0,
        lengths: "6400 maps in four phases with means 18, 22, 32 and 58 s, each map half to one and a half \
                  of its mean; one reduce",
    },
];

pub(super) fn sections(context: &Context<'_>, seeds: &[u64]) -> anyhow::Result<Vec<Section>> {
    APPLICATIONS.iter().map(|application| figure(context, application, seeds)).collect()
}

/// The runs of an application alone, of each kind of lengths with each seed.
struct Runs<'a> {
    application: &'a Application,
    kinds: &'a [Joins],
    seeds: &'a [u64],
    all: Vec<Isolated>,
}

impl<'a> Runs<'a> {
    fn new(application: &'a Application, seeds: &'a [u64]) -> anyhow::Result<Self> {
        let kinds: &[Joins] = if application.name == "Join" { &Joins::ALL } else { &[Joins::SlowFirstHalf] };
        let items: Vec<(Joins, u64)> =
            kinds.iter().flat_map(|&joins| seeds.iter().map(move |&seed| (joins, seed))).collect();
        let all = each(&items, |&(joins, seed)| isolated(application.job, joins, seed));
        Ok(Self { application, kinds, seeds, all: all.into_iter().collect::<anyhow::Result<_>>()? })
    }

    fn of_kind(&self, kind: usize) -> &[Isolated] {
        &self.all[kind * self.seeds.len()..(kind + 1) * self.seeds.len()]
    }

    /// The name of a kind in legends: the application's if there is only one.
    fn legend(&self, kind: usize) -> &str {
        if self.kinds.len() == 1 { self.application.name } else { self.kinds[kind].name() }
    }

    fn lengths(&self) -> Chart {
        let points = self.all[0].maps.iter().map(|map| (map.end, map.end - map.start)).collect();
        Chart {
            id: format!("figure-{}a", self.application.figure),
            caption: format!("{}: length of each map, at the time when it ended", self.application.name),
            x: Axis::linear("time, s"),
            y: Axis::linear("length of the map, s"),
            kind: ChartKind::Points,
            series: vec![Series::new(self.legend(0), points)],
        }
    }

    fn errors(&self) -> Chart {
        let series = (0..self.kinds.len()).map(|kind| {
            let errors = &self.of_kind(kind)[0].errors;
            Series::new(self.legend(kind), errors.iter().map(|&(at, error)| (at, 100.0 * error)).collect())
        });
        Chart::lines(
            format!("figure-{}b", self.application.figure),
            format!(
                "{}: relative error of the estimated completion time; above 0 it is pessimistic",
                self.application.name
            ),
            [Axis::linear("time, s"), Axis::linear("error of the estimate, %")],
            series.collect(),
        )
    }

    /// How long the application takes, beside the printed time.
    fn times(&self) -> Vec<Compared> {
        let Application { name, printed, .. } = *self.application;
        let one = |kind: usize| {
            let ends: Vec<f64> = self.of_kind(kind).iter().map(|run| run.end).collect();
            let Interval { mean, half_width, .. } = Interval::of(&ends)?;
            let which =
                if self.kinds.len() == 1 { String::new() } else { format!(" ({})", self.kinds[kind].name()) };
            Some(Compared {
                printed: Some(printed),
                half_width,
                note: "put in: the lengths of tasks were chosen so".to_owned(),
                ..Compared::new(format!("{name}{which} by itself, s"), mean, Verdict::Input)
            })
        };
        (0..self.kinds.len()).filter_map(one).collect()
    }
}

fn figure(context: &Context<'_>, application: &Application, seeds: &[u64]) -> anyhow::Result<Section> {
    let Application { figure, name, lengths, .. } = *application;
    (context.progress)(&format!("deadlines: {name} by itself"));
    let runs = Runs::new(application, seeds)?;
    let blocks = vec![
        Block::Chart(runs.lengths()),
        Block::Chart(runs.errors()),
        Block::Comparison(runs.times()),
        Block::Claims(claims(name, runs.of_kind(0))),
    ];
    let text = [
        format!(
            "{name} alone on 60 map slots, seeds {} to {}; the panels show the first. {lengths}.",
            seeds[0],
            seeds[seeds.len() - 1]
        ),
        "The estimate at the end of each map is the time plus the work left, with every task as long as the mean of \
         those finished, on all 60 slots; a pending reduce counts as a map."
            .to_owned(),
    ];
    let title = format!("Figure {figure}: completion time estimation, {name}");
    Ok(section(&format!("figure-{figure}"), &title, &text, blocks))
}

pub(super) fn claims(name: &str, runs: &[Isolated]) -> Vec<Claim> {
    match name {
        "WordCount" => word_count_claims(runs),
        "Join" => vec![join_claim(runs)],
        _ => simulator_claims(runs),
    }
}

/// A claim that is judged in every run.
fn claim(runs: &[Isolated], statement: &str, holds: impl Fn(&Isolated) -> bool, evidence: &str) -> Claim {
    let evidence = format!("{evidence} (mean over {} seeds)", runs.len());
    let holds: Vec<bool> = runs.iter().map(holds).collect();
    let of = holds.iter().filter(|&&one| one).count();
    let evidence = format!("{evidence}; so in {of} of {}", holds.len());
    Claim::new("Section V-B", statement, in_runs(&holds), evidence)
}

/// The mean of a part, in percent.
fn percent(runs: &[Isolated], part: impl Fn(&Isolated) -> f64) -> String {
    let values: Vec<f64> = runs.iter().map(|run| 100.0 * part(run)).collect();
    let mean = values.iter().sum::<f64>() / values.len().max(1) as f64;
    format!("{mean:.0} %")
}

fn early(runs: &[Isolated]) -> String {
    format!("off by {} in the first tenth of the time", percent(runs, Isolated::early))
}

fn word_count_claims(runs: &[Isolated]) -> Vec<Claim> {
    vec![
        claim(
            runs,
            "The relative error is below 5 % for most of the execution.",
            |run| 0.5 < run.part_within(0.05),
            &format!("below 5 % in {} of the time", percent(runs, |run| run.part_within(0.05))),
        ),
        claim(
            runs,
            "The first estimates are pessimistic, since the first tasks take longer.",
            |run| 0.0 < run.early(),
            &early(runs),
        ),
    ]
}

fn join_claim(runs: &[Isolated]) -> Claim {
    claim(
        runs,
        "The estimate is extremely inaccurate at first and becomes more accurate, particularly in the second half.",
        |run| {
            let (first, second) = (run.mean_error(0.0, 0.5), run.mean_error(0.5, 1.0));
            0.25 < first && second < first
        },
        &format!(
            "mean error {} in the first half of the time, {} in the second",
            percent(runs, |run| run.mean_error(0.0, 0.5)),
            percent(runs, |run| run.mean_error(0.5, 1.0)),
        ),
    )
}

fn simulator_claims(runs: &[Isolated]) -> Vec<Claim> {
    vec![
        claim(
            runs,
            "The error drops below 10 % only at the end of the execution.",
            |run| 0.75 < run.settled(0.1),
            &format!("it stays below 10 % after {} of the time", percent(runs, |run| run.settled(0.1))),
        ),
        claim(runs, "The first estimates are optimistic (V-C).", |run| run.early() < 0.0, &early(runs)),
    ]
}
