//! Tests of the worker's library from outside: how much memory decoding takes, which the allocator of this process counts.
#![allow(clippy::unwrap_used, reason = "helpers of tests may fail like the tests themselves")]

mod counting;
mod decoders;
mod dice;
