//! Kind `online-order`: Algorithms 5 and 8 of the pairs paper step by step, with given draws.
//!
//! The steps are in `expect.steps`: each is an arrival (`arrive`, `job`, `u`) or the start of the first waiting job
//! (`pop`), with its result: the `branch`, and the waiting jobs as `groups` (Algorithm 5) or `S` (Algorithm 8).

use super::order::{parameters_of, size_of};
use super::{Checker, Input};
use gristmill_scheduler::policy::pairs::{Branch, OnlineGroups, Schedule};
use serde_json::Value;

/// Maximum steps and groups of a case.
const STEPS_MAX: u64 = 1_000;

enum OrderState {
    OnlineGroups(OnlineGroups),
    Schedule(Schedule),
}

/// Input: `alpha` and `k`.
pub(super) fn check(input: &Input<'_>, expect: &Value, checker: &mut Checker) -> Result<(), String> {
    let (alpha, k) = parameters_of(input)?;
    let steps = Input::new(expect, "expect").field("steps")?.items(STEPS_MAX)?;
    let shows = |field: &str| steps.iter().any(|step| step.optional(field).is_some());
    let mut state = match (shows("groups"), shows("S")) {
        (true, false) => OrderState::OnlineGroups(OnlineGroups::new(alpha, k)),
        (false, true) => OrderState::Schedule(Schedule::new(alpha)),
        _ => {
            return Err(
                "`expect.steps` shows neither `groups` (Algorithm 5) nor `S` (Algorithm 8) alone".to_owned()
            );
        }
    };
    for (index, step) in steps.iter().enumerate() {
        let place = format!("steps[{index}]");
        state.step(step, &place, checker)?;
        let (field, computed) = match &state {
            OrderState::OnlineGroups(groups) => ("groups", Value::from(groups.blocks())),
            OrderState::Schedule(_) => ("S", Value::from(state.waiting())),
        };
        if let Some(expected) = step.optional(field) {
            checker.value(&format!("{place}.{field}"), expected.value(), &computed);
        }
    }
    Ok(())
}

impl OrderState {
    /// Returns the waiting jobs in order.
    fn waiting(&self) -> Vec<u64> {
        match self {
            Self::OnlineGroups(groups) => groups.order().collect(),
            Self::Schedule(schedule) => schedule.order().collect(),
        }
    }

    /// Executes a step.
    fn step(&mut self, step: &Input<'_>, place: &str, checker: &mut Checker) -> Result<(), String> {
        let waiting = self.waiting();
        if let Some(popped) = step.optional("pop") {
            let first = *waiting.first().ok_or_else(|| format!("`{place}.pop`: no job waits"))?;
            checker.value(&format!("{place}.pop"), popped.value(), &Value::from(first));
            match self {
                Self::OnlineGroups(groups) => groups.leave(first),
                Self::Schedule(schedule) => schedule.leave(first),
            }
            return Ok(());
        }
        let id =
            step.optional("arrive").ok_or_else(|| format!("`{place}` has neither `arrive` nor `pop`"))?;
        let id = id.whole(0, u64::MAX)?;
        if waiting.contains(&id) {
            return Err(format!("`{place}.arrive`: job {id} waits already"));
        }
        let size = size_of(&step.field("job")?)?;
        let drawn = step.field("u")?.number_in(0.0, 1.0)?;
        let branch = match self {
            Self::OnlineGroups(groups) => match groups.arrive(id, size, drawn) {
                Branch::Reschedule => "reschedule".to_owned(),
                Branch::NewGroup => "new group".to_owned(),
                Branch::Joined(group) => format!("joined {group}"),
            },
            Self::Schedule(schedule) => match schedule.arrive(id, size, drawn) {
                true => "reschedule".to_owned(),
                false => "insert".to_owned(),
            },
        };
        if let Some(expected) = step.optional("branch") {
            checker.value(&format!("{place}.branch"), expected.value(), &Value::from(branch));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use crate::verify::check_file;
    use serde_json::{Value, json};

    fn differences(input: &Value, steps: &Value) -> Vec<String> {
        let case = json!({"id": "a", "kind": "online-order", "input": input, "expect": {"steps": steps}});
        let reports = check_file(&json!({"cases": [case]}).to_string()).unwrap();
        reports[0].differences.iter().map(ToString::to_string).collect()
    }

    #[test]
    fn algorithm_5_is_followed_step_by_step() {
        let input = json!({"alpha": 0.5, "k": 2});
        let mut steps = json!([
            {"arrive": 0, "job": [1, 2], "u": 0.9, "branch": "new group", "groups": [[0]]},
            {"arrive": 1, "job": [8, 2], "u": 0.9, "branch": "new group", "groups": [[0], [1]]},
            {"arrive": 2, "job": [2, 9], "u": 0.9, "branch": "joined 1", "groups": [[0], [2, 1]]},
            {"pop": 0, "groups": [[2, 1]]},
            {"arrive": 4, "job": [1, 1], "u": 1e-9, "branch": "reschedule", "groups": [[4], [2, 1]]},
        ]);
        assert_eq!(differences(&input, &steps), [""; 0]);
        steps[2]["branch"] = json!("joined 0");
        steps[3]["pop"] = json!(2);
        let found = differences(&input, &steps);
        assert!(found[0].starts_with("steps[2].branch: expected \"joined 0\""), "{found:?}");
        assert!(found[1].starts_with("steps[3].pop: expected 2"), "{found:?}");
    }

    #[test]
    fn algorithm_8_is_followed_step_by_step() {
        let steps = json!([
            {"arrive": 0, "job": [1, 2], "u": 0.9, "branch": "reschedule", "S": [0]},
            {"arrive": 1, "job": [2, 1], "u": 0.9, "branch": "insert", "S": [0, 1]},
            {"arrive": 2, "job": [1, 3], "u": 0.9, "branch": "insert", "S": [0, 2, 1]},
            {"pop": 0},
            {"arrive": 4, "job": [1, 1], "u": 1e-9, "branch": "reschedule", "S": [2, 4, 1]},
        ]);
        assert_eq!(differences(&json!({}), &steps), [""; 0]);
    }

    #[test]
    fn steps_that_cannot_be_taken_say_which_field() {
        let refused = |steps: Value| differences(&json!({}), &steps).join("; ");
        assert!(refused(json!([{"arrive": 0, "job": [1, 2], "u": 0.9}])).contains("neither `groups`"));
        assert!(refused(json!([{"S": []}])).contains("`steps[0]` has neither `arrive` nor `pop`"));
        assert!(refused(json!([{"pop": 0, "S": []}])).contains("no job waits"));
        assert!(
            refused(json!([{"arrive": 0, "job": [1], "u": 0.9, "S": []}])).contains("`expect.steps[0].job`")
        );
        assert!(
            refused(json!([{"arrive": 0, "job": [1, 2], "u": 2, "S": []}])).contains("`expect.steps[0].u`")
        );
        let twice = json!({"arrive": 0, "job": [1, 2], "u": 0.9, "S": [0]});
        assert!(refused(json!([twice, twice])).contains("job 0 waits already"));
    }
}
