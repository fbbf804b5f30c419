//! Offered load of each station while jobs arrive, and if it provably exceeds the capacity.
//!
//! The load is work over capacity, divided by the time in which it arrives. A queue grows without bound if
//! the load of the arrival process is above 1; the load of a small sample may be anything. So it has a
//! confidence interval by batch means. Consecutive jobs form batches, each with its work and its time, and
//! the variance of the ratio of the two sums follows from the batches. Batches preserve correlations of jobs
//! that are near in time, such as a burst.

use super::Job;
use crate::metrics::Interval;
use crate::station::{PerStation, Station};

/// Minimum number of jobs for a confidence interval: batches of `BATCH_MIN`, and one job more to end the last gap.
pub const LOAD_JOBS_MIN: usize = BATCHES_MIN * BATCH_MIN + 1;

/// Number of batches, as small as is useful; twice as many if the jobs suffice for batches four times as long.
const BATCHES_MIN: usize = 10;
/// Minimum number of jobs of a batch.
const BATCH_MIN: usize = 5;

/// Load of a station.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct OfferedLoad {
    /// Work of all jobs except the last over capacity, for the time from the first arrival to the last.
    pub load: f64,
    /// 95 % confidence interval; `None` for fewer than [`LOAD_JOBS_MIN`] jobs.
    pub range: Option<[f64; 2]>,
}

/// Growth of the queue that follows from a load.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Growth {
    /// The interval is above 1: the queue grows while jobs arrive.
    Grows,
    /// The interval is below 1: there is a steady state.
    Steady,
    /// The interval contains 1.
    Open,
    /// There are too few jobs for an interval.
    TooFew,
}

impl OfferedLoad {
    /// Returns the growth that follows from the interval.
    #[must_use]
    pub fn growth(&self) -> Growth {
        match self.range {
            None => Growth::TooFew,
            Some([low, _]) if 1.0 < low => Growth::Grows,
            Some([_, high]) if high < 1.0 => Growth::Steady,
            Some(_) => Growth::Open,
        }
    }
}

/// Returns the load of each station by these jobs, in the order of arrival; `None` if they all arrive at once. O(jobs).
#[must_use]
pub fn offered_load(jobs: &[Job], capacity: PerStation<f64>) -> Option<PerStation<OfferedLoad>> {
    let span = jobs.last()?.arrival - jobs.first()?.arrival;
    (0.0 < span).then(|| PerStation::by(|station| of_station(jobs, span, station, capacity[station])))
}

fn of_station(jobs: &[Job], span: f64, station: Station, capacity: f64) -> OfferedLoad {
    let count = jobs.len() - 1;
    let work = |jobs: &[Job]| jobs.iter().map(|job| job.work[station]).sum::<f64>() / capacity;
    let load = work(&jobs[..count]) / span;
    if jobs.len() < LOAD_JOBS_MIN {
        return OfferedLoad { load, range: None };
    }
    let batches = if count < 8 * BATCHES_MIN * BATCH_MIN { BATCHES_MIN } else { 2 * BATCHES_MIN };
    let from = |batch: usize| batch * count / batches;
    let excess: Vec<f64> = (0..batches)
        .map(|batch| {
            let (first, next) = (from(batch), from(batch + 1));
            work(&jobs[first..next]) - load * (jobs[next].arrival - jobs[first].arrival)
        })
        .collect();
    let half_width = Interval::of(&excess).and_then(|interval| interval.half_width);
    let range = half_width.map(|excess| {
        let half_width = excess * batches as f64 / span;
        [load - half_width, load + half_width]
    });
    OfferedLoad { load, range }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand::{RngExt as _, SeedableRng as _};
    use rand_chacha::ChaCha8Rng;

    fn at(arrival: f64, map: f64) -> Job {
        Job { arrival, work: PerStation::new(map, 1.0, 0.0), ..Job::default() }
    }

    #[test]
    fn load_is_the_work_that_arrives_for_the_time_until_the_last_arrival() {
        let jobs = [at(0.0, 2.0), at(3.0, 2.0), at(4.0, 2.0)];
        let loads = offered_load(&jobs, PerStation::new(2.0, 1.0, 1.0)).unwrap();
        assert_eq!(loads.0.map(|load| load.load), [0.5, 0.5, 0.0]);
        assert_eq!(offered_load(&[at(1.0, 2.0), at(1.0, 2.0)], PerStation::all(1.0)), None);
        assert_eq!(offered_load(&[], PerStation::all(1.0)), None);
    }

    /// Returns the growth of a stream of exponential gaps of mean 1 and exponential work of this mean.
    fn stream(seed: u64, jobs: usize, load: f64) -> Growth {
        let mut draws = ChaCha8Rng::seed_from_u64(seed);
        let mut exponential = || -(1.0 - draws.random::<f64>()).ln();
        let mut arrival = 0.0;
        let jobs: Vec<Job> = (0..jobs)
            .map(|_| {
                arrival += exponential();
                at(arrival, load * exponential())
            })
            .collect();
        offered_load(&jobs, PerStation::all(1.0)).unwrap()[Station::Map].growth()
    }

    /// Returns the number of 400 seeds with this result.
    fn seeds(jobs: usize, load: f64, growth: Growth) -> usize {
        (0..400).filter(|&seed| stream(seed, jobs, load) == growth).count()
    }

    #[test]
    fn queue_is_said_to_grow_under_too_much_work_and_not_under_less() {
        assert_eq!(seeds(400, 1.6, Growth::Grows), 400);
        assert_eq!(seeds(400, 0.5, Growth::Steady), 400);
        assert_eq!(seeds(400, 0.5, Growth::Grows), 0);
    }

    #[test]
    fn load_of_exactly_1_is_mistaken_for_growth_in_at_most_5_of_100_streams() {
        for jobs in [LOAD_JOBS_MIN, 200, 1_000] {
            let mistaken = seeds(jobs, 1.0, Growth::Grows);
            assert!(mistaken <= 20, "{mistaken} of the seeds 0 to 399 with {jobs} jobs");
        }
    }

    #[test]
    fn few_jobs_show_nothing_whatever_their_load() {
        let heavy: Vec<Job> = (0..3).map(|second| at(f64::from(second), 1e6)).collect();
        let load = offered_load(&heavy, PerStation::all(1.0)).unwrap()[Station::Map];
        assert_eq!((load.load, load.growth()), (1e6, Growth::TooFew));
        assert_eq!(stream(1, LOAD_JOBS_MIN - 1, 9.0), Growth::TooFew);
        assert_eq!(stream(1, LOAD_JOBS_MIN, 9.0), Growth::Grows);
    }

    /// A burst in one batch raises the mean to 1.81; all other batches are low.
    #[test]
    fn burst_alone_does_not_show_that_a_queue_grows() {
        let jobs: Vec<Job> = (0..201_u32)
            .map(|second| at(f64::from(second), if second / 20 == 3 { 10.0 } else { 0.9 }))
            .collect();
        let load = offered_load(&jobs, PerStation::all(1.0)).unwrap()[Station::Map];
        assert!((load.load - 1.81).abs() < 1e-9, "{load:?}");
        assert_eq!(load.growth(), Growth::Open);
    }
}
