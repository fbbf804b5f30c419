//! Tests of the positions in drawings, on made-up and on random charts.

use super::drawing::POINTS_MAX;
use super::*;
use crate::report::Series;
use crate::report::tests::{bars, check_markup, lines, points, steps};
use crate::report::{Axis, ChartKind};
use proptest::prelude::*;

/// Returns all numbers in the positions of marks, as pairs of x and y: the vertices of paths with
/// absolute commands, circles and the corners of bars.
fn places(svg: &str) -> Vec<(f64, f64)> {
    let mut found = Vec::new();
    for (name, attributes) in check_markup(svg) {
        let value = |wanted: &str| {
            let found = attributes.iter().find(|(name, _)| name == wanted);
            found.map_or(0.0, |(_, value)| value.parse::<f64>().unwrap())
        };
        match name.as_str() {
            "circle" => found.push((value("cx"), value("cy"))),
            "rect" => {
                found.push((value("x"), value("y")));
                found.push((value("x") + value("width"), value("y") + value("height")));
            }
            "path" => {
                let (_, path) = attributes.iter().find(|(name, _)| name == "d").unwrap();
                found.extend(vertices(path));
            }
            _ => {}
        }
    }
    found
}

fn vertices(path: &str) -> Vec<(f64, f64)> {
    let mut at = (0.0, 0.0);
    let mut found = Vec::new();
    let mut rest = path;
    while let Some(command) = rest.chars().next() {
        let end = rest[1..]
            .find(|character: char| character.is_ascii_alphabetic())
            .map_or(rest.len(), |end| end + 1);
        let numbers: Vec<f64> = rest[1..end]
            .split_whitespace()
            .map(|number| number.parse().expect("a number in a path"))
            .collect();
        match (command, numbers.as_slice()) {
            ('M' | 'L', &[x, y]) => at = (x, y),
            ('H', &[x]) => at.0 = x,
            ('V', &[y]) => at.1 = y,
            ('h', &[x]) => at.0 += x,
            ('v', &[y]) => at.1 += y,
            ('a', &[_, _, _, _, _, x, y]) => at = (at.0 + x, at.1 + y),
            ('Z', &[]) => {}
            other => panic!("{other:?} in {path}"),
        }
        found.push(at);
        rest = &rest[end..];
    }
    found
}

/// Draws for a page and for a file, and panics unless the markup is valid and everything is within the
/// drawing.
fn check(chart: &Chart) -> String {
    for alone in [false, true] {
        let svg = draw(chart, alone);
        let (_, attributes) = &check_markup(&svg)[0];
        let (_, view) = attributes.iter().find(|(name, _)| name == "viewBox").unwrap();
        let view: Vec<f64> = view.split(' ').map(|number| number.parse().unwrap()).collect();
        for (x, y) in places(&svg) {
            // Marks on the frame reach beyond it by their own size.
            assert!((0.0..=view[2]).contains(&x) && (-0.5..=view[3]).contains(&y), "{x} {y} beyond {view:?}");
        }
    }
    file(chart)
}

#[test]
fn every_kind_of_chart_is_sound() {
    for chart in [lines(), steps(), points(), bars()] {
        let svg = check(&chart);
        assert!(svg.contains("<title>") && svg.contains("prefers-color-scheme:dark"));
    }
}

#[test]
fn points_lie_where_the_axes_say() {
    let mut chart = lines();
    chart.series.truncate(1);
    chart.series[0].half_widths.clear();
    chart.series[0].points = vec![(0.0, 0.0), (5.0, 50.0), (10.0, 100.0)];
    chart.kind = ChartKind::Points;
    let drawing = Drawing::new(&chart);
    let frame = Frame::new(&drawing, false);
    assert!((frame.up(0.0) - frame.bottom).abs() < 1e-9 && (frame.up(100.0) - frame.top).abs() < 1e-9);
    assert!((frame.across(5.0) - (frame.left + frame.right) / 2.0).abs() < 1e-9);
}

#[test]
fn what_no_axis_can_show_is_left_out_and_counted() {
    let svg = check(&points());
    assert!(svg.contains("1 point beyond what the axes can show"));
    let mut chart = lines();
    chart.series[0].points[0].1 = f64::NAN;
    chart.series[1].points[3].1 = f64::INFINITY;
    chart.series[1].half_widths[4] = f64::NAN;
    assert!(check(&chart).contains("2 points beyond what the axes can show"));
}

#[test]
fn empty_chart_says_so() {
    let mut chart = lines();
    chart.series.iter_mut().for_each(|series| series.points.clear());
    assert!(check(&chart).contains("nothing to show"));
    chart.series.clear();
    assert!(check(&chart).contains("nothing to show"));
}

#[test]
fn single_points_and_equal_values_are_drawn() {
    for y in [0.0, 5.0, -5.0, 1e-12, 1e12] {
        for kind in [ChartKind::Lines, ChartKind::Steps, ChartKind::Points, ChartKind::Bars, ChartKind::Spans]
        {
            for count in [1, 2] {
                let mut chart = Chart { kind, ..lines() };
                chart.series.truncate(1);
                chart.series[0].points = (0..count).map(|x| (f64::from(x), y)).collect();
                chart.series[0].half_widths.clear();
                let svg = check(&chart);
                assert!(!svg.contains("nothing to show") && svg.contains("c0"));
            }
        }
    }
}

#[test]
fn spans_are_bars_in_the_rows_of_their_names() {
    let mut chart = lines();
    chart.kind = ChartKind::Spans;
    chart.y = Axis::names("slot", ["1: 1", "1: 2"].map(str::to_owned));
    chart.series.truncate(1);
    chart.series[0].half_widths.clear();
    chart.series[0].points = vec![(0.0, 0.0), (4.0, 0.0), (2.0, 1.0), (8.0, 1.0)];
    let svg = check(&chart);
    let bars = svg.split("class=\"bar\" d=\"").nth(1).unwrap().split('"').next().unwrap();
    assert_eq!(bars.matches('M').count(), 2, "{bars}");
    let widths: Vec<f64> = bars
        .split('M')
        .skip(1)
        .map(|bar| bar.split('h').nth(1).unwrap().split('v').next().unwrap().parse().unwrap())
        .collect();
    assert!((widths[1] / widths[0] - 1.5).abs() < 0.01, "{widths:?}");
}

#[test]
fn huge_series_make_small_drawings() {
    let mut chart = steps();
    chart.series[0].points =
        (0..300_000).map(|place| (f64::from(place + 1), f64::from(place % 1000))).collect();
    let svg = check(&chart);
    assert!(svg.len() < 60_000, "{} bytes", svg.len());
    assert!(svg.contains("V") && places(&svg).len() < 6 * POINTS_MAX);
}

#[test]
fn tooltips_tell_the_numbers_with_their_labels() {
    let svg = check(&bars());
    assert!(svg.contains("<title>max-srpt\nsize of the job: small\nslowdown, 1: 1.50 ± 0.10</title>"));
    assert!(check(&lines()).contains("\nload: 0.05\nmean response, s: 1.05 ± 0.40</title>"));
}

fn any_value() -> impl Strategy<Value = f64> {
    prop_oneof![
        8 => -1e3..1e3_f64,
        2 => (-1.0..1.0_f64, -200..200_i32).prop_map(|(mantissa, exponent)| mantissa * 10_f64.powi(exponent)),
        1 => any::<f64>(),
        1 => Just(0.0),
    ]
}

/// Text of up to this many characters. None contains the text of a wrong number, such as NaN, which the
/// drawing is searched for.
fn any_words(most: usize) -> impl Strategy<Value = String> + Clone {
    let characters = prop::collection::vec(prop::char::range(' ', '~'), 0..=most);
    characters.prop_map(|characters| {
        characters.into_iter().filter(|character| !"Nnu".contains(*character)).collect()
    })
}

fn any_chart() -> impl Strategy<Value = Chart> {
    let kind = prop::sample::select(vec![
        ChartKind::Lines,
        ChartKind::Steps,
        ChartKind::Points,
        ChartKind::Bars,
        ChartKind::Spans,
    ]);
    let series =
        (prop::collection::vec((any_value(), any_value(), any_value()), 0..40), any_words(40), any::<bool>());
    let axis = (any_words(160), any::<bool>(), prop::collection::vec(any_words(30), 0..6));
    let axis = axis.prop_map(|(label, logarithmic, names)| Axis {
        label,
        logarithmic,
        names: if logarithmic { Vec::new() } else { names },
    });
    (kind, prop::collection::vec(series, 0..12), axis.clone(), axis, any_words(300)).prop_map(
        |(kind, series, x, y, caption)| Chart {
            id: "random".to_owned(),
            caption,
            x,
            y,
            kind,
            series: series
                .into_iter()
                .map(|(points, name, reference)| Series {
                    name,
                    points: points.iter().map(|&(x, y, _)| (x, y)).collect(),
                    half_widths: points.iter().map(|&(_, _, half_width)| half_width.abs()).collect(),
                    reference,
                })
                .collect(),
        },
    )
}

#[test]
fn bars_beyond_the_named_places_stay_within_the_drawing() {
    for x in [-942.0, 942.0] {
        let mut chart = bars();
        chart.x.names = vec![String::new()];
        chart.series.truncate(1);
        chart.series[0].points = vec![(x, 0.0)];
        chart.series[0].half_widths.clear();
        check(&chart);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]
    #[test]
    fn no_chart_breaks_the_drawing(chart in any_chart()) {
        check(&chart);
        prop_assert_eq!(super::file(&chart), super::file(&chart));
    }
}
