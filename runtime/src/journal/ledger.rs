//! A core's state as one line of a journal, and the core rebuilt from it.

use super::Encoded;
use crate::deciders::{DeciderNames, MadeDeciders};
use crate::registry::Registry;
use gristmill_scheduler::core::Core;

/// State of the core between two instants; `None` while the policy has not yet been notified that a job is over.
pub(crate) fn ledger_of(core: &Core) -> Option<Encoded> {
    core.to_save().map(|ledger| Encoded::new(&ledger))
}

/// Rebuilds a core from a ledger, with the limits and the estimator's memory of this core, and deciders of these names.
///
/// # Errors
/// A description of the error: a ledger of another build, or unknown names.
pub(crate) fn go_on_from(
    core: &Core,
    ledger: &Encoded,
    names: &DeciderNames,
    registry: &Registry,
) -> Result<Core, String> {
    let saved = ledger.decode(usize::MAX).map_err(|error| gristmill_worker::error_text::chain(&error))?;
    let MadeDeciders { policy, placement, mut estimator, .. } = names.clone().make(registry)?;
    estimator.restore(&core.memory())?;
    Ok(Core::go_on_from(saved, core.config().clone(), policy, placement, estimator))
}
