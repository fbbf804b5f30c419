//! Text of the page about the ASRPT paper, from `words.toml`: titles, captions and claims. Its holes, `{name}`, are
//! filled with results by the sections of the page.

use crate::prelude::*;

pub(crate) static WORDS: PaperWords = PaperWords::new(include_str!("words.toml"));
