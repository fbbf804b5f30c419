//! Claims about real runs, judged on made-up ones.

pub(in crate::paper) mod made_up;

use super::{asrpt, deadlines, overlap, pairs, stragglers};
use crate::paper::words::Words;

pub(in crate::paper) fn words() -> Vec<&'static Words> {
    vec![&asrpt::WORDS, &overlap::WORDS, &pairs::WORDS, &deadlines::WORDS, &stragglers::WORDS]
}
