//! An application of the thesis on stragglers, as a job on real processes with its data sets.

use gristmill_lab::compare::Contender;
use gristmill_lab::compare::workload::{DataSet, JobKind};

/// One of the thesis' applications.
pub(super) struct Application {
    pub(super) name: &'static str,
    pub(super) title: &'static str,
    pub(super) kind: JobKind,
    pub(super) data: Vec<DataSet>,
    pub(super) speeds: [f64; 2],
    pub(super) contenders: Vec<Contender>,
}
