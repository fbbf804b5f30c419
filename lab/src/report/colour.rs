//! Colours of series: a name has one colour in its chart, and its reference the same.
//!
//! Charts that list the same names in the same order agree in their colours. Not here: the colours themselves, which
//! are in the style sheet of drawings.

use crate::report::{Chart, Series};

/// Number of colours in the style sheet; series beyond it repeat them with other lines and marks.
pub(super) const COLOURS: usize = 8;

/// Look of a series: what tells it apart from the others of its chart.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) struct Look {
    pub(super) colour: usize,
    /// Number of times that all colours were used before.
    pub(super) round: usize,
}

/// Returns the look of each series of a chart, in order.
pub(super) fn looks(chart: &Chart) -> Vec<Look> {
    let plain = chart.series.iter().filter(|series| !series.reference);
    let plain: Vec<&str> = plain.map(|series| series.name.as_str()).collect();
    let mut names: Vec<&str> = Vec::new();
    let look = |series| {
        let name = key(series, &plain);
        let place = names.iter().position(|known| *known == name).unwrap_or(names.len());
        if place == names.len() {
            names.push(name);
        }
        Look { colour: place % COLOURS, round: place / COLOURS }
    };
    chart.series.iter().map(look).collect()
}

/// Returns the name by which a series is coloured: of a reference such as `fifo (paper)` that of the series it belongs to.
fn key<'a>(series: &'a Series, plain: &[&str]) -> &'a str {
    let name = series.name.as_str();
    if !series.reference || plain.contains(&name) {
        return name;
    }
    let bases = [" (", ", ", ": "].iter().filter_map(|&mark| name.rsplit_once(mark));
    bases.map(|(base, _)| base).find(|base| plain.contains(base)).unwrap_or(name)
}

#[cfg(test)]
mod tests {
    use super::{COLOURS, looks};
    use crate::report::{Axis, Chart, ChartKind, Series};
    use std::collections::BTreeSet;

    fn chart(names: &[&str]) -> Chart {
        let series = names.iter().map(|&name| Series {
            name: name.to_owned(),
            reference: name.ends_with("(paper)"),
            ..Series::default()
        });
        Chart::new(ChartKind::Lines, "", "", [Axis::linear(""), Axis::linear("")], series.collect())
    }

    #[test]
    fn reference_has_the_colour_of_its_series() {
        let looks = looks(&chart(&["a", "b", "a (paper)", "bound (paper)"]));
        assert_eq!(looks[0], looks[2]);
        assert_eq!(looks.iter().collect::<BTreeSet<_>>().len(), 3, "other names differ");
    }

    #[test]
    fn no_look_comes_twice_in_a_chart_however_many_series_it_has() {
        let names: Vec<String> = (0..3 * COLOURS + 1).map(|place| format!("series {place}")).collect();
        let names: Vec<&str> = names.iter().map(String::as_str).collect();
        let looks: BTreeSet<_> = looks(&chart(&names)).into_iter().collect();
        assert_eq!(looks.len(), names.len());
    }
}
