//! Tests of quotas of slots, which hold under every policy.

use super::driver::{Table, check, plain};
use crate::event::Event;
use crate::ids::{JobId, TaskId};
use crate::job::{JobSpec, SlotQuota};
use crate::policy;

fn of_owner(owner: u32, slots_max: u32, spec: JobSpec) -> JobSpec {
    JobSpec { quota: Some(SlotQuota { owner, slots_max }), ..spec }
}

#[test]
fn job_at_its_quota_is_offered_no_further_slot_and_others_get_what_it_leaves() {
    let mut table = Table::with_workers(&[4]);
    let orders = table.submit(of_owner(1, 2, plain(5, 0)));
    check(&orders, "launch map-0.0 on w1\nlaunch map-1.0 on w1");
    assert_eq!(table.core.slots(), (4, 2), "two are free");
    let orders = table.submit(plain(5, 0));
    check(&orders, "launch job-2/map-0.0 on w1\nlaunch job-2/map-1.0 on w1");
    // An ended task makes room for one more task of the same owner, and of no other.
    let map = |job: u32, index| TaskId::map(JobId(job), index).attempt(0);
    table.ask_commit(map(1, 0));
    check(&table.map_done(map(1, 0)), "launch map-2.0 on w1");
    assert_eq!(table.core.job(JobId(1)).unwrap().maps.running, 2);
}

#[test]
fn jobs_of_one_owner_share_its_quota_and_room_goes_on_to_the_next() {
    let mut table = Table::with_workers(&[4]);
    check(&table.submit(of_owner(1, 2, plain(1, 0))), "launch map-0.0 on w1");
    check(&table.submit(of_owner(1, 2, plain(3, 0))), "launch job-2/map-0.0 on w1");
    check(&table.submit(of_owner(2, 1, plain(3, 0))), "launch job-3/map-0.0 on w1");
    assert_eq!(table.core.slots(), (4, 1), "three are taken");
    let orders = table.handle(&[Event::JobCancelled { job: JobId(1) }]);
    let launched: Vec<_> = orders.iter().filter(|order| order.starts_with("launch")).collect();
    assert_eq!(launched, ["launch job-2/map-1.0 on w1"]);
}

#[test]
fn quota_of_none_lets_nothing_begin_and_says_why() {
    let mut table = Table::with_workers(&[2]);
    check(&table.submit(of_owner(1, 0, plain(1, 0))), "");
    let words = table.core.explain(JobId(1)).join("\n");
    assert!(words.contains("quota"), "{words}");
}

#[test]
fn quota_holds_under_every_policy_that_can_decide_live() {
    for entry in policy::catalogue() {
        let Ok(made) = policy::by_name(entry.name) else { continue };
        if made.suspends_maps() {
            continue;
        }
        let mut table = Table::with_boxed(made);
        table.join(3);
        table.join(3);
        table.submit(of_owner(1, 2, plain(6, 2)));
        table.submit(of_owner(1, 2, plain(6, 2)));
        table.submit(plain(1, 1));
        let held: u32 = [1, 2].map(|job| table.core.job(JobId(job)).unwrap().maps.running).iter().sum();
        assert!(held <= 2, "{} gave {held} slots", entry.name);
        // Slots that the quota blocks do not delay the jobs of other owners.
        assert_eq!(table.core.job(JobId(3)).unwrap().maps.running, 1, "{}", entry.name);
    }
}
