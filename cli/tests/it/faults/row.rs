//! A row of the matrix: one fault, the phases at which it makes sense, and how to cause it.

use super::cluster::{Cluster, Fleet, WorkerSpec};
use super::phase::Phase;
use super::run::Ending;
use crate::support::Sandbox;
use std::ops::RangeInclusive;
use std::time::Duration;

/// Target of a fault.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Subject {
    Master,
    Worker,
    Submitter,
    Link,
    Disk,
    Memory,
    Clock,
}

/// One fault.
pub struct Row {
    /// Target of the fault.
    pub subject: Subject,
    /// The name of its test.
    pub test: &'static str,
    /// Lines of the menu that it covers.
    pub menu: &'static [&'static str],
    /// Phases at which it is injected; the default suite runs the first.
    pub phases: &'static [Phase],
    /// Reason why it is not injected at the other phases.
    pub otherwise: &'static str,
    /// Maximum time from the fault to the end of the job.
    pub bound: Duration,
    /// The cluster, or the reason why this machine cannot run it.
    pub fleet: fn(&Sandbox) -> Result<Fleet, &'static str>,
    /// Causes the fault.
    pub inject: for<'s> fn(&'s Scene<'s>) -> Effect<'s>,
}

impl Row {
    /// True if the job is submitted detached and waited for afterwards, as it must be to outlive its master.
    pub fn is_detached(&self) -> bool {
        self.subject == Subject::Master
    }
}

/// The moment at which a fault is injected.
pub struct Scene<'s> {
    /// The cluster.
    pub cluster: &'s Cluster<'s>,
    /// The phase of the job.
    pub phase: Phase,
    /// The process that is stopped at the place of the phase.
    pub held: Option<u32>,
    /// The process of the submitter, once it exists.
    pub client: Option<u32>,
}

impl Scene<'_> {
    /// Returns the worker that is stopped at the place of the phase, else the first.
    pub fn victim(&self) -> usize {
        match self.held {
            Some(pid) if !self.phase.is_of_submitter() => self.cluster.index_of(pid),
            _ => 0,
        }
    }

    /// Returns the workers other than the victim.
    pub fn others(&self) -> impl Iterator<Item = usize> {
        let victim = self.victim();
        (0..self.cluster.len()).filter(move |worker| *worker != victim)
    }

    /// Returns a worker other than the victim.
    pub fn other(&self) -> usize {
        (self.victim() + 1) % self.cluster.len()
    }
}

/// Cost of a fault that was caused, and the proof that it fired.
pub struct Effect<'s> {
    /// Expected end of the job.
    pub ending: Ending,
    /// True if the job reaches the master.
    pub submitted: bool,
    /// Number of times that it has fired; called when the job has ended.
    pub fired: Box<dyn FnOnce() -> u64 + 's>,
    /// Number of times that it must have fired.
    pub wanted: RangeInclusive<u64>,
    /// Ends the fault, once the process at the place continues.
    pub heal: Option<Heal<'s>>,
}

/// A function that ends a fault; it waits for its moment itself.
pub type Heal<'s> = Box<dyn FnOnce() + 's>;

impl<'s> Effect<'s> {
    /// The job ends as if undisturbed; `fired` proves that the fault fired this often.
    pub fn proven(fired: impl FnOnce() -> u64 + 's, wanted: RangeInclusive<u64>) -> Self {
        let (ending, fired) = (Ending::SAME_OUTPUT, Box::new(fired));
        Self { ending, submitted: true, fired, wanted, heal: None }
    }

    /// The job ends as if undisturbed; the fault has fired once if `fired` returns true.
    pub fn once_if(fired: impl FnOnce() -> bool + 's) -> Self {
        Self::proven(|| u64::from(fired()), 1..=1)
    }

    /// The job ends as if undisturbed; the fault has fired if `fired` does not return 0.
    pub fn at_least_once(fired: impl FnOnce() -> u64 + 's) -> Self {
        Self::proven(fired, 1..=u64::MAX)
    }

    /// The job ends with this ending instead.
    pub fn ends(mut self, ending: Ending) -> Self {
        self.ending = ending;
        self
    }

    /// No attempt is lost, since no process has to notice the fault.
    pub fn unnoticed(mut self) -> Self {
        self.ending.untouched = true;
        self
    }

    /// The job never reaches the master.
    pub fn before_submission(mut self) -> Self {
        self.submitted = false;
        self
    }

    /// The fault ends by itself.
    pub fn heals(mut self, heal: impl FnOnce() + 's) -> Self {
        self.heal = Some(Box::new(heal));
        self
    }
}

/// Three workers with default settings.
pub fn three(_: &Sandbox) -> Result<Fleet, &'static str> {
    Ok(Fleet::new(vec![WorkerSpec::default(); 3]))
}

/// Declares the rows of one kind of fault, with a test for each.
macro_rules! rows {
    ($($(#[doc = $doc:literal])+ $subject:ident $test:ident: $menu:tt at [$($phase:ident),+] else $otherwise:literal
        within $bound:literal s on $fleet:path => $inject:path;)+) => {
        /// The rows of this file.
        pub const ROWS: &[$crate::faults::row::Row] = &[$($crate::faults::row::Row {
            subject: $crate::faults::row::Subject::$subject,
            test: stringify!($test),
            menu: &$menu,
            phases: &[$($crate::faults::phase::Phase::$phase),+],
            otherwise: $otherwise,
            bound: std::time::Duration::from_secs($bound),
            fleet: $fleet,
            inject: $inject,
        }),+];
        $($(#[doc = $doc])+ #[test] fn $test() { $crate::faults::cell::run(ROWS, stringify!($test)); })+
    };
}
pub(super) use rows;
