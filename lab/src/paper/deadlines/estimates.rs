//! Experiment one, figures 1 to 3: each application by itself, the lengths of its tasks, and how far the estimate of its
//! completion time is off while it runs.
//!
//! Not here: several jobs at once (`goals`).

use super::super::{Axis, Block, Chart, ChartKind, Claim, Compared, Context, Section, Series, Verdict, each};
use super::{near, section, trial, verdict};
use gristmill_scheduler::estimate::completion::{Remaining, RunningLeft, mean_task_length};
use gristmill_scheduler::ids::TaskKind;
use gristmill_scheduler::metrics::{Interval, JobRecord};
use gristmill_scheduler::sim::cluster::{Observer, TaskRun};
use gristmill_scheduler::units::Time;
use gristmill_scheduler::workload::deadlines::{Joins, SLOTS, alone};

/// One application by itself.
struct Isolated {
    maps: Vec<TaskRun>,
    /// When the job ended, in seconds.
    end: f64,
    /// At the end of each map: the time, and by how much the estimate is off, relative to what came.
    errors: Vec<(f64, f64)>,
}

#[derive(Default)]
struct Tasks(Vec<TaskRun>);

impl Observer for Tasks {
    fn task(&mut self, run: &TaskRun) {
        if run.task.kind == TaskKind::Map {
            self.0.push(*run);
        }
    }
}

fn isolated(job: usize, joins: Joins, seed: u64) -> anyhow::Result<Isolated> {
    let mut tasks = Tasks::default();
    let mut end = 0.0;
    let job = alone(job, joins, seed);
    let reduces = job.reduces.len();
    trial::run("fifo", vec![job], &mut tasks, &mut |record: &JobRecord| end = record.completion)?;
    let errors = errors(&tasks.0, reduces, end);
    Ok(Isolated { maps: tasks.0, end, errors })
}

/// The estimate at the end of each map, on all slots of the cluster, relative to the end that came: equation 1 for the
/// mean, and the work left as in equation 3.
fn errors(maps: &[TaskRun], reduces: usize, end: f64) -> Vec<(f64, f64)> {
    let mut starts: Vec<TaskRun> = maps.to_vec();
    starts.sort_by(|a, b| a.start.total_cmp(&b.start));
    let mut begun = starts.into_iter().peekable();
    let mut running: Vec<TaskRun> = Vec::new();
    let mut started = 0;
    let mut seconds = 0.0;
    let mut errors = Vec::with_capacity(maps.len());
    for (done, map) in (1..).zip(maps) {
        seconds += map.end - map.start;
        let at = map.end;
        while let Some(next) = begun.next_if(|next| next.start <= at) {
            running.push(next);
            started += 1;
        }
        running.retain(|run| at < run.end);
        let Some(mean) = mean_task_length(done, seconds) else { continue };
        let began: Vec<Time> = running.iter().map(|run| Time((run.start * 1e9) as u64)).collect();
        let left = RunningLeft::count(mean, Time((at * 1e9) as u64), &began, 0);
        let remaining = Remaining {
            mean,
            running: running.len() as u32,
            running_left: left.at(at).unwrap_or(0.0),
            pending: (maps.len() - started + reduces) as f64,
        };
        errors.push((at, (at + remaining.seconds_on(f64::from(SLOTS))) / end - 1.0));
    }
    errors
}

impl Isolated {
    /// Part of the job's time in which the estimate is off by less than this.
    fn part_within(&self, limit: f64) -> f64 {
        let mut within = 0.0;
        for pair in self.errors.windows(2) {
            if pair[0].1.abs() < limit {
                within += pair[1].0 - pair[0].0;
            }
        }
        within / self.end
    }

    /// Mean absolute error between two parts of the job's time.
    fn mean_error(&self, from: f64, to: f64) -> f64 {
        let range = from * self.end..to * self.end;
        let within: Vec<f64> =
            self.errors.iter().filter(|(at, _)| range.contains(at)).map(|(_, e)| e.abs()).collect();
        within.iter().sum::<f64>() / within.len().max(1) as f64
    }

    /// Mean error, with its sign, of the first tenth of the job's time from the first estimate on.
    fn early(&self) -> f64 {
        let first = self.errors.first().map_or(0.0, |(at, _)| *at);
        let early: Vec<f64> =
            self.errors.iter().take_while(|(at, _)| *at <= first + 0.1 * self.end).map(|(_, e)| *e).collect();
        early.iter().sum::<f64>() / early.len().max(1) as f64
    }

    /// The part of the job's time after which the estimate stays within this.
    fn settled(&self, limit: f64) -> f64 {
        let last = self.errors.iter().rposition(|(_, error)| limit <= error.abs());
        last.map_or(0.0, |last| self.errors[last].0 / self.end)
    }
}

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
        lengths: "738 maps of 76 to 106 s; the first 60 take 105 to 125 s, of the others one in fifty 106 to 170 s; \
                  one reduce",
    },
    Application {
        job: 2,
        figure: 2,
        name: "Join",
        printed: 101.0,
        lengths: "1000 maps; with slow-first-half, as in the paper's figure, the first 500 take 5 to 15 s (short ones \
                  likelier), the others 1 to 4 s; stationary is the same lengths shuffled; slow-first-120 is 120 maps \
                  of 5 to 15 s, then 1 to 8.6 s; four reduces",
    },
    Application {
        job: 0,
        figure: 3,
        name: "Simulator",
        printed: 3549.0,
        lengths: "6400 maps in four phases with means 18, 22, 32 and 58 s, each map half to one and a half of its \
                  mean; one reduce",
    },
];

pub(super) fn sections(context: &Context<'_>, seeds: &[u64]) -> anyhow::Result<Vec<Section>> {
    APPLICATIONS.iter().map(|application| figure(context, application, seeds)).collect()
}

fn figure(context: &Context<'_>, application: &Application, seeds: &[u64]) -> anyhow::Result<Section> {
    let Application { job, figure, name, lengths, .. } = *application;
    (context.progress)(&format!("deadlines: {name} by itself"));
    let kinds: &[Joins] = if name == "Join" { &Joins::ALL } else { &[Joins::SlowFirstHalf] };
    let items: Vec<(Joins, u64)> =
        kinds.iter().flat_map(|&k| seeds.iter().map(move |&seed| (k, seed))).collect();
    let runs = each(&items, |&(joins, seed)| isolated(job, joins, seed));
    let runs: Vec<Isolated> = runs.into_iter().collect::<anyhow::Result<_>>()?;
    let of_kind = |kind: usize| &runs[kind * seeds.len()..(kind + 1) * seeds.len()];
    let series_of = |kind: usize, points: Vec<(f64, f64)>| Series {
        name: if kinds.len() == 1 { name.to_owned() } else { kinds[kind].name().to_owned() },
        points,
        ..Series::default()
    };
    let task_points = runs[0].maps.iter().map(|map| (map.end, map.end - map.start)).collect();
    let error_points = |run: &Isolated| run.errors.iter().map(|&(at, error)| (at, 100.0 * error)).collect();
    let chart = |panel: &str, caption: &str, y: &str, kind, series| {
        Block::Chart(Chart {
            id: format!("figure-{figure}{panel}"),
            caption: format!("{name}: {caption}"),
            x: Axis::linear("time, s"),
            y: Axis::linear(y),
            kind,
            series,
        })
    };
    let blocks = vec![
        chart(
            "a",
            "length of each map, at the time when it ended",
            "length of the map, s",
            ChartKind::Points,
            vec![series_of(0, task_points)],
        ),
        chart(
            "b",
            "relative error of the estimated completion time; above 0 it is pessimistic",
            "error of the estimate, %",
            ChartKind::Lines,
            (0..kinds.len()).map(|kind| series_of(kind, error_points(&of_kind(kind)[0]))).collect(),
        ),
        Block::Comparison(isolated_times(application, kinds, &of_kind)),
        Block::Claims(claims(name, of_kind(0))),
    ];
    let text = [
        format!("{name} alone on 60 map slots, seeds {} to {}; the panels show the first. {lengths}.", seeds[0], seeds[seeds.len() - 1]),
        "The estimate at the end of each map is the time plus the work left, with every task as long as the mean of \
         those finished, on all 60 slots; a pending reduce counts as a map."
            .to_owned(),
    ];
    let title = format!("Figure {figure}: completion time estimation, {name}");
    Ok(section(&format!("figure-{figure}"), &title, &text, blocks))
}

fn isolated_times<'a>(
    application: &Application,
    kinds: &[Joins],
    of_kind: &impl Fn(usize) -> &'a [Isolated],
) -> Vec<Compared> {
    let one = |(kind, joins): (usize, &Joins)| {
        let ends: Vec<f64> = of_kind(kind).iter().map(|run| run.end).collect();
        let Interval { mean, half_width, .. } = Interval::of(&ends)?;
        let which = if kinds.len() == 1 { String::new() } else { format!(" ({})", joins.name()) };
        Some(Compared {
            what: format!("{}{which} by itself, s", application.name),
            printed: Some(application.printed),
            reference: None,
            ours: mean,
            half_width,
            verdict: near(mean, application.printed),
            note: "the lengths of tasks were chosen so".to_owned(),
        })
    };
    kinds.iter().enumerate().filter_map(one).collect()
}

fn claims(name: &str, runs: &[Isolated]) -> Vec<Claim> {
    let percent = |value: &dyn Fn(&Isolated) -> f64| {
        let values: Vec<f64> = runs.iter().map(|run| 100.0 * value(run)).collect();
        let mean = values.iter().sum::<f64>() / values.len().max(1) as f64;
        format!("{mean:.0} %")
    };
    let claim = |statement: &str, verdict: Verdict, evidence: String| Claim {
        place: "Section V-B".to_owned(),
        statement: statement.to_owned(),
        verdict,
        evidence: format!("{evidence} (mean over {} seeds)", runs.len()),
    };
    match name {
        "WordCount" => vec![
            claim(
                "The relative error is below 5 % for most of the execution.",
                verdict(runs.iter().map(|run| 0.5 < run.part_within(0.05))),
                format!("below 5 % in {} of the time", percent(&|run| run.part_within(0.05))),
            ),
            claim(
                "The first estimates are pessimistic, since the first tasks take longer.",
                verdict(runs.iter().map(|run| 0.0 < run.early())),
                format!("off by {} in the first tenth of the time", percent(&Isolated::early)),
            ),
        ],
        "Join" => vec![claim(
            "The estimate is extremely inaccurate at first and becomes more accurate, particularly in the second half.",
            verdict(runs.iter().map(|run| {
                let (first, second) = (run.mean_error(0.0, 0.5), run.mean_error(0.5, 1.0));
                0.25 < first && second < first
            })),
            format!(
                "mean error {} in the first half of the time, {} in the second",
                percent(&|run| run.mean_error(0.0, 0.5)),
                percent(&|run| run.mean_error(0.5, 1.0)),
            ),
        )],
        _ => vec![
            claim(
                "The error drops below 10 % only at the end of the execution.",
                verdict(runs.iter().map(|run| 0.75 < run.settled(0.1))),
                format!("it stays below 10 % after {} of the time", percent(&|run| run.settled(0.1))),
            ),
            claim(
                "The first estimates are optimistic (V-C).",
                verdict(runs.iter().map(|run| run.early() < 0.0)),
                format!("off by {} in the first tenth of the time", percent(&Isolated::early)),
            ),
        ],
    }
}
