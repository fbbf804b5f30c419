//! Tests of the worker's library from outside: how much memory decoding takes, which the allocator of this process counts.

mod counting;
mod decoders;
mod dice;
#[cfg(feature = "tables")]
mod tables;
