//! Lower bound of the total flow time in the slotted model: SRPT without precedence.
//!
//! ASRPT paper, Lemma 1: if reduces need not wait for maps and every unit may run anywhere, SRPT is optimal. So its
//! total flow time is at most that of any schedule, preemptive or not. Moreover, no schedule has fewer jobs present at
//! any time, so the bound holds up to every slot.

use super::{check_jobs, slot_of, units_of};
use crate::policy::srpt::virtual_list::VirtualList;
use crate::sim::SimError;
use crate::workload::Job;

/// Returns the end of each job's last slot under the bound, in slots, in the order of the jobs. Jobs and their order
/// are interpreted as by [`run`](super::run).
///
/// # Errors
/// As [`run`](super::run): sizes that are not integer numbers of units, jobs out of order, no machines.
pub fn completions(machines: u32, jobs: &[Job]) -> Result<Vec<f64>, SimError> {
    if machines == 0 {
        return Err(SimError::Setting { name: "machines", value: "0".to_owned(), wanted: "at least 1" });
    }
    check_jobs(jobs)?;
    let mut list = VirtualList::default();
    let mut completions: Vec<f64> = jobs.iter().map(|job| job.arrival).collect();
    let (mut next, mut slot, mut served) = (0, 0, Vec::new());
    loop {
        slot += 1;
        if list.is_empty() {
            let Some(job) = jobs.get(next) else { return Ok(completions) };
            slot = slot.max(slot_of(job.arrival));
        }
        while let Some(job) = jobs.get(next).filter(|job| slot_of(job.arrival) <= slot) {
            let [maps, reduces] = units_of(job);
            list.place(next as u64, [maps, reduces]);
            list.leave(next as u64, false);
            next += 1;
        }
        served.clear();
        list.serve(u64::from(machines), &mut served);
        for job in served.iter().filter(|job| job.ends) {
            completions[job.seq as usize] = slot as f64;
        }
    }
}

/// Returns the minimum total flow time of any schedule, in slots.
///
/// # Errors
/// As [`completions`].
pub fn total_flow(machines: u32, jobs: &[Job]) -> Result<f64, SimError> {
    let completions = completions(machines, jobs)?;
    Ok(completions.iter().zip(jobs).map(|(completion, job)| completion - job.arrival).sum())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::policy::Srpt;
    use crate::sim::slotted::{self, Config};
    use crate::station::PerStation;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn the_bound_is_the_flow_of_srpt_without_precedence(
            machines in 1..6_u32,
            parts in prop::collection::vec((0..4_u32, 0..9_u32, 0..9_u32), 0..12),
        ) {
            let mut slot = 0;
            let jobs: Vec<Job> = parts.into_iter().map(|(gap, maps, reduces)| {
                slot += gap;
                let work = [f64::from(maps), 0.0, f64::from(reduces)];
                Job { arrival: f64::from(slot), work: work.into(), ..Job::default() }
            }).collect();
            let mut completions = vec![0.0; jobs.len()];
            let config = Config::for_policy(&Srpt::default(), machines, true);
            slotted::run(&mut Srpt::default(), &config, &jobs, &mut |record| {
                completions[record.seq as usize] = record.completion;
            }, &mut |_, _| {}).unwrap();
            prop_assert_eq!(super::completions(machines, &jobs).unwrap(), completions.clone());
            let flow: f64 = completions.iter().zip(&jobs).map(|(completion, job)| completion - job.arrival).sum();
            prop_assert_eq!(total_flow(machines, &jobs).unwrap(), flow);
        }
    }

    #[test]
    fn what_has_no_bound_is_an_error() {
        let bad = Job { work: PerStation::new(0.5, 0.0, 0.0), ..Job::default() };
        assert!(matches!(total_flow(1, &[bad]), Err(SimError::Job { field: "maps", .. })));
        assert!(matches!(total_flow(0, &[]), Err(SimError::Setting { name: "machines", .. })));
        assert_eq!(total_flow(1, &[]), Ok(0.0));
    }
}
