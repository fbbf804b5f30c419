//! Charts, tables and pages of the results of experiments and simulations.
//!
//! Everything is plain text in memory: SVG from `svg`, CSV from [`csv`], and self-contained HTML pages
//! without external requests and scripts. The same data produce the same bytes. Not here: the content
//! (experiments create [`Section`]s), and files (callers write them).

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
mod svg;
mod tally;
#[cfg(test)]
pub(crate) mod tests;

pub use chart::{Axis, Chart, ChartKind, Series};
pub use circumstances::Circumstances;
pub use document::{Document, DocumentPart};
pub use escape::escape;
pub use model::{Block, Cell, Claim, Column, Compared, ReportTable, Section, Verdict};
pub use tally::Tally;

/// Returns a page with one section after the other, for content other than papers.
#[must_use]
pub fn page(title: &str, sections: &[Section]) -> String {
    let part = DocumentPart { name: "", title: "", about: &[], sections, directory: None };
    Document { title, lead: &[], parts: &[part], summary: false, footer: &[] }.html()
}
