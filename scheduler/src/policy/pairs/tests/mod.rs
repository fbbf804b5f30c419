//! Tests of the pairs paper: its theorems on small instances, its examples, and waiting jobs.

mod optimum;
mod theorems;
mod waiting;
mod worked;

use crate::job::Size;
use proptest::prelude::*;

fn sizes(jobs: &[(f64, f64)]) -> Vec<Size> {
    jobs.iter().copied().map(Size::from).collect()
}

/// Up to this many jobs of integer sizes.
fn whole_jobs(count: usize) -> impl Strategy<Value = Vec<Size>> {
    let job = (0_u8..12, 0_u8..12).prop_map(|(map, shuffle)| Size::from((map.into(), shuffle.into())));
    prop::collection::vec(job, 0..=count)
}
