//! Rules that a test can switch off, to show that it would notice if they were missing.
//!
//! Only in builds with debug assertions, on the thread that asks for it; elsewhere every rule holds.

/// A rule.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Rule {
    /// What workers say that were given up changes nothing.
    LostWorkersAreFenced,
    /// A map whose output is gone and lacked by somebody runs again.
    LostOutputsAreMadeAgain,
    /// A worker that comes back to its master, or to the next one, is told what it missed.
    WorkersThatComeBackAreReconciled,
    /// Segments of an attempt whose output was another one than that of the last are not taken.
    StaleSegmentsAreRefused,
    /// Of several attempts of a task that ask to publish, the first may.
    OneAttemptPublishes,
    /// When one of two attempts of a task has ended well, the other is stopped.
    LosersAreStopped,
}

#[cfg(debug_assertions)]
thread_local! {
    static OFF: std::cell::Cell<Option<Rule>> = const { std::cell::Cell::new(None) };
}

/// Does this work while a rule does not hold on this thread.
#[cfg(debug_assertions)]
pub fn without<T>(rule: Rule, work: impl FnOnce() -> T) -> T {
    let before = OFF.replace(Some(rule));
    let done = work();
    OFF.set(before);
    done
}

/// Whether a rule holds.
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
