//! Charts, tables and pages: what experiments and simulations found, made to be looked at.
//!
//! Everything is plain text in memory: SVG from [`svg`], CSV from [`csv`], and HTML pages that stand alone, without a
//! request to anywhere and without scripts. The same data give the same bytes. Not here: what is shown (experiments
//! make [`Section`]s), and files (whoever calls writes them).

mod axis;
mod blocks;
mod chart;
mod circumstances;
mod colour;
pub mod csv;
mod document;
mod escape;
mod model;
pub mod names;
pub mod number;
pub mod svg;
mod tally;
#[cfg(test)]
pub(crate) mod tests;

pub use chart::{Axis, Chart, ChartKind, Series};
pub use circumstances::Circumstances;
pub use colour::Colours;
pub use document::{Document, Part};
pub use escape::escape;
pub use model::{Block, Cell, Claim, Column, Compared, Section, Table, Verdict};
pub use tally::Tally;

/// A page with one section after the other, for whatever is no run of a paper.
#[must_use]
pub fn page(title: &str, sections: &[Section]) -> String {
    let part = Part { name: "", title: "", about: &[], sections, folder: None };
    Document { title, lead: &[], parts: &[part], summary: false, footer: &[] }.html()
}
