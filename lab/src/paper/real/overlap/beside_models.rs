//! How the work of a run goes on over time, beside the overlapping and the traditional tandem queue.

use super::figure_4::WORKERS;
use crate::compare::RunRecord;
use crate::compare::series::makespan;
use crate::paper::overlap::{Progress, overlapping, traditional};
use crate::paper::{Axis, Block, Chart, Claim, Series, Verdict};

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

    pub(super) fn claims(&self) -> Vec<Claim> {
        vec![self.overlaps(), self.ends_as_predicted()]
    }

    fn overlaps(&self) -> Claim {
        let [near, far] = [&self.overlapping, &self.traditional].map(|model| self.distance(model));
        let verdict = if near < 0.05 && 2.0 * near < far {
            Verdict::Holds
        } else if near < far {
            Verdict::Partly
        } else {
            Verdict::Fails
        };
        Claim::new(
            "Section 2.2",
            "The shuffle of a real cluster goes as in the overlapping tandem queue, and quite differently from the \
             traditional one.",
            verdict,
            format!(
                "Mean distance of shuffle work done over time: {:.1} % of all shuffle work from the overlapping \
                 model, {:.1} % from the traditional one (holds below 5 % and less than half of the other).",
                100.0 * near,
                100.0 * far
            ),
        )
    }

    fn ends_as_predicted(&self) -> Claim {
        let end = self.run.jobs.iter().map(|job| job.shuffle_done).fold(0.0, f64::max);
        let predicted = self.overlapping.end();
        let verdict = match (end / predicted - 1.0).abs() {
            off if off < 0.1 => Verdict::Holds,
            off if off < 0.2 => Verdict::Partly,
            _ => Verdict::Fails,
        };
        Claim::new(
            "Section 2.2",
            "The overlapping model tells when the last segment is in.",
            verdict,
            format!(
                "Measured {end:.2} s, overlapping {predicted:.2} s, traditional {:.2} s.",
                self.traditional.end()
            ),
        )
    }
}
