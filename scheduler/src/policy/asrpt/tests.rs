//! Tests of the phases of Algorithm 1, one plan at a time, and of the catalogue entry. The tests of the slotted
//! simulator run it as a whole.

use super::*;
use crate::plan::tests::Counts;
use crate::policy::by_name;
use crate::station::{PerStation, Station};
use crate::units::Time;

/// Jobs as [maps left, reduces left, reduces that can start], seen by the policy and planned for once.
struct Table {
    policy: Asrpt,
    rows: Vec<Row>,
    machines: u32,
}

impl Table {
    fn new(machines: u32, jobs: &[[u32; 3]]) -> Self {
        let row = |(seq, &[maps, reduces, ready]): (usize, &[u32; 3])| Row {
            seq: seq as u64,
            whole: PerStation::new(f64::from(maps), 0.0, f64::from(reduces)),
            left: PerStation::new(f64::from(maps), 0.0, f64::from(reduces)),
            can: PerStation::new(f64::from(maps), 0.0, f64::from(ready)),
            live: true,
            ..Row::default()
        };
        let rows = jobs.iter().enumerate().map(row).collect();
        let mut table = Table { policy: Asrpt::new(SLOT, false), rows, machines };
        for job in 0..jobs.len() as u32 {
            table.observe(0, &[job], Change::Arrived(Handle(job)));
        }
        table
    }

    fn observe(&mut self, seconds: u64, touched: &[u32], change: Change) {
        let touched: Vec<Handle> = touched.iter().map(|&job| Handle(job)).collect();
        let cap = [f64::from(self.machines), 1.0, f64::from(self.machines)];
        let now = Time(seconds * 1_000_000_000);
        let view =
            View { now, rows: &self.rows, touched: &touched, cap: cap.into(), unified: true, runs: &[] };
        self.policy.observe(view, change);
    }

    /// Returns the grants of each job as [maps, reduces] with this many free machines, and the requested wake.
    fn plan(&mut self, seconds: u64, free: u32) -> (Vec<[u32; 2]>, Option<Time>) {
        let wants = self.rows.iter().map(|row| row.can.map(|tasks| tasks as u32));
        let mut floor = Counts::unified(free, wants);
        floor.held = self.rows.iter().map(|row| row.held.map(|slots| slots as u32)).collect();
        let cap = [f64::from(self.machines), 1.0, f64::from(self.machines)];
        let now = Time(seconds * 1_000_000_000);
        let view = View { now, rows: &self.rows, touched: &[], cap: cap.into(), unified: true, runs: &[] };
        let mut plan = Plan::new(&mut floor);
        self.policy.plan(view, &mut plan);
        plan.finish();
        let wake = plan.wished_wake();
        (floor.held.iter().map(|held| [held[Station::Map], held[Station::Reduce]]).collect(), wake)
    }
}

#[test]
fn maps_of_the_virtual_run_go_before_reduces_and_these_before_other_maps() {
    // Virtually the smallest job ends first. The next gets four of the six machines for its three maps and one reduce.
    // In reality the reduce must wait, so a machine is left for the third job's reduce, and none for its maps.
    let mut table = Table::new(6, &[[9, 20, 0], [3, 4, 0], [2, 0, 0], [0, 8, 8]]);
    assert_eq!(table.plan(0, 6).0, [[0, 0], [0, 0], [0, 0], [0, 6]], "no tick yet: reduces before maps");
    table.observe(0, &[], Change::Tick);
    assert_eq!(table.plan(0, 6).0, [[0, 0], [3, 0], [2, 0], [0, 1]]);
    assert_eq!(table.plan(0, 6).0, [[0, 0], [3, 0], [2, 0], [0, 1]], "a plan changes nothing");
}

#[test]
fn when_machines_are_short_the_smallest_job_comes_first() {
    let mut table = Table::new(6, &[[9, 20, 0], [3, 4, 0], [2, 0, 0]]);
    table.observe(0, &[], Change::Tick);
    assert_eq!(table.plan(0, 3).0, [[0, 0], [1, 0], [2, 0]]);
}

#[test]
fn slots_held_count_towards_the_virtual_number() {
    let mut table = Table::new(4, &[[9, 0, 0], [3, 4, 0]]);
    table.observe(0, &[], Change::Tick);
    table.rows[1].held[Station::Map] = 2.0;
    table.rows[1].can[Station::Map] = 1.0;
    table.observe(0, &[1], Change::Progress);
    assert_eq!(table.plan(0, 1).0, [[0, 0], [3, 0]]);
    table.rows[1].held[Station::Map] = 3.0;
    table.rows[1].can[Station::Map] = 0.0;
    table.observe(0, &[1], Change::Progress);
    assert!(table.policy.short.is_empty(), "no job holds less than the virtual run gives");
    assert_eq!(table.plan(0, 1).0, [[1, 0], [3, 0]]);
}

#[test]
fn the_virtual_run_goes_on_whatever_really_happens() {
    let mut table = Table::new(2, &[[2, 2, 0], [4, 4, 0]]);
    table.observe(0, &[], Change::Tick);
    // In reality no work was done. Virtually the first job's maps are over, and so is its priority for machines. In the
    // order of phase 3 it still comes first.
    table.observe(1, &[], Change::Tick);
    assert!(table.policy.targets.is_empty());
    assert_eq!(table.plan(1, 2).0, [[2, 0], [0, 0]]);
    table.observe(2, &[], Change::Tick);
    assert_eq!(table.policy.targets, BTreeMap::from([(Handle(1), 2)]));
    assert_eq!(table.plan(2, 2).0, [[0, 0], [2, 0]]);
}

#[test]
fn it_asks_for_a_tick_per_slot_as_long_as_the_virtual_run_has_work() {
    let mut table = Table::new(2, &[[3, 0, 0]]);
    table.observe(0, &[], Change::Tick);
    assert_eq!(table.plan(0, 2).1, Some(Time(1_000_000_000)));
    table.observe(1, &[], Change::Tick);
    assert_eq!(table.plan(1, 2).1, None);
}

#[test]
fn it_forgets_who_left() {
    let mut table = Table::new(2, &[[3, 0, 0], [0, 1, 1]]);
    table.observe(0, &[], Change::Tick);
    for job in 0..2 {
        table.observe(0, &[], Change::Left(Handle(job)));
    }
    let asrpt = &table.policy;
    assert!(asrpt.targets.is_empty() && asrpt.short.is_empty());
    assert!(asrpt.maps.is_empty() && asrpt.reduces.is_empty() && asrpt.fetching.is_empty());
}

#[test]
fn its_slot_is_a_length_of_time() {
    let slot =
        |text: &str| by_name(&format!("asrpt:slot={text}")).map(|_| ()).map_err(|error| error.to_string());
    assert!(slot("10ms").is_ok());
    for wrong in ["0", "0.5", "-1s", "nan", "inf", "1h", "2 days", "0.1ms", "3601s"] {
        let wanted = "a length of time from 1ms to 3600s, as 1s or 250ms";
        assert_eq!(slot(wrong), Err(format!("policy `asrpt`: parameter `slot` is {wanted}, not `{wrong}`")));
    }
}

#[test]
fn it_preempts_when_it_is_told_to() {
    assert!(!by_name("asrpt").unwrap().preempts());
    assert!(by_name("asrpt:preemptive=yes").unwrap().preempts());
    assert!(by_name("dsrpt").unwrap().preempts());
}
