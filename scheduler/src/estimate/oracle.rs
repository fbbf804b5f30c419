//! Uses exact sizes if the driver knows them: in simulations and experiments. Otherwise it predicts as `linear`.
//!
//! For policies whose paper assumes known sizes. On a live cluster a job's sizes are known if its submitter measured
//! them in an isolated run; for other jobs it is equal to `linear`.

use crate::catalogue::Entry;
use crate::estimate::estimator::{Estimator, Facts, Sizes};
use crate::estimate::linear::Linear;

/// Catalogue entry of the estimator.
pub(super) const ENTRY: Entry<dyn Estimator> = Entry {
    aliases: &["exact"],
    paper: "assumed by the ASRPT, overlap and pairs papers",
    ..Entry::new("oracle", "the exact sizes where they are known, else as linear", |_| Ok(Box::new(Oracle)))
};

/// Estimator with exact sizes; see the module.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Oracle;

impl Estimator for Oracle {
    fn name(&self) -> &'static str {
        "oracle"
    }

    fn sizes(&mut self, facts: &Facts<'_>) -> Sizes {
        facts.exact.unwrap_or_else(|| Linear.sizes(facts))
    }

    fn knows(&self, facts: &Facts<'_>) -> bool {
        facts.exact.is_some() || Linear.knows(facts)
    }
}
