//! How the work of a run goes on over time, beside the overlapping and the traditional tandem queue.

use super::figure_4::WORKERS;
use crate::compare::RunRecord;
use crate::compare::series::makespan;
use crate::paper::judge::{Seen, every, mean_of, paired, percent};
use crate::paper::overlap::{Progress, overlapping, traditional};
use crate::paper::real::judging::would_tell;
use crate::paper::{Axis, Block, Chart, Claim, Series};

/// Places at which two curves are compared.
const PLACES: usize = 200;

/// A run, and both models of it.
pub(super) struct Measured<'a> {
    run: &'a RunRecord,
    /// Bytes in a second that all workers may send.
    network: f64,
    /// Of each job, seconds of all slots and of the whole network.
    pub(super) sizes: Vec<[f64; 2]>,
    overlapping: Progress,
    traditional: Progress,
}

fn times(end: f64) -> impl Iterator<Item = f64> {
    (0..=PLACES).map(move |place| end * place as f64 / PLACES as f64)
}

impl<'a> Measured<'a> {
    pub(super) fn new(run: &'a RunRecord, network: f64) -> anyhow::Result<Self> {
        let size = |job: &crate::compare::JobRun| {
            [job.usage.slot_seconds[0] / f64::from(WORKERS), job.shuffle_bytes as f64 / network]
        };
        let sizes: Vec<[f64; 2]> = run.jobs.iter().map(size).collect();
        let overlapping = overlapping("map-fifo-shuffle-ps", &sizes)?;
        let traditional = traditional("ps", &sizes)?;
        Ok(Self { run, network, sizes, overlapping, traditional })
    }

    /// Seconds of the whole map station that a job has had at a time.
    fn mapped(&self, job: usize, time: f64) -> f64 {
        let spans = self.run.spans.iter().filter(|span| span.map && span.job as usize == job);
        spans.map(|span| (time.min(span.to) - span.from).max(0.0)).sum::<f64>() / f64::from(WORKERS)
    }

    /// Seconds of the whole network that a job has had at a time.
    fn shuffled(&self, job: usize, time: f64) -> f64 {
        let transfers = self.run.transfers.iter().filter(|transfer| transfer.job as usize == job);
        let bytes = transfers.map(|transfer| {
            let length = (transfer.to - transfer.from).max(1e-9);
            let part = ((time - transfer.from) / length).clamp(0.0, 1.0);
            transfer.bytes as f64 * part
        });
        bytes.sum::<f64>() / self.network
    }

    pub(super) fn charts(&self) -> Vec<Block> {
        vec![
            Block::Chart(self.work_left(0, "figure-4-map", "Work left at the map")),
            Block::Chart(self.work_left(1, "figure-4-shuffle", "Work left at the shuffle")),
            Block::Chart(self.shuffle_by_job()),
        ]
    }

    fn work_left(&self, station: usize, id: &str, caption: &str) -> Chart {
        let end = makespan(self.run);
        let jobs = || 0..self.sizes.len();
        let all = self.sizes.iter().map(|size| size[station]).sum::<f64>();
        let real = |time: f64| match station {
            0 => jobs().map(|job| self.mapped(job, time)).sum::<f64>(),
            _ => jobs().map(|job| self.shuffled(job, time)).sum::<f64>(),
        };
        let model =
            |progress: &Progress, time: f64| jobs().map(|job| progress.at(time, job)[station]).sum::<f64>();
        let series = |name: &str, done: &dyn Fn(f64) -> f64| {
            Series::new(name, times(end).map(|time| (time, (all - done(time)).max(0.0))).collect())
        };
        Chart::lines(
            id,
            caption,
            [Axis::linear("time, s"), Axis::linear("work left, s of the station")],
            vec![
                series("measured", &real),
                series("overlapping tandem queue", &|time| model(&self.overlapping, time)).as_reference(),
                series("traditional tandem queue", &|time| model(&self.traditional, time)).as_reference(),
            ],
        )
    }

    fn shuffle_by_job(&self) -> Chart {
        let end = makespan(self.run);
        let series = (0..self.sizes.len()).flat_map(|job| {
            let name = format!("J'{}", job + 1);
            let measured = times(end).map(|time| (time, self.shuffled(job, time))).collect();
            let modelled = times(end).map(|time| (time, self.overlapping.at(time, job)[1])).collect();
            let model = Series::new(format!("{name}, model"), modelled).as_reference();
            [Series::new(name, measured), model]
        });
        Chart::lines(
            "figure-4-jobs",
            "Shuffle work done, by job, measured and in the overlapping model (dashed)",
            [Axis::linear("time, s"), Axis::linear("shuffle work done, s")],
            series.collect(),
        )
    }

    /// Mean distance between measured and modelled shuffle work over time, as a share of all shuffle work.
    fn distance(&self, model: &Progress) -> f64 {
        let end = makespan(self.run);
        let all: f64 = self.sizes.iter().map(|size| size[1]).sum();
        let gaps = times(end).map(|time| {
            let jobs = 0..self.sizes.len();
            let gap: f64 = jobs.map(|job| self.shuffled(job, time) - model.at(time, job)[1]).sum();
            gap.abs()
        });
        gaps.sum::<f64>() / (PLACES + 1) as f64 / all.max(1e-9)
    }

    /// The run in numbers beside both models.
    pub(super) fn beside(&self) -> Beside {
        Beside {
            distances: [&self.overlapping, &self.traditional].map(|model| self.distance(model)),
            end: self.run.jobs.iter().map(|job| job.shuffle_done).fold(0.0, f64::max),
            predicted: [self.overlapping.end(), self.traditional.end()],
        }
    }
}

/// A run beside the overlapping and the traditional model, in this order.
pub(in crate::paper::real) struct Beside {
    /// Mean distance of shuffle work done over time, as a share of all of it.
    pub(in crate::paper::real) distances: [f64; 2],
    /// When the last segment was in, seconds.
    pub(in crate::paper::real) end: f64,
    /// When the models say.
    pub(in crate::paper::real) predicted: [f64; 2],
}

/// A distance below this share is "as in the model"; an end that is off by less than this part of it was told.
const NEAR: f64 = 0.05;
const TOLD: f64 = 0.1;

/// `records` are of these runs, and tell how long more of them would take.
pub(in crate::paper::real) fn claims(runs: &[Beside], records: &[RunRecord]) -> Vec<Claim> {
    vec![overlaps(runs, records), ends_as_predicted(runs, records)]
}

fn overlaps(runs: &[Beside], records: &[RunRecord]) -> Claim {
    let [near, far] = [0, 1].map(|model| runs.iter().map(|run| run.distances[model]).collect::<Vec<f64>>());
    let twice: Vec<f64> = near.iter().map(|near| 2.0 * near).collect();
    let (distance, further) = (mean_of(&near), paired(&far, &twice));
    let seen = [Seen::below(&distance, NEAR), Seen::above(&further, 0.0)];
    Claim::new(
        "Section 2.2",
        "The shuffle of a real cluster goes as in the overlapping tandem queue, and quite differently from the \
         traditional one.",
        every(seen),
        format!(
            "Mean distance of shuffle work done over time in {} runs: {:.1} % of all shuffle work from the overlapping \
             model, {:.1} % from the traditional one (holds below {:.0} % and less than half of the other){}.",
            runs.len(),
            100.0 * distance.mean,
            100.0 * mean_of(&far).mean,
            100.0 * NEAR,
            would_tell(records, &[(distance, NEAR), (further, 0.0)])
        ),
    )
}

/// The overlapping model must be near, and nearer than the traditional one.
fn ends_as_predicted(runs: &[Beside], records: &[RunRecord]) -> Claim {
    let off =
        |model: usize| runs.iter().map(|run| (run.end / run.predicted[model]).ln()).collect::<Vec<f64>>();
    let sizes = |model: usize| off(model).into_iter().map(f64::abs).collect::<Vec<f64>>();
    let (distance, closer) = (mean_of(&off(0)), paired(&sizes(1), &sizes(0)));
    let limits @ [low, high] = [(1.0 - TOLD).ln(), TOLD.ln_1p()];
    let (near, nearer) = (Seen::between(&distance, limits), Seen::above(&closer, 0.0));
    let limit = if distance.mean < 0.0 { low } else { high };
    let mean = |value: &dyn Fn(&Beside) -> f64| mean_of(&runs.iter().map(value).collect::<Vec<f64>>()).mean;
    Claim::new(
        "Section 2.2",
        "The overlapping model tells when the last segment is in.",
        every([near, nearer]),
        format!(
            "Means of {} runs: measured {:.2} s, overlapping {:.2} s, off by {}; traditional {:.2} s, off by {}. It \
             tells if it is off by less than {:.0} % ({}) and nearer than the traditional one ({}){}.",
            runs.len(),
            mean(&|run| run.end),
            mean(&|run| run.predicted[0]),
            percent(&distance),
            mean(&|run| run.predicted[1]),
            percent(&mean_of(&off(1))),
            100.0 * TOLD,
            near.word(),
            nearer.word(),
            would_tell(records, &[(distance, limit), (closer, 0.0)])
        ),
    )
}
