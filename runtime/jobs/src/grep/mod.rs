//! `grep`: the lines that match a pattern, their number, or the number of occurrences of each matching string.

mod count;
mod pattern;
#[cfg(test)]
mod tests;

use super::frequency::{CountColumns, MostFrequent};
use count::{CountLines, CountPerFile};
use gristmill_worker::api::Sum;
use gristmill_worker::prelude::*;
use pattern::LinePattern;
use serde::{Deserialize, Serialize};

/// Prints the lines that match a pattern
///
/// Lines are written in input order, without names of files, and each with a line break. They are the lines that
/// ripgrep prints with --text: `$` matches before the line break but not before a carriage return, and bytes that are
/// not UTF-8 are matched by no character of the pattern.
#[derive(clap::Args, Serialize, Deserialize, Clone, Debug)]
pub struct Grep {
    /// Regular expression (syntax of the Rust crate regex)
    #[arg(value_name = "PATTERN")]
    pub pattern: String,
    /// Text files, or directories of them
    #[arg(required = true, value_name = "INPUT")]
    pub inputs: Vec<String>,
    /// Ignore the case of letters
    #[arg(short, long)]
    pub ignore_case: bool,
    /// Print the lines that do not match
    #[arg(short = 'v', long)]
    pub invert_match: bool,
    /// Print only the matching pieces, each on a line of its own; empty ones are left out
    #[arg(short, long, conflicts_with_all = ["invert_match", "count"])]
    pub only_matching: bool,
    /// Treat the pattern as plain text
    #[arg(short = 'F', long)]
    pub fixed_strings: bool,
    /// Print the number of matching lines, as path:count for each file with any, in input order and one part; for a
    /// single file only the count
    #[arg(short, long)]
    pub count: bool,
    /// Print the number of occurrences of each matching string: count, tab, string; most frequent first, in one part.
    /// All different strings must fit into 512 MiB
    #[arg(long, conflicts_with_all = ["invert_match", "count", "only_matching"])]
    pub count_matches: bool,
}

impl Job for Grep {
    const NAME: &'static str = "grep";

    fn plan(&self) -> Result<JobPlan, PlanError> {
        let pattern = LinePattern::new(&self.pattern, self.ignore_case, self.fixed_strings);
        let pattern = pattern.map_err(|error| PlanError::Parameter {
            parameter: "PATTERN".to_owned(),
            value: format!("{:?}", self.pattern),
            reason: error.to_string(),
        })?;
        let input = Input::lines(&self.inputs);
        let (invert, only_matching) = (self.invert_match, self.only_matching);
        Ok(if self.count_matches {
            JobPlan::map(input, move || CountMatches { pattern: pattern.clone() })
                .combine(Sum::<u64>::default)
                .reduces(1)
                .reduce(|| MostFrequent::new(None, CountColumns::CountKey))
                .rows(RowLayout::tabs([("count", ColumnKind::Integer), ("match", ColumnKind::Text)]))
        } else if self.count {
            let one_input = self.inputs.len() == 1;
            JobPlan::map(input, move || CountLines::new(pattern.clone(), invert))
                .reduces(1)
                .reduce(move || CountPerFile::new(one_input))
        } else {
            JobPlan::map_only(input, move || PrintLines { pattern: pattern.clone(), invert, only_matching })
        })
    }
}

struct PrintLines {
    pattern: LinePattern,
    invert: bool,
    only_matching: bool,
}

impl PrintLines {
    fn print(&self, lines: &[u8], out: &mut Output) {
        self.pattern.for_each_line(lines, self.invert, |line| {
            if self.only_matching {
                self.pattern.for_each_match(line, |piece| out.line(piece));
            } else {
                out.line(line);
            }
        });
    }
}

impl MapOnly for PrintLines {
    fn map(&mut self, record: Record<'_>, out: &mut Output) -> TaskResult {
        self.print(record.bytes(), out);
        Ok(())
    }

    fn block(&mut self, block: Block<'_>, out: &mut Output) -> TaskResult {
        self.print(block.bytes(), out);
        Ok(())
    }
}

struct CountMatches {
    pattern: LinePattern,
}

impl CountMatches {
    fn count(&self, lines: &[u8], out: &mut Emitter<ByteString, u64>) {
        self.pattern.for_each_line(lines, false, |line| {
            self.pattern.for_each_match(line, |piece| out.emit(piece, 1));
        });
    }
}

impl Mapper for CountMatches {
    type Key = ByteString;
    type Value = u64;

    fn map(&mut self, record: Record<'_>, out: &mut Emitter<ByteString, u64>) -> TaskResult {
        self.count(record.bytes(), out);
        Ok(())
    }

    fn block(&mut self, block: Block<'_>, out: &mut Emitter<ByteString, u64>) -> TaskResult {
        self.count(block.bytes(), out);
        Ok(())
    }
}
