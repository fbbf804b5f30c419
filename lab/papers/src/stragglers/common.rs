//! Pieces of the figures: workers, placed splits and curves.

use gristmill_scheduler::placement::{Placed, place};
use gristmill_scheduler::queueing::Server;

/// Numbers of workers in the figures of chapter 6.
pub(super) const COUNTS: [u32; 5] = [40, 80, 120, 160, 200];

/// Service rate of slow and fast workers in chapter 6, in tasks per second.
pub(super) const SLOW: f64 = 0.8;
pub(super) const FAST: f64 = 1.0;

/// Returns this many workers, half of them slow.
pub(super) fn halves(count: u32) -> Vec<Server> {
    (0..count).map(|i| Server::exponential(if i < count / 2 { SLOW } else { FAST })).collect()
}

/// Returns the split of this text for half slow and half fast workers.
pub(super) fn placed(split: &str, count: u32, lambda: f64) -> anyhow::Result<Placed> {
    Ok(place(split, &halves(count), lambda)?)
}

/// Returns the mean sojourn time, where it is finite.
pub(super) fn mean(split: &str, count: u32, lambda: f64) -> anyhow::Result<Option<f64>> {
    Ok(Some(placed(split, count, lambda)?.mean).filter(|mean| mean.is_finite()))
}

/// Returns the points of a curve, without infinite ones.
pub(super) fn curve(
    xs: impl IntoIterator<Item = f64>,
    y: impl Fn(f64) -> anyhow::Result<Option<f64>>,
) -> anyhow::Result<Vec<(f64, f64)>> {
    let points = xs.into_iter().map(|x| Ok(y(x)?.map(|y| (x, y))));
    Ok(points.collect::<anyhow::Result<Vec<_>>>()?.into_iter().flatten().collect())
}

/// Returns the point with the smallest value.
pub(super) fn least(points: impl IntoIterator<Item = (f64, f64)>) -> (f64, f64) {
    let least = points.into_iter().reduce(|least, point| if point.1 < least.1 { point } else { least });
    least.unwrap_or((f64::NAN, f64::NAN))
}
