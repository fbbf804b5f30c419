//! Cases of the overlapping tandem queue: completion times under its policies, totals, rates, and the lower bound.
//!
//! Input: `jobs` as `[arrival, map, shuffle]`, in any order; `k` for k-LPS; `policy` for a single policy. Expected, by
//! policy or for the single policy: `completion` by job, `total` of the response times, `makespan`, `segments` with the
//! rates by job, `total_shuffle_rate`; and `lower_bound` with its `cycles`.

use super::compare::json_of;
use super::{Checker, Input};
use gristmill_scheduler::policy;
use gristmill_scheduler::sim::fluid;
use gristmill_scheduler::sim::fluid::lower_bound::LowerBound;
use gristmill_scheduler::station::{PerStation, Station};
use gristmill_scheduler::workload::Job;
use serde_json::{Map, Value, json};

/// Maximum jobs of a case: the cost of sharing policies is quadratic.
const JOBS_MAX: u64 = 5_000;

/// Fields that exist for each policy.
const BY_POLICY: [&str; 5] = ["completion", "total", "makespan", "segments", "total_shuffle_rate"];

/// Maps the name of a policy in cases to its catalogue call.
fn call_of(name: &str, k: u64) -> Option<String> {
    Some(match name {
        "FCFS" => "fcfs".to_owned(),
        "PS" => "ps".to_owned(),
        "kLPS" => format!("k-lps:k={k}"),
        "FCFS_PS" => "map-fifo-shuffle-ps".to_owned(),
        "MaxSRPT" => "max-srpt".to_owned(),
        "MaxSRPT_head" => "max-srpt:shuffle=head".to_owned(),
        "SplitSRPT" => "split-srpt:idle=lost".to_owned(),
        "SplitSRPT_wc" => "split-srpt".to_owned(),
        "SplitSRPT_we" => "split-srpt:idle=empty".to_owned(),
        "Makespan" => "makespan".to_owned(),
        _ => return None,
    })
}

/// Jobs in the order of their arrival, with their indexes in the case.
struct Instance {
    jobs: Vec<Job>,
    places: Vec<usize>,
    k: u64,
}

pub(super) fn check(input: &Input<'_>, expect: &Value, checker: &mut Checker) -> Result<(), String> {
    let instance = Instance::read(input)?;
    let fields = expect.as_object().ok_or("`expect` is not an object")?;
    let mut computed = Map::new();
    if fields.contains_key("lower_bound") || fields.contains_key("cycles") {
        let (total, cycles) = instance.lower_bound()?;
        computed.insert("lower_bound".to_owned(), json_of(total));
        computed.insert("cycles".to_owned(), cycles.into_iter().map(json_of).collect());
    }
    if let Some(name) = input.optional("policy") {
        computed.extend(instance.run(name.text()?)?);
    } else {
        for name in names(fields)? {
            for (field, value) in instance.run(&name)? {
                let by_policy = computed.entry(field).or_insert_with(|| json!({}));
                by_policy[&name] = value;
            }
        }
    }
    checker.value("", expect, &Value::Object(computed));
    Ok(())
}

/// Returns the policies with expected values.
fn names(fields: &Map<String, Value>) -> Result<Vec<String>, String> {
    let mut names = Vec::new();
    for field in BY_POLICY {
        let Some(expected) = fields.get(field) else { continue };
        let expected =
            expected.as_object().ok_or_else(|| format!("`expect.{field}` is not an object by policy"))?;
        for name in expected.keys() {
            if !names.contains(name) {
                names.push(name.clone());
            }
        }
    }
    Ok(names)
}

impl Instance {
    fn read(input: &Input<'_>) -> Result<Self, String> {
        let mut read: Vec<(usize, Job)> = Vec::new();
        for (index, job) in input.field("jobs")?.items(JOBS_MAX)?.iter().enumerate() {
            let [arrival, map, shuffle] = job.exactly()?.map(|number: Input<'_>| number.number());
            let work = PerStation::new(map?, shuffle?, 0.0);
            read.push((index, Job { arrival: arrival?, work, ..Job::default() }));
        }
        if read.is_empty() {
            return Err("`input.jobs` has no job".to_owned());
        }
        read.sort_by(|(_, one), (_, other)| one.arrival.total_cmp(&other.arrival));
        let (places, jobs) = read.into_iter().unzip();
        let k = input.optional("k").map_or(Ok(100), |k| k.whole(1, u64::from(u32::MAX)))?;
        Ok(Self { jobs, places, k })
    }

    fn lower_bound(&self) -> Result<(f64, Vec<f64>), String> {
        let mut bound = LowerBound::new();
        let mut cycles = Vec::new();
        for (index, job) in self.jobs.iter().enumerate() {
            fluid::check(job, index as u64, 0.0).map_err(|error| error.to_string())?;
            cycles.extend(bound.push([job.arrival, job.work[Station::Map], job.work[Station::Shuffle]]));
        }
        let (last, total) = bound.finish();
        cycles.push(last);
        Ok((total, cycles))
    }

    /// Returns all values that can be expected of a policy.
    fn run(&self, name: &str) -> Result<Map<String, Value>, String> {
        let call =
            call_of(name, self.k).ok_or_else(|| format!("there is no policy `{name}` in this model"))?;
        let mut policy = policy::by_name(&call).map_err(|error| error.to_string())?;
        let mut completions = vec![f64::NAN; self.jobs.len()];
        let (mut total, mut makespan) = (0.0, 0.0_f64);
        let mut segments = Vec::new();
        let mut shuffle_rates: Vec<[f64; 3]> = Vec::new();
        let summary = fluid::trace(
            &mut *policy,
            self.jobs.iter().cloned(),
            &mut |record| {
                completions[self.places[record.seq as usize]] = record.completion;
                total += record.flow();
                makespan = makespan.max(record.completion);
            },
            &mut |piece| {
                segments.push(self.segment(piece));
                let rate: f64 = piece.rates.iter().map(|(_, [_, shuffle])| shuffle).sum();
                match shuffle_rates.last_mut() {
                    Some([_, to, last]) if *to == piece.from && (*last - rate).abs() < 1e-12 => {
                        *to = piece.to;
                    }
                    _ => shuffle_rates.push([piece.from, piece.to, rate]),
                }
            },
        );
        summary.map_err(|error| format!("policy `{name}`: {error}"))?;
        let completions: Vec<Value> = completions.into_iter().map(json_of).collect();
        let fields = [
            ("completion", completions.into()),
            ("total", json_of(total)),
            ("makespan", json_of(makespan)),
            ("segments", segments.into()),
            ("total_shuffle_rate", json!(shuffle_rates)),
        ];
        Ok(fields.map(|(field, value)| (field.to_owned(), value)).into_iter().collect())
    }

    fn segment(&self, piece: &fluid::RateInterval<'_>) -> Value {
        let station = |station: usize| {
            let mut rates = Map::new();
            for &(seq, job) in piece.rates {
                if 0.0 < job[station] {
                    rates.insert(self.places[seq as usize].to_string(), json_of(job[station]));
                }
            }
            rates
        };
        json!({ "t0": piece.from, "t1": piece.to, "map": station(0), "shuffle": station(1) })
    }
}

#[cfg(test)]
mod tests;
