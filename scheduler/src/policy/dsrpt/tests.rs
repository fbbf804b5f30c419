//! The delayed queue, slot by slot. The slotted simulator's tests run the policy whole.

use super::*;

fn served(seq: u64, maps: u64, reduces: u64) -> VirtuallyServed {
    VirtuallyServed { seq, maps, reduces, ends: false }
}

#[test]
fn reduces_follow_a_slot_later_in_their_order_on_machines_without_a_map() {
    let mut slot = Slot::default();
    assert!(slot.pass(&[served(0, 1, 2), served(1, 0, 1)], 4));
    assert_eq!((&slot.maps[..], &slot.reduces[..]), (&[(0, 1)][..], &[][..]));
    // Three maps leave one machine: one of two units is done, the other stays first in the queue.
    assert!(slot.pass(&[served(2, 3, 1)], 4));
    assert_eq!((&slot.maps[..], &slot.reduces[..]), (&[(2, 3)][..], &[(0, 1)][..]));
    assert!(!slot.pass(&[], 4));
    assert_eq!((&slot.maps[..], &slot.reduces[..]), (&[][..], &[(0, 1), (1, 1), (2, 1)][..]));
}

#[test]
fn units_of_one_job_from_two_slots_are_one_target() {
    let mut slot = Slot::default();
    assert!(slot.pass(&[served(0, 0, 3), served(1, 1, 0)], 4));
    assert!(slot.pass(&[served(1, 4, 0)], 4));
    assert!(slot.pass(&[served(0, 0, 2), served(1, 2, 0)], 4));
    assert_eq!(slot.reduces, [(0, 2)]);
    assert!(!slot.pass(&[], 4));
    assert_eq!(slot.reduces, [(0, 3)]);
}
