//! A story as one page: steps to go through forwards and backwards, next to a chart of attempts and fetches.
//!
//! The page sends no requests and stores nothing. All text is escaped. Its only script is the one below,
//! named by its checksum in the page's policy, so that no other would run. Without scripts all steps are
//! shown one below the other.

mod gantt;

pub use gantt::lanes;

use super::facts::Facts;
use super::step::{Step, StepBlock, StepTable};
use gantt::gantt;
use gristmill_scheduler::units::Span;

const STYLE: &str = include_str!("narrate.css");
const SCRIPT: &str = include_str!("narrate.js");

/// SHA-256 of the script, as the page's policy names it.
const SCRIPT_SUM: &str = "sha256-oOYuK3iDHsgf3CeZv6AMbY5pwTRJ1xuakDnwcDmdeoc=";

/// The page.
pub fn page(facts: &Facts, steps: &[Step]) -> String {
    let status = &facts.trace.status;
    let title = escape(&format!("{} {} told step by step", status.job, status.name));
    let policy =
        format!("default-src 'none'; style-src 'unsafe-inline'; script-src '{SCRIPT_SUM}'; base-uri 'none'");
    let lanes = lanes(facts);
    let sections: String = steps.iter().enumerate().map(|(number, step)| section(number, step)).collect();
    let contents: String = steps
        .iter()
        .enumerate()
        .map(|(number, step)| {
            let kind = step.kind.look().0;
            format!("<li class={kind}><a href=\"#step-{number}\">{}</a></li>\n", prose(&step.title))
        })
        .collect();
    format!(
        "<!doctype html>\n<html lang=en>\n<head>\n<meta charset=utf-8>\n<meta http-equiv=Content-Security-Policy \
         content=\"{policy}\">\n<meta name=viewport content=\"width=device-width,initial-scale=1\">\n\
         <title>{title}</title>\n<style>{STYLE}</style>\n</head>\n<body>\n<header><h1>{title}</h1>\n\
         <p class=help>Arrow keys go forwards and backwards, Home and End to the first and last step. Times count from the \
         job's arrival.</p></header>\n<div class=columns>\n<main>\n<nav class=steps aria-label=Steps hidden>\
         <button id=back>← back</button> <output id=place></output> <button id=next>forward →</button></nav>\n\
         <div id=told aria-live=polite>\n{sections}</div>\n</main>\n<aside>\n<h2>What ran where</h2>\n{}\n\
         <details><summary>All steps</summary>\n<ol>\n{contents}</ol>\n</details>\n</aside>\n</div>\n\
         <script>{SCRIPT}</script>\n</body>\n</html>\n",
        gantt(facts, &lanes)
    )
}

fn section(number: usize, step: &Step) -> String {
    let blocks: String = step.blocks.iter().map(block).collect();
    format!(
        "<section id=step-{number} class={} data-at={} data-about=\"{}\">\n<h2><span class=moment>{}</span> {}</h2>\n\
         {blocks}</section>\n",
        step.kind.look().0,
        step.at_ns,
        escape(&step.about.join(" ")),
        Span(step.at_ns),
        prose(&step.title)
    )
}

fn block(block: &StepBlock) -> String {
    match block {
        StepBlock::Words(words) => format!("<p>{}</p>\n", prose(words)),
        StepBlock::Row(items) => {
            let items: String = items.iter().map(|item| format!("<li>{}</li>", escape(item))).collect();
            format!("<ul class=row>{items}</ul>\n")
        }
        StepBlock::Table(table) => table_of(table),
    }
}

fn table_of(table: &StepTable) -> String {
    let cells = |tag: &str, cells: &mut dyn Iterator<Item = &str>| {
        cells.map(|cell| format!("<{tag}>{}</{tag}>", escape(cell))).collect::<String>()
    };
    let head = cells("th", &mut table.head.iter().copied());
    let row = |row: &Vec<String>| format!("<tr>{}</tr>\n", cells("td", &mut row.iter().map(String::as_str)));
    let rows: String = table.rows.iter().map(row).collect();
    format!(
        "<div class=scroll tabindex=0><table><thead><tr>{head}</tr></thead><tbody>\n{rows}</tbody></table></div>\n"
    )
}

/// Text in an element; backticks mark code, which is styled.
fn prose(words: &str) -> String {
    let pieces: Vec<String> = words.split('`').map(escape).collect();
    if pieces.len().is_multiple_of(2) {
        // An odd number, from a name: then all backticks belong to names.
        return escape(words);
    }
    let look = |(place, piece): (usize, &String)| match place % 2 {
        0 => piece.clone(),
        _ => format!("<code>{piece}</code>"),
    };
    pieces.iter().enumerate().map(look).collect()
}

/// Text in an element, or in an attribute in double quotes.
fn escape(text: &str) -> String {
    gristmill_lab::report::escape(text)
}

#[cfg(test)]
mod tests {
    use super::*;
    use sha2::{Digest, Sha256};

    /// Base64 with padding.
    fn base64(bytes: &[u8]) -> String {
        const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
        let group = |three: &[u8]| {
            let number = (0..3).fold(0_u32, |sum, at| sum << 8 | u32::from(*three.get(at).unwrap_or(&0)));
            let digit = |at: usize| DIGITS[(number >> (18 - 6 * at)) as usize & 63] as char;
            (0..4).map(move |at| if three.len() < at { '=' } else { digit(at) }).collect::<String>()
        };
        bytes.chunks(3).map(group).collect()
    }

    #[test]
    fn words_between_backticks_look_typed_and_markup_in_them_stays_text() {
        assert_eq!(
            prose("the policy `fifo:a=<b>` & more"),
            "the policy <code>fifo:a=&lt;b&gt;</code> &amp; more"
        );
        assert_eq!(prose("one ` too many"), "one ` too many");
        assert_eq!(prose("none"), "none");
    }

    #[test]
    fn policy_names_the_one_script_of_the_page() {
        assert_eq!(base64(b"M"), "TQ==");
        assert_eq!(SCRIPT_SUM, format!("sha256-{}", base64(&Sha256::digest(SCRIPT))));
        assert!(!SCRIPT.contains("</"), "it would end itself");
    }
}
