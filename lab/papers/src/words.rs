//! Words of a paper's page (titles, texts, captions and claims), stored as data in a file of each paper.
//!
//! Words have holes, `{name}` or `{name:.2}`, for results. The key of words is the id of the block they
//! describe, and may have holes itself. Not here: the values for the holes, and the judging of claims.

use crate::judge::{Less, Rivals};
use crate::{
    Axis, Block, Cell, Chart, ChartKind, Claim, Column, Paper, ReportTable, Section, Series, Verdict,
};
use serde::Deserialize;
use std::collections::BTreeMap;
use std::sync::OnceLock;

/// Words of one page.
pub(crate) struct PaperWords {
    source: &'static str,
    page: OnceLock<PageWords>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct PageWords {
    title: String,
    about: Vec<String>,
    sections: Named<SectionWords>,
    #[serde(default)]
    charts: Named<BlockWords>,
    #[serde(default)]
    tables: Named<BlockWords>,
    claims: Named<ClaimWords>,
    #[serde(default)]
    notes: Named<String>,
}

type Named<T> = BTreeMap<String, T>;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct SectionWords {
    /// Id of the block. It defaults to the key, and differs if several words have the same id.
    id: Option<String>,
    title: String,
    #[serde(default)]
    text: Vec<String>,
}

/// Words of a chart or a table.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct BlockWords {
    /// Id of the block. It defaults to the key, and differs if several words have the same id.
    id: Option<String>,
    caption: String,
    #[serde(default)]
    kind: ChartKind,
    /// Labels of the axes. That of a logarithmic axis starts with `log: `.
    #[serde(default)]
    x: String,
    #[serde(default)]
    y: String,
    /// Names, with the unit in brackets at the end if there is one.
    #[serde(default)]
    columns: Vec<String>,
}

/// Statement of a paper, and the sentence that describes the result for it.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ClaimWords {
    place: String,
    statement: String,
    /// Rules that some policies have less of something than others.
    #[serde(default)]
    less: Vec<Less>,
    /// Rule that compares one contender's number with those of others.
    rule: Option<Rivals>,
    sentence: String,
}

/// Value of a hole.
#[derive(Clone)]
pub(crate) enum Hole {
    Number(f64),
    Text(String),
}

impl From<f64> for Hole {
    fn from(number: f64) -> Self {
        Self::Number(number)
    }
}

macro_rules! holes_of_text {
    ($($kind:ty),*) => {
        $(impl From<$kind> for Hole {
            fn from(text: $kind) -> Self {
                Self::Text(text.to_string())
            }
        })*
    };
}

holes_of_text!(&str, String, u32, u64, usize);

/// Values for the holes of words: `holes![seeds, least = 0.5]`.
macro_rules! holes {
    ($($name:ident $(= $value:expr)?),* $(,)?) => {
        &[$((stringify!($name), $crate::words::Hole::from($crate::words::holes!(@ $name $($value)?)))),*]
    };
    (@ $name:ident) => { $name };
    (@ $name:ident $value:expr) => { $value };
}
pub(crate) use holes;

/// Name of a hole, and its value.
pub(crate) type Filled = (&'static str, Hole);

/// All holes of some words.
pub(crate) type Holes<'a> = &'a [Filled];

impl PaperWords {
    pub(crate) const fn new(source: &'static str) -> Self {
        Self { source, page: OnceLock::new() }
    }

    fn page(&self) -> &PageWords {
        self.page
            .get_or_init(|| toml::from_str(self.source).expect("part of the program, and read by its tests"))
    }

    /// Returns the page of these sections.
    pub(crate) fn paper(
        &'static self,
        name: &'static str,
        holes: Holes<'_>,
        sections: Vec<Section>,
    ) -> Paper {
        let PageWords { title, about, .. } = self.page();
        Paper { name, title, about: about.iter().map(|text| filled(text, holes)).collect(), sections }
    }

    pub(crate) fn section(&self, key: &str, holes: Holes<'_>, blocks: Vec<Block>) -> Section {
        let words = find(&self.page().sections, key);
        let text = words.text.iter().map(|text| filled(text, holes));
        Section::new(id(key, &words.id, holes), filled(&words.title, holes), text, blocks)
    }

    pub(crate) fn chart(&self, key: &str, holes: Holes<'_>, series: Vec<Series>) -> Block {
        let words = find(&self.page().charts, key);
        let axis = |label: &str| {
            let label = filled(label, holes);
            label.strip_prefix("log: ").map_or_else(|| Axis::linear(&label), Axis::logarithmic)
        };
        let caption = filled(&words.caption, holes);
        let axes = [&words.x, &words.y].map(|label| axis(label));
        Block::Chart(Chart::new(words.kind, id(key, &words.id, holes), caption, axes, series))
    }

    /// Returns a chart whose horizontal axis shows names.
    pub(crate) fn chart_by_name<T: ToString>(
        &self,
        key: &str,
        holes: Holes<'_>,
        names: impl IntoIterator<Item = T>,
        series: Vec<Series>,
    ) -> Block {
        let mut block = self.chart(key, holes, series);
        if let Block::Chart(chart) = &mut block {
            chart.x.names = names.into_iter().map(|name| name.to_string()).collect();
        }
        block
    }

    pub(crate) fn table(&self, key: &str, holes: Holes<'_>, rows: Vec<Vec<Cell>>) -> Block {
        let words = find(&self.page().tables, key);
        let column = |words: &String| {
            let words = filled(words, holes);
            match words.strip_suffix(']').and_then(|words| words.rsplit_once(" [")) {
                Some((name, unit)) => Column::new(name, unit),
                None => Column::new(&words, ""),
            }
        };
        let columns = words.columns.iter().map(column).collect();
        Block::Table(ReportTable::new(
            id(key, &words.id, holes),
            filled(&words.caption, holes),
            columns,
            rows,
        ))
    }

    /// Returns a table with columns that depend on the runs, after those of the words.
    pub(crate) fn table_with(
        &self,
        key: &str,
        holes: Holes<'_>,
        columns: impl IntoIterator<Item = Column>,
        rows: Vec<Vec<Cell>>,
    ) -> Block {
        let mut block = self.table(key, holes, rows);
        if let Block::Table(table) = &mut block {
            table.columns.extend(columns);
        }
        block
    }

    pub(crate) fn claim(&self, key: &str, verdict: impl Into<Verdict>, holes: Holes<'_>) -> Claim {
        let words = find(&self.page().claims, key);
        let [place, statement, sentence] =
            [&words.place, &words.statement, &words.sentence].map(|words| filled(words, holes));
        Claim::new(place, statement, verdict, sentence)
    }

    /// Returns a claim whose sentence is filled for several cases, each with its own holes.
    pub(crate) fn claim_of_cases(
        &self,
        key: &str,
        verdict: impl Into<Verdict>,
        cases: &[Vec<Filled>],
    ) -> Claim {
        let words = find(&self.page().claims, key);
        let sentences: Vec<String> = cases.iter().map(|holes| filled(&words.sentence, holes)).collect();
        Claim::new(&*words.place, &*words.statement, verdict, sentences.join(" "))
    }

    /// Returns the rules of a claim that some policies have less of something than others.
    pub(crate) fn rules(&self, key: &str) -> &[Less] {
        &find(&self.page().claims, key).less
    }

    /// Returns the rule of a claim that compares one contender with others.
    pub(crate) fn rivals(&self, key: &str) -> &Rivals {
        find(&self.page().claims, key).rule.as_ref().unwrap_or_else(|| panic!("`{key}` has no rule"))
    }

    /// Returns keys and statements of all claims, with their holes.
    #[cfg(test)]
    pub(crate) fn statements(&self) -> Vec<(&str, &str)> {
        self.page().claims.values().map(|claim| (&*claim.place, &*claim.statement)).collect()
    }

    pub(crate) fn note(&self, key: &str, holes: Holes<'_>) -> String {
        filled(find::<String>(&self.page().notes, key), holes)
    }
}

#[track_caller]
fn find<'a, T>(words: &'a Named<T>, key: &str) -> &'a T {
    words.get(key).unwrap_or_else(|| panic!("the page has no words for `{key}`"))
}

fn id(key: &str, id: &Option<String>, holes: Holes<'_>) -> String {
    filled(id.as_deref().unwrap_or(key), holes)
}

/// Returns words with their holes filled.
#[track_caller]
fn filled(words: &str, holes: Holes<'_>) -> String {
    let mut parts = words.split('{');
    let mut text = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let (hole, rest) = part.split_once('}').unwrap_or((part, ""));
        let (name, form) = hole.split_once(':').unwrap_or((hole, ""));
        let found = holes.iter().find(|(other, _)| *other == name);
        let (_, content) = found.unwrap_or_else(|| panic!("nothing fills `{{{hole}}}` of: {words}"));
        match content {
            Hole::Text(content) => text.push_str(content),
            Hole::Number(number) => text.push_str(&written(*number, form)),
        }
        text.push_str(rest);
    }
    text
}

/// Formats a number in the forms that words use: ``, `.2`, `+.2`, `.0e`.
fn written(number: f64, form: &str) -> String {
    let digits =
        |form: &str| form.strip_prefix('.').and_then(|digits| digits.parse::<usize>().ok()).unwrap_or(0);
    match (form.strip_prefix('+'), form.strip_suffix('e')) {
        (Some(form), _) => format!("{number:+.0$}", digits(form)),
        (_, Some(form)) => format!("{number:.0$e}", digits(form)),
        _ if form.is_empty() => number.to_string(),
        _ => format!("{number:.0$}", digits(form)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn holes_are_filled_in_the_form_that_the_words_ask_for() {
        let words = "{name}: {ratio:.2}, {ratio}, {ratio:+.1}, {tiny:.0e} of {count}.";
        let filled = filled(words, holes![name = "fair", ratio = 1.256, tiny = 0.000_31, count = 7_usize]);
        assert_eq!(filled, "fair: 1.26, 1.256, +1.3, 3e-4 of 7.");
    }
}
