//! Placements and splits by name.

use crate::catalogue::{self, CatalogueError, Entry};
use crate::placement::{
    Placement, Pull, Split, SplitPlacement, dm_ep, fair_split, g_m_1, m_ep, optimal, pure_deterministic,
    pure_stochastic,
};
use crate::queueing::{Bounds, Dtd, QueueError, QueueSetting, Server, mean_sojourn, sojourn_bounds};
use std::fmt;

const PULL: Entry<dyn Placement> = Entry {
    name: "pull",
    aliases: &[],
    paper: "Hadoop's default",
    summary: "idle workers take the nearest waiting task",
    parameters: &[],
    only_simulated: None,
    make: |_| Ok(Box::new(Pull::new())),
};

/// Catalogue entry of the placement that assigns by the split of this entry.
macro_rules! assigned {
    ($entry:path) => {
        Entry {
            name: $entry.name,
            aliases: $entry.aliases,
            paper: $entry.paper,
            summary: $entry.summary,
            parameters: $entry.parameters,
            only_simulated: $entry.only_simulated,
            make: |arguments| Ok(Box::new(SplitPlacement::new(($entry.make)(arguments)?))),
        }
    };
}

const PLACEMENTS: &[Entry<dyn Placement>] = &[
    PULL,
    assigned!(fair_split::ENTRY),
    assigned!(pure_deterministic::ENTRY),
    assigned!(pure_stochastic::ENTRY),
    assigned!(g_m_1::ENTRY),
    assigned!(m_ep::ENTRY),
    assigned!(dm_ep::ENTRY),
    assigned!(optimal::ENTRY),
];

const SPLITS: &[Entry<dyn Split>] = &[
    fair_split::ENTRY,
    pure_deterministic::ENTRY,
    pure_stochastic::ENTRY,
    g_m_1::ENTRY,
    m_ep::ENTRY,
    dm_ep::ENTRY,
    optimal::ENTRY,
];

/// Returns all placements that are part of Gristmill.
#[must_use]
pub fn catalogue() -> Vec<&'static Entry<dyn Placement>> {
    PLACEMENTS.iter().collect()
}

/// Creates the placement of this text, `name` or `name:parameter=value,...`.
///
/// # Errors
/// An unknown name, with the known ones and the nearest, or parameters that the placement rejects.
pub fn by_name(text: &str) -> Result<Box<dyn Placement>, CatalogueError> {
    catalogue::call(&catalogue(), "placement", text)
}

/// Returns the placements that are splits.
#[must_use]
pub fn splits() -> Vec<&'static Entry<dyn Split>> {
    SPLITS.iter().collect()
}

/// Creates the split of this text, `name` or `name:parameter=value,...`.
///
/// # Errors
/// As for [`by_name`]; `pull` is not a split.
pub fn split_by_name(text: &str) -> Result<Box<dyn Split>, CatalogueError> {
    catalogue::call(&splits(), "placement that splits", text)
}

/// Result of a split: rates of workers and the resulting times.
#[derive(Clone, PartialEq, Debug)]
pub struct Placed {
    /// Tasks per second for each worker.
    pub rates: Vec<f64>,
    /// Value that is equal for all workers in the split's equilibrium, in a unit defined by the split.
    pub level: Option<f64>,
    /// Mean completion time at each worker, in seconds; infinite if its rate reaches its capacity.
    pub means: Vec<f64>,
    /// Mean sojourn time, in seconds: the mean of the largest completion time. Infinite if one of the means is.
    pub mean: f64,
    /// Bounds of the mean (Lemma 9), in seconds.
    pub bounds: Bounds,
}

/// Error of a split.
#[derive(Clone, PartialEq, Debug)]
#[non_exhaustive]
pub enum PlaceError {
    /// The split does not exist.
    Name(CatalogueError),
    /// The split has no solution.
    Queue(QueueError),
}

impl fmt::Display for PlaceError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            PlaceError::Name(error) => error.fmt(f),
            PlaceError::Queue(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for PlaceError {}

impl From<CatalogueError> for PlaceError {
    fn from(error: CatalogueError) -> Self {
        PlaceError::Name(error)
    }
}

impl From<QueueError> for PlaceError {
    fn from(error: QueueError) -> Self {
        PlaceError::Queue(error)
    }
}

/// Splits `lambda` tasks per second over these workers by the split of this text (`m-ep:d=3.5`).
///
/// # Errors
/// An unknown split, and workers or a rate out of range.
pub fn place(text: &str, servers: &[Server], lambda: f64) -> Result<Placed, PlaceError> {
    Ok(place_by(split_by_name(text)?.as_ref(), servers, lambda)?)
}

/// Splits as [`place`], by an existing split.
///
/// # Errors
/// Workers or a rate out of range.
pub fn place_by(split: &dyn Split, servers: &[Server], lambda: f64) -> Result<Placed, QueueError> {
    let setting = QueueSetting::new(servers, lambda, split.delay())?;
    let division = split.split(&setting)?;
    let (means, mean): (Vec<f64>, f64) = match &division.times {
        Some(times) => (times.iter().map(Dtd::mean).collect(), mean_sojourn(times)?),
        None => {
            let mean_at = |(server, rate): (&Server, &f64)| {
                let own = setting.completion(server, *rate);
                own.map_or(f64::INFINITY, |time| time.mean())
            };
            (servers.iter().zip(&division.rates).map(mean_at).collect(), f64::INFINITY)
        }
    };
    let bounds = sojourn_bounds(&means);
    Ok(Placed { rates: division.rates, level: division.level, means, mean, bounds })
}
