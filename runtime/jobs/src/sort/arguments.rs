//! Arguments of the job `sort`: its inputs, and the bytes or field that records are sorted by.

use super::super::delimiter::parse_delimiter;
use super::byte_range::ByteRange;
use serde::{Deserialize, Serialize};

/// Sorts lines or records of fixed length
///
/// The concatenation of the parts equals the output of `LC_ALL=C sort` with the matching flags. Records with equal keys
/// are in the order of their bytes, or with --stable in that of the input.
#[derive(clap::Args, Serialize, Deserialize, Clone, Debug)]
pub struct Sort {
    /// Files, or directories of them
    #[arg(required = true, value_name = "INPUT")]
    pub inputs: Vec<String>,
    /// Records of exactly this many bytes instead of lines
    #[arg(long, value_name = "BYTES", value_parser = clap::value_parser!(u32).range(1..))]
    pub record_length: Option<u32>,
    /// Use bytes A to B of the record as key, counted from 0, without byte B; without B, to the end
    #[arg(long, value_name = "A..B", conflicts_with = "field")]
    pub key_bytes: Option<ByteRange>,
    /// Use field N of the line as key, counted from 1; empty if there are fewer
    #[arg(long, value_name = "N", conflicts_with = "record_length",
          value_parser = clap::value_parser!(u32).range(1..))]
    pub field: Option<u32>,
    /// Field delimiter; a tab by default
    #[arg(long, value_name = "CHAR", requires = "field", value_parser = parse_delimiter)]
    pub delimiter: Option<u8>,
    /// Treat keys as decimal numbers of any length, such as -12.50; a key without a number counts as 0
    #[arg(long)]
    pub numeric: bool,
    /// Sort in descending order
    #[arg(short, long)]
    pub reverse: bool,
    /// Keep only the first record of the input for each key
    #[arg(short, long)]
    pub unique: bool,
    /// Keep records with equal keys in the order of the input
    #[arg(long)]
    pub stable: bool,
}
