//! Conversions of types of the wire into those of the core and back: failures, splits, shares and orders of the shuffle.
//! The files of `state` decide which frame becomes which event.

use crate::api::{FailureCode, JobFailure, Submission};
use gristmill_scheduler::command::{Cause, Outcome};
use gristmill_scheduler::core::ShuffleOrder;
use gristmill_scheduler::event::{External, Failure};
use gristmill_scheduler::ids::{TaskId, WorkerId};
use gristmill_scheduler::job::{Exact, JobSpec, MapSpec};
use gristmill_scheduler::plan::{Line, Share};
use gristmill_scheduler::units::{Bytes, Span, Time};
use gristmill_worker::input::{Place, Split};
use gristmill_worker::protocol::{FailureClass, LaneOrder, LaneShare};

/// Converts a failure.
pub(crate) fn failure(class: FailureClass) -> Failure {
    match class {
        FailureClass::User | FailureClass::Hang => Failure::User,
        // A retry with the same credentials fails again.
        FailureClass::Input | FailureClass::Credentials => Failure::Input,
        FailureClass::Config => Failure::Config,
        // A full output directory also ends the job; see `JobEntry::attempt_failed`. An error of the engine may not
        // occur elsewhere.
        FailureClass::Worker | FailureClass::Output | FailureClass::OutputGone | FailureClass::Engine => {
            Failure::Worker
        }
        FailureClass::Fetch => Failure::Fetch,
        FailureClass::Unreachable => Failure::Unreachable,
        // Both are unusable for every reader, and came over a working route.
        FailureClass::Corrupt | FailureClass::Missing => Failure::Corrupt,
        FailureClass::Cancelled => Failure::Cancelled,
    }
}

/// Converts a split. A split that names a worker's own file is read only there.
pub(crate) fn map_spec(split: &Split) -> MapSpec {
    let mut preferred: Vec<WorkerId> = split
        .pieces
        .iter()
        .filter_map(|piece| match piece.place {
            Place::Worker(worker) => Some(worker),
            Place::Submitter | Place::Store | Place::Steps => None,
        })
        .collect();
    preferred.sort_unstable();
    preferred.dedup();
    // Pieces on two different workers cannot all be local, so any worker reads them over HTTP.
    let pinned = preferred.len() == 1;
    MapSpec { bytes: Bytes(split.bytes()), preferred, pinned }
}

/// Converts a job, without its pool, whose number only the master knows.
pub(crate) fn job_spec(submission: &Submission, now: Time) -> JobSpec {
    let maps = submission.splits.iter().map(map_spec).collect();
    let exact = submission.exact.as_ref().map(|work| Exact {
        maps: work.map_seconds.clone().into(),
        shuffle_bytes: work.shuffle_bytes,
        reduces: work.reduce_seconds.clone().into(),
    });
    JobSpec {
        weight: submission.weight,
        priority: submission.priority,
        attempts_max: submission.attempts_max,
        deadline: submission.deadline_ns.map(|span| now + Span(span)),
        name: Some(submission.label.clone().unwrap_or_else(|| submission.name.clone())),
        exact,
        ..JobSpec::new(maps, submission.reduces)
    }
}

/// Converts the order of lanes.
pub(crate) fn lane_order(order: &ShuffleOrder) -> LaneOrder {
    let share = |share: Share| match share {
        Share::All => LaneShare::All,
        Share::Slots(requests) => LaneShare::Requests(requests),
        Share::Weight(weight) => LaneShare::Weight(weight),
        Share::In(Line(line)) => LaneShare::Line(line),
    };
    LaneOrder {
        grants: order.grants.iter().map(|&(job, granted)| (job, share(granted))).collect(),
        lines: order.lines.clone(),
        only: order.only,
    }
}

/// Converts an outcome to the failure that clients see, without its detail; `None` for a success.
pub(crate) fn job_failure(outcome: Outcome) -> Option<(JobFailure, Option<TaskId>)> {
    let Outcome::Failed { cause } = outcome else { return None };
    let (code, task) = match cause {
        Cause::UserCode { task } => (FailureCode::UserCode, Some(task)),
        Cause::Input { task } => (FailureCode::Input, Some(task)),
        Cause::Config { task } => (FailureCode::Config, Some(task)),
        Cause::NotDeterministic { task } => (FailureCode::NotDeterministic, Some(task)),
        Cause::OutputUnreadable { task } => (FailureCode::OutputUnreadable, Some(task)),
        Cause::WorkersLost { task } => (FailureCode::WorkersLost, Some(task)),
        Cause::Unreachable { task } => (FailureCode::Unreachable, Some(task)),
        Cause::WorkersUnfit { task } => (FailureCode::WorkersUnfit, Some(task)),
        Cause::NoWorkers => (FailureCode::NoWorkers, None),
        Cause::External { cause } => match cause {
            External::InputGone => (FailureCode::Input, None),
            External::ClientLost => (FailureCode::ClientLost, None),
            External::OutputUnavailable => (FailureCode::Output, None),
            External::LimitPassed => (FailureCode::Limit, None),
            _ => (FailureCode::Internal, None),
        },
    };
    Some((JobFailure { code, message: outcome.to_string(), detail: None }, task))
}

/// Adds the repeated cause of a failure, because the core has fewer classes. `stored` is true if the job's input is in
/// a store.
pub(crate) fn refine(failure: &mut JobFailure, class: Option<FailureClass>, stored: bool) {
    let (code, message) = match (&failure.code, class) {
        (FailureCode::Unreachable, _) if stored => {
            failure.code = FailureCode::Store;
            failure.message = "the store could not be read".to_owned();
            return;
        }
        (FailureCode::OutputUnreadable, Some(FailureClass::Corrupt)) => {
            (FailureCode::OutputCorrupt, "was damaged each time it was read")
        }
        (FailureCode::Input, Some(FailureClass::Credentials)) => {
            (FailureCode::Credentials, "was refused by a store, or had no credentials for it")
        }
        (FailureCode::WorkersUnfit, Some(FailureClass::Engine)) => {
            (FailureCode::Engine, "met a mistake of the engine each time it was tried")
        }
        _ => return,
    };
    failure.code = code;
    failure.message = format!("{}: it {message}", failure.message);
}

#[cfg(test)]
mod tests {
    use super::*;
    use gristmill_scheduler::ids::JobId;

    #[test]
    fn an_output_that_is_not_held_any_more_is_no_fault_of_the_way_to_it() {
        assert_eq!(failure(FailureClass::Fetch), Failure::Fetch);
        assert_eq!(failure(FailureClass::Missing), Failure::Corrupt, "which no home is blamed for");
    }

    #[test]
    fn failure_of_a_job_says_what_it_was_that_failed_again_and_again() {
        let task = TaskId::map(JobId(1), 0);
        let (unfit, unreadable) = (Cause::WorkersUnfit { task }, Cause::OutputUnreadable { task });
        for (cause, class, expected) in [
            (unfit, FailureClass::Worker, FailureCode::WorkersUnfit),
            (unfit, FailureClass::Engine, FailureCode::Engine),
            (Cause::Input { task }, FailureClass::Credentials, FailureCode::Credentials),
            (Cause::Input { task }, FailureClass::Input, FailureCode::Input),
            (unreadable, FailureClass::Fetch, FailureCode::OutputUnreadable),
            (unreadable, FailureClass::Corrupt, FailureCode::OutputCorrupt),
            (Cause::UserCode { task }, FailureClass::Engine, FailureCode::UserCode),
        ] {
            let (mut failure, _) = job_failure(Outcome::Failed { cause }).unwrap();
            refine(&mut failure, Some(class), false);
            assert_eq!(failure.code, expected, "{cause} after {}", class.word());
        }
        let (mut failure, _) = job_failure(Outcome::Failed { cause: Cause::Unreachable { task } }).unwrap();
        refine(&mut failure, Some(FailureClass::Unreachable), true);
        assert_eq!((failure.code, &*failure.message), (FailureCode::Store, "the store could not be read"));
    }
}
