//! Sentences of the page, from a file.

use crate::prelude::*;

pub(crate) static WORDS: PaperWords = PaperWords::new(include_str!("words.toml"));
