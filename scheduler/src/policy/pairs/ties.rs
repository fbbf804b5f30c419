//! Where ties left Algorithms 7 (`match`) and 8 (`o-match`) of the pairs paper a choice.
//!
//! The paper does not say how ties are decided, so two programs that follow it may give different orders. Of equal
//! pairs and of equal places in the schedule ours takes the first, of equal matchings whichever the search meets.
//! Numbers count as equal up to rounding.
//! Of more than [`MATCHED_MAX`](super::MATCHED_MAX) jobs only those that are matched are looked at.

use super::matched::{Schedule, matched_jobs, pairs_of};
use super::sequence::by;
use crate::job::Size;
use crate::matching;

/// What two numbers may differ by and still count as equal, relative to the sizes that they come from.
const ROUNDING: f64 = 1e-12;

/// A choice that the algorithm leaves open. Jobs by index, or by the number under which they came.
#[derive(Clone, PartialEq, Debug)]
#[non_exhaustive]
pub enum Tie {
    /// Algorithm 7, line 3: of an odd number any of these could go last.
    Last {
        /// Equally map-heavy; the one that went last is the first.
        jobs: Vec<usize>,
    },
    /// Algorithm 7, line 6: these could be paired otherwise at the same weight.
    Partners {
        /// In the order of their pairs.
        jobs: Vec<usize>,
    },
    /// Algorithm 7, line 7: these pairs could follow one another in any order.
    Pairs {
        /// Of equal total workload.
        pairs: Vec<[usize; 2]>,
    },
    /// Algorithm 7, line 8: either could be the first of its pair.
    First {
        /// With equal `s - m`.
        pair: [usize; 2],
    },
    /// Algorithm 8, line 7: a job that came could go beside any of these.
    Beside {
        /// Who came.
        job: usize,
        /// Of equal weight with it; the one that was taken is the first.
        others: Vec<usize>,
    },
}

impl Tie {
    /// The choice in words, with these names of jobs.
    #[must_use]
    pub fn words(&self, name: impl Fn(usize) -> String) -> String {
        let list = |jobs: &[usize]| jobs.iter().map(|&job| name(job)).collect::<Vec<_>>().join(", ");
        let pair = |&[a, b]: &[usize; 2]| format!("{} with {}", name(a), name(b));
        match self {
            Tie::Last { jobs } => format!("any of {} could go last: they are equally map-heavy", list(jobs)),
            Tie::Partners { jobs } => {
                format!("{} could be paired otherwise: the weight would be the same", list(jobs))
            }
            Tie::Pairs { pairs } => {
                let pairs = pairs.iter().map(pair).collect::<Vec<_>>().join(", ");
                format!("the pairs {pairs} could stand in any order: their totals are equal")
            }
            Tie::First { pair: [a, b] } => {
                format!("{} or {} could go first of the two: their s - m are equal", name(*a), name(*b))
            }
            Tie::Beside { job, others } => {
                format!("{} could go beside any of {}: the weights are equal", name(*job), list(others))
            }
        }
    }
}

impl Tie {
    /// The same with other numbers of the jobs.
    pub(super) fn renamed(self, number: impl Fn(usize) -> usize) -> Self {
        let all = |jobs: Vec<usize>| jobs.into_iter().map(&number).collect();
        match self {
            Tie::Last { jobs } => Tie::Last { jobs: all(jobs) },
            Tie::Partners { jobs } => Tie::Partners { jobs: all(jobs) },
            Tie::Pairs { pairs } => {
                Tie::Pairs { pairs: pairs.into_iter().map(|pair| pair.map(&number)).collect() }
            }
            Tie::First { pair } => Tie::First { pair: pair.map(&number) },
            Tie::Beside { job, others } => Tie::Beside { job: number(job), others: all(others) },
        }
    }
}

/// The choices that ties leave Algorithm 7, in the order of its lines. As many matchings as there are choices of partners
/// that exclude one another, mostly one or two.
#[must_use]
pub fn ties_of_match(jobs: &[Size], alpha: f64) -> Vec<Tie> {
    let (order, odd) = matched_jobs(jobs);
    let mut found = Vec::new();
    if let Some(odd) = odd {
        let equal = |&job: &usize| same(jobs[odd].surplus(), jobs[job].surplus(), [jobs[odd], jobs[job]]);
        let others: Vec<usize> = order.iter().copied().filter(equal).collect();
        if !others.is_empty() {
            found.push(Tie::Last { jobs: [vec![odd], others].concat() });
        }
    }
    let mut pairs = pairs_of(jobs, &order, alpha);
    let optional = optional_pairs(jobs, &order, alpha, &pairs);
    if !optional.is_empty() {
        found.push(Tie::Partners { jobs: optional.concat() });
    }
    let total = |&[a, b]: &[usize; 2]| jobs[a].total() + jobs[b].total();
    pairs.sort_by(|one, other| total(one).total_cmp(&total(other)));
    let alike = |one: &[usize; 2], other: &[usize; 2]| {
        same(total(one), total(other), [one, other].map(|&[a, b]| sum(jobs[a], jobs[b])))
    };
    found.extend(
        pairs
            .chunk_by(alike)
            .filter(|chunk| 1 < chunk.len())
            .map(|chunk| Tie::Pairs { pairs: chunk.to_vec() }),
    );
    let balanced = |&[a, b]: &[usize; 2]| same(jobs[a].surplus(), jobs[b].surplus(), [jobs[a], jobs[b]]);
    found.extend(pairs.into_iter().filter(balanced).map(|pair| Tie::First { pair }));
    found
}

/// The choices that ties leave Algorithm 8 if this job comes with this draw.
#[must_use]
pub fn ties_of_arrival(schedule: &Schedule, id: u64, size: Size, drawn: f64) -> Vec<Tie> {
    if schedule.is_reordered(drawn) {
        let mut all = schedule.jobs().to_vec();
        all.push((id, size));
        all.sort_unstable_by_key(|&(id, _)| id);
        let sizes: Vec<Size> = all.iter().map(|&(_, size)| size).collect();
        let id_of = |index: usize| all[index].0 as usize;
        return ties_of_match(&sizes, schedule.alpha()).into_iter().map(|tie| tie.renamed(id_of)).collect();
    }
    let waiting = schedule.jobs();
    let weight = |place: usize| size.weight(waiting[place].1, schedule.alpha());
    let Some(nearest) = (0..waiting.len()).min_by(by(weight)) else { return Vec::new() };
    let equal = |&place: &usize| {
        place != nearest && same(weight(place), weight(nearest), [sum(size, waiting[place].1); 2])
    };
    let mut beside = vec![nearest];
    beside.extend((0..waiting.len()).filter(equal));
    if beside.len() < 2 {
        return Vec::new();
    }
    vec![Tie::Beside {
        job: id as usize,
        others: beside.into_iter().map(|place| waiting[place].0 as usize).collect(),
    }]
}

/// Those of these pairs without which a matching of the same weight exists.
///
/// Every pair that is not known to be optional is made dearer by less than any real difference of weights: if a lightest
/// matching without one of them exists, that is the lightest now.
fn optional_pairs(jobs: &[Size], order: &[usize], alpha: f64, pairs: &[[usize; 2]]) -> Vec<[usize; 2]> {
    let mut partner = vec![usize::MAX; jobs.len()];
    for &[a, b] in pairs {
        (partner[a], partner[b]) = (b, a);
    }
    let weight = |a: usize, b: usize| jobs[order[a]].weight(jobs[order[b]], alpha);
    let every = (0..order.len()).flat_map(|a| (0..a).map(move |b| (b, a)));
    let largest = every.map(|(a, b)| weight(a, b)).fold(0.0, f64::max);
    let penalty = if 0.0 < largest { largest * ROUNDING } else { 1.0 };
    let mut optional = Vec::new();
    loop {
        let dearer = |a: usize, b: usize| match partner[order[a]] == order[b] {
            true => weight(a, b) + penalty,
            false => weight(a, b),
        };
        let found = matching::minimum_weight_perfect(order.len(), dearer).expect("matched before");
        let kept: Vec<[usize; 2]> = found.into_iter().map(|[a, b]| [order[a], order[b]]).collect();
        let gone =
            |&&[a, b]: &&[usize; 2]| partner[a] == b && !kept.contains(&[a, b]) && !kept.contains(&[b, a]);
        let gone: Vec<[usize; 2]> = pairs.iter().filter(gone).copied().collect();
        if gone.is_empty() {
            optional.sort_unstable();
            return optional;
        }
        for &[a, b] in &gone {
            (partner[a], partner[b]) = (usize::MAX, usize::MAX);
        }
        optional.extend(gone);
    }
}

fn sum(one: Size, other: Size) -> Size {
    Size { map: one.map + other.map, shuffle: one.shuffle + other.shuffle }
}

/// Whether two numbers that come from these sizes are equal but for rounding.
fn same(one: f64, other: f64, of: [Size; 2]) -> bool {
    (one - other).abs() <= ROUNDING * of[0].total().max(of[1].total())
}
