//! Inputs made in code: the same bytes in every run.

use xxhash_rust::xxh3::xxh3_64_with_seed;

/// A build without optimisation only shows that the benchmarks run; inputs are this many times smaller then.
pub const SHRINK: u64 = if cfg!(debug_assertions) { 64 } else { 1 };

/// What all random choices depend on.
const SEED: u64 = 0x6772_6973_746d_696c;

/// Makes long keys long. Longer than what sorts and tables look at first, and the same in all, as in URLs.
const LONG_KEY_FRONT: &[u8] = b"https://example.org/visitors/";

/// How long words are.
#[derive(Clone, Copy)]
pub enum Length {
    /// As their number needs: one to seven letters.
    Short,
    /// Behind 29 bytes that are the same in all.
    Long,
}

/// How often words come.
#[derive(Clone, Copy)]
pub enum Frequency {
    /// As in books: of 2^17 words, word number n comes about 1 / n as often as the first.
    Books,
    /// Of 2^32 words all come alike, so that nearly every word is another one.
    Rare,
}

/// Random choice number `index` of stream `stream`: 64 bits that depend on nothing else.
pub fn draw(stream: u64, index: u64) -> u64 {
    xxh3_64_with_seed(&index.to_le_bytes(), SEED ^ stream)
}

/// A random word's number.
fn word_number(frequency: Frequency, stream: u64, index: u64) -> u64 {
    let bits = draw(stream, index);
    match frequency {
        // A random number of bits: as many draws fall between 2^n and 2^(n+1) for each n.
        Frequency::Books => {
            let length = bits % 17;
            (1 << length) + (bits >> 8) % (1 << length)
        }
        Frequency::Rare => bits >> 32,
    }
}

/// Appends the word of this number.
fn push_word(length: Length, mut number: u64, out: &mut Vec<u8>) {
    if let Length::Long = length {
        out.extend_from_slice(LONG_KEY_FRONT);
    }
    loop {
        out.push(b'a' + (number % 26) as u8);
        number /= 26;
        if number == 0 {
            return;
        }
    }
}

/// `count` words in lines of ten. Another stream gives another text of the same kind.
pub fn text(count: u64, frequency: Frequency, length: Length, stream: u64) -> Vec<u8> {
    let mut out = Vec::new();
    for index in 0..count {
        push_word(length, word_number(frequency, stream, index), &mut out);
        out.push(if index % 10 == 9 || index + 1 == count { b'\n' } else { b' ' });
    }
    out
}

/// `count` rows of a table of six fields. With `quotes`, the field in the middle stands in quotes and holds the
/// delimiter.
pub fn table(count: u64, quotes: bool) -> Vec<u8> {
    let mut out = Vec::new();
    for index in 0..count {
        let bits = draw(0, index);
        let quote = if quotes { "\"" } else { "" };
        let place = if quotes { "Old Town, 12" } else { "Old Town 12" };
        let (user, cents, day) = (bits >> 44, bits % 10_000, bits % 28 + 1);
        let row = format!("{index},user{user},{quote}{place}{quote},{cents},2026-11-{day:02},visited\n");
        out.extend_from_slice(row.as_bytes());
    }
    out
}

/// Bytes of a record of [`records`].
pub const RECORD_BYTES: u64 = 100;
/// Bytes of its key, at its front.
pub const RECORD_KEY_BYTES: usize = 10;

/// `count` records of 100 bytes: a random key of 10 printable bytes, the number of the record, a filler, a line break.
pub fn records(count: u64, stream: u64) -> Vec<u8> {
    let mut out = Vec::with_capacity((count * RECORD_BYTES) as usize);
    for index in 0..count {
        let (mut high, mut low) = (draw(stream, 2 * index), draw(stream, 2 * index + 1));
        for _ in 0..RECORD_KEY_BYTES / 2 {
            out.extend_from_slice(&[b' ' + (high % 95) as u8, b' ' + (low % 95) as u8]);
            (high, low) = (high / 95, low / 95);
        }
        out.extend_from_slice(format!(" {index:020} ").as_bytes());
        out.resize(out.len() + 67, b'A' + (index % 26) as u8);
        out.push(b'\n');
    }
    out
}
