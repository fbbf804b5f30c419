//! `wordcount`: the number of occurrences of each word.
//!
//! The tokenizers are in the worker's `text` module, where any job can use them.

use super::frequency::{CountColumns, MostFrequent};
use clap::ValueEnum;
use gristmill_worker::api::{Sum, WriteTotal};
use gristmill_worker::prelude::*;
use serde::{Deserialize, Serialize};

/// Counts how often each word occurs
///
/// Writes the word, a tab and the count, sorted by the bytes of the word in each
/// part.
#[derive(clap::Args, Serialize, Deserialize, Clone, Debug)]
pub struct WordCount {
    /// Text files, or directories of them
    #[arg(required = true, value_name = "INPUT")]
    pub inputs: Vec<String>,
    /// Definition of a word
    #[arg(long, value_enum, default_value_t = Words::Ascii)]
    pub words: Words,
    /// Count words in lower case: of the ASCII letters, or with unicode of all
    #[arg(long)]
    pub lowercase: bool,
    /// Write only the N most frequent words, most frequent first, in one part; equally frequent words are in the order
    /// of their bytes
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub top: Option<u32>,
}

/// Definition of a word.
#[derive(ValueEnum, Serialize, Deserialize, Clone, Copy, PartialEq, Eq, Debug)]
#[serde(rename_all = "lowercase")]
pub enum Words {
    /// Bytes between space, tab and the four line and page breaks of ASCII; any other byte belongs to a word
    Ascii,
    /// Words as divided by the Unicode standard; punctuation is left out, and bytes that are not UTF-8 are read as
    /// U+FFFD
    Unicode,
}

impl Job for WordCount {
    const NAME: &'static str = "wordcount";

    fn plan(&self) -> Result<JobPlan, PlanError> {
        let (words, lowercase) = (self.words, self.lowercase);
        let plan = JobPlan::map(Input::lines(&self.inputs), move || WordMapper {
            words,
            lowercase,
            lower: Vec::new(),
        })
        .combine(Sum::<u64>::default);
        let plan = match self.top {
            None => plan.reduce(WriteTotal::<ByteString, Sum<u64>>::default),
            Some(top) => {
                plan.reduces(1).reduce(move || MostFrequent::new(Some(top as usize), CountColumns::KeyCount))
            }
        };
        Ok(plan.rows(RowLayout::tabs([("word", ColumnKind::Text), ("count", ColumnKind::Integer)])))
    }
}

struct WordMapper {
    words: Words,
    lowercase: bool,
    lower: Vec<u8>,
}

impl Mapper for WordMapper {
    type Key = ByteString;
    type Value = u64;

    /// One line, as Unicode words.
    fn map(&mut self, record: Record<'_>, out: &mut Emitter<ByteString, u64>) -> TaskResult {
        for word in text::unicode_words(&record.text()) {
            if self.lowercase {
                out.emit(word.to_lowercase().as_bytes(), 1);
            } else {
                out.emit(word.as_bytes(), 1);
            }
        }
        Ok(())
    }

    /// ASCII words need no lines: a line break is a delimiter like a space.
    fn block(&mut self, block: Block<'_>, out: &mut Emitter<ByteString, u64>) -> TaskResult {
        match (self.words, self.lowercase) {
            (Words::Ascii, false) => text::for_each_word(block.bytes(), |word| out.emit(word, 1)),
            (Words::Ascii, true) => {
                self.lower.clear();
                self.lower.extend_from_slice(block.bytes());
                self.lower.make_ascii_lowercase();
                text::for_each_word(&self.lower, |word| out.emit(word, 1));
            }
            (Words::Unicode, _) => {
                for record in block.records() {
                    self.map(record, out)?;
                }
            }
        }
        Ok(())
    }
}
