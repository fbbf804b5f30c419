//! Kind `online-order`: Algorithms 5 and 8 of the pairs paper step by step, with given draws.
//!
//! The steps are in `expect.steps`: each is an arrival (`arrive`, `job`, `u`) or the start of the first waiting job
//! (`pop`), with its result: the `branch`, and the waiting jobs as `groups` (Algorithm 5) or `S` (Algorithm 8).

use super::input::{field, within};
use super::order::{parameters_of, size_of};
use gristmill_scheduler::policy::pairs::{Branch, OnlineGroups, Schedule};
use serde_json::{Map, Value, json};

enum OrderState {
    OnlineGroups(OnlineGroups),
    Schedule(Schedule),
}

/// Input: `alpha` and `k`. Computes each step of `expect.steps`.
pub(super) fn compute(input: &Value, expect: &Map<String, Value>) -> Result<Value, String> {
    let (alpha, k) = parameters_of(input)?;
    let steps = expect.get("steps").and_then(Value::as_array).ok_or("`expect.steps` is not a list")?;
    let shows = |field: &str| steps.iter().any(|step| step.get(field).is_some());
    let mut state = match (shows("groups"), shows("S")) {
        (true, false) => OrderState::OnlineGroups(OnlineGroups::new(alpha, k)),
        (false, true) => OrderState::Schedule(Schedule::new(alpha)),
        _ => {
            return Err(
                "`expect.steps` shows neither `groups` (Algorithm 5) nor `S` (Algorithm 8) alone".to_owned()
            );
        }
    };
    let mut computed = Vec::new();
    for (index, step) in steps.iter().enumerate() {
        let place = format!("steps[{index}]");
        let done = state.step(step).map_err(|error| format!("`{place}`: {error}"))?;
        computed.push(done);
    }
    Ok(json!({ "steps": computed }))
}

impl OrderState {
    /// Returns the waiting jobs in order.
    fn waiting(&self) -> Vec<u64> {
        match self {
            Self::OnlineGroups(groups) => groups.order().collect(),
            Self::Schedule(schedule) => schedule.order().collect(),
        }
    }

    /// Executes a step, and returns it with its results.
    fn step(&mut self, step: &Value) -> Result<Value, String> {
        let waiting = self.waiting();
        let mut done = step.clone();
        if step.get("pop").is_some() {
            let first = *waiting.first().ok_or("no job waits")?;
            match self {
                Self::OnlineGroups(groups) => groups.leave(first),
                Self::Schedule(schedule) => schedule.leave(first),
            }
            done["pop"] = first.into();
        } else {
            let (arrive, job, drawn) = (field(step, "arrive")?, field(step, "job")?, field(step, "u")?);
            if waiting.contains(&arrive) {
                return Err(format!("job {arrive} waits already"));
            }
            done["branch"] = self.arrive(arrive, job, within("u", drawn, [0.0, 1.0])?)?.into();
        }
        match &self {
            Self::OnlineGroups(groups) => done["groups"] = groups.blocks().into(),
            Self::Schedule(schedule) => done["S"] = schedule.order().collect::<Vec<u64>>().into(),
        }
        Ok(done)
    }

    /// Adds a job, and returns the branch of the algorithm.
    fn arrive(&mut self, id: u64, job: [f64; 2], drawn: f64) -> Result<String, String> {
        let size = size_of(job)?;
        Ok(match self {
            Self::OnlineGroups(groups) => match groups.arrive(id, size, drawn) {
                Branch::Reschedule => "reschedule".to_owned(),
                Branch::NewGroup => "new group".to_owned(),
                Branch::Joined(group) => format!("joined {group}"),
            },
            Self::Schedule(schedule) => match schedule.arrive(id, size, drawn) {
                true => "reschedule".to_owned(),
                false => "insert".to_owned(),
            },
        })
    }
}

#[cfg(test)]
mod tests {
    use crate::verify::tests;
    use serde_json::{Value, json};

    fn differences(input: &Value, steps: &Value) -> Vec<String> {
        tests::differences("online-order", input, &json!({"steps": steps}))
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
        assert!(refused(json!([{"S": []}])).contains("`steps[0]`: `arrive` is missing"));
        assert!(refused(json!([{"pop": 0, "S": []}])).contains("no job waits"));
        assert!(
            refused(json!([{"arrive": 0, "job": [1], "u": 0.9, "S": []}]))
                .contains("`steps[0]`: `job`: invalid length 1")
        );
        assert!(
            refused(json!([{"arrive": 0, "job": [1, 2], "u": 2, "S": []}])).contains("`steps[0]`: `u` is 2")
        );
        let twice = json!({"arrive": 0, "job": [1, 2], "u": 0.9, "S": [0]});
        assert!(refused(json!([twice, twice])).contains("job 0 waits already"));
    }
}
