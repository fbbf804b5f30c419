//! The thesis' applications: three that read real data, and one that sleeps.

use super::super::RealContext;
use super::super::common::data_set;
use gristmill_lab::compare::workload::{DataSet, Kind};
use gristmill_runtime::generate;

/// Speed of the fast and of the slow workers of real work: 3.0 and 2.4 GHz as in chapter 6, scaled so
/// that all slots together need less than the processors of this machine.
const SPEEDS: [f64; 2] = [0.1, 0.08];

/// Speeds of slots that sleep, in the same ratio.
const SLEEPING_SPEEDS: [f64; 2] = [1.0, 0.8];

const MIB: u64 = 1 << 20;

/// One of the thesis' applications.
pub(super) struct Application {
    pub(super) name: &'static str,
    pub(super) title: &'static str,
    pub(super) kind: Kind,
    pub(super) data: Vec<DataSet>,
    pub(super) speeds: [f64; 2],
}

fn kind(job: &str, arguments: &[&str]) -> Kind {
    Kind { split_bytes: Some(2 * MIB), reduces: Some(2), ..Kind::new(job, arguments) }
}

/// Returns all applications; in a quick run one of each kind.
pub(super) fn all(context: &RealContext<'_>) -> Vec<Application> {
    let bytes = context.scaled(16, 32, 128) * MIB;
    let data = |name: &str, kind| vec![data_set(name, kind, bytes, context.first_seed)];
    let text = || data("text", generate::Kind::Text);
    let real = |name, title, kind, data| Application { name, title, kind, data, speeds: SPEEDS };
    let grep = Kind { reduces: None, ..kind("grep", &["-c", "(a[a-z]+|o[a-z]+)e\\b", "{data}/text"]) };
    let sort = kind("sort", &["{data}/records"]);
    let mut all = vec![
        real("grep", "Grep", grep, text()),
        real("wordcount", "WordCount", kind("wordcount", &["{data}/text"]), text()),
        real("sort", "Sort", sort, data("records", generate::Kind::Records)),
        sleeping(),
    ];
    if context.scaled(true, false, false) {
        all.retain(|application| ["wordcount", "delayed"].contains(&application.name));
    }
    all
}

fn sleeping() -> Application {
    let arguments =
        ["--maps", "20", "--map-time", "delayed:40ms,40ms", "--reduce-time", "1ms", "--seed", "{seed}"];
    Application {
        name: "delayed",
        title: "A job that sleeps delayed exponential times",
        kind: Kind { reduces: Some(1), ..Kind::new("synthetic", &arguments) },
        data: Vec::new(),
        speeds: SLEEPING_SPEEDS,
    }
}
