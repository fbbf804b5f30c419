//! Text: lines of made-up words, with exactly the requested number of bytes.
//!
//! The word of rank `r` is `r` written in bijective base 80 with syllables (a consonant and a vowel) as digits, so that
//! frequent words are short. Words are joined by one space into lines of up to [`LINE_MAX`] bytes. The last line of a
//! chunk is padded with spaces, because a cut word would not belong to the vocabulary.

use super::chunks::{ChunkStream, Draws};
use super::zipf::Zipf;

/// Bytes of a chunk; the last one of a file is shorter.
pub(super) const CHUNK_BYTES: u64 = 1 << 20;
/// Longest line, with its line break, bytes.
pub(super) const LINE_MAX: usize = 80;

const CONSONANTS: &[u8; 16] = b"bdfghjklmnprstvz";
const VOWELS: &[u8; 5] = b"aeiou";
const SYLLABLES: u32 = 80;
/// Coprime to 80: spreads the most frequent words over the alphabet.
const SCATTER: u32 = 37;

/// The vocabulary, and the frequency of each word.
pub(super) struct DrawnWords {
    zipf: Zipf,
    letters: Vec<u8>,
    /// End of the word of rank `r` in `letters`; it starts at the end of the previous one.
    ends: Vec<u32>,
}

pub(super) fn chunk_count(size: u64) -> u64 {
    size.div_ceil(CHUNK_BYTES)
}

impl DrawnWords {
    pub(super) fn new(count: u32, exponent: f64) -> Self {
        let mut letters = Vec::new();
        let mut ends = Vec::with_capacity(count as usize);
        for rank in 0..count {
            push_word(rank, &mut letters);
            ends.push(letters.len() as u32);
        }
        Self { zipf: Zipf::new(count, exponent), letters, ends }
    }

    pub(super) fn word(&self, rank: u32) -> &[u8] {
        let start = if rank == 0 { 0 } else { self.ends[rank as usize - 1] };
        &self.letters[start as usize..self.ends[rank as usize] as usize]
    }

    /// Chunk `index` of a file of `size` bytes. Ends with a line break.
    pub(super) fn chunk(&self, seed: u64, index: u64, size: u64) -> Vec<u8> {
        let length = CHUNK_BYTES.min(size - index * CHUNK_BYTES) as usize;
        let mut draws = Draws::new(seed, ChunkStream::Text, index);
        let mut out = Vec::with_capacity(length);
        let mut line_start = 0;
        loop {
            let word = self.word(self.zipf.draw(&mut draws));
            let line_end_max = line_start + LINE_MAX;
            // Each word is followed by one byte: a space, or the line break.
            let word_end = out.len() + word.len() + 1;
            if word_end > line_end_max.min(length) {
                if word_end <= length || length > line_end_max {
                    end_line(&mut out);
                    line_start = out.len();
                }
                if word_end > length {
                    break;
                }
            }
            out.extend_from_slice(word);
            out.push(b' ');
        }
        out.resize(length, b' ');
        end_line(&mut out);
        out
    }
}

/// Turns the space after the last word of a line into its line break.
fn end_line(out: &mut [u8]) {
    if let Some(last) = out.last_mut() {
        *last = b'\n';
    }
}

fn push_word(rank: u32, letters: &mut Vec<u8>) {
    let mut rest = rank + 1;
    while rest > 0 {
        let syllable = (rest - 1) % SYLLABLES * SCATTER % SYLLABLES;
        letters.push(CONSONANTS[syllable as usize / VOWELS.len()]);
        letters.push(VOWELS[syllable as usize % VOWELS.len()]);
        rest = (rest - 1) / SYLLABLES;
    }
}
