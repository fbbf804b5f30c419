//! Colours of series. The same name has the same colour on a whole page. Within a chart no colour is used
//! twice while there are enough.
//!
//! Shapes of marks also distinguish series. Not here: the palettes (`svg/chart.css`).

use crate::report::{Block, Chart, Section, Series};
use std::collections::{BTreeMap, BTreeSet};

/// Number of colours of a palette.
pub(super) const COLOURS: usize = 8;

/// Number of colours at the start of the palettes that are farthest from each other.
const CLEAREST: usize = 5;

/// Appearance of a series.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) struct Look {
    /// Index into a palette.
    pub(super) colour: usize,
    /// 0 for the first series of this colour. Later ones have different dashes.
    pub(super) round: usize,
}

/// Appearance of all series on a page, by name.
#[derive(Debug, Default)]
pub struct Colours {
    looks: BTreeMap<String, Look>,
}

impl Colours {
    /// Assigns the colours of everything drawn in these sections, in order of appearance.
    #[must_use]
    pub fn of<'a>(sections: impl IntoIterator<Item = &'a Section>) -> Self {
        let blocks = sections.into_iter().flat_map(|section| &section.blocks);
        Self::of_charts(blocks.filter_map(|block| match block {
            Block::Chart(chart) => Some(chart),
            _ => None,
        }))
    }

    /// Assigns the colours of these charts.
    #[must_use]
    pub fn of_charts<'a>(charts: impl IntoIterator<Item = &'a Chart>) -> Self {
        let charts: Vec<&Chart> = charts.into_iter().collect();
        let plain: BTreeSet<&str> = charts
            .iter()
            .flat_map(|chart| &chart.series)
            .filter(|series| !series.reference)
            .map(|series| series.name.as_str())
            .collect();
        let mut order: Vec<&str> = Vec::new();
        let mut together: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
        for chart in &charts {
            let names: Vec<&str> = chart.series.iter().map(|series| key(series, &plain)).collect();
            for &name in &names {
                if !together.contains_key(name) {
                    order.push(name);
                }
                together.entry(name).or_default().extend(names.iter().filter(|&&other| other != name));
            }
        }
        let mut looks: BTreeMap<String, Look> = BTreeMap::new();
        for name in order {
            let neighbours = together.get(name).into_iter().flatten();
            let taken: BTreeSet<Look> = neighbours.filter_map(|&other| looks.get(other).copied()).collect();
            let mut uses = [0; COLOURS];
            looks.values().for_each(|look| uses[look.colour] += 1);
            // Among the free looks: the lowest round, then the clearest colours, then the one with the
            // fewest names.
            let free = (0_usize..).flat_map(|round| (0..COLOURS).map(move |colour| Look { colour, round }));
            let free = free.take((taken.len() / COLOURS + 1) * COLOURS).filter(|look| !taken.contains(look));
            let first =
                free.min_by_key(|look| (look.round, CLEAREST <= look.colour, uses[look.colour], look.colour));
            looks.insert(name.to_owned(), first.unwrap_or(Look { colour: 0, round: 0 }));
        }
        // References that share the colour of their base series are also stored under their own names.
        for series in charts.iter().flat_map(|chart| &chart.series) {
            if let Some(&look) = looks.get(key(series, &plain)) {
                looks.insert(series.name.clone(), look);
            }
        }
        Self { looks }
    }

    /// Returns the appearance of this series.
    pub(super) fn look(&self, series: &Series) -> Look {
        self.looks.get(&series.name).copied().unwrap_or(Look { colour: 0, round: 0 })
    }
}

/// Returns the name whose colour a series has. A reference such as "srpt (paper)" has that of "srpt", if
/// it exists.
fn key<'a>(series: &'a Series, plain: &BTreeSet<&str>) -> &'a str {
    let name = series.name.as_str();
    if !series.reference || plain.contains(name) {
        return name;
    }
    let bases = [" (", ", ", ": "].iter().filter_map(|&mark| name.rsplit_once(mark));
    bases.map(|(base, _)| base).find(|base| plain.contains(base)).unwrap_or(name)
}

#[cfg(test)]
mod tests {
    use super::{COLOURS, Colours};
    use crate::report::{Axis, Chart, ChartKind, Series};
    use std::collections::BTreeSet;

    fn chart(names: &[&str]) -> Chart {
        let series = names.iter().map(|&name| Series {
            name: name.to_owned(),
            reference: name.ends_with("(paper)"),
            ..Series::default()
        });
        Chart {
            id: String::new(),
            caption: String::new(),
            x: Axis::linear(""),
            y: Axis::linear(""),
            kind: ChartKind::Lines,
            series: series.collect(),
        }
    }

    #[test]
    fn name_has_one_colour_on_the_page_and_its_reference_the_same() {
        let charts =
            [chart(&["a", "b", "a (paper)"]), chart(&["c", "b", "bound (paper)"]), chart(&["c", "a"])];
        let colours = Colours::of_charts(&charts);
        let look = |chart: usize, place: usize| colours.look(&charts[chart].series[place]);
        assert_eq!(look(0, 0), look(0, 2));
        assert_eq!(look(0, 0), look(2, 1));
        assert_eq!(look(1, 0), look(2, 0));
        let of_second: BTreeSet<usize> = (0..3).map(|place| look(1, place).colour).collect();
        assert_eq!(of_second.len(), 3, "a chart shows no colour twice");
    }

    #[test]
    fn no_look_comes_twice_in_a_chart_however_many_series_it_has() {
        let names: Vec<String> = (0..3 * COLOURS + 1).map(|place| format!("series {place}")).collect();
        let names: Vec<&str> = names.iter().map(String::as_str).collect();
        let charts = [chart(&names[20..]), chart(&names)];
        let colours = Colours::of_charts(&charts);
        let looks: BTreeSet<_> = charts[1].series.iter().map(|series| colours.look(series)).collect();
        assert_eq!(looks.len(), names.len());
    }
}
