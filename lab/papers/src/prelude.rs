//! Names that nearly every figure and claim needs.

pub(crate) use crate::judge::{
    CaseVerdict, Known, KnownNumber, Model, Rivals, by_case, every, in_runs, keeps, log_ratio, mean_by,
    mean_of, paired, percent,
};
pub(crate) use crate::model::{Context, Paper, each_cell};
pub(crate) use crate::words::{Filled, Holes, PaperWords, holes};
pub(crate) use gristmill_lab::parallel::each;
pub(crate) use gristmill_lab::report::{
    Axis, Block, Cell, Chart, ChartKind, Claim, Column, Compared, ReportTable, Section, Series, Verdict,
};
pub(crate) use gristmill_scheduler::metrics::Interval;
pub(crate) use gristmill_scheduler::station::{PerStation, Station};
pub(crate) use gristmill_scheduler::workload::{Generator, Job};
