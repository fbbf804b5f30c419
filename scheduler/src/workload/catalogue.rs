//! Generated workloads by name, with parameters: `overlap:load=0.9,jobs=1000000`.

use super::generator::Generator;
use crate::catalogue::Entry;

/// Returns the generators, without those of the papers' experiments.
#[must_use]
pub fn catalogue() -> Vec<&'static Entry<dyn Generator>> {
    [super::mix::ENTRIES, super::overlap::ENTRIES].into_iter().flatten().collect()
}

/// Creates the generator of this text.
#[cfg(test)]
pub(crate) fn by_name(text: &str) -> Result<Box<dyn Generator>, crate::catalogue::CatalogueError> {
    crate::catalogue::call(&catalogue(), "workload", text)
}
