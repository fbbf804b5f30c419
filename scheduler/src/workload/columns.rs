//! Fields of a table of jobs.

/// Field names, as columns of CSV and keys of TOML.
pub const COLUMNS: [&str; 12] = [
    "name",
    "arrival",
    "map",
    "shuffle",
    "reduce",
    "maps",
    "reduces",
    "input_bytes",
    "shuffle_bytes",
    "deadline",
    "weight",
    "pool",
];
