//! A made-up paper with every kind of block, and a check of markup, for tests of drawings and pages.
//!
//! Not here: production code.

use super::{
    Axis, Block, Cell, Chart, ChartKind, Claim, Column, Compared, ReportTable, Section, Series, Verdict,
};

fn series(name: &str, points: Vec<(f64, f64)>, half_width: Option<f64>, reference: bool) -> Series {
    let half_widths = half_width.map_or_else(Vec::new, |half_width| vec![half_width; points.len()]);
    Series { name: name.to_owned(), points, half_widths, reference }
}

/// Returns a chart of response over load, with intervals and a reference.
pub(crate) fn lines() -> Chart {
    let curve = |factor: f64| -> Vec<(f64, f64)> {
        (1..19).map(|step| f64::from(step) * 0.05).map(|load| (load, factor / (1.0 - load))).collect()
    };
    Chart {
        id: "figure-5".to_owned(),
        caption: "Mean response of `max-srpt` & <others> against load".to_owned(),
        x: Axis::linear("load"),
        y: Axis::linear("mean response, s"),
        kind: ChartKind::Lines,
        series: vec![
            series("max-srpt", curve(1.0), Some(0.4), false),
            series("k-lps:k=100", curve(1.7), Some(0.6), false),
            series("<fcfs>", curve(2.9), None, false),
            series("max-srpt (paper)", curve(1.06), None, true),
        ],
    }
}

/// Returns two distributions on logarithmic axes, long enough to be thinned.
pub(crate) fn steps() -> Chart {
    let curve = |scale: f64| -> Vec<(f64, f64)> {
        (1..5000)
            .map(|step| f64::from(step) / 5000.0)
            .map(|share| (scale * (share / (1.0 - share)), share))
            .collect()
    };
    Chart {
        id: "figure-9".to_owned(),
        caption: "Distribution of the flow time".to_owned(),
        x: Axis::logarithmic("flow time, s"),
        y: Axis::linear("share of the jobs"),
        kind: ChartKind::Steps,
        series: vec![series("max-srpt", curve(1.0), None, false), series("<fcfs>", curve(6.0), None, false)],
    }
}

/// Returns points on two logarithmic axes, one of them at 0, outside of such an axis.
pub(crate) fn points() -> Chart {
    let cloud = (0..200_u32).map(|place| {
        let (x, y) = (f64::from(place * 7919 % 200) / 20.0, f64::from(place * 104_729 % 199) / 40.0);
        (10_f64.powf(x - 3.0), 10_f64.powf(y - 1.0 + x / 5.0))
    });
    let mut cloud: Vec<(f64, f64)> = cloud.collect();
    cloud.push((0.0, 1.0));
    Chart {
        id: "figure-10".to_owned(),
        caption: "Map and shuffle sizes".to_owned(),
        x: Axis::logarithmic("map, s"),
        y: Axis::logarithmic("shuffle, s"),
        kind: ChartKind::Points,
        series: vec![series("jobs", cloud, None, false)],
    }
}

/// Returns bars in groups with whiskers.
pub(crate) fn bars() -> Chart {
    let names = ["small", "middling", "large", "larger than anything that stands on one level line"];
    let group =
        |factor: f64| (0..4).map(|place| (f64::from(place), factor * (1.5 + f64::from(place)))).collect();
    Chart {
        id: "figure-11".to_owned(),
        caption: "Slowdown by size".to_owned(),
        x: Axis::names("size of the job", names.map(str::to_owned)),
        y: Axis::linear("slowdown, 1"),
        kind: ChartKind::Bars,
        series: vec![
            series("max-srpt", group(1.0), Some(0.1), false),
            series("k-lps:k=100", group(1.3), Some(0.2), false),
            series("max-srpt (paper)", group(0.9), None, true),
        ],
    }
}

/// Returns a table with every kind of cell.
pub(crate) fn table() -> ReportTable {
    ReportTable {
        id: "table-2".to_owned(),
        caption: "Means of all policies".to_owned(),
        columns: [("policy", ""), ("mean", "s"), ("jobs", "1"), ("remark", "")]
            .map(|(name, unit)| Column::new(name, unit))
            .to_vec(),
        rows: vec![
            vec![
                Cell::text("max-srpt"),
                Cell::Number { value: 3.326, half_width: Some(0.012) },
                Cell::number(5e7),
                Cell::text("best, by far"),
            ],
            vec![Cell::text("<fcfs>"), Cell::number(f64::INFINITY), Cell::number(5.0), Cell::Empty],
        ],
    }
}

/// Returns numbers with every verdict.
pub(crate) fn comparison() -> Vec<Compared> {
    let one = |what: &str, printed, reference, ours, half_width, verdict, note: &str| Compared {
        what: what.to_owned(),
        printed,
        reference,
        ours,
        half_width,
        verdict,
        note: note.to_owned(),
    };
    vec![
        one("load 0.75, max-srpt", Some(3.32), Some((3.326, 0.012)), 3.326, Some(0.012), Verdict::Holds, ""),
        one("load 0.9, max-srpt", Some(5.58), Some((5.55, 0.049)), 5.552, Some(0.05), Verdict::Holds, ""),
        one(
            "load 0.9, k-lps",
            Some(16.28),
            Some((16.8, 0.33)),
            16.7,
            Some(0.4),
            Verdict::Partly,
            "their run was short",
        ),
        one("lower bound", None, Some((3.28, 0.026)), 3.281, Some(0.02), Verdict::Holds, ""),
        one("literal reading", Some(5.0), None, 5.9, None, Verdict::Fails, "unstable: grows with the jobs"),
        one("at zero", Some(0.0), None, 0.0, None, Verdict::Holds, ""),
        one("no number", Some(1.0), None, f64::NAN, Some(f64::NAN), Verdict::Open, "no trace is public"),
    ]
}

/// Returns claims with every verdict.
pub(crate) fn claims() -> Vec<Claim> {
    let claim = |place: &str, verdict, evidence: &str| Claim {
        place: place.to_owned(),
        statement: "the mean is at most `2α/(1+α)` times the optimum.".to_owned(),
        verdict,
        evidence: evidence.to_owned(),
    };
    vec![
        claim("Corollary 4", Verdict::Holds, "437 instances, largest ratio 1.31 < 1.33"),
        claim("Section 5.2", Verdict::Partly, "for loads up to 0.8"),
        claim("Theorem 4", Verdict::Fails, "jobs (1, 2), (3, 1): 7 > 6"),
        claim("Figure 12", Verdict::Open, "the trace is not public"),
    ]
}

/// Paper with its sections.
pub(crate) struct Paper {
    pub(crate) name: &'static str,
    pub(crate) title: &'static str,
    pub(crate) about: Vec<String>,
    pub(crate) sections: Vec<Section>,
}

/// Returns the made-up paper.
pub(crate) fn paper() -> Paper {
    let section = |id: &str, title: &str, blocks| {
        Section::new(id, title, ["Poisson arrivals, log-normal sizes, 20 seeds from 1 on; `k=100`."], blocks)
    };
    Paper {
        name: "demo",
        title: "A Paper <Made Up> for Tests. A. Author & B. Writer, 1999",
        about: vec!["It shows every kind of block.".to_owned()],
        sections: vec![
            section("figure-5", "Figure 5: response against load", vec![Block::Chart(lines())]),
            section(
                "figure-9",
                "Figures 9 to 11: distributions",
                vec![Block::Chart(steps()), Block::Chart(points()), Block::Chart(bars())],
            ),
            section(
                "table-2",
                "Table 2: means",
                vec![Block::Table(table()), Block::Comparison(comparison())],
            ),
            section("claims", "What else it says", vec![Block::Claims(claims())]),
        ],
    }
}

/// Returns attributes that may load external resources, with their values.
pub(crate) fn references(markup: &str) -> Vec<String> {
    let mut found = Vec::new();
    for name in ["src", "href", "srcset", "action", "data", "poster", "xlink:href"] {
        for piece in markup.split(&format!(" {name}=\"")).skip(1) {
            found.push(piece.split('"').next().unwrap_or_default().to_owned());
        }
    }
    for piece in markup.split("url(").skip(1) {
        found.push(piece.split(')').next().unwrap_or_default().to_owned());
    }
    found
}

/// Panics unless elements are closed in order, attributes are quoted, and text is escaped. Returns the
/// names and attributes of all elements.
pub(crate) fn check_markup(markup: &str) -> Vec<(String, Vec<(String, String)>)> {
    let body = markup.strip_prefix("<!DOCTYPE html>\n").unwrap_or(markup);
    let mut open: Vec<String> = Vec::new();
    let mut all = Vec::new();
    let mut rest = body;
    while let Some(start) = rest.find('<') {
        check_text(&rest[..start]);
        let end =
            rest[start..].find('>').unwrap_or_else(|| panic!("no end of a tag: {:.80}", &rest[start..]));
        let tag = &rest[start + 1..start + end];
        rest = &rest[start + end + 1..];
        if let Some(name) = tag.strip_prefix('/') {
            assert_eq!(open.pop().as_deref(), Some(name), "before {:.80}", rest);
            continue;
        }
        let closed = tag.strip_suffix('/');
        let (name, attributes) = element(closed.unwrap_or(tag));
        if closed.is_none() {
            open.push(name.clone());
        }
        all.push((name, attributes));
    }
    check_text(rest);
    assert_eq!(open, [""; 0], "never closed");
    all
}

fn element(tag: &str) -> (String, Vec<(String, String)>) {
    let (name, mut rest) = tag.split_once([' ', '\n']).unwrap_or((tag, ""));
    assert!(!name.is_empty() && name.bytes().all(|byte| byte.is_ascii_alphanumeric()), "element {name:?}");
    let mut attributes: Vec<(String, String)> = Vec::new();
    while !rest.trim().is_empty() {
        let (attribute, after) = rest.split_once("=\"").unwrap_or_else(|| panic!("in {tag}"));
        let (value, after) = after.split_once('"').unwrap_or_else(|| panic!("in {tag}"));
        let attribute = attribute.trim();
        assert!(!attribute.is_empty() && !attribute.contains([' ', '<', '\'']), "{attribute:?} in {tag}");
        check_text(value);
        assert!(attributes.iter().all(|(other, _)| other != attribute), "{attribute} twice in {tag}");
        attributes.push((attribute.to_owned(), value.to_owned()));
        rest = after;
    }
    (name.to_owned(), attributes)
}

fn check_text(text: &str) {
    for piece in text.split('&').skip(1) {
        let name = piece.split(';').next().unwrap_or_default();
        assert!(["amp", "lt", "gt", "quot", "#39"].contains(&name), "&{name} in {text}");
    }
    for word in text.split(|character: char| !character.is_alphanumeric()) {
        assert!(word != "NaN" && word != "inf" && word != "undefined", "{text}");
    }
}
