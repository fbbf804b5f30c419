//! Isolates the master from panics of the policy: `fifo` decides in its place, and the panic is recorded.
//!
//! A policy may be third-party code, and its master is shared by all users. Grants made before the panic stay valid;
//! the rest of that plan is made by `fifo`. The policy is called again for the next plan. Two kinds of panics are not
//! caught: those while grants are executed, since the ledger may be half changed, and those of policies in simulators.
//!
//! Invariant: `stand_in`, once created, has observed the same as the policy.

use crate::plan::Plan;
use crate::policy::{Fifo, Policy};
use crate::view::{Change, Handle, View};
use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};

/// Panics of a policy that were caught, and its failure.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct PolicyPanics {
    /// Number of panics.
    pub count: u64,
    /// Message of the last panic.
    pub last: String,
}

/// A policy and its replacement.
pub(super) struct Guarded {
    policy: Box<dyn Policy>,
    /// `None` until needed, since most policies do not panic.
    stand_in: Option<Fifo>,
    panics: PolicyPanics,
}

impl Guarded {
    pub(super) fn new(policy: Box<dyn Policy>) -> Self {
        Self { policy, stand_in: None, panics: PolicyPanics::default() }
    }

    /// Returns the policy itself, for methods that need no state.
    pub(super) fn policy(&self) -> &dyn Policy {
        &*self.policy
    }

    pub(super) fn panics(&self) -> &PolicyPanics {
        &self.panics
    }

    pub(super) fn observe(&mut self, view: View<'_>, change: Change) {
        if let Some(stand_in) = &mut self.stand_in {
            stand_in.observe(view, change);
        }
        let policy = &mut self.policy;
        if let Err(panic) = catch_unwind(AssertUnwindSafe(|| policy.observe(view, change))) {
            self.panicked(&*panic, view);
        }
    }

    pub(super) fn plan(&mut self, view: View<'_>, plan: &mut Plan<'_>) {
        let policy = &mut self.policy;
        let planned = catch_unwind(AssertUnwindSafe(|| {
            policy.plan(view, plan);
            plan.finish();
        }));
        let Err(panic) = planned else {
            if let Some(failure) = self.policy.failure().filter(|failure| *failure != self.panics.last) {
                self.panics = PolicyPanics { count: self.panics.count + 1, last: failure.to_owned() };
            }
            return;
        };
        if plan.is_executing() {
            resume_unwind(panic);
        }
        self.panicked(&*panic, view);
        plan.drop_tier();
        if let Some(stand_in) = &mut self.stand_in {
            stand_in.plan(view, plan);
            plan.finish();
        }
    }

    pub(super) fn explain(&self, view: View<'_>, job: Handle) -> Vec<String> {
        let explained = catch_unwind(AssertUnwindSafe(|| self.policy.explain(view, job)));
        explained.unwrap_or_else(|panic| vec![format!("the policy panicked when asked: {}", words(&*panic))])
    }

    fn panicked(&mut self, panic: &(dyn Any + Send), view: View<'_>) {
        self.panics.count += 1;
        self.panics.last = words(panic);
        if self.stand_in.is_none() {
            let mut fifo = Fifo::new();
            for index in (0..view.rows.len()).filter(|&index| view.rows[index].live) {
                let job = Handle(index as u32);
                fifo.observe(View { touched: &[job], ..view }, Change::Arrived(job));
            }
            self.stand_in = Some(fifo);
        }
    }
}

/// Returns the message of a panic.
fn words(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<&str>().copied();
    let text = text.or_else(|| panic.downcast_ref::<String>().map(String::as_str));
    text.unwrap_or("(no message)").to_owned()
}
