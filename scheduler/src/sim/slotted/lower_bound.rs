//! The lower bound of the total flow time in the slotted model: SRPT without precedence.
//!
//! ASRPT paper, Lemma 1: if reduces need not wait for maps and every unit may run anywhere, SRPT is optimal; so its
//! total flow time is at most that of any schedule, preemptive or not. More: at no time are fewer jobs present in any
//! schedule, so the bound holds up to every slot by itself.

use super::{check_jobs, slot_of, units_of};
use crate::policy::srpt::virtual_list::VirtualList;
use crate::sim::SimError;
use crate::workload::Job;

/// When each job ends under the bound, in the order of the jobs: the end of its last slot, in slots.
/// What is read of jobs, and in what order they come, is as for [`run`](super::run).
///
/// # Errors
/// As [`run`](super::run): sizes that are no whole numbers of units, jobs out of order, no machines.
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
            list.leave(next as u64);
            next += 1;
        }
        served.clear();
        list.serve(u64::from(machines), &mut served);
        for job in served.iter().filter(|job| job.ends) {
            completions[job.seq as usize] = slot as f64;
        }
    }
}

/// The least total flow time that any schedule can have, in slots.
///
/// # Errors
/// As [`completions`].
pub fn total_flow(machines: u32, jobs: &[Job]) -> Result<f64, SimError> {
    let completions = completions(machines, jobs)?;
    Ok(completions.iter().zip(jobs).map(|(completion, job)| completion - job.arrival).sum())
}

#[cfg(test)]
mod tests;
