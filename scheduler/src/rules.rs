//! Rules that a test can disable, to show that it would notice their absence.
//!
//! Only in builds with debug assertions, on the requesting thread; otherwise every rule is in force.

/// Rule of the system.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Rule {
    /// Reports of lost workers change nothing.
    LostWorkersAreFenced,
    /// A map whose output is lost runs again if a partition lacks it.
    LostOutputsAreMadeAgain,
    /// A worker that reconnects to its master, or to the next one, receives what it missed.
    WorkersThatComeBackAreReconciled,
    /// Segments of an attempt whose output differs from that of the last one are rejected.
    StaleSegmentsAreRefused,
    /// Of several attempts of a task that request to publish, the first may.
    OneAttemptPublishes,
    /// When one of two attempts of a task has succeeded, the other is stopped.
    LosersAreStopped,
}

#[cfg(debug_assertions)]
thread_local! {
    static OFF: std::cell::Cell<Option<Rule>> = const { std::cell::Cell::new(None) };
}

/// Runs this work while a rule is disabled on this thread.
#[cfg(debug_assertions)]
pub fn without<T>(rule: Rule, work: impl FnOnce() -> T) -> T {
    let before = OFF.replace(Some(rule));
    let done = work();
    OFF.set(before);
    done
}

/// True if a rule is in force.
#[must_use]
#[inline(always)]
pub fn holds(rule: Rule) -> bool {
    #[cfg(debug_assertions)]
    let held = OFF.get() != Some(rule);
    #[cfg(not(debug_assertions))]
    let held = {
        let _ = rule;
        true
    };
    held
}

#[cfg(all(test, debug_assertions))]
mod tests {
    use super::*;

    #[test]
    fn a_rule_is_off_for_the_work_that_asks_for_it_alone() {
        let rule = Rule::LostOutputsAreMadeAgain;
        assert!(holds(rule));
        assert!(!without(rule, || holds(rule)));
        assert!(without(rule, || holds(Rule::StaleSegmentsAreRefused)));
        assert!(holds(rule), "afterwards");
    }
}
