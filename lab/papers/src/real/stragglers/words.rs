//! Text of the page about the stragglers thesis on real execution, from `words.toml`: titles, captions and claims. Its
//! holes, `{name}`, are filled with results by the sections of the page.

use crate::prelude::*;

pub(crate) static WORDS: PaperWords = PaperWords::new(include_str!("words.toml"));
