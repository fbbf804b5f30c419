//! Scaling of a workload in load, time and bytes, and the costs of bytes.

use super::{Job, WorkloadError};
use crate::station::Station;

/// Factors on a workload; 1 means no change.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Scale {
    /// Factor on the rate of arrivals; sizes stay.
    pub load: f64,
    /// Factor on all times: between arrivals, of tasks, to deadlines. The load stays.
    pub time: f64,
    /// Factor on all bytes, and on the work that follows from them.
    pub bytes: f64,
}

impl Default for Scale {
    fn default() -> Self {
        Scale { load: 1.0, time: 1.0, bytes: 1.0 }
    }
}

impl Scale {
    /// Rejects factors that are not above 0 and finite.
    ///
    /// # Errors
    /// The first such factor.
    pub fn validate(&self) -> Result<(), WorkloadError> {
        above_zero(&[("scale-load", self.load), ("scale-time", self.time), ("scale-bytes", self.bytes)])
    }

    /// Scales a job. Its shuffle scales with its bytes if they are known. The lengths of its tasks do not, since they
    /// were measured or drawn.
    pub fn apply(&self, job: &mut Job) {
        let arrival = job.arrival;
        job.arrival = arrival * self.time / self.load;
        // A deadline keeps its distance from the arrival, up to the time factor.
        job.deadline = job.deadline.map(|deadline| job.arrival + (deadline - arrival) * self.time);
        for work in job.work.iter_mut() {
            *work *= self.time;
        }
        for length in job.maps.iter_mut().chain(&mut job.reduces) {
            *length *= self.time;
        }
        if 0.0 < job.shuffle_bytes {
            job.work[Station::Shuffle] *= self.bytes;
        }
        job.input_bytes *= self.bytes;
        job.shuffle_bytes *= self.bytes;
    }
}

/// Costs of bytes in time, for traces that have only bytes.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Costs {
    /// Input bytes of one map.
    pub split_bytes: f64,
    /// Shuffled bytes of one reduce.
    pub partition_bytes: f64,
    /// Constant time of a task in addition to its bytes, in seconds.
    pub task_seconds: f64,
    /// Bytes per second that a map reads.
    pub map_rate: f64,
    /// Bytes per second of input and output of a reduce.
    pub reduce_rate: f64,
    /// Bytes per second of the whole network.
    pub network: f64,
}

impl Default for Costs {
    /// Returns splits of 64 MiB as in the years of the traces, 20 MB/s per slot, and a network of 1 GB/s.
    fn default() -> Self {
        Costs {
            split_bytes: (64 << 20) as f64,
            partition_bytes: (256 << 20) as f64,
            task_seconds: 1.0,
            map_rate: 20e6,
            reduce_rate: 20e6,
            network: 1e9,
        }
    }
}

impl Costs {
    /// Rejects costs that are not above 0 and finite.
    ///
    /// # Errors
    /// The first such cost.
    pub fn validate(&self) -> Result<(), WorkloadError> {
        above_zero(&[
            ("split-bytes", self.split_bytes),
            ("partition-bytes", self.partition_bytes),
            ("task-seconds", self.task_seconds),
            ("map-rate", self.map_rate),
            ("reduce-rate", self.reduce_rate),
            ("network", self.network),
        ])
    }
}

fn above_zero(settings: &[(&'static str, f64)]) -> Result<(), WorkloadError> {
    match settings.iter().find(|(_, value)| !(value.is_finite() && 0.0 < *value)) {
        Some(&(name, value)) => Err(WorkloadError::Setting { name, value }),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::station::PerStation;

    fn job() -> Job {
        Job {
            arrival: 10.0,
            work: PerStation::new(6.0, 2.0, 4.0),
            maps: vec![1.0, 5.0],
            reduces: vec![4.0],
            input_bytes: 100.0,
            shuffle_bytes: 50.0,
            deadline: Some(30.0),
            ..Job::default()
        }
    }

    fn scaled(load: f64, time: f64, bytes: f64) -> Job {
        let mut job = job();
        Scale { load, time, bytes }.apply(&mut job);
        job
    }

    #[test]
    fn load_moves_arrivals_and_keeps_sizes_and_the_distance_to_the_deadline() {
        assert_eq!(scaled(2.0, 1.0, 1.0), Job { arrival: 5.0, deadline: Some(25.0), ..job() });
    }

    #[test]
    fn time_stretches_arrivals_lengths_and_deadlines() {
        let expected = Job {
            arrival: 30.0,
            work: PerStation::new(18.0, 6.0, 12.0),
            maps: vec![3.0, 15.0],
            reduces: vec![12.0],
            deadline: Some(90.0),
            ..job()
        };
        assert_eq!(scaled(1.0, 3.0, 1.0), expected);
    }

    #[test]
    fn bytes_bring_their_shuffle_with_them() {
        let expected =
            Job { work: PerStation::new(6.0, 4.0, 4.0), input_bytes: 200.0, shuffle_bytes: 100.0, ..job() };
        assert_eq!(scaled(1.0, 1.0, 2.0), expected);
    }

    #[test]
    fn a_factor_that_is_no_number_above_zero_is_refused_by_name() {
        for (scale, name) in [
            (Scale { load: 0.0, ..Scale::default() }, "scale-load"),
            (Scale { time: f64::NAN, ..Scale::default() }, "scale-time"),
            (Scale { bytes: f64::INFINITY, ..Scale::default() }, "scale-bytes"),
        ] {
            assert!(scale.validate().unwrap_err().to_string().contains(name));
        }
        assert_eq!(Scale::default().validate(), Ok(()));
        assert_eq!(Costs::default().validate(), Ok(()));
    }
}
