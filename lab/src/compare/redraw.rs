//! Properties that each repetition of a workload draws again, and the seeds for them.
//!
//! Not here: the drawing itself (`workload`).

use super::workload::{DrawnJob, Stream, Workload, draws};
use rand_chacha::rand_core::Rng;

/// Properties that repetitions draw again.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Redrawn {
    /// True if the jobs, their order or their arguments are drawn again.
    pub jobs: bool,
    /// True if the arrivals are drawn again.
    pub arrivals: bool,
}

impl Workload {
    /// Returns the seed of a repetition. The first has the workload's own seed. The others' are far from
    /// those of any other seed, so workloads of neighbouring seeds share no repetition.
    pub(super) fn seed_of(&self, repetition: u32) -> u64 {
        if !self.redraw || repetition == 0 {
            return self.seed;
        }
        let mut draws = draws(self.seed, Stream::Repetitions);
        (0..repetition).map(|_| draws.next_u64()).last().unwrap_or(self.seed)
    }

    /// Returns the properties that differ between repetitions because they are drawn again.
    #[must_use]
    pub fn redrawn(&self) -> Redrawn {
        let (Ok(first), Ok(second)) = (self.draw(0), self.draw(1)) else { return Redrawn::default() };
        let times = |jobs: &[DrawnJob]| jobs.iter().map(|job| job.arrival).collect::<Vec<f64>>();
        let works = |jobs: &[DrawnJob]| -> Vec<(usize, Vec<String>)> {
            jobs.iter().map(|job| (job.kind, job.arguments.clone())).collect()
        };
        Redrawn {
            jobs: self.redraw && works(&first) != works(&second),
            arrivals: self.redraw && times(&first) != times(&second),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::compare::workload::{Amount, Arrivals, Kind, Order, SEED_MARK};

    fn kind(count: u32) -> Kind {
        Kind { amount: Amount::Count(count), ..Kind::new("synthetic", &["--seed", SEED_MARK]) }
    }

    fn poisson(seed: u64) -> Workload {
        Workload {
            seed,
            arrivals: Arrivals::Poisson(2.0),
            order: Order::Shuffled,
            redraw: true,
            ..Workload::batch("mix", vec![kind(20), kind(60)])
        }
    }

    #[test]
    fn what_is_drawn_anew_is_what_differs() {
        assert_eq!(poisson(3).redrawn(), Redrawn { jobs: true, arrivals: true });
        assert_eq!(Workload { redraw: false, ..poisson(3) }.redrawn(), Redrawn::default());
        let listed =
            Workload { redraw: true, ..Workload::batch("listed", vec![Kind::new("synthetic", &[])]) };
        assert_eq!(listed.redrawn(), Redrawn::default(), "there is nothing to draw");
        let batch = Workload { redraw: true, ..Workload::batch("batch", vec![kind(3)]) };
        assert_eq!(batch.redrawn(), Redrawn { jobs: true, arrivals: false }, "all arrive at once each time");
        let alike = vec![Kind { amount: Amount::Count(9), ..Kind::new("sort", &[]) }];
        let same = Workload { kinds: alike, ..poisson(3) };
        assert_eq!(same.redrawn(), Redrawn { jobs: false, arrivals: true }, "all jobs are alike");
        let drawn = Arrivals::Draws(vec![vec![(0, 0.0), (1, 2.0)], vec![(1, 0.5)]]);
        let before = Workload { arrivals: drawn, ..poisson(3) };
        assert_eq!(before.redrawn(), Redrawn { jobs: true, arrivals: true });
    }

    #[test]
    fn workloads_of_neighbouring_seeds_share_no_repetition() {
        let draws = |seed: u64| (0..5).map(|place| poisson(seed).draw(place).unwrap()).collect::<Vec<_>>();
        let (one, other) = (draws(1), draws(2));
        assert!(one.iter().all(|jobs| !other.contains(jobs)), "a second seed repeats runs of the first");
        assert!((1..5).all(|place| !one[..place].contains(&one[place])), "repetitions are alike");
        let first = Workload { redraw: false, ..poisson(1) }.draw(0).unwrap();
        assert_eq!(one[0], first, "the first is that of the workload's own seed");
    }
}
