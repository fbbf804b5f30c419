//! Arguments of the job `join`: both tables, the columns that must be equal, and the strategy.

use super::super::delimiter::parse_delimiter;
use super::columns::{JoinColumn, JoinedColumn, PreparedJoin, parse_on, parse_output_column};
use super::emission::JoinType;
use crate::size::parse_bytes;
use clap::ValueEnum;
use serde::{Deserialize, Serialize};

/// Joins two tables in CSV
///
/// Output rows are all columns of the left row, then all of the right one; semi and anti write only the left ones.
/// Fields of a missing partner are empty. An empty field in a join column is a value like any other: two of them match.
/// Quotes are read as in RFC 4180, and written only if a field needs them.
///
/// A repartition join writes each part in the order of the join columns; rows that agree in them are in the order of
/// the larger side, then of the other. A broadcast join writes rows in the order of the table that is not broadcast.
#[derive(clap::Args, Serialize, Deserialize, Clone, Debug)]
pub struct Join {
    /// Files of the left table, or directories of them
    #[arg(long, required = true, num_args = 1.., value_name = "F")]
    pub left: Vec<String>,
    /// Files of the right table, or directories of them
    #[arg(long, required = true, num_args = 1.., value_name = "F")]
    pub right: Vec<String>,
    /// Columns that must agree: left=right, several with commas. A column is, with a header, a name, or else a number
    /// from 1; '#1' is a number even if a column is called 1. A single word stands for the same column on both sides
    #[arg(long, required = true, value_delimiter = ',', value_parser = parse_on, value_name = "L=R")]
    pub on: Vec<(JoinColumn, JoinColumn)>,
    /// Rows to write
    #[arg(long = "type", value_enum, value_name = "TYPE", default_value_t = JoinType::Inner)]
    pub join_type: JoinType,
    /// Write only these columns, in this order: left.COLUMN or right.COLUMN, several with commas; a column is written
    /// as in --on
    #[arg(long, value_delimiter = ',', value_parser = parse_output_column, value_name = "SIDE.COLUMN")]
    #[serde(default)]
    pub columns: Vec<JoinedColumn>,
    /// Header row at the start of each file, the same in all files of a table; by default only if a column is named
    #[arg(long, value_enum)]
    pub header: Option<Header>,
    /// Field delimiter
    #[arg(long, value_name = "CHAR", default_value = ",", value_parser = parse_delimiter)]
    pub delimiter: u8,
    /// Join strategy
    #[arg(long, value_enum, default_value_t = Strategy::Auto)]
    pub strategy: Strategy,
    /// Maximum size of a table that is broadcast, bytes
    #[arg(long, value_name = "BYTES", default_value = "64MiB", value_parser = parse_bytes)]
    pub broadcast_max: u64,
    /// Maximum bytes of rows with one key that a reducer holds: those of the smaller side
    #[arg(long, value_name = "BYTES", default_value = "256MiB", value_parser = parse_bytes)]
    pub group_max: u64,
    /// Facts about the tables found at submission; `None` before.
    #[arg(skip)]
    pub prepared: Option<PreparedJoin>,
}

/// Presence of header rows.
#[derive(ValueEnum, Serialize, Deserialize, Clone, Copy, PartialEq, Eq, Debug)]
#[serde(rename_all = "lowercase")]
pub enum Header {
    /// The first row of each file is its header
    Yes,
    /// The first row is a row like the others
    No,
}

/// Strategy of a join.
#[derive(ValueEnum, Serialize, Deserialize, Clone, Copy, PartialEq, Eq, Debug)]
#[serde(rename_all = "lowercase")]
pub enum Strategy {
    /// Broadcast if the type allows it and the table is small, else repartition
    Auto,
    /// Shuffle both tables by their keys
    Repartition,
    /// Hold one table in the memory of each worker
    Broadcast,
}
