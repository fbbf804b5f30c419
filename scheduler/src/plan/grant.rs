//! What a policy grants: shares, their lines and their reasons.

use std::fmt;

/// A class of jobs with a fraction of a station's capacity, from 0.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, serde::Serialize)]
pub struct Line(pub u32);

/// How much a grant is worth.
#[derive(Clone, Copy, PartialEq, Debug, serde::Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Share {
    /// As much as the job can use before the next grant gets any.
    All,
    /// Until the job holds this many slots at the station, those it held before included.
    Slots(u32),
    /// A part in a tier: consecutive grants of this kind are filled together, lowest held per weight first,
    /// until nothing is left or nobody can use more. Above 0 and finite.
    Weight(f64),
    /// As much as the job can use of a line's capacity.
    In(Line),
}

/// Why a policy granted, as data; prints as words.
#[derive(Clone, Copy, PartialEq, Debug, serde::Serialize)]
#[serde(rename_all = "snake_case")]
#[allow(missing_docs, reason = "the names of some fields say all there is to say")]
pub enum Reason {
    /// No older job could use the slot.
    Oldest,
    /// Nobody who could use the slot held less for its weight.
    LowestShare {
        /// Slots held before by the job's pool.
        held: u32,
        /// Weight of the pool.
        weight: f64,
    },
    /// Nobody who could use it had less of this.
    Smallest {
        /// What is compared.
        what: &'static str,
        /// The job's.
        value: f64,
        /// Words that follow the number: its unit, and what it is of.
        unit: &'static str,
    },
    /// Nobody who could use it had more of this.
    Largest {
        /// What is compared.
        what: &'static str,
        /// The job's.
        value: f64,
        /// Words that follow the number: its unit, and what it is of.
        unit: &'static str,
    },
    /// The policy wants the job to hold this many slots.
    Target {
        /// Where the number comes from.
        what: &'static str,
        slots: f64,
    },
    /// Its place in an order of jobs, from 1.
    Place {
        /// Which order.
        order: &'static str,
        place: u32,
    },
    /// Words of a policy of one's own.
    Own(&'static str),
    /// No policy's: another attempt of the task is slow.
    Backup {
        /// How long that one still takes, seconds.
        left: f64,
        /// How long such tasks usually take, seconds.
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
            Reason::Backup { left, usual } => {
                write!(f, "backup of an attempt with {left:.1} s left, where others took {usual:.1} s")
            }
        }
    }
}
