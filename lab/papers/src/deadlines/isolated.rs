//! One application alone, and the error of the estimate of its completion time while it runs.

use super::trial;
use gristmill_scheduler::estimate::completion::{Remaining, RunningLeft, mean_task_length};
use gristmill_scheduler::ids::TaskKind;
use gristmill_scheduler::metrics::JobRecord;
use gristmill_scheduler::sim::cluster::{Observer, TaskRun};
use gristmill_scheduler::units::Time;
use gristmill_scheduler::workload::deadlines::{Joins, SLOTS, alone};

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
