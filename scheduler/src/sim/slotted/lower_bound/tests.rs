//! The bound against the policy `srpt` in the slotted model without precedence.

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
        let config = Config::of(&Srpt::new(), machines, true);
        slotted::run(&mut Srpt::new(), &config, &jobs, &mut |record| {
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
