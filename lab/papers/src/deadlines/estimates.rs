//! Experiment one, figures 1 to 3: each application alone, the lengths of its tasks, and the error of the
//! estimate of its completion time while it runs.
//!
//! Not here: several jobs at once (`goals`).

use super::WORDS;
use super::goals::{RunClaim, judged};
use super::trial;
use crate::prelude::*;
use crate::workload::deadlines::{Joins, SLOTS, alone};
use gristmill_scheduler::estimate::completion::{Remaining, RunningLeft, mean_task_length};
use gristmill_scheduler::ids::TaskKind;
use gristmill_scheduler::metrics::JobRecord;
use gristmill_scheduler::sim::cluster::{Observer, TaskRun};
use gristmill_scheduler::units::Time;

struct EstimatedApplication {
    job: usize,
    figure: u32,
    name: &'static str,
    printed: f64,
    /// Note that describes the lengths of its tasks.
    lengths: &'static str,
    claims: &'static [RunClaim<Isolated>],
}

const APPLICATIONS: [EstimatedApplication; 3] = [
    EstimatedApplication {
        job: 1,
        figure: 1,
        name: "WordCount",
        printed: 1264.0,
        lengths: "word-count",
        claims: &[
            ("word-count-error", &[|run| 100.0 * run.part_within(0.05)], |run| 0.5 < run.part_within(0.05)),
            ("word-count-first", &[|run| 100.0 * run.early()], |run| 0.0 < run.early()),
        ],
    },
    EstimatedApplication {
        job: 2,
        figure: 2,
        name: "Join",
        printed: 101.0,
        lengths: "joins",
        claims: &[("join", &[|run| 100.0 * first_half(run), |run| 100.0 * second_half(run)], |run| {
            0.25 < first_half(run) && second_half(run) < first_half(run)
        })],
    },
    EstimatedApplication {
        job: 0,
        figure: 3,
        name: "Simulator",
        printed: 3549.0,
        lengths: "simulator",
        claims: &[
            ("simulator-error", &[|run| 100.0 * run.settled(0.1)], |run| 0.75 < run.settled(0.1)),
            ("simulator-first", &[|run| 100.0 * run.early()], |run| run.early() < 0.0),
        ],
    },
];

fn first_half(run: &Isolated) -> f64 {
    run.mean_error(0.0, 0.5)
}

fn second_half(run: &Isolated) -> f64 {
    run.mean_error(0.5, 1.0)
}

pub(super) fn sections(context: &Context<'_>, seeds: &[u64]) -> anyhow::Result<Vec<Section>> {
    APPLICATIONS.iter().map(|application| figure(context, application, seeds)).collect()
}

/// Runs of an application alone, for each kind of lengths with each seed.
struct Runs<'a> {
    application: &'a EstimatedApplication,
    kinds: &'a [Joins],
    all: Vec<Vec<Isolated>>,
}

impl<'a> Runs<'a> {
    fn new(application: &'a EstimatedApplication, seeds: &[u64]) -> anyhow::Result<Self> {
        let kinds: &[Joins] = if application.name == "Join" { &Joins::ALL } else { &[Joins::SlowFirstHalf] };
        let all = each_cell(kinds, seeds, |&joins, &seed| isolated(application.job, joins, seed))?;
        Ok(Self { application, kinds, all })
    }

    /// Returns the name of a kind in legends: the application's name if there is only one kind.
    fn legend(&self, kind: usize) -> &str {
        if self.kinds.len() == 1 { self.application.name } else { self.kinds[kind].name() }
    }

    fn charts(&self) -> [Block; 2] {
        let EstimatedApplication { figure, name, .. } = *self.application;
        let points = self.all[0][0].maps.iter().map(|map| (map.end, map.end - map.start)).collect();
        let errors = self.all.iter().enumerate().map(|(kind, runs)| {
            let errors = runs[0].errors.iter().map(|&(at, error)| (at, 100.0 * error));
            Series::new(self.legend(kind), errors.collect())
        });
        let lengths = vec![Series::new(self.legend(0), points)];
        [
            WORDS.chart("figure-{figure}a", holes![figure, name], lengths),
            WORDS.chart("figure-{figure}b", holes![figure, name], errors.collect()),
        ]
    }

    /// Compares the time the application takes with the printed time.
    fn times(&self) -> Vec<Compared> {
        let EstimatedApplication { name, printed, .. } = *self.application;
        let one = |(kind, runs): (usize, &Vec<Isolated>)| {
            let Interval { mean, half_width, .. } = mean_by(runs, |run| run.end);
            let which = match self.kinds {
                [_] => String::new(),
                kinds => format!(" ({})", kinds[kind].name()),
            };
            let what = format!("{name}{which} by itself, s");
            let note = WORDS.note("put-in", holes![]);
            Compared { printed: Some(printed), half_width, note, ..Compared::new(what, mean, Verdict::Input) }
        };
        self.all.iter().enumerate().map(one).collect()
    }
}

fn figure(
    context: &Context<'_>,
    application: &EstimatedApplication,
    seeds: &[u64],
) -> anyhow::Result<Section> {
    let EstimatedApplication { figure, name, lengths, .. } = *application;
    (context.progress)(&format!("deadlines: {name} by itself"));
    let runs = Runs::new(application, seeds)?;
    let judged = [Block::Comparison(runs.times()), Block::Claims(claims(name, &runs.all[0]))];
    let blocks = runs.charts().into_iter().chain(judged).collect();
    let (first, last) = (seeds[0], seeds[seeds.len() - 1]);
    let holes = holes![figure, name, first, last, lengths = WORDS.note(lengths, holes![])];
    Ok(WORDS.section("figure-{figure}", holes, blocks))
}

/// Returns the claims about an application, judged in every run.
pub(super) fn claims(name: &str, runs: &[Isolated]) -> Vec<Claim> {
    let application = APPLICATIONS.iter().filter(|application| application.name == name);
    application.flat_map(|application| application.claims).map(|claim| judged(claim, runs)).collect()
}

/// Run of one application alone.
pub(super) struct Isolated {
    pub(super) maps: Vec<TaskRun>,
    /// End of the job, in seconds.
    pub(super) end: f64,
    /// Time and relative error of the estimate, at the end of each map.
    pub(super) errors: Vec<(f64, f64)>,
}

#[derive(Default)]
struct MapRuns(Vec<TaskRun>);

impl Observer for MapRuns {
    fn task(&mut self, run: &TaskRun) {
        if run.task.kind == TaskKind::Map {
            self.0.push(*run);
        }
    }
}

pub(super) fn isolated(job: usize, joins: Joins, seed: u64) -> anyhow::Result<Isolated> {
    let mut tasks = MapRuns::default();
    let mut end = 0.0;
    let job = alone(job, joins, seed);
    let reduces = job.reduces.len();
    trial::run("fifo", vec![job], &mut tasks, &mut |record: &JobRecord| end = record.completion)?;
    let errors = errors(&tasks.0, reduces, end);
    Ok(Isolated { maps: tasks.0, end, errors })
}

/// Returns the error of the estimate at the end of each map, on all slots of the cluster, relative to the
/// actual end. It uses equation 1 for the mean, and the remaining work as in equation 3.
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
    /// Returns the fraction of the job's time in which the error of the estimate is below this.
    pub(super) fn part_within(&self, limit: f64) -> f64 {
        let mut within = 0.0;
        for pair in self.errors.windows(2) {
            if pair[0].1.abs() < limit {
                within += pair[1].0 - pair[0].0;
            }
        }
        within / self.end
    }

    /// Returns the mean absolute error between two fractions of the job's time.
    pub(super) fn mean_error(&self, from: f64, to: f64) -> f64 {
        let range = from * self.end..to * self.end;
        let within: Vec<f64> =
            self.errors.iter().filter(|(at, _)| range.contains(at)).map(|(_, e)| e.abs()).collect();
        within.iter().sum::<f64>() / within.len().max(1) as f64
    }

    /// Returns the signed mean error over a tenth of the job's time, from the first estimate on.
    pub(super) fn early(&self) -> f64 {
        let first = self.errors.first().map_or(0.0, |(at, _)| *at);
        let early: Vec<f64> =
            self.errors.iter().take_while(|(at, _)| *at <= first + 0.1 * self.end).map(|(_, e)| *e).collect();
        early.iter().sum::<f64>() / early.len().max(1) as f64
    }

    /// Returns the fraction of the job's time after which the error stays within this.
    pub(super) fn settled(&self, limit: f64) -> f64 {
        let last = self.errors.iter().rposition(|(_, error)| limit <= error.abs());
        last.map_or(0.0, |last| self.errors[last].0 / self.end)
    }
}
