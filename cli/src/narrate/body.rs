//! Steps of a story: what happened, and its text of sentences, short items in a row, and tables.

use gristmill_runtime::api::AttemptRecord;
use gristmill_runtime::plural::counted;
use gristmill_scheduler::units::{Bytes, Span};
use gristmill_worker::narration::{ITEMS_MAX, TEXT_BYTES_MAX, Told, words_of};
use gristmill_worker::sanitize;
use serde::Serialize;

/// Columns of a line of prose.
const WIDTH: usize = 100;

/// Prefix of each line of a step's body.
const INDENT: &str = "                 ";

/// Maximum number of items of a list.
const SHOWN_MAX: usize = 500;

/// Maximum number of values of one key in a cell.
const VALUES_SHOWN_MAX: usize = 200;

/// Maximum bytes of a line of the output.
const LINE_BYTES_MAX: usize = 200;

/// One step of a story.
pub struct StoryStep {
    /// Time, nanoseconds after the job's arrival.
    pub at_ns: u64,
    pub kind: StepKind,
    pub scene: Scene,
    /// One line.
    pub title: String,
    pub body: StoryBody,
}

/// Subject of a step; also the order of steps of one moment.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum StepKind {
    Job,
    Input,
    Placement,
    Map,
    Fetch,
    Failure,
    Reduce,
    Output,
}

/// Event of a step, as the picture shows it.
#[derive(Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum Scene {
    Arrived,
    Input,
    Launched {
        #[serde(flatten)]
        attempt: SceneAttempt,
        worker: String,
    },
    /// The attempt that counts has ended.
    Ended(SceneAttempt),
    /// The attempt does not count.
    Discarded {
        #[serde(flatten)]
        attempt: SceneAttempt,
        why: String,
    },
    /// A worker has the segments of its partitions of a map.
    Fetched {
        map: u32,
        to: String,
    },
    Published,
    Failed,
}

/// Attempt of a task.
#[derive(Serialize)]
pub struct SceneAttempt {
    /// `map` or `reduce`.
    task: String,
    index: u32,
    epoch: u32,
}

impl From<&AttemptRecord> for SceneAttempt {
    fn from(record: &AttemptRecord) -> Self {
        let task = record.attempt.task;
        Self { task: task.kind.to_string(), index: task.index, epoch: record.attempt.epoch }
    }
}

/// Text below the title of a step. Texts of others are sanitized when they are added.
#[derive(Default)]
pub struct StoryBody(Vec<Paragraph>);

enum Paragraph {
    /// Pieces that are joined into lines by this separator.
    Wrapped(Vec<String>, &'static str),
    /// Lines of a table.
    Table(Vec<String>),
}

impl StoryBody {
    /// Adds sentences.
    pub fn words(&mut self, words: impl AsRef<str>) {
        self.wrapped(words.as_ref().split(' '), " ");
    }

    /// Adds short items; `omitted` more were not recorded.
    pub fn row(&mut self, items: &[String], omitted: u64) {
        self.wrapped(items.iter().take(SHOWN_MAX).map(String::as_str), "   ");
        self.left_out(items.len(), omitted);
    }

    /// Returns the kind of each paragraph (`table` or empty) and its text, whose lines are not wrapped.
    pub fn paragraphs(&self) -> Vec<(&'static str, String)> {
        let text = |paragraph: &Paragraph| match paragraph {
            Paragraph::Wrapped(pieces, between) => ("", pieces.join(between)),
            Paragraph::Table(lines) => ("table", lines.join("\n")),
        };
        self.0.iter().map(text).collect()
    }

    /// Adds a table; `omitted` more rows were not recorded.
    pub fn table(&mut self, head: &[&str], rows: &[Vec<String>], omitted: u64) {
        let head: Vec<String> = head.iter().map(|&word| word.to_owned()).collect();
        let shown = rows.iter().take(SHOWN_MAX);
        let shown = shown.map(|row| row.iter().map(|cell| sanitize::line(cell, usize::MAX)).collect());
        let lines: Vec<Vec<String>> = std::iter::once(head).chain(shown).collect();
        let width = |column: usize| {
            let cells = lines.iter().filter_map(|line| line.get(column));
            cells.map(|cell| cell.chars().count()).max().unwrap_or(0)
        };
        let padded = lines.iter().map(|line| {
            let cells = line.iter().enumerate().map(|(column, cell)| format!("{cell:<0$}", width(column)));
            cells.collect::<Vec<_>>().join("   ").trim_end().to_owned()
        });
        self.0.push(Paragraph::Table(padded.collect()));
        self.left_out(rows.len(), omitted);
    }

    fn wrapped<'a>(&mut self, pieces: impl Iterator<Item = &'a str>, between: &'static str) {
        let pieces = pieces.map(|piece| sanitize::line(piece, usize::MAX));
        self.0.push(Paragraph::Wrapped(pieces.collect(), between));
    }

    /// Adds a remark if a list shows less than all.
    fn left_out(&mut self, kept: usize, omitted: u64) {
        let more = kept.saturating_sub(SHOWN_MAX) as u64 + omitted;
        if more > 0 {
            self.words(format!(
                "… and {more} more. A list shows at most {SHOWN_MAX}; an attempt keeps at most {ITEMS_MAX} records, \
                 pairs and groups, and {} of their text.",
                Bytes(TEXT_BYTES_MAX as u64)
            ));
        }
    }
}

/// Returns the whole story.
pub fn text(steps: &[StoryStep]) -> String {
    let step = |(number, step): (usize, &StoryStep)| {
        let (moment, title) = (Span(step.at_ns).to_string(), sanitize::line(&step.title, WIDTH * 2));
        let lines = step.body.0.iter().flat_map(|paragraph| match paragraph {
            Paragraph::Wrapped(pieces, between) => wrap(pieces, between),
            Paragraph::Table(lines) => lines.iter().map(|line| format!("  {line}")).collect(),
        });
        let body: String = lines.map(|line| format!("{INDENT}{line}\n")).collect();
        format!("{moment:>10}  {number:>3}. {title}\n{body}\n")
    };
    (1..).zip(steps).map(step).collect()
}

/// Joins pieces into lines of at most [`WIDTH`] columns.
fn wrap(pieces: &[String], between: &str) -> Vec<String> {
    let mut lines = vec![String::new()];
    for piece in pieces {
        let line = lines.last_mut().filter(|line| {
            line.is_empty() || line.chars().count() + between.len() + piece.chars().count() <= WIDTH
        });
        match line {
            Some(line) if line.is_empty() => *line += piece,
            Some(line) => *line += &format!("{between}{piece}"),
            None => lines.push(piece.clone()),
        }
    }
    lines
}

/// Returns the number of all items of a list.
pub fn all<T>(list: &Told<T>) -> u64 {
    list.kept.len() as u64 + list.omitted
}

/// Returns the first values of a key, and how many more there are; `omitted` were not recorded.
pub fn values(kept: &[String], omitted: u64) -> String {
    let more = kept.len().saturating_sub(VALUES_SHOWN_MAX) as u64 + omitted;
    let shown = kept[..kept.len().min(VALUES_SHOWN_MAX)].join(" ");
    match (shown.is_empty(), more) {
        (_, 0) => shown,
        (true, more) => format!("… {}", counted(more, "value", "values")),
        (false, more) => format!("{shown} … and {more} more"),
    }
}

/// Returns the lines of a part, made readable: columns are separated, and different lines stay different.
pub fn lines(bytes: &[u8]) -> Vec<String> {
    let whole = bytes.strip_suffix(b"\n").unwrap_or(bytes);
    let lines = whole.split(|byte| *byte == b'\n').filter(|_| !bytes.is_empty());
    let shown = lines.map(|line| {
        let fields: Vec<String> = line.split(|byte| *byte == b'\t').map(words_of).collect();
        sanitize::line(&fields.join(" ⇥ "), LINE_BYTES_MAX)
    });
    shown.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_that_differ_are_shown_differently() {
        assert_eq!(
            lines(b"a\r\n\nb\t1\n\xff\t2\n\xfe\t2\n\\xff\t2\n\\u000d"),
            ["a\\u000d", "", "b ⇥ 1", "\\xff ⇥ 2", "\\xfe ⇥ 2", "\\\\xff ⇥ 2", "\\\\u000d"]
        );
        assert_eq!(lines(b""), [""; 0]);
        assert_eq!(lines(b"\n"), [""]);
    }

    #[test]
    fn values_beyond_what_is_shown_or_kept_are_counted() {
        let all = vec!["1".to_owned(); VALUES_SHOWN_MAX + 2];
        assert_eq!(values(&all[..3], 0), "1 1 1");
        assert_eq!(values(&all[..2], 4), "1 1 … and 4 more");
        assert_eq!(values(&[], 4), "… 4 values");
        let shown = values(&all, 5);
        assert!(
            shown.ends_with(" 1 … and 7 more") && shown.matches('1').count() == VALUES_SHOWN_MAX,
            "{shown}"
        );
    }
}
