//! A whole page: contents, summary, sections, and styles for every screen size and for print.
//!
//! Not here: charts and tables themselves ([`super::svg`] and its siblings), and the location of the page.

use super::blocks;
use super::csv;
use super::escape::{escape, plain, prose};
use super::names::Names;
use super::svg;
use super::tally::{CLAIMS, Tally, Verdicts};
use crate::report::{Block, Section, Verdict};
use gristmill_runtime::PAGE_TOKENS;
use std::fmt::Write;

const STYLE: &str = include_str!("style.css");

/// Content security policy: styles of the page itself, no scripts, and no external resources.
const POLICY: &str = "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'";

/// Group of sections.
#[derive(Clone, Copy, Debug)]
pub struct DocumentPart<'a> {
    /// Name for anchors; may be empty if there is only one part.
    pub name: &'a str,
    /// Heading of the part; may be empty if there is only one part.
    pub title: &'a str,
    /// Introduction, one paragraph each.
    pub about: &'a [String],
    /// Sections in order.
    pub sections: &'a [Section],
    /// Directory next to the page with the [`files`](DocumentPart::files) of this part; `None` without files.
    pub directory: Option<&'a str>,
}

/// Block with the name of its files.
struct NamedBlock<'a> {
    block: &'a Block,
    name: String,
}

/// Section with its anchor.
struct AnchoredSection<'a> {
    section: &'a Section,
    anchor: String,
    blocks: Vec<NamedBlock<'a>>,
}

impl<'a> DocumentPart<'a> {
    fn placed(&self) -> Vec<AnchoredSection<'a>> {
        let (mut anchors, mut files) = (Names::default(), Names::default());
        let place = |section: &'a Section| {
            let anchor = anchors.unique_name(&section.id);
            let anchor = if self.name.is_empty() { anchor } else { format!("{}-{anchor}", self.name) };
            let blocks = section.blocks.iter().map(|block| {
                let name = match block {
                    Block::Chart(chart) => files.unique_name(&chart.id),
                    Block::Table(table) => files.unique_name(&table.id),
                    Block::Comparison(_) => files.unique_name(&format!("{}-compared", section.id)),
                    Block::Claims(_) => files.unique_name(&format!("{}-claims", section.id)),
                };
                NamedBlock { block, name }
            });
            AnchoredSection { section, anchor, blocks: blocks.collect() }
        };
        self.sections.iter().map(place).collect()
    }

    /// Returns the files of this part: names and contents, in order.
    #[must_use]
    pub fn files(&self) -> Vec<(String, String)> {
        let mut files = Vec::new();
        for NamedBlock { block, name } in self.placed().into_iter().flat_map(|placed| placed.blocks) {
            let table = match block {
                Block::Chart(chart) => {
                    files.push((format!("{name}.svg"), svg::file(chart)));
                    csv::chart(chart)
                }
                Block::Table(table) => csv::table(table),
                Block::Comparison(compared) => csv::comparison(compared),
                Block::Claims(claims) => csv::claims(claims),
            };
            files.push((format!("{name}.csv"), table));
        }
        files
    }

    fn anchor(&self) -> String {
        format!("part-{}", self.name)
    }
}

/// Whole page.
#[derive(Clone, Copy, Debug)]
pub struct Document<'a> {
    /// Title of the page.
    pub title: &'a str,
    /// Paragraphs under the title.
    pub lead: &'a [String],
    /// Parts in order.
    pub parts: &'a [DocumentPart<'a>],
    /// True if it starts with the counts of agreeing numbers and of claims that hold.
    pub summary: bool,
    /// Data that differs between runs. It is on the last line, the only one that differs.
    pub footer: &'a [String],
}

impl Document<'_> {
    /// Returns the page as HTML.
    #[must_use]
    pub fn html(&self) -> String {
        let placed: Vec<Vec<AnchoredSection<'_>>> = self.parts.iter().map(DocumentPart::placed).collect();
        let title = plain(self.title);
        let mut out = format!(
            "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\"/>\n\
             <meta http-equiv=\"Content-Security-Policy\" content=\"{POLICY}\"/>\n<meta name=\"viewport\" \
             content=\"width=device-width, initial-scale=1\"/>\n<meta name=\"color-scheme\" content=\"light dark\"/>\n\
             <title>{title}</title>\n<style>\n{PAGE_TOKENS}{STYLE}{}</style>\n</head>\n<body>\n<a class=\"skip\" \
             href=\"#main\">Skip the contents</a>\n",
            svg::STYLE
        );
        let contents = self.contents(&placed);
        let _ = write!(
            out,
            "<header>\n<h1>{title}</h1>\n{}</header>\n<details class=\"contents-top\"><summary>Contents</summary>\n\
             <nav aria-label=\"Contents\">{contents}</nav></details>\n<div class=\"columns\">\n<nav class=\"contents\" \
             aria-label=\"Contents\">{contents}</nav>\n<main id=\"main\">\n",
            paragraphs(self.lead)
        );
        if self.summary {
            self.write_summary(&mut out);
        }
        for (part, placed) in self.parts.iter().zip(&placed) {
            write_part(part, placed, &mut out);
        }
        out.push_str("</main>\n</div>\n");
        if !self.footer.is_empty() {
            let pieces: Vec<String> =
                self.footer.iter().map(|piece| prose(&piece.replace('\n', " "))).collect();
            let _ = writeln!(out, "<footer id=\"run\">{}</footer>", pieces.join(" · "));
        }
        out.push_str("</body>\n</html>\n");
        out
    }

    fn contents(&self, placed: &[Vec<AnchoredSection<'_>>]) -> String {
        let mut out = String::from("<ol class=\"parts\">\n");
        for (part, placed) in self.parts.iter().zip(placed) {
            out.push_str("<li>");
            if !part.title.is_empty() {
                let _ = write!(
                    out,
                    "<a class=\"part\" href=\"#{}\">{} <span>{}</span></a>",
                    part.anchor(),
                    escape(part.name),
                    prose(part.title)
                );
            }
            out.push_str("<ol>\n");
            for AnchoredSection { section, anchor, .. } in placed {
                let _ = writeln!(
                    out,
                    "<li><a href=\"#{anchor}\">{}{}</a></li>",
                    mark(section),
                    numbered(&section.title)
                );
            }
            out.push_str("</ol></li>\n");
        }
        out.push_str("</ol>\n");
        out
    }

    /// Writes the counts of agreeing numbers and of claims that hold, in all and by paper.
    fn write_summary(&self, out: &mut String) {
        let mut all = Tally::default();
        for part in self.parts {
            all.join(&Tally::count(part.sections));
        }
        out.push_str(
            "<section class=\"summary\" aria-labelledby=\"summary\">\n<h2 id=\"summary\">Summary</h2>\n",
        );
        let judged: Vec<(&str, Verdicts)> =
            all.by_source().into_iter().filter(|(_, verdicts)| 0 < verdicts.total()).collect();
        let sentence = |(what, verdicts): &(&str, Verdicts)| {
            let verb = if *what == CLAIMS { "hold" } else { "agree" };
            format!("<b>{}</b> of {} {what} {verb}", verdicts.holds, verdicts.total())
        };
        let sentences: Vec<String> = judged.iter().map(sentence).collect();
        let _ = writeln!(out, "<p class=\"big\">{}.</p>", sentences.join(", "));
        let mut columns = vec![("paper".to_owned(), false)];
        for (what, verdicts) in &judged {
            let word = if *what == CLAIMS { Verdict::word } else { blocks::of_number };
            columns
                .extend(verdicts.by_kind().map(|(verdict, _)| (format!("{what}: {}", word(verdict)), true)));
        }
        let rows = self.parts.iter().map(|part| {
            let tally = Tally::count(part.sections);
            let (name, title) = (escape(part.name), prose(part.title));
            let name =
                format!("<a href=\"#{}\">{name}</a> <span class=\"note\">{title}</span>", part.anchor());
            let shown =
                tally.by_source().into_iter().filter(|(what, _)| judged.iter().any(|(one, _)| one == what));
            let counts = shown.flat_map(|(_, verdicts)| verdicts.by_kind());
            std::iter::once(name).chain(counts.map(|(_, count)| count.to_string())).collect()
        });
        blocks::write_table("papers", "By paper", &columns, rows, out);
        out.push_str("</section>\n");
    }
}

fn paragraphs(texts: &[String]) -> String {
    texts.iter().map(|text| format!("<p>{}</p>\n", prose(text))).collect()
}

/// Returns a title with the part before its colon in bold, which is the number that readers look for.
fn numbered(title: &str) -> String {
    match title.split_once(": ") {
        Some((number, rest)) if number.chars().count() <= 24 => {
            format!("<b>{}</b> {}", prose(number), prose(rest))
        }
        _ => prose(title),
    }
}

/// Returns the verdict on a whole section.
fn mark(section: &Section) -> String {
    let worst = Tally::count(std::slice::from_ref(section)).worst();
    let Some(verdict) = worst else { return "<span class=\"mark\"></span>".to_owned() };
    let (class, mark) = blocks::kind(verdict);
    let word = match verdict {
        Verdict::Holds => "all of it holds",
        Verdict::Partly => "it holds in part",
        Verdict::Fails => "something does not hold",
        Verdict::Open | Verdict::Input => "something is open",
    };
    format!("<span class=\"mark {class}\" role=\"img\" aria-label=\"{word}\" title=\"{word}\">{mark}</span>")
}

fn write_part(part: &DocumentPart<'_>, placed: &[AnchoredSection<'_>], out: &mut String) {
    // Without a heading of its own, a part's sections are directly below the page's title.
    let level = if part.title.is_empty() { 2 } else { 3 };
    if part.title.is_empty() {
        out.push_str("<div class=\"part\">\n");
    } else {
        let anchor = part.anchor();
        let _ = writeln!(
            out,
            "<section class=\"part\" aria-labelledby=\"{anchor}\">\n<h2 id=\"{anchor}\">{}</h2>",
            prose(part.title)
        );
    }
    out.push_str(&paragraphs(part.about));
    for AnchoredSection { section, anchor, blocks: named } in placed {
        let heading = format!(
            "<h{level} id=\"{anchor}\">{} <a class=\"anchor\" href=\"#{anchor}\" aria-label=\"Link to this section\">#</a></h{level}>",
            numbered(&section.title)
        );
        let (heading, end) = match section.folded {
            true => (format!("<details>\n<summary>{heading}</summary>"), "</details>\n"),
            false => (heading, ""),
        };
        let findings: String =
            section.findings.iter().map(|found| format!("<li>{}</li>\n", prose(found))).collect();
        let findings = if findings.is_empty() {
            findings
        } else {
            format!("<ul class=\"findings\">\n{findings}</ul>\n")
        };
        let _ = writeln!(
            out,
            "<section class=\"section\" aria-labelledby=\"{anchor}\">\n{heading}\n{findings}{}",
            paragraphs(&section.text)
        );
        write_blocks(part, named, out);
        let _ = writeln!(out, "{end}</section>");
    }
    out.push_str(if part.title.is_empty() { "</div>\n" } else { "</section>\n" });
}

/// Writes blocks one after the other. Consecutive charts share a row where there is room.
fn write_blocks(part: &DocumentPart<'_>, named: &[NamedBlock<'_>], out: &mut String) {
    let charts = |one: &NamedBlock<'_>| matches!(one.block, Block::Chart(_));
    for run in named.chunk_by(|left, right| charts(left) && charts(right)) {
        let figures = run.iter().all(charts);
        if figures {
            out.push_str(if run.len() == 1 {
                "<div class=\"figures single\">\n"
            } else {
                "<div class=\"figures\">\n"
            });
        }
        for NamedBlock { block, name } in run {
            let path = part.directory.map(|directory| format!("{}/{name}", escape(directory)));
            blocks::html(block, path.as_deref(), out);
        }
        if figures {
            out.push_str("</div>\n");
        }
    }
}

#[cfg(test)]
mod tests;
