//! Target of libFuzzer: `range_request` of `entries.rs` on arbitrary bytes.
#![no_main]
#[path = "../entries.rs"]
#[allow(dead_code)]
mod entries;
libfuzzer_sys::fuzz_target!(|bytes: &[u8]| entries::range_request(bytes));
