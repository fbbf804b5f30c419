//! Cases of the overlapping tandem queue: completion times under its policies, totals, rates, and the lower bound.
//!
//! Input: `jobs` as `[arrival, map, shuffle]`, in any order; `k` for k-LPS; `policy` for a single policy. Expected, by
//! policy or for the single policy: `completion` by job, `total` of the response times, `makespan`, `segments` with the
//! rates by job, `total_shuffle_rate`; and `lower_bound` with its `cycles`.

use super::compare::{Checker, json_of, number_of};
use gristmill_scheduler::bound::overlap::LowerBound;
use gristmill_scheduler::policy;
use gristmill_scheduler::sim::fluid;
use gristmill_scheduler::station::{PerStation, Station};
use gristmill_scheduler::workload::Job;
use serde_json::{Map, Value, json};

/// Maximum jobs of a case: the cost of sharing policies is quadratic.
const JOBS_MAX: usize = 5_000;

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

pub(super) fn check(input: &Value, expect: &Value, checker: &mut Checker) -> Result<(), String> {
    let instance = Instance::read(input)?;
    let fields = expect.as_object().ok_or("`expect` is not an object")?;
    let mut computed = Map::new();
    if fields.contains_key("lower_bound") || fields.contains_key("cycles") {
        let (total, cycles) = instance.lower_bound()?;
        computed.insert("lower_bound".to_owned(), json_of(total));
        computed.insert("cycles".to_owned(), cycles.into_iter().map(json_of).collect());
    }
    if let Some(name) = input.get("policy").and_then(Value::as_str) {
        computed.extend(instance.run(name)?);
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
    fn read(input: &Value) -> Result<Self, String> {
        let jobs = input.get("jobs").and_then(Value::as_array).ok_or("`input.jobs` is not a list")?;
        if jobs.is_empty() || JOBS_MAX < jobs.len() {
            return Err(format!("`input.jobs` has {} jobs, not 1 to {JOBS_MAX}", jobs.len()));
        }
        let mut read: Vec<(usize, [f64; 3])> = Vec::with_capacity(jobs.len());
        for (index, job) in jobs.iter().enumerate() {
            let numbers = job.as_array().filter(|job| job.len() == 3);
            let numbers: Option<Vec<f64>> = numbers.and_then(|job| job.iter().map(fraction).collect());
            match numbers.as_deref() {
                Some(&[arrival, map, shuffle]) => read.push((index, [arrival, map, shuffle])),
                _ => return Err(format!("`input.jobs[{index}]` is {job}, not [arrival, map, shuffle]")),
            }
        }
        read.sort_by(|a, b| a.1[0].total_cmp(&b.1[0]));
        let job = |&(_, [arrival, map, shuffle]): &(usize, [f64; 3])| Job {
            arrival,
            work: PerStation::new(map, shuffle, 0.0),
            ..Job::default()
        };
        let k = match input.get("k") {
            None | Some(Value::Null) => 100,
            Some(k) => k
                .as_u64()
                .filter(|k| (1..=u64::from(u32::MAX)).contains(k))
                .ok_or_else(|| format!("`input.k` is {k}, not a whole number above 0"))?,
        };
        Ok(Self {
            jobs: read.iter().map(job).collect(),
            places: read.iter().map(|&(index, _)| index).collect(),
            k,
        })
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
        let mut fields = Map::new();
        fields.insert("completion".to_owned(), completions.into_iter().map(json_of).collect());
        fields.insert("total".to_owned(), json_of(total));
        fields.insert("makespan".to_owned(), json_of(makespan));
        fields.insert("segments".to_owned(), Value::Array(segments));
        fields.insert("total_shuffle_rate".to_owned(), json!(shuffle_rates));
        Ok(fields)
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

/// Parses a number, or a fraction as a string: `"5/2"`.
fn fraction(value: &Value) -> Option<f64> {
    let parts = value.as_str().and_then(|text| text.split_once('/'));
    match parts {
        Some((above, below)) => Some(above.trim().parse::<f64>().ok()? / below.trim().parse::<f64>().ok()?),
        None => number_of(value),
    }
}

#[cfg(test)]
mod tests;
