//! Names of the fields of a job in a workload table: columns of CSV, and keys of TOML.

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
