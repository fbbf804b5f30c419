//! Tables of a workload file as in TOML, with values that are validated at their position.
//!
//! Not here: rules between keys of a table.

use crate::compare::workload::{JOBS_MAX, Order};
use clap::ValueEnum;
use gristmill_runtime::generate::Kind;
use gristmill_runtime::size::parse_bytes;
use gristmill_scheduler::catalogue::nearest;
use serde::Deserialize;
use std::collections::BTreeMap;
use std::fmt;
use toml::Spanned;

/// Flags of a cluster that a workload may set.
pub(crate) const CLUSTER_KEYS: [&str; 9] =
    ["workers", "slots", "map-slots", "reduce-slots", "speed", "nic-rate", "memory", "shuffle", "estimator"];

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct WorkloadTable {
    pub name: Option<String>,
    pub seed: Option<Seed>,
    #[serde(default)]
    pub cluster: BTreeMap<ClusterKey, Typed>,
    pub arrivals: Option<Spanned<ArrivalsTable>>,
    #[serde(default)]
    pub data: Vec<DataTable>,
    #[serde(default)]
    pub job: Vec<Spanned<JobTable>>,
}

#[derive(Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum ArrivalsKind {
    #[default]
    Batch,
    Poisson,
    Times,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub(super) struct ArrivalsTable {
    #[serde(default)]
    pub kind: ArrivalsKind,
    pub mean_interval: Option<Span>,
    pub times: Option<Vec<Seconds>>,
    pub order: Option<Order>,
    #[serde(default)]
    pub redraw: bool,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct DataTable {
    pub name: DataName,
    pub kind: DataKind,
    pub size: Size,
    pub seed: Option<Seed>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub(super) struct JobTable {
    pub name: Spanned<String>,
    pub label: Option<String>,
    #[serde(default)]
    pub args: Vec<String>,
    pub inputs: Option<Spanned<Vec<String>>>,
    pub count: Option<JobCount>,
    pub reduces: Option<Whole<1, 100_000>>,
    pub split_size: Option<Size>,
    pub deadline: Option<Span>,
    pub weight: Option<Positive>,
    pub pool: Option<String>,
    pub priority: Option<Whole<-1_000_000, 1_000_000>>,
}

/// Integer in a range.
#[derive(Clone, Copy, Deserialize)]
#[serde(try_from = "i64")]
pub(super) struct Whole<const MIN: i64, const MAX: i64>(pub i64);

pub(super) type Seed = Whole<0, { i64::MAX }>;
pub(super) type JobCount = Whole<1, { JOBS_MAX as i64 }>;

impl<const MIN: i64, const MAX: i64> TryFrom<i64> for Whole<MIN, MAX> {
    type Error = String;

    fn try_from(number: i64) -> Result<Self, String> {
        let wanted = || format!("{number} is not a whole number from {MIN} to {MAX}");
        (MIN..=MAX).contains(&number).then_some(Self(number)).ok_or_else(wanted)
    }
}

/// Any simple value, formatted as on the command line. A list has commas between its values.
#[derive(Deserialize)]
#[serde(untagged, expecting = "expected a number, a text, or a list of them")]
pub(super) enum Typed {
    Whole(i64),
    Number(f64),
    Text(String),
    List(Vec<Typed>),
}

impl fmt::Display for Typed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Whole(number) => number.fmt(f),
            Self::Number(number) => number.fmt(f),
            Self::Text(text) => text.fmt(f),
            Self::List(list) => f.write_str(&list.iter().map(Self::to_string).collect::<Vec<_>>().join(",")),
        }
    }
}

/// Declares values that are parsed from simpler ones, or refused with a description of the expected value.
macro_rules! values {
    ($($(#[$doc:meta])* $name:ident($value:ty) of $from:literal $of:ty, $wanted:literal: $read:expr;)*) => {$(
        $(#[$doc])*
        #[derive(Clone, Deserialize)]
        #[serde(try_from = $from)]
        pub(super) struct $name(pub $value);

        impl TryFrom<$of> for $name {
            type Error = String;

            fn try_from(given: $of) -> Result<Self, String> {
                let shown = given.to_string();
                let read: fn($of) -> Option<$value> = $read;
                read(given).map(Self).ok_or_else(|| format!("`{shown}` is not {}", $wanted))
            }
        }
    )*};
}

values! {
    /// Number above 0.
    Positive(f64) of "f64" f64, "a number above 0": |number| (0.0 < number && number.is_finite()).then_some(number);
    /// Time with its unit.
    Seconds(f64) of "String" String, "a time with its unit, such as \"200ms\", \"1.5s\" or \"2min\"":
        |text| parse_seconds(&text);
    /// Time above 0 with its unit.
    Span(f64) of "String" String, "a time above 0 with its unit, such as \"200ms\", \"1.5s\" or \"2min\"":
        |text| parse_seconds(&text).filter(|&seconds| 0.0 < seconds);
    /// Number of bytes of a file.
    Size(u64) of "Typed" Typed, "a size such as \"16MiB\"":
        |typed| parse_bytes(&typed.to_string()).ok().filter(|&bytes| 0 < bytes);
    /// Kind of generated data.
    DataKind(Kind) of "String" String, "text, records or tables": |text| Kind::from_str(&text, false).ok();
    /// Name of generated data, which is also a file name.
    DataName(String) of "String" String, "a name of letters, digits, `-`, `_` and `.`": |name| {
        let plain = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_' || c == '.';
        (name.chars().all(plain) && !name.starts_with('.') && !name.is_empty()).then_some(name)
    };
}

/// Key of the cluster table, by its index in [`CLUSTER_KEYS`].
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
#[serde(try_from = "String")]
pub(super) struct ClusterKey(usize);

impl ClusterKey {
    pub fn name(self) -> &'static str {
        CLUSTER_KEYS[self.0]
    }
}

impl TryFrom<String> for ClusterKey {
    type Error = String;

    fn try_from(key: String) -> Result<Self, String> {
        CLUSTER_KEYS.iter().position(|known| **known == key).map(Self).ok_or_else(|| {
            let near =
                nearest(&key, CLUSTER_KEYS.iter().copied()).map(|near| format!(", did you mean `{near}`?"));
            let near = near.unwrap_or_default();
            format!("[cluster] has no key `{key}`{near}; there is {}", CLUSTER_KEYS.join(", "))
        })
    }
}

/// Parses seconds of a text such as `200ms`, `1.5s`, `2min` or `1h`; at most a billion.
pub(super) fn parse_seconds(text: &str) -> Option<f64> {
    let digits = text.bytes().take_while(|byte| byte.is_ascii_digit() || *byte == b'.').count();
    let (number, unit) = text.split_at(digits);
    let factor = match unit.trim_start() {
        "ms" => 1e-3,
        "s" => 1.0,
        "min" => 60.0,
        "h" => 3600.0,
        _ => return None,
    };
    let seconds = number.parse::<f64>().ok()? * factor;
    (seconds <= 1e9).then_some(seconds)
}
