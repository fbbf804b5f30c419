//! Claims about real runs, judged on made-up ones.

pub(crate) mod made_up;

use super::{asrpt, deadlines, overlap, pairs, stragglers};
use crate::words::PaperWords;

pub(crate) fn words() -> Vec<&'static PaperWords> {
    vec![&asrpt::WORDS, &overlap::WORDS, &pairs::WORDS, &deadlines::WORDS, &stragglers::WORDS]
}
