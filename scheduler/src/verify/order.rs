//! Kind `order`: orders of jobs that are all there, by the algorithms of the pairs paper, with their averages; the
//! optimum over all orders, the least spread of groups and the least weight of a matching.

use super::Checker;
use super::compare::{json_of, number_of};
use crate::bound::optimum;
use crate::job::Size;
use crate::policy::pairs::{self, Rule};
use serde_json::{Map, Value};

/// The most jobs of a case; the matching takes O(n³).
const JOBS_MAX: usize = 1_000;

/// The most groups of a case.
const GROUPS_MAX: f64 = 1e6;

/// Input: `jobs` as pairs of map and shuffle, `alpha`, `k`, and `step`, which is absent or null for exact equality.
pub(super) fn check(input: &Value, expect: &Value, checker: &mut Checker) -> Result<(), String> {
    let jobs = jobs_of(input)?;
    let setting = OrderSetting::read(input)?;
    let Some(expect) = expect.as_object() else { return Err("`expect` is not an object".to_owned()) };
    for (field, expected) in expect {
        match field.as_str() {
            "algorithms" => {
                let Some(algorithms) = expected.as_object() else {
                    return Err("`expect.algorithms` is not an object".to_owned());
                };
                for (name, expected) in algorithms {
                    let place = format!("algorithms.{name}");
                    match setting.rule(name) {
                        Some(rule) => checker.value(&place, expected, &of_order(&jobs, &rule.order(&jobs))),
                        None => checker.differ(&place, "there is no such algorithm".to_owned()),
                    }
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
                if optimum::JOBS_MAX < jobs.len() {
                    let (found, limit) = (jobs.len(), optimum::JOBS_MAX);
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
    fn read(input: &Value) -> Result<Self, String> {
        let delta = match input.get("step") {
            None | Some(Value::Null) => 0.0,
            Some(step) => number_in(step, "step", 0.0, pairs::SIZE_MAX)?,
        };
        let (alpha, k) = parameters_of(input)?;
        Ok(Self { alpha, k, delta })
    }

    /// The algorithm by its name in the cases, or by the policy's.
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

/// `alpha` and `k`, by default those of the paper.
pub(super) fn parameters_of(input: &Value) -> Result<(f64, usize), String> {
    let alpha = match input.get("alpha") {
        None | Some(Value::Null) => 0.5,
        Some(alpha) => number_in(alpha, "alpha", 0.0, 1.0)?,
    };
    let k = match input.get("k") {
        None | Some(Value::Null) => 20,
        Some(k) => {
            let whole = number_of(k).filter(|&k| (1.0..=GROUPS_MAX).contains(&k) && k.fract() == 0.0);
            whole.ok_or_else(|| format!("`input.k` is {k}, not a whole number from 1 to {GROUPS_MAX}"))?
                as usize
        }
    };
    Ok((alpha, k))
}

/// A pair of map and shuffle.
pub(super) fn size_of(value: &Value, place: &str) -> Result<Size, String> {
    let Some([map, shuffle]) = value.as_array().map(Vec::as_slice) else {
        return Err(format!("`{place}` is {value}, not a pair of map and shuffle"));
    };
    let number = |value| number_in(value, place, 0.0, pairs::SIZE_MAX);
    Ok(Size { map: number(map)?, shuffle: number(shuffle)? })
}

fn jobs_of(input: &Value) -> Result<Vec<Size>, String> {
    let jobs = input.get("jobs").and_then(Value::as_array).ok_or("`input.jobs` is missing, or no list")?;
    if jobs.is_empty() || JOBS_MAX < jobs.len() {
        return Err(format!("`input.jobs` has {} jobs, not 1 to {JOBS_MAX}", jobs.len()));
    }
    jobs.iter().enumerate().map(|(index, job)| size_of(job, &format!("input.jobs[{index}]"))).collect()
}

fn number_in(value: &Value, place: &str, least: f64, most: f64) -> Result<f64, String> {
    let number = number_of(value).filter(|number| (least..=most).contains(number));
    number.ok_or_else(|| format!("`{place}` is {value}, not a number from {least} to {most:e}"))
}

fn of_order(jobs: &[Size], order: &[usize]) -> Value {
    let averages = pairs::averages(&pairs::times(jobs, order));
    let numbers = [averages.waiting, averages.execution, averages.makespan];
    let mut fields = Map::new();
    fields.insert("order".to_owned(), Value::from(order.to_vec()));
    fields.insert("avg".to_owned(), Value::Array(numbers.map(json_of).to_vec()));
    Value::Object(fields)
}

#[cfg(test)]
mod tests;
