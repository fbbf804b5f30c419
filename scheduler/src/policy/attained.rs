//! Policies that order jobs by one number of their own: the service that they have had, for unknown sizes, or their size.
//!
//! Papers: `las` is foreground-background (Kleinrock, *Queueing Systems* II, 4.6), least attained service in Tiresias
//! (Gu et al., NSDI 2019). `d-clas` is the discretized form of Aalo (Chowdhury and Stoica, SIGCOMM 2015, section 4) and
//! of Tiresias' two-dimensional LAS. `psjf` is preemptive shortest job first (Harchol-Balter, *Performance Modeling and
//! Design of Computer Systems*, chapter 32; Wierman, Harchol-Balter and Osogami, SIGMETRICS 2005).
//! `gamma-boost` is by Yu and Scully, *Strongly Tail-Optimal Scheduling in the Light-Tailed M/G/1* (POMACS 2024, definition 3.1).
//! Rule of `las`: least slot-seconds of finished and running work first. Rule of `d-clas`: queues of jobs by these
//! slot-seconds, whose thresholds grow by a factor, the lowest first; by arrival within a queue, so that equal jobs do not
//! share everything and all end late. Rule of `psjf`: least total work at map and reduce first, of a job as it came; an
//! error of a size does not grow in importance as the job nears its end. Rule of `gamma-boost`: earliest arrival minus
//! boost first, where the boost of a job of `s` seconds is `ln(1 / (1 - exp(-gamma s))) / gamma`: a short job comes as if it
//! had arrived earlier. Ties: the older.
//! Required: nothing for `las` and `d-clas`, where estimates cancel out, except that a running task counts as far as the
//! estimator follows it; the work of every job for
//! `psjf` and `gamma-boost`.
//! Favours short jobs where sizes vary much; equal jobs are better served by `fifo`.
//! Parameters: `first` and `factor`, thresholds of `d-clas`; `gamma` of `gamma-boost`, per second: the paper's is the rate at
//! which the tail of flow times falls under `fifo`; `preemptive` (no): allows suspending running reduces.
//! Deviations: many slots and tasks that are not interrupted. The queues of Aalo share by weight, those here are strict, as
//! Tiresias' are; no job is promoted after a wait. An estimate that changes moves a job of `psjf`. The shuffle follows the
//! same order.

use crate::catalogue::{Entry, Parameter};
use crate::plan::{Plan, Reason, order_of};
use crate::policy::asrpt::PREEMPTIVE;
use crate::policy::interface::Policy;
use crate::policy::ordered::{Ordered, ShuffleRule, turn};
use crate::station::Station;
use crate::view::{Change, Row, View};

/// Catalogue entries of the policies.
pub(super) const ENTRIES: &[Entry<dyn Policy>] = &[
    Entry {
        paper: "Tiresias 3.1; Kleinrock II, 4.6",
        parameters: &[PREEMPTIVE],
        ..Entry::new("las", "least attained service first, for unknown sizes", |arguments| {
            Ok(Box::new(ByNumber::new(RowNumber::Attained, arguments.flag("preemptive")?)))
        })
    },
    Entry {
        paper: "Aalo 4; Tiresias 3.1",
        parameters: &[
            Parameter {
                name: "first",
                default: "10",
                meaning: "slot-seconds at which jobs leave the first queue",
            },
            Parameter { name: "factor", default: "10", meaning: "ratio of a threshold to the one before" },
            PREEMPTIVE,
        ],
        ..Entry::new("d-clas", "queues by attained service, each first in first out", |arguments| {
            let above = |least: f64| move |value: f64| least < value && value.is_finite();
            let first = arguments.value("first", 10.0, "a number above 0", above(0.0))?;
            let factor = arguments.value("factor", 10.0, "a number above 1", above(1.0))?;
            Ok(Box::new(ByNumber::new(RowNumber::Queue([first, factor]), arguments.flag("preemptive")?)))
        })
    },
    Entry {
        paper: "Yu and Scully 2024",
        parameters: &[
            Parameter {
                name: "gamma",
                default: "0.1",
                meaning: "rate at which flow times fall off, per second",
            },
            PREEMPTIVE,
        ],
        ..Entry::new("gamma-boost", "earliest arrival first, that of short jobs moved forward", |arguments| {
            let gamma = arguments
                .value("gamma", 0.1, "a number from 1e-6 to 1e6", |gamma| (1e-6..=1e6).contains(&gamma))?;
            Ok(Box::new(ByNumber::new(RowNumber::Boost(gamma), arguments.flag("preemptive")?)))
        })
    },
    Entry {
        paper: "Harchol-Balter, chapter 32",
        parameters: &[PREEMPTIVE],
        ..Entry::new("psjf", "least total work first, of what a job had when it came", |arguments| {
            Ok(Box::new(ByNumber::new(RowNumber::Size, arguments.flag("preemptive")?)))
        })
    },
];

/// Slot-seconds that a job's maps and reduces have had.
pub(super) fn attained(row: &Row) -> f64 {
    let at = |station: Station| (row.whole[station] - row.left[station]).max(0.0);
    at(Station::Map) + at(Station::Reduce)
}

/// Seconds below which a job is boosted no further.
const SECONDS_MIN: f64 = 1e-6;

/// Boost of a job that takes these seconds with every slot.
fn boost(seconds: f64, gamma: f64) -> f64 {
    -(-(-gamma * seconds.max(SECONDS_MIN)).exp_m1()).ln() / gamma
}

/// Number that orders jobs, smallest first.
#[derive(Clone, Copy, Debug)]
enum RowNumber {
    /// Service had, slot-seconds.
    Attained,
    /// Queue by it, from 0: the first threshold in slot-seconds, and the factor between thresholds.
    Queue([f64; 2]),
    /// Total work, slot-seconds.
    Size,
    /// Arrival minus boost plus the largest boost, in seconds, with this rate per second.
    Boost(f64),
}

impl RowNumber {
    fn value(self, row: &Row, slots: f64) -> f64 {
        let size = row.whole[Station::Map] + row.whole[Station::Reduce];
        match self {
            Self::Attained => attained(row),
            Self::Queue([first, _]) if attained(row) < first => 0.0,
            Self::Queue([first, factor]) => 1.0 + ((attained(row) / first).ln() / factor.ln()).floor(),
            Self::Size => size,
            Self::Boost(gamma) => {
                row.arrival.seconds() + boost(SECONDS_MIN, gamma) - boost(size / slots, gamma)
            }
        }
    }

    /// Returns the name of the policy, and the name and unit of the number.
    const fn words(self) -> [&'static str; 3] {
        match self {
            Self::Attained => ["las", "service so far", "slot-seconds"],
            Self::Queue(_) => ["d-clas", "queue", "from 0, by service so far"],
            Self::Boost(_) => ["gamma-boost", "arrival minus boost", "seconds, plus the largest boost"],
            Self::Size => ["psjf", "total work", "slot-seconds"],
        }
    }
}

/// Jobs by a number, then age.
#[derive(Debug)]
struct ByNumber {
    number: RowNumber,
    preemptive: bool,
    jobs: Ordered<(u64, u64)>,
}

impl ByNumber {
    fn new(number: RowNumber, preemptive: bool) -> Self {
        Self { number, preemptive, jobs: Ordered::default() }
    }
}

impl Policy for ByNumber {
    fn name(&self) -> &'static str {
        self.number.words()[0]
    }

    fn counts_slots(&self) -> bool {
        true
    }

    fn preempts(&self) -> bool {
        self.preemptive
    }

    fn observe(&mut self, view: View<'_>, change: Change) {
        let number = self.number;
        self.jobs.observe(view, change, |view, job| {
            let row = view.row(job);
            (order_of(number.value(row, view.cap[Station::Map])), turn(row))
        });
    }

    fn plan(&mut self, view: View<'_>, plan: &mut Plan<'_>) {
        let number = self.number;
        let [_, what, unit] = number.words();
        let reason = |view: View<'_>, job| {
            let value = number.value(view.row(job), view.cap[Station::Map]);
            Reason::Smallest { what, value, unit }
        };
        self.jobs.plan(view, plan, ShuffleRule::All, reason);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn row(maps: [f64; 2], reduces: [f64; 2]) -> Row {
        let at = |place: usize| [maps[place], 7.0, reduces[place]].into();
        Row { whole: at(0), left: at(1), ..Row::default() }
    }

    proptest! {
        #[test]
        fn service_is_that_of_maps_and_reduces_and_of_no_estimate(
            (maps, reduces) in (0.0..100.0_f64, 0.0..100.0_f64),
            (maps_left, reduces_left) in (0.0..1e6_f64, 0.0..1e6_f64),
        ) {
            let seen = attained(&row([maps + maps_left, maps_left], [reduces + reduces_left, reduces_left]));
            prop_assert!((seen - maps - reduces).abs() < 1e-6, "{seen}");
        }

        #[test]
        fn a_queue_ends_at_a_threshold_that_is_the_factor_times_the_one_before(
            first in 0.1..100.0, factor in 1.5..20.0, place in 0..6_i32, inside in 0.01..0.99,
        ) {
            let queue = RowNumber::Queue([first, factor]);
            let ends = |place: i32| if place == 0 { 0.0 } else { first * f64::powi(factor, place - 1) };
            let attained = ends(place) + inside * (ends(place + 1) - ends(place));
            let seen = queue.value(&row([attained, 0.0], [0.0; 2]), 1.0);
            prop_assert_eq!(seen, f64::from(place));
        }
    }
}
