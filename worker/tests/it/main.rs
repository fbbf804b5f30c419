//! Tests of the worker's library from outside: memory used for decoding, counted by the allocator of this
//! process.
#![allow(clippy::unwrap_used, reason = "helpers of tests may fail like the tests themselves")]

mod counting;
mod decoders;
mod dice;
