//! Time left of live jobs, forecast when it is queried.

use super::deciders::LiveDeciders;
use gristmill_scheduler::core::Core;
use gristmill_scheduler::ids::JobId;
use gristmill_scheduler::sim::cluster::{Deciders, time_left};
use gristmill_scheduler::units::{Span, Time};
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};

/// Minimum age of a forecast before another one is made. One takes up to about 10 ms.
const FORECAST_EVERY: Span = Span::whole_seconds(1);

/// The last forecast: its time, and the times left by then.
#[derive(Default)]
pub(super) struct Forecast(RefCell<Option<(Time, BTreeMap<JobId, Span>)>>);

impl Forecast {
    /// Returns the time left of a live job from now on. `None` before a map of it has ended, as its size is not known
    /// then, and where nothing can be forecast.
    pub(super) fn of_job(&self, now: Time, id: JobId, core: &Core, deciders: &LiveDeciders) -> Option<Span> {
        let job = core.job(id).filter(|job| job.ended.is_none() && 0 < job.maps.done)?;
        let mut last = self.0.borrow_mut();
        if last.as_ref().is_none_or(|(at, _)| *at + FORECAST_EVERY <= now) {
            *last = Some((now, forecast(core, deciders).unwrap_or_default()));
        }
        let (at, left) = last.as_ref()?;
        Some(Span(left.get(&job.id)?.0.saturating_sub(now.since(*at).0)))
    }
}

fn forecast(core: &Core, deciders: &LiveDeciders) -> Option<BTreeMap<JobId, Span>> {
    let policy = deciders.registry.make_policy(&deciders.names.policy).ok()?;
    // A forecast is information: an error in the simulation must not end the master.
    catch_unwind(AssertUnwindSafe(|| time_left(core, Deciders::with_policy(policy)))).ok()?
}
