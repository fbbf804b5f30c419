//! The order of lrpt, on a floor of plain counts. The slotted simulator's tests run the policy whole.

use super::*;
use crate::plan::tests::Counts;
use crate::view::Row;
use proptest::prelude::*;

proptest! {
    #[test]
    fn lrpt_serves_the_job_with_most_work_left_fully_before_the_next_and_the_older_of_equals(
        free in 0..30_u32,
        jobs in prop::collection::vec((0..8_u32, 0..8_u32, 0..4_u32), 1..10),
    ) {
        let wants: Vec<[u32; 3]> = jobs.iter().map(|&(maps, reduces, _)| [maps, 0, reduces]).collect();
        let row = |(seq, &(_, _, left)): (usize, &(u32, u32, u32))| {
            // What is left decides, at map and reduce together, and not what could start now.
            let left = [f64::from(left), 100.0, f64::from(left % 2)];
            Row { seq: seq as u64, weight: 1.0, live: true, left: left.into(), ..Row::default() }
        };
        let mut rows: Vec<Row> = jobs.iter().enumerate().map(row).collect();
        let mut order: Vec<usize> = (0..jobs.len()).collect();
        order.sort_by(|&a, &b| work_left(&rows[b]).total_cmp(&work_left(&rows[a])).then(a.cmp(&b)));
        let mut floor = Counts::unified(free, wants.clone());
        floor.plan(&mut Lrpt::default(), &mut rows);
        let mut left = free;
        for job in order {
            let demand = (wants[job][0] + wants[job][2]).min(left);
            prop_assert_eq!(floor.totals()[job], demand);
            left -= demand;
        }
    }
}
