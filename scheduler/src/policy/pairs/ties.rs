//! Choices that ties leave to Algorithms 7 (`match`) and 8 (`o-match`) of the pairs paper.
//!
//! The paper does not define how ties are broken, so two correct programs may give different orders. This one takes the
//! first of equal pairs and of equal places in the schedule, and of equal matchings any one that the search finds.
//! Numbers that differ only by rounding count as equal. Of more than [`MATCHED_MAX`](super::MATCHED_MAX) jobs only the
//! matched ones are examined.

use super::matched::{Schedule, matched_jobs, pairs_of};
use super::sequence::by;
use crate::job::Size;
use crate::matching;

/// Maximum difference of two equal numbers, relative to the sizes from which they are computed.
const ROUNDING: f64 = 1e-12;

/// Choice that the algorithm leaves open. Jobs are given by index, or by the number under which they arrived.
#[derive(Clone, PartialEq, Debug)]
#[non_exhaustive]
pub enum Tie {
    /// Algorithm 7, line 3: of an odd number any of these could go last.
    Last {
        /// Equally map-heavy jobs; the first is the one that went last.
        jobs: Vec<usize>,
    },
    /// Algorithm 7, line 6: these could be paired differently at the same weight.
    Partners {
        /// Jobs in the order of their pairs.
        jobs: Vec<usize>,
    },
    /// Algorithm 7, line 7: these pairs could follow one another in any order.
    Pairs {
        /// Pairs of equal total workload.
        pairs: Vec<[usize; 2]>,
    },
    /// Algorithm 7, line 8: either could be the first of its pair.
    First {
        /// Jobs with equal `s - m`.
        pair: [usize; 2],
    },
    /// Algorithm 8, line 7: an arrival could go next to any of these.
    Beside {
        /// Job that arrived.
        job: usize,
        /// Jobs of equal weight with it; the first is the chosen one.
        others: Vec<usize>,
    },
}

impl Tie {
    /// Describes the choice, with these names of jobs.
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
    /// Returns the same choice with other numbers of the jobs.
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

/// Returns the choices that ties leave to Algorithm 7, in the order of its lines. Computes one matching per independent
/// choice of partners, mostly one or two.
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

/// Returns the choices that ties leave to Algorithm 8 if this job arrives with this draw.
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

/// Returns those of these pairs without which a matching of the same weight exists.
///
/// The weight of every pair that is not known to be optional is increased by less than any real difference of weights.
/// If a minimum matching without one of them exists, it is now the minimum.
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
        let found = matching::minimum_weight_perfect(order.len(), dearer);
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

/// True if two numbers computed from these sizes are equal except for rounding.
fn same(one: f64, other: f64, of: [Size; 2]) -> bool {
    (one - other).abs() <= ROUNDING * of[0].total().max(of[1].total())
}
