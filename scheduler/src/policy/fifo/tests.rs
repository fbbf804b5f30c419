//! The order of fifo, on a floor of plain counts.

use super::*;
use crate::plan::tests::Counts;
use crate::view::Row;
use proptest::prelude::*;

proptest! {
    #[test]
    fn fifo_serves_an_older_job_fully_and_its_reduces_first(
        free in 0..30_u32,
        wants in prop::collection::vec((0..8_u32, 0..8_u32), 1..10),
    ) {
        let wants: Vec<[u32; 3]> = wants.iter().map(|&(maps, reduces)| [maps, 0, reduces]).collect();
        let row = |seq| Row { seq, weight: 1.0, live: true, ..Row::default() };
        // The handles run against the order of arrival.
        let mut rows: Vec<Row> = (0..wants.len() as u64).rev().map(row).collect();
        let mut floor = Counts::unified(free, wants.clone());
        floor.plan(&mut Fifo::new(), &mut rows);
        let mut left = free;
        for job in (0..wants.len()).rev() {
            let reduces = wants[job][2].min(left);
            let maps = wants[job][0].min(left - reduces);
            prop_assert_eq!(floor.held[job], [maps, 0, reduces]);
            left -= reduces + maps;
        }
    }
}

#[test]
fn fifo_puts_higher_priority_first_and_age_decides_among_equals() {
    let row = |(seq, priority): (u64, i32)| Row { seq, priority, weight: 1.0, live: true, ..Row::default() };
    let mut rows: Vec<Row> = (0..).zip([0, -1, 2, 0, 2]).map(row).collect();
    for (free, expected) in [(1, [0, 0, 1, 0, 0]), (3, [1, 0, 1, 0, 1]), (4, [1, 0, 1, 1, 1]), (5, [1; 5])] {
        let mut floor = Counts::unified(free, vec![[1, 0, 0]; 5]);
        floor.plan(&mut Fifo::new(), &mut rows);
        assert_eq!(floor.totals(), expected, "{free} slots");
    }
}
