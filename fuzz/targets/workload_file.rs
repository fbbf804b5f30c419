//! Target of libFuzzer: `workload_file` of `entries.rs` on arbitrary bytes.
#![no_main]
#[path = "../entries.rs"]
#[allow(dead_code)]
mod entries;
libfuzzer_sys::fuzz_target!(|bytes: &[u8]| entries::workload_file(bytes));
