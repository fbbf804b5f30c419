//! Tables of placements, and of splits of arriving tasks over workers, by their names on the command line.

use crate::catalogue::{self, CatalogueError, Entry, Make};
use crate::placement::interface::Placement;
use crate::placement::split::{SplitPlacement, TaskSplit};
use crate::placement::{Pull, dm_ep, fair_split, g_m_1, m_ep, optimal, pure_deterministic, pure_stochastic};
use crate::queueing::{Bounds, Dtd, QueueError, QueueSetting, Server, mean_sojourn, sojourn_bounds};

const SPLITS: [Entry<TaskSplit>; 7] = [
    fair_split::ENTRY,
    pure_deterministic::ENTRY,
    pure_stochastic::ENTRY,
    g_m_1::ENTRY,
    m_ep::ENTRY,
    dm_ep::ENTRY,
    optimal::ENTRY,
];

const PLACEMENTS: &[Entry<dyn Placement>] = &[
    Entry {
        paper: "Hadoop's default",
        ..Entry::new("pull", "idle workers take the nearest waiting task", |_| Ok(Box::new(Pull::new())))
    },
    assigned::<0>(),
    assigned::<1>(),
    assigned::<2>(),
    assigned::<3>(),
    assigned::<4>(),
    assigned::<5>(),
    assigned::<6>(),
];

/// Entry of the placement that assigns by a split.
const fn assigned<const PLACE: usize>() -> Entry<dyn Placement> {
    let Entry { name, paper, summary, parameters, .. } = SPLITS[PLACE];
    let make: Make<dyn Placement> = |arguments| {
        let split = (SPLITS[PLACE].make)(arguments)?;
        Ok(Box::new(SplitPlacement::new(SPLITS[PLACE].name, *split)))
    };
    Entry { paper, parameters, ..Entry::new(name, summary, make) }
}

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
#[derive(Clone, PartialEq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum PlaceError {
    /// The split does not exist.
    #[error(transparent)]
    Name(#[from] CatalogueError),
    /// The split has no solution.
    #[error(transparent)]
    Queue(#[from] QueueError),
}

/// Splits `lambda` tasks per second over these workers by the split of this text (`m-ep:d=3.5`).
///
/// # Errors
/// An unknown split, and workers or a rate out of range.
pub fn place(text: &str, servers: &[Server], lambda: f64) -> Result<Placed, PlaceError> {
    let splits: Vec<&'static Entry<TaskSplit>> = const { &SPLITS }.iter().collect();
    let split = catalogue::call(&splits, "placement that splits", text)?;
    let setting = QueueSetting::new(servers, lambda, split.delay)?;
    let division = (split.divide)(&setting)?;
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
