//! Jobs in `k` groups of similar priority, each ordered in pairs: Algorithms 4 (`group`) and 5 (`o-group`) of the pairs
//! paper.
//!
//! The paper groups by dynamic programming over equation 1 in O(n² k), so that the sum over groups of the largest
//! difference of priorities (SMJPD) is minimal. For sorted priorities that sum is the whole range without the gaps
//! between groups. So cutting at the `k - 1` largest gaps gives the same minimum in O(n log n); of equal gaps the first
//! ones are cut. Groups are not empty: with fewer than `k` jobs each job is a group.

use super::sequence::by;
use super::sorted::{JobBlocks, alternate, in_pairs};
use crate::job::Size;
use std::cmp::Ordering;

/// Algorithm 4: orders jobs by [`Size::blend`] in `k` groups, each in pairs. O(n log n).
///
/// # Panics
/// If `k` is 0.
#[must_use]
pub fn group(jobs: &[Size], alpha: f64, k: usize) -> JobBlocks {
    let priorities: Vec<f64> = jobs.iter().map(|job| job.blend(alpha)).collect();
    let mut order: Vec<usize> = (0..jobs.len()).collect();
    order.sort_unstable_by(by(|index| priorities[index]));
    let sorted: Vec<f64> = order.iter().map(|&index| priorities[index]).collect();
    pieces(&sorted, k).map(|(from, to)| in_pairs(jobs, &order[from..to])).collect()
}

/// Returns the smallest sum, over at most `k` groups of these priorities, of the largest difference in a group:
/// equation 1.
///
/// # Panics
/// If `k` is 0.
#[must_use]
pub fn spread(priorities: &[f64], k: usize) -> f64 {
    let mut sorted = priorities.to_vec();
    sorted.sort_unstable_by(f64::total_cmp);
    pieces(&sorted, k).map(|(from, to)| sorted[to - 1] - sorted[from]).sum()
}

/// Splits sorted values at the `k - 1` largest gaps, as ranges.
fn pieces(sorted: &[f64], k: usize) -> impl Iterator<Item = (usize, usize)> {
    assert!(0 < k, "no groups to divide jobs into");
    let mut gaps: Vec<usize> = (1..sorted.len()).collect();
    gaps.sort_unstable_by(by(|place| sorted[place - 1] - sorted[place]));
    gaps.truncate(k - 1);
    gaps.sort_unstable();
    let mut cuts = vec![0];
    cuts.append(&mut gaps);
    if !sorted.is_empty() {
        cuts.push(sorted.len());
    }
    (1..cuts.len()).map(move |place| (cuts[place - 1], cuts[place]))
}

/// Waiting job in a group.
#[derive(Clone, Copy, PartialEq, Debug)]
struct GroupMember {
    id: u64,
    priority: f64,
    surplus: f64,
}

impl GroupMember {
    fn new(id: u64, size: Size, alpha: f64) -> Self {
        Self { id, priority: size.blend(alpha), surplus: size.surplus() }
    }

    /// Order of members: the most shuffle-heavy first, then as in the list sorted by priority.
    fn before(&self, other: &GroupMember) -> Ordering {
        let priority = self.priority.total_cmp(&other.priority);
        other.surplus.total_cmp(&self.surplus).then(priority).then(self.id.cmp(&other.id))
    }
}

#[derive(Clone, PartialEq, Debug)]
struct Group {
    /// Members in the order of [`Member::before`].
    members: Vec<GroupMember>,
    /// Ids of the members in the order of execution.
    order: Vec<u64>,
    lowest: f64,
    highest: f64,
}

/// Returns the lowest and the highest priority.
fn range(members: &[GroupMember]) -> [f64; 2] {
    let priorities = || members.iter().map(|member| member.priority);
    [priorities().fold(f64::INFINITY, f64::min), priorities().fold(f64::NEG_INFINITY, f64::max)]
}

impl Group {
    fn new(mut members: Vec<GroupMember>) -> Self {
        members.sort_unstable_by(GroupMember::before);
        let [lowest, highest] = range(&members);
        let mut group = Self { members, order: Vec::new(), lowest, highest };
        group.reorder();
        group
    }

    fn join(&mut self, member: GroupMember) {
        let place = self.members.partition_point(|other| other.before(&member) == Ordering::Less);
        self.members.insert(place, member);
        self.lowest = self.lowest.min(member.priority);
        self.highest = self.highest.max(member.priority);
        self.reorder();
    }

    fn reorder(&mut self) {
        let order = alternate(&self.members, |member| member.surplus);
        self.order = order.into_iter().map(|member| member.id).collect();
    }

    /// Returns the largest difference between this priority and a member's.
    fn distance(&self, priority: f64) -> f64 {
        (priority - self.lowest).max(self.highest - priority)
    }

    /// Removes a job; the others keep their order. Returns true if it was a member.
    fn leave(&mut self, id: u64) -> bool {
        let Some(place) = self.order.iter().position(|&other| other == id) else { return false };
        self.order.remove(place);
        self.members.retain(|member| member.id != id);
        [self.lowest, self.highest] = range(&self.members);
        true
    }
}

/// Action of Algorithm 5 on an arrival.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Branch {
    /// All waiting jobs were grouped again.
    Reschedule,
    /// The job became a new group.
    NewGroup,
    /// It joined the group with this index, from 0.
    Joined(usize),
}

/// Algorithm 5: waiting jobs in groups, to which arrivals are added one by one.
///
/// Deviation from the printed algorithm, in which a queue that was empty once stays one group: a job starts a new group
/// while there are fewer than `k`. Groups without jobs are removed. An arrival costs O(k + size of its group), a
/// reschedule O(n log n).
#[derive(Clone, PartialEq, Debug)]
pub struct OnlineGroups {
    alpha: f64,
    k: usize,
    /// Non-empty groups, lowest priorities first.
    groups: Vec<Group>,
}

impl OnlineGroups {
    /// Creates groups without waiting jobs.
    ///
    /// # Panics
    /// If `k` is 0.
    #[must_use]
    pub fn new(alpha: f64, k: usize) -> Self {
        assert!(0 < k, "no groups to divide jobs into");
        Self { alpha, k, groups: Vec::new() }
    }

    /// Adds an arrival. `drawn` is uniform in 0..1; below `1 / (n k²)` all jobs are grouped again, where `n` counts the
    /// waiting jobs including this one. Ids increase with arrivals: ties go to the lower one.
    pub fn arrive(&mut self, id: u64, size: Size, drawn: f64) -> Branch {
        let member = GroupMember::new(id, size, self.alpha);
        let waiting = self.len() + 1;
        let branch = if drawn * waiting as f64 * (self.k as f64).powi(2) < 1.0 {
            self.regroup([member]);
            return Branch::Reschedule;
        } else if self.groups.len() < self.k {
            self.groups.push(Group::new(vec![member]));
            Branch::NewGroup
        } else {
            let distance = |place: usize| self.groups[place].distance(member.priority);
            let place =
                (0..self.groups.len()).min_by(by(distance)).expect("k is above 0, and there are k groups");
            self.groups[place].join(member);
            Branch::Joined(place)
        };
        self.sort();
        branch
    }

    /// Removes a job that started or left; the others keep their order.
    pub fn leave(&mut self, id: u64) {
        let place = self.groups.iter_mut().position(|group| group.leave(id));
        if let Some(place) = place
            && self.groups[place].members.is_empty()
        {
            self.groups.remove(place);
        }
    }

    /// Returns the ids of the waiting jobs in the order of execution.
    pub fn order(&self) -> impl Iterator<Item = u64> {
        self.groups.iter().flat_map(|group| group.order.iter().copied())
    }

    /// Returns the same ids by group.
    #[must_use]
    pub fn blocks(&self) -> Vec<Vec<u64>> {
        self.groups.iter().map(|group| group.order.clone()).collect()
    }

    /// Number of waiting jobs.
    fn len(&self) -> usize {
        self.groups.iter().map(|group| group.members.len()).sum()
    }

    fn sort(&mut self) {
        let first = |group: &Group| group.members.iter().map(|member| member.id).min();
        self.groups.sort_by(|a, b| {
            let range = a.lowest.total_cmp(&b.lowest).then(a.highest.total_cmp(&b.highest));
            range.then_with(|| first(a).cmp(&first(b)))
        });
    }

    /// Applies Algorithm 4 to these jobs, which must be all waiting jobs.
    pub fn reschedule(&mut self, jobs: &[(u64, Size)]) {
        self.groups.clear();
        let alpha = self.alpha;
        self.regroup(jobs.iter().map(|&(id, size)| GroupMember::new(id, size, alpha)));
    }

    /// Applies Algorithm 4 to all waiting jobs and these.
    fn regroup(&mut self, come: impl IntoIterator<Item = GroupMember>) {
        let mut all: Vec<GroupMember> = self.groups.drain(..).flat_map(|group| group.members).collect();
        all.extend(come);
        all.sort_unstable_by(|a, b| a.priority.total_cmp(&b.priority).then(a.id.cmp(&b.id)));
        let sorted: Vec<f64> = all.iter().map(|member| member.priority).collect();
        self.groups = pieces(&sorted, self.k).map(|(from, to)| Group::new(all[from..to].to_vec())).collect();
    }
}
