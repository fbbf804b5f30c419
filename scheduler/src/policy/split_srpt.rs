//! Serves map-heavy and shuffle-heavy jobs concurrently, each class with its own fraction of both stations.
//!
//! Paper: Lin, Zhang, Wierman and Tan, *Joint Optimization of Overlapping Phases in MapReduce*, section 4.2,
//! Algorithm 2. With `b(t) = min max(x_i/y_i, y_i/x_i)` over the jobs present (whole sizes), `u1 = 1/(1+b)`
//! and `u2 = b/(1+b)`. Jobs with `x_i >= y_i` (S1) get u2 of the map and u1 of the shuffle, smallest map work
//! left first. Jobs with `x_i < y_i` (S2) get u1 of the map and u2 of the shuffle, smallest shuffle work left
//! first. Ties go to the older job. x and y are in seconds of the whole station. It is (1+1/b)-speed
//! 1-competitive and, if all jobs arrive at once, within that factor of the optimum (Theorem 5, Corollary 6).
//! Required: map and shuffle work of every job. Favours short jobs, and long ones more than `max-srpt` does.
//! Harms short ones while jobs are balanced, since each class then has only half of each station. Parameters:
//! `idle`, the use of a share that its class cannot use. `hand-over` gives it to the other class: at the map
//! when a class has no maps left, at the shuffle to S2 and then S1 after both took their shares. `lost` is
//! the text as printed. `empty` gives everything to a class only while the other has no job at all. Both
//! leave capacity idle and carry no load near the paper's 0.75. Deviations: a job with x = 0 or y = 0 has no
//! imbalance and is left out of the minimum; without any jobs in it b is infinite. On a live cluster ready
//! reduces go before all maps, since they finish their job. Limits: it has no pools. The classes follow from
//! sizes, and a job whose estimate changes may change class.

use crate::catalogue::{Entry, Parameter};
use crate::plan::{Line, Plan, Reason, Share, order_of};
use crate::policy::Ranked;
use crate::policy::interface::Policy;
use crate::policy::ordered::{can, is_fed, merged};
use crate::view::{Change, Handle, Station, View};

/// Catalogue entry of the policy.
pub(super) const ENTRIES: &[Entry<dyn Policy>] = &[Entry {
    paper: "overlap 4.2, Algorithm 2",
    parameters: &[Parameter {
        name: "idle",
        default: "hand-over",
        meaning: "a share that its class cannot use: `hand-over` to the other, `lost`, or handed over only while \
                  the other class is `empty`",
    }],
    ..Entry::new(
        "split-srpt",
        "map-heavy and shuffle-heavy jobs on separate shares, shortest first in each",
        |arguments| {
            let choice = arguments.choice("idle", &["hand-over", "lost", "empty"])?;
            let idle = [IdleShare::HandOver, IdleShare::Lost, IdleShare::Empty][choice];
            Ok(Box::new(SplitSrpt { idle, ..SplitSrpt::new() }))
        },
    )
}];

/// Use of a share that its class cannot use.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum IdleShare {
    HandOver,
    Lost,
    Empty,
}

/// Remaining size, then seq.
type ClassRank = (u64, u64);

/// Class of jobs, S1 or S2.
#[derive(Debug, Default)]
struct Class {
    /// Number of its jobs present.
    jobs: usize,
    /// Jobs with maps to start.
    mapping: Ranked<ClassRank, Handle>,
    fetching: Ranked<ClassRank, Handle>,
    /// Jobs without segments to fetch that this plan's maps feed. Kept only to reuse its memory.
    fed: Vec<(ClassRank, Handle)>,
}

/// Two classes served concurrently.
#[derive(Debug)]
pub struct SplitSrpt {
    idle: IdleShare,
    /// S1 (map-heavy), S2 (shuffle-heavy).
    classes: [Class; 2],
    /// Jobs with ready reduces.
    reducing: Ranked<u64, Handle>,
    /// Jobs present by imbalance, then seq; those without one are left out.
    imbalances: Ranked<ClassRank, Handle>,
    /// Class of each job present, by handle.
    class_of: Vec<Option<usize>>,
}

/// Class of jobs that map at least as long as they shuffle.
const MAP_HEAVY: usize = 0;
/// Class of jobs that shuffle longer.
const SHUFFLE_HEAVY: usize = 1;

impl SplitSrpt {
    /// Creates a policy that hands over idle shares.
    pub(crate) fn new() -> Self {
        Self {
            idle: IdleShare::HandOver,
            classes: [Class::default(), Class::default()],
            reducing: Ranked::new(),
            imbalances: Ranked::new(),
            class_of: Vec::new(),
        }
    }

    fn leave(&mut self, job: Handle) {
        if let Some(class) = self.class_of.get_mut(job.index()).and_then(Option::take) {
            let class = &mut self.classes[class];
            class.jobs -= 1;
            class.mapping.place(job, None);
            class.fetching.place(job, None);
        }
    }

    fn place(&mut self, view: View<'_>, job: Handle) {
        let seq = view.row(job).seq;
        let [map, shuffle] = [Station::Map, Station::Shuffle].map(|station| view.time_whole(job, station));
        let class = if shuffle <= map { MAP_HEAVY } else { SHUFFLE_HEAVY };
        if self.class_of.len() <= job.index() {
            self.class_of.resize(job.index() + 1, None);
        }
        if self.class_of[job.index()] != Some(class) {
            self.leave(job);
            self.class_of[job.index()] = Some(class);
            self.classes[class].jobs += 1;
        }
        let station = [Station::Map, Station::Shuffle][class];
        let rank = (order_of(view.time_left(job, station)), seq);
        let class = &mut self.classes[class];
        class.mapping.place(job, can(view, job, Station::Map).then_some(rank));
        class.fetching.place(job, can(view, job, Station::Shuffle).then_some(rank));
        self.reducing.place(job, can(view, job, Station::Reduce).then_some(seq));
        // Whole sizes rarely change, so this mostly finds the job at its old place.
        let imbalance = (map / shuffle).max(shuffle / map);
        self.imbalances.place(job, imbalance.is_finite().then(|| (order_of(imbalance), seq)));
    }

    /// `[u1, u2]` of the equations.
    fn fractions(&self) -> [f64; 2] {
        let imbalance = self.imbalances.first().map_or(f64::INFINITY, |((bits, _), _)| f64::from_bits(bits));
        let smaller = 1.0 / (1.0 + imbalance);
        [smaller, 1.0 - smaller]
    }
}

fn reason(view: View<'_>, class: usize, job: Handle) -> Reason {
    let (what, unit, station) = match class {
        MAP_HEAVY => ("map work left", "seconds, among the map-heavy jobs", Station::Map),
        _ => ("shuffle work left", "seconds, among the shuffle-heavy jobs", Station::Shuffle),
    };
    Reason::Smallest { what, value: view.time_left(job, station), unit }
}

impl Class {
    fn grant(&mut self, class: usize, station: Station, view: View<'_>, plan: &mut Plan<'_>, share: Share) {
        if station == Station::Shuffle {
            for job in merged(&self.fetching, self.fed.iter().copied()) {
                if !plan.grant(job, station, share, reason(view, class, job)) {
                    break;
                }
            }
            return;
        }
        for (rank, job) in self.mapping.entries() {
            let left = plan.grant(job, station, share, reason(view, class, job));
            if is_fed(view, plan, job) && !self.fed.contains(&(rank, job)) {
                self.fed.push((rank, job));
            }
            if !left {
                break;
            }
        }
    }
}

impl Policy for SplitSrpt {
    fn name(&self) -> &'static str {
        "split-srpt"
    }

    fn observe(&mut self, view: View<'_>, change: Change) {
        if let Change::Left(job) = change {
            self.leave(job);
            self.imbalances.place(job, None);
            self.reducing.place(job, None);
        }
        for &job in view.touched {
            self.place(view, job);
        }
    }

    fn plan(&mut self, view: View<'_>, plan: &mut Plan<'_>) {
        if 0.0 < plan.remaining(Station::Reduce) {
            for job in self.reducing.iter() {
                if !plan.grant(job, Station::Reduce, Share::All, Reason::Oldest) {
                    break;
                }
            }
        }
        let [u1, u2] = self.fractions();
        let [first, second] = &mut self.classes;
        let alone = self.idle == IdleShare::Empty && (first.jobs == 0 || second.jobs == 0);
        let hands_over = self.idle == IdleShare::HandOver;
        first.fed.clear();
        second.fed.clear();
        if alone {
            for station in [Station::Map, Station::Shuffle] {
                first.grant(MAP_HEAVY, station, view, plan, Share::All);
                second.grant(SHUFFLE_HEAVY, station, view, plan, Share::All);
            }
            return;
        }
        for (station, fractions) in [(Station::Map, [u2, u1]), (Station::Shuffle, [u1, u2])] {
            plan.lines(station, &fractions);
            first.grant(MAP_HEAVY, station, view, plan, Share::In(Line(0)));
            second.grant(SHUFFLE_HEAVY, station, view, plan, Share::In(Line(1)));
            if hands_over && 0.0 < plan.remaining(station) {
                second.grant(SHUFFLE_HEAVY, station, view, plan, Share::All);
                first.grant(MAP_HEAVY, station, view, plan, Share::All);
            }
        }
    }
}
