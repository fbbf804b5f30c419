//! Figures 2, 3 and 4: progress of three jobs through the overlapping and the traditional tandem queue.
//!
//! Not here: the Hadoop measurements of figure 4, which belong to the authors' cluster.

use super::WORDS;
use super::common::{batch, jobs_of};
use crate::prelude::*;
use gristmill_scheduler::policy;
use gristmill_scheduler::sim::fluid;

/// Piecewise linear progress: all rates are constant between two times.
pub(crate) struct ModelProgress {
    times: Vec<f64>,
    /// Work done at map and shuffle, by time and job.
    done: Vec<Vec<[f64; 2]>>,
    completions: Vec<f64>,
}

pub(super) fn sections() -> anyhow::Result<Vec<Section>> {
    Ok(vec![figure_2()?, figure_3()?, figure_4()?])
}

const SMALL: [[f64; 2]; 3] = [[1.0, 2.0], [3.0, 1.0], [2.0, 2.0]];

fn figure_2() -> anyhow::Result<Section> {
    let progress = overlapping("fcfs", &SMALL)?;
    let mut blocks = charts("figure-2", "", &SMALL, &progress);
    blocks.push(Block::Comparison(kinks(&SMALL, &progress)));
    Ok(WORDS.section("figure-2", holes![], blocks))
}

fn figure_3() -> anyhow::Result<Section> {
    let progress = traditional("fcfs", &SMALL)?;
    let mut blocks = charts("figure-3", "", &SMALL, &progress);
    let ends = ends("figure 3, first in, first out", &progress, &[3.0, 5.0, 8.0], &SMALL);
    blocks.push(Block::Comparison(ends));
    Ok(WORDS.section("figure-3", holes![], blocks))
}

fn figure_4() -> anyhow::Result<Section> {
    let sizes = [[7.0, 11.0], [10.0, 3.0], [7.0, 11.0]];
    let overlapping = overlapping("map-fifo-shuffle-ps", &sizes)?;
    let traditional = traditional("ps", &sizes)?;
    let known = overlapping.completions.iter().zip([89.0 / 7.0, 17.0, 28.0]).enumerate();
    let end = |(job, (&ours, known)): (usize, (&f64, f64))| {
        exact(format!("overlapping, end of J'{}", job + 1), Known::exact(known), ours)
    };
    let last = exact("traditional, end of the last job".to_owned(), Known::exact(35.0), traditional.end());
    let compared = known.map(end).chain([last]).collect();
    let mut blocks = charts("figure-4e", "overlapping: ", &sizes, &overlapping);
    blocks.extend(charts("figure-4f", "traditional: ", &sizes, &traditional));
    blocks.push(Block::Comparison(compared));
    Ok(WORDS.section("figure-4", holes![], blocks))
}

/// Runs the overlapping tandem queue under this policy.
pub(crate) fn overlapping(policy: &str, sizes: &[[f64; 2]]) -> anyhow::Result<ModelProgress> {
    follow(policy, &batch(sizes))
}

/// Runs maps first in, first out, alone, then the shuffle alone, of jobs that arrive when their maps end.
pub(crate) fn traditional(shuffle: &str, sizes: &[[f64; 2]]) -> anyhow::Result<ModelProgress> {
    let maps: Vec<[f64; 3]> = sizes.iter().map(|&[map, _]| [0.0, map, 0.0]).collect();
    let maps = follow("fcfs", &maps)?;
    let shuffles: Vec<[f64; 3]> =
        sizes.iter().zip(&maps.completions).map(|(&[_, shuffle], &ends)| [ends, 0.0, shuffle]).collect();
    let shuffles = follow(shuffle, &shuffles)?;
    let mut times: Vec<f64> = maps.times.iter().chain(&shuffles.times).copied().collect();
    times.sort_by(f64::total_cmp);
    times.dedup();
    let jobs = 0..sizes.len();
    let at = |time: f64| jobs.clone().map(|job| [maps.at(time, job)[0], shuffles.at(time, job)[1]]).collect();
    let done = times.iter().map(|&time| at(time)).collect();
    Ok(ModelProgress { times, done, completions: shuffles.completions })
}

fn follow(policy: &str, sizes: &[[f64; 3]]) -> anyhow::Result<ModelProgress> {
    let mut policy = policy::by_name(policy)?;
    let mut completions = vec![0.0; sizes.len()];
    let mut times = vec![0.0];
    let mut done = vec![vec![[0.0; 2]; sizes.len()]];
    fluid::trace(
        &mut *policy,
        jobs_of(sizes),
        &mut |record| completions[record.seq as usize] = record.completion,
        &mut |piece| {
            let mut now: Vec<[f64; 2]> = done.last().cloned().unwrap_or_default();
            if times.last().is_some_and(|&last| last < piece.from) {
                times.push(piece.from);
                done.push(now.clone());
            }
            for &(seq, rates) in piece.rates {
                for (done, rate) in now[seq as usize].iter_mut().zip(rates) {
                    *done += rate * (piece.to - piece.from);
                }
            }
            times.push(piece.to);
            done.push(now);
        },
    )?;
    Ok(ModelProgress { times, done, completions })
}

impl ModelProgress {
    /// Returns the work done of a job at a time, interpolated linearly between the known times.
    pub(crate) fn at(&self, time: f64, job: usize) -> [f64; 2] {
        let after = self.times.partition_point(|&known| known < time);
        let Some(&upper) = self.times.get(after) else { return self.done[self.times.len() - 1][job] };
        if after == 0 || upper <= time {
            return self.done[after][job];
        }
        let lower = self.times[after - 1];
        let part = (time - lower) / (upper - lower);
        [0, 1].map(|station| {
            let (from, to) = (self.done[after - 1][job][station], self.done[after][job][station]);
            from + part * (to - from)
        })
    }

    /// Returns the end of the last job.
    pub(crate) fn end(&self) -> f64 {
        self.completions.iter().copied().fold(0.0, f64::max)
    }

    /// Returns one value for each known time.
    fn series(&self, name: &str, value: impl Fn(&[[f64; 2]]) -> f64) -> Series {
        let points = self.times.iter().zip(&self.done).map(|(&time, done)| (time, value(done))).collect();
        Series::new(name, points)
    }
}

/// Returns the amount of a job's shuffle work that is mapped.
fn ready([map, shuffle]: [f64; 2], done: [f64; 2]) -> f64 {
    done[0] / map * shuffle
}

fn charts(figure: &str, of: &str, sizes: &[[f64; 2]], progress: &ModelProgress) -> Vec<Block> {
    let chart = |part: &str, caption: &str, series: Vec<Series>| {
        WORDS.chart("progress", holes![figure, part, of, caption], series)
    };
    let job = |job: usize| format!("J{}", job + 1);
    let all_map: f64 = sizes.iter().map(|[map, _]| map).sum();
    let map_left = progress.series("all jobs", |done| all_map - done.iter().map(|done| done[0]).sum::<f64>());
    let buffered = progress.series("all jobs", |done| {
        done.iter().zip(sizes).map(|(&done, &sizes)| (ready(sizes, done) - done[1]).max(0.0)).sum()
    });
    let maps = (0..sizes.len()).map(|at| progress.series(&job(at), |done| done[at][0])).collect();
    let shuffles = (0..sizes.len()).flat_map(|at| {
        let ready = progress.series(&format!("{}, ready", job(at)), |done| ready(sizes[at], done[at]));
        [progress.series(&job(at), |done| done[at][1]), ready.as_reference()]
    });
    vec![
        chart("map-left", "work left at the map", vec![map_left]),
        chart("map", "map work done, by job", maps),
        chart("buffer", "work that is mapped and waits for the shuffle", vec![buffered]),
        chart("shuffle", "shuffle work done (solid) and ready (dashed), by job", shuffles.collect()),
    ]
}

fn exact(what: String, known: Known, ours: f64) -> Compared {
    KnownNumber::exact(what, ours, known).judged()
}

/// Compares the numbers that the text gives for figure 2.
fn kinks(sizes: &[[f64; 2]], progress: &ModelProgress) -> Vec<Compared> {
    let shuffled = |time: f64| (0..sizes.len()).map(|job| progress.at(time, job)[1]).sum::<f64>();
    let rate = |from: f64, to: f64| (shuffled(to) - shuffled(from)) / (to - from);
    let second = progress.at(2.5, 1);
    let printed = [
        ("J1 mapped at t = 1", 1.0, progress.at(1.0, 0)[0]),
        ("J1 left at the shuffle at t = 1", 1.0, 2.0 - progress.at(1.0, 0)[1]),
        ("J2 mapped at t = 2.5", 1.5, second[0]),
        ("J2 shuffled at t = 2.5", 0.5, second[1]),
        ("shuffle rate from 0 to 2.5", 1.0, rate(0.0, 2.5)),
        ("shuffle rate from 2.5 to 4", 1.0 / 3.0, rate(2.5, 4.0)),
        ("shuffle rate from 4 to 6", 1.0, rate(4.0, 6.0)),
    ];
    let kinks = printed.map(|(what, printed, ours)| {
        exact(format!("figure 2, {what}"), Known::exact(printed).printed(), ours)
    });
    kinks.into_iter().chain(ends("figure 2", progress, &[2.0, 4.0, 6.0], sizes)).collect()
}

fn ends(figure: &str, progress: &ModelProgress, known: &[f64], sizes: &[[f64; 2]]) -> Vec<Compared> {
    let compared = progress.completions.iter().zip(known).zip(sizes).enumerate();
    let end = |(job, ((&ours, &known), [map, shuffle])): (usize, ((&f64, &f64), &[f64; 2]))| {
        exact(format!("{figure}, end of J{} ({map}, {shuffle})", job + 1), Known::exact(known), ours)
    };
    compared.map(end).collect()
}
