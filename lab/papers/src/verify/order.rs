//! Kind `order`: orders of jobs that are all present, by the algorithms of the pairs paper, with their averages; the
//! optimum over all orders, the smallest spread of groups and the smallest weight of a matching.

use super::compare::json_of;
use super::{Checker, Input};
use gristmill_scheduler::job::Size;
use gristmill_scheduler::policy::pairs::optimum;
use gristmill_scheduler::policy::pairs::{self, Rule};
use serde_json::{Value, json};

/// Maximum jobs of a case; the matching takes O(n³).
const JOBS_MAX: u64 = 1_000;

/// Maximum groups of a case.
const GROUPS_MAX: u64 = 1_000_000;

/// Input: `jobs` as pairs of map and shuffle, `alpha`, `k`, and `step`, which is absent or null for exact equality.
pub(super) fn check(input: &Input<'_>, expect: &Value, checker: &mut Checker) -> Result<(), String> {
    let jobs = jobs_of(input)?;
    let setting = OrderSetting::read(input)?;
    let expect = expect.as_object().ok_or("`expect` is not an object")?;
    for (field, expected) in expect {
        match field.as_str() {
            "algorithms" => {
                let algorithms = expected.as_object().ok_or("`expect.algorithms` is not an object")?;
                for (name, expected) in algorithms {
                    let place = format!("algorithms.{name}");
                    let Some(rule) = setting.rule(name) else {
                        checker.differ(&place, "there is no such algorithm".to_owned());
                        continue;
                    };
                    checker.value(&place, expected, &of_order(&jobs, &rule.order(&jobs)));
                }
            }
            "smjpd" => {
                let priorities: Vec<f64> = jobs.iter().map(|job| job.blend(setting.alpha)).collect();
                checker.value(field, expected, &json_of(pairs::spread(&priorities, setting.k)));
            }
            "min_matching_weight" => {
                checker.value(field, expected, &json_of(pairs::smallest_weight(&jobs, setting.alpha)));
            }
            "brute_force_total" | "brute_force_order" => {
                let (found, limit) = (jobs.len(), optimum::JOBS_MAX);
                if limit < found {
                    return Err(format!(
                        "`input.jobs` has {found} jobs, too many to try all orders of more than {limit}"
                    ));
                }
                let best = optimum::one_order(&jobs);
                let computed = match field.as_str() {
                    "brute_force_order" => Value::from(best.order),
                    _ => json_of(best.total),
                };
                checker.value(field, expected, &computed);
            }
            _ => checker.differ(field, "is expected, but nothing like it is computed".to_owned()),
        }
    }
    Ok(())
}

/// Parameters of the algorithms.
struct OrderSetting {
    alpha: f64,
    k: usize,
    delta: f64,
}

impl OrderSetting {
    fn read(input: &Input<'_>) -> Result<Self, String> {
        let delta = input.optional("step").map_or(Ok(0.0), |step| step.number_in(0.0, pairs::SIZE_MAX))?;
        let (alpha, k) = parameters_of(input)?;
        Ok(Self { alpha, k, delta })
    }

    /// Returns the algorithm by its name in the cases, or by the policy's.
    fn rule(&self, name: &str) -> Option<Rule> {
        let &Self { alpha, k, delta } = self;
        Some(match name {
            "alg1_pair" | "pair" => Rule::Pair { delta },
            "alg2_couple" | "couple" => Rule::Couple { delta },
            "alg3_generalized" | "generalized" => Rule::Generalized { delta, alpha },
            "alg4_group" | "group" => Rule::Group { alpha, k },
            "alg6_ncouple" | "n-couple" => Rule::NewCouple { delta },
            "alg7_match" | "match" => Rule::Match { alpha },
            "maxdiff" | "max-diff" => Rule::MaxDiff,
            "pairwise" => Rule::Pairwise,
            "maxshuffle" | "max-shuffle" => Rule::MaxShuffle,
            "maxsrpt" | "max-srpt" => Rule::MaxSrpt,
            _ => return None,
        })
    }
}

/// Parses `alpha` and `k`, by default those of the paper.
pub(super) fn parameters_of(input: &Input<'_>) -> Result<(f64, usize), String> {
    let alpha = input.optional("alpha").map_or(Ok(0.5), |alpha| alpha.number_in(0.0, 1.0))?;
    let k = input.optional("k").map_or(Ok(20), |k| k.whole(1, GROUPS_MAX))?;
    Ok((alpha, k as usize))
}

/// Parses a pair of map and shuffle.
pub(super) fn size_of(job: &Input<'_>) -> Result<Size, String> {
    let [map, shuffle] = job.exactly()?.map(|size: Input<'_>| size.number_in(0.0, pairs::SIZE_MAX));
    Ok(Size { map: map?, shuffle: shuffle? })
}

fn jobs_of(input: &Input<'_>) -> Result<Vec<Size>, String> {
    let jobs = input.field("jobs")?.items(JOBS_MAX)?;
    if jobs.is_empty() {
        return Err("`input.jobs` has no job".to_owned());
    }
    jobs.iter().map(size_of).collect()
}

fn of_order(jobs: &[Size], order: &[usize]) -> Value {
    let averages = pairs::averages(&pairs::times(jobs, order));
    let numbers = [averages.waiting, averages.execution, averages.makespan];
    json!({ "order": order, "avg": numbers.map(json_of) })
}

#[cfg(test)]
mod tests {
    use crate::verify::check_file;
    use serde_json::{Value, json};

    fn differences(input: &Value, expect: &Value) -> Vec<String> {
        let case = json!({"id": "a", "kind": "order", "input": input, "expect": expect});
        let reports = check_file(&json!({"tol": 1e-9, "cases": [case]}).to_string()).unwrap();
        reports[0].differences.iter().map(ToString::to_string).collect()
    }

    #[test]
    fn orders_averages_and_optima_are_compared() {
        let input =
            json!({"jobs": [[1, 2], [98, 97], [45, 49], [55, 51]], "alpha": 0.5, "k": 2, "step": null});
        let expect = json!({
            "algorithms": {
                "maxsrpt": {"order": [0, 2, 3, 1], "avg": [37.0, 51.5, 88.5]},
                "match": {"order": [2, 0, 1, 3]},
            },
            "brute_force_total": 354,
            "brute_force_order": [0, 2, 3, 1],
            "smjpd": 75,
            "min_matching_weight": 95,
        });
        assert_eq!(differences(&input, &expect), [""; 0]);
        let wrong = json!({"algorithms": {"pair": {"order": [0, 2, 1, 3]}, "best": {}}, "smjpd": 1});
        let found = differences(&input, &wrong);
        assert!(found[0].starts_with("algorithms.best: there is no such"), "{found:?}");
        assert!(found[1].starts_with("algorithms.pair.order[2]: expected 1"), "{found:?}");
        assert!(found.last().unwrap().starts_with("smjpd: expected 1"), "{found:?}");
    }

    #[test]
    fn cases_that_cannot_be_computed_say_which_field() {
        let expect = json!({"smjpd": 0});
        let refused = |input: Value| differences(&input, &expect).join("; ");
        assert_eq!(refused(json!({})), "`input.jobs` is missing");
        assert_eq!(refused(json!({"jobs": []})), "`input.jobs` has no job");
        assert!(refused(json!({"jobs": [[1, 2], [1]]})).contains("input.jobs[1]"));
        assert!(
            refused(json!({"jobs": [[1, -2]]})).contains("`input.jobs[0][1]` is -2, not a number from 0")
        );
        assert!(refused(json!({"jobs": [[1, "inf"]]})).contains("not a number from 0"));
        assert!(refused(json!({"jobs": [[1, 2]], "alpha": 2})).contains("`input.alpha` is 2"));
        assert!(refused(json!({"jobs": [[1, 2]], "k": 0})).contains("`input.k` is 0"));
        assert!(refused(json!({"jobs": [[1, 2]], "step": -1})).contains("`input.step` is -1"));
        let many = json!({"jobs": vec![[1, 2]; 11]});
        assert!(differences(&many, &json!({"brute_force_total": 1})).join("").contains("too many to try"));
    }
}
