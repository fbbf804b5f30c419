//! Tests of the list against SRPT unit by unit, and of the clock of the run.

use super::*;
use crate::station::PerStation;
use proptest::prelude::*;

/// Direct implementation of SRPT: machine by machine, one unit to the job with the smallest work left at the start of
/// the slot.
fn one_by_one(machines: u64, left: &mut [[u64; 2]]) -> Vec<VirtuallyServed> {
    let mut order: Vec<usize> = (0..left.len()).filter(|&job| 0 < left[job].iter().sum::<u64>()).collect();
    order.sort_by_key(|&job| (left[job].iter().sum::<u64>(), job));
    let mut served = Vec::new();
    let mut free = machines;
    for job in order {
        let mut got = [0, 0];
        while 0 < free && 0 < left[job].iter().sum::<u64>() {
            let station = usize::from(left[job][0] == 0);
            left[job][station] -= 1;
            got[station] += 1;
            free -= 1;
        }
        if got != [0, 0] {
            let ends = left[job] == [0, 0];
            served.push(VirtuallyServed { seq: job as u64, maps: got[0], reduces: got[1], ends });
        }
    }
    served
}

proptest! {
    #[test]
    fn the_list_serves_as_srpt_does_unit_by_unit(
        machines in 1..6_u64,
        arrivals in prop::collection::vec((0..4_usize, 0..6_u64, 0..6_u64), 1..8),
        leaving in prop::collection::vec(0..20_usize, 8),
    ) {
        let mut list = VirtualList::default();
        let mut left: Vec<[u64; 2]> = Vec::new();
        let mut arrivals = arrivals.into_iter();
        let mut next = arrivals.next();
        let mut wait = next.map_or(0, |(gap, ..)| gap);
        let mut slot = 0;
        while next.is_some() || !list.is_empty() {
            while let Some((_, maps, reduces)) = next.filter(|_| wait == 0) {
                list.place(left.len() as u64, [maps, reduces]);
                left.push([maps, reduces]);
                next = arrivals.next();
                wait = next.map_or(0, |(gap, ..)| gap);
            }
            wait = wait.saturating_sub(1);
            // The end in reality changes nothing in the virtual run.
            for job in (0..left.len()).filter(|&job| leaving[job] == slot) {
                list.leave(job as u64, false);
            }
            let mut served = Vec::new();
            list.serve(machines, &mut served);
            prop_assert_eq!(served, one_by_one(machines, &mut left));
            slot += 1;
        }
    }
}

#[test]
fn a_job_that_turns_out_larger_or_smaller_moves_by_the_difference() {
    let mut list = VirtualList::default();
    list.place(0, [4, 4]);
    list.place(1, [3, 3]);
    let mut served = Vec::new();
    list.serve(4, &mut served);
    assert_eq!(served, [VirtuallyServed { seq: 1, maps: 3, reduces: 1, ends: false }]);
    list.place(1, [3, 20]);
    served.clear();
    list.serve(9, &mut served);
    assert_eq!(
        served,
        [
            VirtuallyServed { seq: 0, maps: 4, reduces: 4, ends: true },
            VirtuallyServed { seq: 1, maps: 0, reduces: 1, ends: false },
        ]
    );
    list.place(1, [0, 0]);
    assert!(list.is_empty());
}

#[test]
fn a_list_keeps_nothing_of_jobs_that_are_over_in_truth_and_virtually() {
    let mut list = VirtualList::default();
    list.place(0, [1, 0]);
    list.place(1, [1, 0]);
    list.leave(0, false);
    list.serve(2, &mut Vec::new());
    assert_eq!(list.jobs.len(), 1);
    list.leave(1, false);
    assert!(list.jobs.is_empty() && list.order.is_empty());
}

#[test]
fn list_serves_no_job_that_was_cancelled() {
    let mut list = VirtualList::default();
    list.place(0, [1, 1]);
    list.place(1, [5, 0]);
    list.leave(0, true);
    let mut served = Vec::new();
    list.serve(2, &mut served);
    assert_eq!(served, [VirtuallyServed { seq: 1, maps: 2, reduces: 0, ends: false }]);
    list.leave(1, true);
    assert!(list.jobs.is_empty() && list.order.is_empty());
}

/// A run with slots of 2 s on 3 machines, and the rows of its jobs.
struct Watch {
    run: VirtualRun,
    rows: Vec<Row>,
    log: Vec<String>,
}

impl Watch {
    fn new(works: &[[f64; 2]]) -> Self {
        let row = |(seq, &[maps, reduces]): (usize, &[f64; 2])| Row {
            seq: seq as u64,
            whole: PerStation::new(maps, 9.0, reduces),
            live: true,
            ..Row::default()
        };
        let rows = works.iter().enumerate().map(row).collect();
        Watch { run: VirtualRun::new(Span::whole_seconds(2)), rows, log: Vec::new() }
    }

    /// Applies a change at this time in seconds. Returns the service, slot by slot.
    fn observe(&mut self, seconds: f64, touched: &[u32], change: Change) -> Vec<String> {
        let touched: Vec<Handle> = touched.iter().map(|&job| Handle(job)).collect();
        let now = Time((seconds * 1e9) as u64);
        let cap = [3.0, 1.0, 3.0];
        let view =
            View { now, rows: &self.rows, touched: &touched, cap: cap.into(), unified: true, runs: &[] };
        let log = &mut self.log;
        self.run.observe(view, change, |served, machines| {
            assert_eq!(machines, 3);
            let words = served.iter().map(|job| format!("{}:{}+{}", job.seq, job.maps, job.reduces));
            log.push(words.collect::<Vec<_>>().join(" "));
            false
        });
        std::mem::take(&mut self.log)
    }
}

#[test]
fn the_run_counts_work_in_whole_slots_and_serves_at_the_first_tick_of_each() {
    let mut watch = Watch::new(&[[7.0, 0.5], [2.0, 0.0]]);
    assert_eq!(watch.observe(1.0, &[0], Change::Arrived(Handle(0))), [""; 0]);
    assert_eq!(watch.run.wake(Time(1_000_000_000)), Time(2_000_000_000));
    // A job that arrives in the first slot counts from the next one on; a tick before it serves no job.
    assert_eq!(watch.observe(1.5, &[], Change::Tick), [""; 0]);
    assert_eq!(watch.observe(2.1, &[1], Change::Arrived(Handle(1))), [""; 0]);
    assert_eq!(watch.observe(2.1, &[], Change::Tick), ["1:1+0 0:2+0"]);
    assert_eq!(watch.observe(3.9, &[], Change::Tick), [""; 0]);
    assert_eq!(watch.observe(4.0, &[], Change::Tick), ["0:2+1"]);
    assert!(watch.run.is_empty());
}

#[test]
fn the_run_makes_up_for_ticks_that_were_late() {
    let mut watch = Watch::new(&[[20.0, 0.0]]);
    watch.observe(0.0, &[0], Change::Arrived(Handle(0)));
    assert_eq!(watch.observe(5.0, &[], Change::Tick), ["0:3+0", "0:3+0", "0:3+0"]);
    assert_eq!(watch.observe(1e6, &[], Change::Tick), ["0:1+0", ""]);
}

#[test]
fn a_wish_for_a_slot_that_has_begun_is_for_right_after_now() {
    let mut watch = Watch::new(&[[1.0, 0.0]]);
    watch.observe(4.0, &[0], Change::Arrived(Handle(0)));
    let now = Time(4_000_000_000);
    assert_eq!(watch.run.wake(now), Time(now.0 + 1));
    assert_eq!(watch.observe(4.0, &[], Change::Tick), ["0:1+0"]);
}

#[test]
fn a_job_that_left_goes_on_virtually_without_a_row() {
    let mut watch = Watch::new(&[[8.0, 0.0]]);
    watch.observe(0.0, &[0], Change::Arrived(Handle(0)));
    assert_eq!(watch.run.handle(0), Some(Handle(0)));
    watch.observe(0.5, &[], Change::Left(Handle(0)));
    assert_eq!(watch.run.handle(0), None);
    assert_eq!(watch.observe(1.0, &[], Change::Tick), ["0:3+0"]);
}

#[test]
fn without_machines_the_run_stands_still() {
    let mut watch = Watch::new(&[[2.0, 0.0]]);
    watch.observe(0.0, &[0], Change::Arrived(Handle(0)));
    let now = Time(1_000_000_000_000);
    let view =
        View { now, rows: &watch.rows, touched: &[], cap: PerStation::all(0.0), unified: true, runs: &[] };
    let mut slots = 0;
    watch.run.observe(view, Change::Tick, |served, _| {
        assert!(served.is_empty());
        slots += 1;
        false
    });
    assert_eq!(slots, 1);
    assert_eq!(watch.observe(1002.0, &[], Change::Tick), ["0:1+0"]);
}
