//! Figures 2, 3 and 4: how three jobs go through the overlapping and the traditional tandem queue.
//!
//! Not here: the Hadoop measurements of figure 4, which belong to the authors' cluster.

use super::super::{Axis, Block, Chart, Compared, Section, Series};
use super::{batch, jobs_of, section};
use crate::paper::judge::{Beside, Known};
use gristmill_scheduler::policy;
use gristmill_scheduler::sim::fluid;

/// Piecewise linear progress: between two times all rates are the same.
pub(in crate::paper) struct Progress {
    times: Vec<f64>,
    /// At each time and job, work done at map and shuffle.
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
    let text = "Jobs (1, 2), (3, 1), (2, 2), first in, first out at both stations. Solid: done; dashed: \
                mapped, and so ready to be shuffled. The text gives every kink.";
    Ok(section("figure-2", "Figure 2: three jobs in the overlapping tandem queue", &[text], blocks))
}

fn figure_3() -> anyhow::Result<Section> {
    let progress = traditional("fcfs", &SMALL)?;
    let mut blocks = charts("figure-3", "", &SMALL, &progress);
    let ends = ends("figure 3, first in, first out", &progress, &[3.0, 5.0, 8.0], &SMALL);
    blocks.push(Block::Comparison(ends));
    let text = "A job can be shuffled only when all of it is mapped. The shuffle is the same simulation, \
                into which each job comes at the end of its maps. By hand: maps end at 1, 4, 6, so \
                shuffles at 3, 5, 8.";
    Ok(section("figure-3", "Figure 3: the same jobs in a traditional tandem queue", &[text], blocks))
}

fn figure_4() -> anyhow::Result<Section> {
    let sizes = [[7.0, 11.0], [10.0, 3.0], [7.0, 11.0]];
    let overlapping = overlapping("map-fifo-shuffle-ps", &sizes)?;
    let traditional = traditional("ps", &sizes)?;
    let known = overlapping.completions.iter().zip([89.0 / 7.0, 17.0, 28.0]).enumerate();
    let ends = known.map(|(job, (&ours, reference))| {
        exact(&format!("overlapping, end of J'{}", job + 1), None, Some(reference), ours)
    });
    let last = exact("traditional, end of the last job", None, Some(35.0), traditional.end());
    let mut blocks = charts("figure-4e", "overlapping: ", &sizes, &overlapping);
    blocks.extend(charts("figure-4f", "traditional: ", &sizes, &traditional));
    blocks.push(Block::Comparison(ends.chain([last]).collect()));
    Ok(section(
        "figure-4",
        "Figure 4: a Hadoop cluster and the two models",
        &[
            "Two sort jobs (7, 11) and a grep (10, 3) between them, in minutes: FIFO at the map, shared \
             shuffle. The text prints (10, 3) for the third job, but it is a second sort \"with the \
             same configuration\", so (7, 11).",
            "The measured panels (a) and (d) are of the authors' cluster; the model's panel (e) has \
             their kink: from t = 12.7 to 17 only the grep is shuffled, at 0.3 of the network, as fast \
             as it is mapped.",
        ],
        blocks,
    ))
}

/// The overlapping tandem queue under this policy.
pub(in crate::paper) fn overlapping(policy: &str, sizes: &[[f64; 2]]) -> anyhow::Result<Progress> {
    follow(policy, &batch(sizes))
}

/// Maps first in, first out, alone; then the shuffle alone, of jobs that come when their maps end.
pub(in crate::paper) fn traditional(shuffle: &str, sizes: &[[f64; 2]]) -> anyhow::Result<Progress> {
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
    Ok(Progress { times, done, completions: shuffles.completions })
}

fn follow(policy: &str, sizes: &[[f64; 3]]) -> anyhow::Result<Progress> {
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
    Ok(Progress { times, done, completions })
}

impl Progress {
    /// What a job has had at a time, between the known times linearly.
    pub(in crate::paper) fn at(&self, time: f64, job: usize) -> [f64; 2] {
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

    /// When the last job ends.
    pub(in crate::paper) fn end(&self) -> f64 {
        self.completions.iter().copied().fold(0.0, f64::max)
    }

    /// One value of each known time.
    fn series(&self, name: &str, value: impl Fn(&[[f64; 2]]) -> f64) -> Series {
        let points = self.times.iter().zip(&self.done).map(|(&time, done)| (time, value(done))).collect();
        Series::new(name, points)
    }
}

/// What of a job's shuffle work is mapped.
fn ready([map, shuffle]: [f64; 2], done: [f64; 2]) -> f64 {
    done[0] / map * shuffle
}

fn charts(id: &str, of: &str, sizes: &[[f64; 2]], progress: &Progress) -> Vec<Block> {
    let chart = |part: &str, caption: &str, series: Vec<Series>| {
        let axes = [Axis::linear("time"), Axis::linear("work")];
        Block::Chart(Chart::lines(format!("{id}-{part}"), format!("{of}{caption}"), axes, series))
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

fn exact(what: &str, printed: Option<f64>, reference: Option<f64>, ours: f64) -> Compared {
    let known = match (printed, reference) {
        (Some(printed), _) => Known::exact(printed).printed(),
        (None, reference) => Known::exact(reference.unwrap_or(f64::NAN)),
    };
    Beside::exact(what, ours, known).judged()
}

/// The numbers that the text gives for figure 2.
fn kinks(sizes: &[[f64; 2]], progress: &Progress) -> Vec<Compared> {
    let shuffled = |time: f64| (0..sizes.len()).map(|job| progress.at(time, job)[1]).sum::<f64>();
    let rate = |from: f64, to: f64| (shuffled(to) - shuffled(from)) / (to - from);
    let second = progress.at(2.5, 1);
    let mut compared = vec![
        exact("figure 2, J1 mapped at t = 1", Some(1.0), None, progress.at(1.0, 0)[0]),
        exact("figure 2, J1 left at the shuffle at t = 1", Some(1.0), None, 2.0 - progress.at(1.0, 0)[1]),
        exact("figure 2, J2 mapped at t = 2.5", Some(1.5), None, second[0]),
        exact("figure 2, J2 shuffled at t = 2.5", Some(0.5), None, second[1]),
        exact("figure 2, shuffle rate from 0 to 2.5", Some(1.0), None, rate(0.0, 2.5)),
        exact("figure 2, shuffle rate from 2.5 to 4", Some(1.0 / 3.0), None, rate(2.5, 4.0)),
        exact("figure 2, shuffle rate from 4 to 6", Some(1.0), None, rate(4.0, 6.0)),
    ];
    compared.extend(ends("figure 2", progress, &[2.0, 4.0, 6.0], sizes));
    compared
}

fn ends(what: &str, progress: &Progress, known: &[f64], sizes: &[[f64; 2]]) -> Vec<Compared> {
    let compared = progress.completions.iter().zip(known).zip(sizes).enumerate();
    compared
        .map(|(job, ((&ours, &known), [map, shuffle]))| {
            exact(&format!("{what}, end of J{} ({map}, {shuffle})", job + 1), None, Some(known), ours)
        })
        .collect()
}
