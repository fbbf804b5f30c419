//! Encoding and decoding of values and keys, in items/s (100 Melem/s are 10 ns an item).
//!
//! Checks that a value of a few bytes costs far less than the rest of a pair's path (tens of ns): the cost occurs at
//! every emit and every read.

use crate::data::{SHRINK, draw};
use criterion::measurement::WallTime;
use criterion::{BenchmarkGroup, Criterion, Throughput};
use gristmill::worker::key::Key;
use gristmill::worker::value::Value;
use std::hint::black_box;

/// Items of each kind: together they fit in the first or second cache.
const ITEMS: u64 = 6_400 / SHRINK;

/// Runs all benchmarks of this file.
pub fn benches(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("codec");
    group.throughput(Throughput::Elements(ITEMS));
    let numbers = || (0..ITEMS).map(|index| draw(0, index) >> (draw(1, index) % 64));
    let names = || numbers().map(|number| format!("name {number}"));
    values(&mut group, "u64", &numbers().collect::<Vec<u64>>());
    values(&mut group, "(u64, f64)", &numbers().map(|number| (number, 0.5)).collect::<Vec<(u64, f64)>>());
    values(&mut group, "String", &names().collect::<Vec<String>>());
    keys(&mut group, "u64", &numbers().collect::<Vec<u64>>());
    keys(&mut group, "(String, u64)", &names().zip(numbers()).collect::<Vec<(String, u64)>>());
    keys(&mut group, "String", &names().collect::<Vec<String>>());
    group.finish();
}

fn values<V: Value>(group: &mut BenchmarkGroup<'_, WallTime>, name: &str, values: &[V]) {
    let mut out = Vec::new();
    group.bench_function(format!("encode value {name}"), |bencher| {
        bencher.iter(|| {
            out.clear();
            for value in black_box(values) {
                value.encode_owned(&mut out).expect("standard types encode");
            }
            out.len()
        });
    });
    let encode = |value: &V| {
        let mut bytes = Vec::new();
        value.encode_owned(&mut bytes).expect("standard types encode");
        bytes
    };
    let encoded: Vec<Vec<u8>> = values.iter().map(encode).collect();
    group.bench_function(format!("decode value {name}"), |bencher| {
        bencher.iter(|| {
            for bytes in &encoded {
                black_box(V::decode(bytes).expect("they were just encoded"));
            }
        });
    });
}

/// Benchmarks the part form of keys, which is the more expensive one for text.
fn keys<K: Key>(group: &mut BenchmarkGroup<'_, WallTime>, name: &str, keys: &[K]) {
    let mut out = Vec::new();
    group.bench_function(format!("encode key {name}"), |bencher| {
        bencher.iter(|| {
            out.clear();
            for key in black_box(keys) {
                key.encode_part(&mut out);
            }
            out.len()
        });
    });
    let mut encoded = Vec::new();
    for key in keys {
        key.encode_part(&mut encoded);
    }
    group.bench_function(format!("decode key {name}"), |bencher| {
        bencher.iter(|| {
            let mut rest = &encoded[..];
            while !rest.is_empty() {
                black_box(K::decode_part(&mut rest).expect("they were just encoded"));
            }
        });
    });
}
