//! Checks that every claim of every page has made-up results that refute it.

pub(super) mod refuted;
pub(super) mod whole;

use super::words::PaperWords;
use super::{asrpt, deadlines, overlap, pairs, real, stragglers};
use refuted::Rules;

fn all() -> Vec<(Vec<&'static PaperWords>, Vec<Rules>)> {
    vec![
        (vec![&asrpt::WORDS], asrpt::tests::made_up::rules()),
        (vec![&overlap::WORDS], overlap::tests::made_up::rules()),
        (vec![&pairs::WORDS], pairs::tests::made_up::rules()),
        (vec![&deadlines::WORDS], deadlines::tests::made_up::rules()),
        (vec![&stragglers::WORDS], stragglers::tests::made_up::rules()),
        (real::tests::words(), real::tests::made_up::rules()),
    ]
}

/// True if words with holes could have been filled to this text.
fn is_filled(words: &str, text: &str) -> bool {
    let (start, end) = (words.split('{').next(), words.rsplit('}').next());
    text.starts_with(start.unwrap_or_default()) && text.ends_with(end.unwrap_or_default())
}

#[test]
fn every_claim_of_every_page_has_made_up_results_that_refute_it() {
    for (words, rules) in all() {
        let refuted: Vec<_> = rules.iter().flat_map(|rules| &rules.refuted).collect();
        for (place, statement) in words.iter().flat_map(|words| words.statements()) {
            let listed = refuted
                .iter()
                .any(|claim| is_filled(statement, &claim.statement) && is_filled(place, &claim.place));
            assert!(listed, "nothing made up refutes this statement: {place}: {statement}");
        }
    }
}
