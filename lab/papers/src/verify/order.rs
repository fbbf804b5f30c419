//! Kind `order`: orders of jobs that are all present, by the algorithms of the pairs paper, with their averages; the
//! optimum over all orders, the smallest spread of groups and the smallest weight of a matching.

use super::compare::{json_of, list};
use super::input::{field, within};
use gristmill_scheduler::job::Size;
use gristmill_scheduler::policy::pairs::optimum;
use gristmill_scheduler::policy::pairs::{self, PairsRule};
use serde_json::{Map, Value, json};
use std::num::NonZeroUsize;

/// Parses `alpha` and `k`, by default those of the paper.
pub(super) fn parameters_of(input: &Value) -> Result<(f64, usize), String> {
    let alpha = within("alpha", field::<Option<f64>>(input, "alpha")?.unwrap_or(0.5), [0.0, 1.0])?;
    Ok((alpha, field::<Option<NonZeroUsize>>(input, "k")?.map_or(20, NonZeroUsize::get)))
}

/// Computes what is expected, as some of it takes long.
pub(super) fn compute(input: &Value, expect: &Map<String, Value>) -> Result<Value, String> {
    let jobs = field::<Vec<[f64; 2]>>(input, "jobs")?;
    let jobs = jobs.into_iter().map(size_of).collect::<Result<Vec<Size>, String>>()?;
    if jobs.is_empty() {
        return Err("`jobs` has no job".to_owned());
    }
    let (alpha, k) = parameters_of(input)?;
    // Absent or null for exact equality.
    let step = field::<Option<f64>>(input, "step")?.unwrap_or_default();
    let delta = within("step", step, [0.0, pairs::SIZE_MAX])?;
    let algorithms = expect.get("algorithms").and_then(Value::as_object).into_iter().flat_map(Map::keys);
    let orders = algorithms.filter_map(|name| {
        let rule = rule(name, alpha, k, delta)?;
        Some((name.clone(), of_order(&jobs, &rule.order(&jobs))))
    });
    let mut computed = json!({ "algorithms": orders.collect::<Map<_, _>>() });
    if expect.contains_key("smjpd") {
        let priorities: Vec<f64> = jobs.iter().map(|job| job.blend(alpha)).collect();
        computed["smjpd"] = json_of(pairs::spread(&priorities, k));
    }
    if expect.contains_key("min_matching_weight") {
        computed["min_matching_weight"] = json_of(pairs::smallest_weight(&jobs, alpha));
    }
    if expect.keys().any(|field| field.starts_with("brute_force_")) {
        let (found, limit) = (jobs.len(), optimum::JOBS_MAX);
        if limit < found {
            return Err(format!("`jobs` has {found} jobs, too many to try all orders of more than {limit}"));
        }
        let best = optimum::one_order(&jobs);
        computed["brute_force_order"] = best.order.into();
        computed["brute_force_total"] = json_of(best.total);
    }
    Ok(computed)
}

/// Returns the algorithm by its name in the cases, or by the policy's.
fn rule(name: &str, alpha: f64, k: usize, delta: f64) -> Option<PairsRule> {
    Some(match name {
        "alg1_pair" | "pair" => PairsRule::Pair { delta },
        "alg2_couple" | "couple" => PairsRule::Couple { delta },
        "alg3_generalized" | "generalized" => PairsRule::Generalized { delta, alpha },
        "alg4_group" | "group" => PairsRule::Group { alpha, k },
        "alg6_ncouple" | "n-couple" => PairsRule::NewCouple { delta },
        "alg7_match" | "match" => PairsRule::Match { alpha },
        "maxdiff" | "max-diff" => PairsRule::MaxDiff,
        "pairwise" => PairsRule::Pairwise,
        "maxshuffle" | "max-shuffle" => PairsRule::MaxShuffle,
        "maxsrpt" | "max-srpt" => PairsRule::MaxSrpt,
        _ => return None,
    })
}

/// Returns the size of a job of this map and shuffle.
pub(super) fn size_of(sizes: [f64; 2]) -> Result<Size, String> {
    let [map, shuffle] = sizes.map(|size| within("job", size, [0.0, pairs::SIZE_MAX]));
    Ok(Size { map: map?, shuffle: shuffle? })
}

fn of_order(jobs: &[Size], order: &[usize]) -> Value {
    let averages = pairs::averages(&pairs::times(jobs, order));
    json!({ "order": order, "avg": list([averages.waiting, averages.execution, averages.makespan]) })
}

#[cfg(test)]
mod tests {
    use crate::verify::tests;
    use serde_json::{Value, json};

    fn differences(input: &Value, expect: &Value) -> Vec<String> {
        tests::differences("order", input, expect)
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
        assert!(found[0].starts_with("algorithms.best: is expected"), "{found:?}");
        assert!(found[1].starts_with("algorithms.pair.order[2]: expected 1"), "{found:?}");
        assert!(found.last().unwrap().starts_with("smjpd: expected 1"), "{found:?}");
    }

    #[test]
    fn cases_that_cannot_be_computed_say_which_field() {
        let expect = json!({"smjpd": 0});
        let refused = |input: Value| differences(&input, &expect).join("; ");
        assert_eq!(refused(json!({})), "`jobs` is missing");
        assert_eq!(refused(json!({"jobs": []})), "`jobs` has no job");
        assert!(refused(json!({"jobs": [[1, 2], [1]]})).contains("invalid length 1"));
        assert!(refused(json!({"jobs": [[1, -2]]})).contains("`job` is -2, not a number from 0"));
        assert!(refused(json!({"jobs": [[1, 2]], "alpha": 2})).contains("`alpha` is 2"));
        assert!(refused(json!({"jobs": [[1, 2]], "k": 0})).contains("integer `0`"));
        assert!(refused(json!({"jobs": [[1, 2]], "step": -1})).contains("`step` is -1"));
        let many = json!({"jobs": vec![[1, 2]; 11]});
        assert!(differences(&many, &json!({"brute_force_total": 1})).join("").contains("too many to try"));
    }
}
