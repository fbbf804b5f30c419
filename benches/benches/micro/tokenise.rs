//! Finding words, lines, rows and fields in memory, in bytes/s.
//!
//! Reference values are the 8.6 ns that a word may cost in total (a word and its blank have about 4 bytes here, so 1
//! GB/s is 4 ns), 2 GB/s for lines, and the 0.48 GB/s of a good general CSV reader. Rows with quotes should be faster
//! than that, and plain rows many times faster.

use crate::data::{SHRINK, table, text};
use criterion::{Criterion, Throughput};
use gristmill::worker::text::{csv_fields, for_each_plain_row, for_each_word, lines, unicode_words};
use std::convert::Infallible;

/// Number of words of the text.
const WORDS: u64 = 1_000_000 / SHRINK;
/// Number of rows of the tables.
const ROWS: u64 = 60_000 / SHRINK;

/// Runs all benchmarks of this file.
pub fn benches(criterion: &mut Criterion) {
    words(criterion);
    rows(criterion);
}

fn words(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("tokenise");
    let text = text(WORDS);
    let as_text = std::str::from_utf8(&text).expect("words are made of letters");
    group.throughput(Throughput::Bytes(text.len() as u64));
    group.bench_function("words", |bencher| {
        bencher.iter(|| {
            let mut letters = 0;
            for_each_word(&text, |word| letters += word.len());
            letters
        });
    });
    group.bench_function("words byte by byte", |bencher| {
        bencher.iter(|| {
            let mut letters = 0;
            gristmill::worker::text::words(&text).for_each(|word| letters += word.len());
            letters
        });
    });
    group.bench_function("unicode words", |bencher| {
        bencher.iter(|| unicode_words(as_text).map(str::len).sum::<usize>());
    });
    group.bench_function("lines", |bencher| bencher.iter(|| lines(&text).map(<[u8]>::len).sum::<usize>()));
    group.finish();
}

fn rows(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("tokenise");
    let plain = table(ROWS, false);
    group.throughput(Throughput::Bytes(plain.len() as u64));
    group.bench_function("plain rows", |bencher| {
        bencher.iter(|| {
            let mut bytes = 0;
            let done = for_each_plain_row(&plain, b',', |row| {
                bytes += row.field(1).len() + row.field(3).len();
                Ok::<(), Infallible>(())
            });
            (done, bytes)
        });
    });
    let quoted = table(ROWS, true);
    group.throughput(Throughput::Bytes(quoted.len() as u64));
    group.bench_function("csv fields", |bencher| {
        bencher.iter(|| {
            let fields = |row| csv_fields(row, b',').map(|field| field.len()).sum::<usize>();
            lines(&quoted).map(fields).sum::<usize>()
        });
    });
    group.finish();
}
