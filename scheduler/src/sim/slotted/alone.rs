//! Duration of a job without any other job, by arithmetic: all machines run its maps, then its reduces.

use super::{MachineWork, units_of};
use crate::workload::Job;
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// Returns the number of slots from the first in which the job is served to the one in which it ends. No
/// other job is present, and no machine idles while it could serve the job. Reduces start in their order; in
/// the preemptive model they are spread over all machines. The result is the same for all policies, but the
/// bound `srpt` ignores precedence and may be faster.
///
/// O(reduces × log of machines); sizes are integer units as for [`run`](super::run).
#[must_use]
pub fn alone(machines: u32, preemptive: bool, job: &Job) -> f64 {
    let [maps, units] = units_of(job);
    let reduces = match preemptive {
        true => units.div_ceil(u64::from(machines)),
        false => in_order(MachineWork::reduces_of(job), machines),
    };
    (maps.div_ceil(u64::from(machines)) + reduces) as f64
}

/// Returns the end of the last of these reduces if each starts on the machine that is free first.
fn in_order(reduces: &[f64], machines: u32) -> u64 {
    let mut ends: BinaryHeap<Reverse<u64>> = BinaryHeap::new();
    let mut last = 0;
    for length in reduces.iter().map(|&length| length as u64).filter(|&length| 0 < length) {
        let free = if ends.len() < machines as usize { 0 } else { ends.pop().map_or(0, |Reverse(end)| end) };
        ends.push(Reverse(free + length));
        last = last.max(free + length);
    }
    last
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::policy::Fifo;
    use crate::sim::slotted::{Config, run};
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn a_job_alone_takes_what_the_model_says(
            maps in 0..20_u32,
            reduces in prop::collection::vec(0..9_u32, 0..7),
            machines in 1..6_u32,
            preemptive in any::<bool>(),
        ) {
            let reduces: Vec<f64> = reduces.into_iter().map(f64::from).collect();
            let work = [f64::from(maps), 0.0, reduces.iter().sum()];
            let job = Job { arrival: 3.0, work: work.into(), reduces, ..Job::default() };
            let config = Config { machines, preemptive, precedence: true };
            let mut flow = None;
            let mut sink = |record: &crate::metrics::JobRecord| flow = Some(record.flow());
            run(&mut Fifo::new(), &config, std::slice::from_ref(&job), &mut sink, &mut |_, _| {}).unwrap();
            prop_assert_eq!(flow, Some(alone(machines, preemptive, &job)));
        }
    }
}
