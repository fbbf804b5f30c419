//! Tests of pages, on a made-up paper with every kind of block.

use super::{Document, DocumentPart};
use crate::report::page;
use crate::report::tests::{Paper, check_markup, paper, references};
use crate::report::{Block, Section};
use std::collections::BTreeSet;

fn book(papers: &[Paper]) -> String {
    let parts: Vec<DocumentPart<'_>> = papers.iter().map(part).collect();
    let footer = ["2026-11-21".to_owned(), "a machine\nwith <two> lines".to_owned()];
    let lead = ["Run with `--quick`.".to_owned()];
    Document { title: "All & everything", lead: &lead, parts: &parts, summary: true, footer: &footer }.html()
}

fn part(paper: &Paper) -> DocumentPart<'_> {
    DocumentPart {
        name: paper.name,
        title: paper.title,
        about: &paper.about,
        sections: &paper.sections,
        directory: Some(paper.name),
    }
}

fn other() -> Paper {
    Paper { name: "other", title: "Another One. Author, 2000", ..paper() }
}

#[test]
fn page_is_well_formed_and_asks_for_nothing_elsewhere() {
    for html in [book(&[paper(), other()]), page("A <simulation>", &paper().sections), page("", &[])] {
        let elements = check_markup(&html);
        let mut ids = BTreeSet::new();
        for (_, attributes) in &elements {
            for (name, value) in attributes {
                assert!(name != "id" || ids.insert(value.clone()), "id {value} twice");
                assert!(!name.starts_with("on"), "a script in {name}");
            }
        }
        for reference in references(&html) {
            match reference.strip_prefix('#') {
                Some(anchor) => assert!(ids.contains(anchor), "#{anchor} leads nowhere"),
                None => assert!(!reference.contains(':') && !reference.starts_with('/'), "{reference}"),
            }
        }
        assert!(elements.iter().all(|(name, _)| name != "script" && name != "link" && name != "img"));
        assert!(!html.contains("@import"));
    }
}

#[test]
fn page_names_every_section_in_its_contents_and_counts_the_verdicts() {
    let html = book(&[paper(), other()]);
    for anchor in ["demo-figure-5", "demo-figure-9", "demo-table-2", "other-claims"] {
        assert!(html.contains(&format!("href=\"#{anchor}\"")) && html.contains(&format!("id=\"{anchor}\"")));
    }
    assert!(html.contains("<b>6</b> of 12 printed numbers agree"), "two papers with 3 of 6 each");
    assert!(html.contains("<b>2</b> of 2 reference numbers agree"), "one has no printed number");
    assert!(html.contains("<b>2</b> of 8 claims hold"));
    assert!(html.contains("<b>Figure 5</b> response against load"));
    assert!(html.contains("Paper &lt;Made Up&gt;"));
}

#[test]
fn links_lead_to_the_files_of_a_part() {
    let demo = paper();
    let part = part(&demo);
    let html = book(std::slice::from_ref(&demo));
    let files = part.files();
    let names: BTreeSet<&str> = files.iter().map(|(name, _)| name.as_str()).collect();
    assert_eq!(names.len(), files.len(), "no name twice");
    for (name, content) in &files {
        assert!(html.contains(&format!("href=\"demo/{name}\"")), "{name} is not linked");
        assert!(!content.is_empty());
        if name.ends_with(".svg") {
            check_markup(content);
        }
    }
    let linked = references(&html).into_iter().filter(|reference| !reference.starts_with('#'));
    for reference in linked {
        assert!(names.contains(reference.strip_prefix("demo/").unwrap()), "{reference} is not there");
    }
}

#[test]
fn all_that_changes_from_run_to_run_stands_on_the_last_line_before_the_end() {
    let html = book(&[paper()]);
    let lines: Vec<&str> = html.lines().filter(|line| line.contains("2026-11-21")).collect();
    assert_eq!(lines.len(), 1);
    assert_eq!(lines[0], "<footer id=\"run\">2026-11-21 · a machine with &lt;two&gt; lines</footer>");
    assert!(html.ends_with(&format!("{}\n</body>\n</html>\n", lines[0])));
}

#[test]
fn headings_never_skip_a_level() {
    for html in [book(&[paper()]), page("Title", &paper().sections)] {
        let mut before = 0;
        for (name, _) in check_markup(&html) {
            let Some(level) = name.strip_prefix('h').and_then(|level| level.parse::<u32>().ok()) else {
                continue;
            };
            assert!(level <= before + 1, "h{level} after h{before}");
            before = level;
        }
        assert!(0 < before);
    }
}

#[test]
fn sections_and_charts_of_one_name_get_anchors_and_files_of_their_own() {
    let mut demo = paper();
    let again: Vec<Section> = demo.sections.clone();
    demo.sections.extend(again);
    let html = book(std::slice::from_ref(&demo));
    assert!(html.contains("id=\"demo-figure-5-2\"") && html.contains("demo/figure-5-2.svg"));
}

#[test]
fn hostile_words_stay_words() {
    let mut demo = paper();
    let words = "</style><script>alert(1)</script>\" onload='x' &amp;";
    demo.sections[0].title = words.to_owned();
    demo.sections[0].id = words.to_owned();
    for block in demo.sections.iter_mut().flat_map(|section| &mut section.blocks) {
        match block {
            Block::Chart(chart) => {
                chart.caption = words.to_owned();
                chart.x.label = words.to_owned();
                chart.series[0].name = words.to_owned();
            }
            Block::Table(table) => table.columns[0].name = words.to_owned(),
            Block::Comparison(compared) => compared[0].note = words.to_owned(),
            Block::Claims(claims) => claims[0].evidence = words.to_owned(),
        }
    }
    let html = book(std::slice::from_ref(&demo));
    assert!(html.contains("content=\"default-src 'none'; style-src 'unsafe-inline';"));
    let elements = check_markup(&html);
    assert!(elements.iter().all(|(name, _)| name != "script"));
}

#[test]
fn same_data_give_the_same_bytes() {
    assert_eq!(book(&[paper(), other()]), book(&[paper(), other()]));
}

#[test]
fn note_that_stands_at_several_numbers_is_said_once() {
    let mut demo = paper();
    for block in demo.sections.iter_mut().flat_map(|section| &mut section.blocks) {
        if let Block::Comparison(compared) = block {
            compared.iter_mut().take(3).for_each(|one| one.note = "a long <story>".to_owned());
        }
    }
    let html = book(std::slice::from_ref(&demo));
    assert_eq!(html.matches("a long &lt;story&gt;").count(), 1);
    assert_eq!(html.matches("<sup>1</sup>").count(), 3);
}
