//! A core as a line of a journal: written down whole, and made again of that.

use super::Encoded;
use crate::deciders::{DeciderNames, MadeDeciders};
use crate::registry::Registry;
use gristmill_scheduler::core::Core;

/// The core as it is between two instants; `None` while the policy has not seen yet that a job is over.
pub(crate) fn ledger_of(core: &Core) -> Option<Encoded> {
    core.to_save().map(|ledger| Encoded::of(&ledger))
}

/// A core that goes on from a ledger, with the limits and the estimator's memory of this core, and deciders of these
/// names.
///
/// # Errors
/// A ledger that another build has written, or names that mean nothing here, in words.
pub(crate) fn go_on_from(
    core: &Core,
    ledger: &Encoded,
    names: &DeciderNames,
    registry: &Registry,
) -> Result<Core, String> {
    let saved = ledger.decode(usize::MAX).map_err(|error| crate::chain(&error))?;
    let MadeDeciders { policy, placement, mut estimator, .. } = names.clone().make(registry)?;
    estimator.restore(&core.memory())?;
    Ok(Core::go_on_from(saved, core.config().clone(), policy, placement, estimator))
}
