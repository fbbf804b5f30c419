//! Lower bound of the total flow time of jobs on slots, under any schedule: all slots as one machine as fast as all of them,
//! on which reduces need not wait for maps. There shortest remaining processing time is optimal (Schrage, *Operations
//! Research* 16, 1968; ASRPT paper, Lemma 1). The network is left out, and so is that a task uses one slot.

use std::cmp::Reverse;
use std::collections::BTreeSet;

/// Returns the bound in seconds, for slots of this speed together, and jobs in the order of arrival: arrival in seconds, and
/// work in slot-seconds at speed 1.
#[must_use]
pub fn total_flow(speed: f64, jobs: &[[f64; 2]]) -> f64 {
    // Work left of present jobs as ordered bits: it is not negative.
    let mut present: BTreeSet<(u64, Reverse<usize>)> = BTreeSet::new();
    let (mut now, mut total) = (0.0_f64, 0.0);
    let mut coming = jobs.iter().enumerate().peekable();
    loop {
        let until = coming.peek().map_or(f64::INFINITY, |(_, [arrival, _])| *arrival);
        while now < until
            && let Some((left, place)) = present.pop_first()
        {
            let (left, room) = (f64::from_bits(left), (until - now) * speed);
            if room < left {
                present.insert(((left - room).to_bits(), place));
                break;
            }
            now += left / speed;
            total += now - jobs[place.0][0];
        }
        let Some((place, [arrival, work])) = coming.next() else { return total };
        now = now.max(*arrival);
        present.insert((work.max(0.0).to_bits(), Reverse(place)));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sim::slotted::lower_bound;
    use crate::station::PerStation;
    use crate::workload::Job;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn bound_is_that_of_the_slotted_model_with_slots_of_no_length(
            jobs in prop::collection::vec((0..40_u32, 1..30_u32), 1..20),
        ) {
            let mut jobs = jobs;
            jobs.sort_unstable();
            // A slot of a thousandth: each job ends at most one of them later.
            let fine = |&(arrival, work): &(u32, u32)| Job {
                arrival: 1000.0 * f64::from(arrival),
                work: PerStation::new(1000.0 * f64::from(work), 0.0, 0.0),
                ..Job::default()
            };
            let slotted = lower_bound::total_flow(1, &jobs.iter().map(fine).collect::<Vec<_>>()).unwrap() / 1000.0;
            let jobs: Vec<[f64; 2]> =
                jobs.iter().map(|&(arrival, work)| [f64::from(arrival), f64::from(work)]).collect();
            let found = total_flow(1.0, &jobs);
            prop_assert!((slotted - found).abs() <= 0.001 * jobs.len() as f64 + 1e-6, "{slotted} and {found}");
            // Twice as fast, with twice the work.
            let double: Vec<[f64; 2]> = jobs.iter().map(|&[arrival, work]| [arrival, 2.0 * work]).collect();
            prop_assert!((total_flow(2.0, &double) - found).abs() < 1e-6);
        }
    }
}
