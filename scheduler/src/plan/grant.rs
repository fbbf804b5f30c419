//! Grants of a policy: the share of a station's capacity that a job gets, and the reason, which is displayed to users.

use std::fmt;

/// A class of jobs with a fraction of a station's capacity, from 0.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, serde::Serialize)]
pub struct Line(pub u32);

/// Amount of a grant.
#[derive(Clone, Copy, PartialEq, Debug, serde::Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Share {
    /// All that the job can use, before the next grant gets any.
    All,
    /// Until the job holds this many slots at the station, including those it held before.
    Slots(u32),
    /// Weight in a tier: consecutive grants of this kind are filled together, fewest slots per weight first, until
    /// nothing is left or no job can use more. Above 0 and finite.
    Weight(f64),
    /// All that the job can use of a line's capacity.
    In(Line),
}

/// Reason of a grant as data; displayed as text.
#[derive(Clone, Copy, PartialEq, Debug, serde::Serialize)]
#[serde(rename_all = "snake_case")]
#[allow(missing_docs, reason = "the names of some fields say all there is to say")]
pub enum Reason {
    /// No older job could use the slot.
    Oldest,
    /// No job that could use the slot held less per weight.
    LowestShare {
        /// Slots already held by the job's pool.
        held: u32,
        /// Weight of the pool.
        weight: f64,
    },
    /// No job that could use it had a smaller value.
    Smallest {
        /// Name of the value.
        what: &'static str,
        /// Value of the job.
        value: f64,
        /// Text after the number: its unit and object.
        unit: &'static str,
    },
    /// No job that could use it had a larger value.
    Largest {
        /// Name of the value.
        what: &'static str,
        /// Value of the job.
        value: f64,
        /// Text after the number: its unit and object.
        unit: &'static str,
    },
    /// The policy wants the job to hold this many slots.
    Target {
        /// Origin of the number.
        what: &'static str,
        slots: f64,
    },
    /// Position of the job in an order, from 1.
    Place {
        /// Name of the order.
        order: &'static str,
        place: u32,
    },
    /// Second attempt of a task of a small job, started without a sign of slowness.
    Clone,
    /// Text of a custom policy.
    Own(&'static str),
    /// Speculative attempt, granted by no policy: another attempt of the task is slow.
    Backup {
        /// Estimated time left of that attempt, seconds.
        left: f64,
        /// Usual time of such tasks, seconds.
        usual: f64,
    },
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Reason::Oldest => f.write_str("its job is the oldest that could use the slot"),
            Reason::LowestShare { held, weight } => {
                write!(f, "its pool held the least for its weight: {held} slots at weight {weight}")
            }
            Reason::Smallest { what, value, unit } => {
                write!(
                    f,
                    "of the jobs that could use the slot, its own has the least {what}: {value:.3} {unit}"
                )
            }
            Reason::Largest { what, value, unit } => {
                write!(
                    f,
                    "of the jobs that could use the slot, its own has the most {what}: {value:.3} {unit}"
                )
            }
            Reason::Target { what, slots } => write!(f, "its job is to hold {slots:.1} slots: {what}"),
            Reason::Place { order, place } => write!(f, "its job is number {place} in the order {order}"),
            Reason::Own(words) => f.write_str(words),
            Reason::Clone => f.write_str("clone of a task of a small job, in case its first attempt is slow"),
            Reason::Backup { left, usual } => {
                write!(
                    f,
                    "speculative attempt: the first one has {left:.1} s left, where others took {usual:.1} s"
                )
            }
        }
    }
}
