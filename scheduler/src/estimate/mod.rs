//! Estimators: predictions of sizes, rates and completion times.
//!
//! An estimator receives facts and returns numbers.

pub mod completion;
pub mod dtd;
mod estimator;
pub mod history;
mod linear;
mod oracle;
mod rates;
mod tasks;

pub use estimator::{Estimator, Facts, ReduceFacts, Sizes};
pub use history::History;
pub use linear::Linear;
pub use oracle::Oracle;
pub use rates::ServiceRates;
pub use tasks::Tasks;

use crate::catalogue::{self, CatalogueError, Entry};

const ENTRIES: &[Entry<dyn Estimator>] = &[tasks::ENTRY, linear::ENTRY, history::ENTRY, oracle::ENTRY];

/// Returns all estimators that are part of Gristmill.
#[must_use]
pub fn catalogue() -> Vec<&'static Entry<dyn Estimator>> {
    ENTRIES.iter().collect()
}

/// Creates the estimator of this text, `name` or `name:parameter=value,...`.
///
/// # Errors
/// An unknown name, with the known ones and the nearest, or parameters that the estimator rejects.
pub fn by_name(text: &str) -> Result<Box<dyn Estimator>, CatalogueError> {
    catalogue::call(&catalogue(), "estimator", text)
}

#[cfg(test)]
mod tests;
