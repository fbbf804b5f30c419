//! Cases of the overlapping tandem queue: completion times under its policies, totals, rates, and the lower bound.
//!
//! Input: `jobs` as `[arrival, map, shuffle]`, in any order; `k` for k-LPS; `policy` for a single policy. Expected, by
//! policy or for the single policy: `completion` by job, `total` of the response times, `makespan`, `segments` with the
//! rates by job, `total_shuffle_rate`; and `lower_bound` with its `cycles`.

use super::compare::{json_of, list};
use super::input::field;
use gristmill_scheduler::policy;
use gristmill_scheduler::sim::fluid;
use gristmill_scheduler::sim::fluid::lower_bound::LowerBound;
use gristmill_scheduler::station::{PerStation, Station};
use gristmill_scheduler::workload::Job;
use serde::Deserialize;
use serde_json::{Map, Value, json};
use std::collections::BTreeSet;
use std::num::NonZeroU32;

/// Fields that exist for each policy.
const BY_POLICY: [&str; 5] = ["completion", "total", "makespan", "segments", "total_shuffle_rate"];

/// Names of policies in cases, and their catalogue calls.
const POLICIES: [(&str, &str); 10] = [
    ("FCFS", "fcfs"),
    ("PS", "ps"),
    ("kLPS", "k-lps:k="),
    ("FCFS_PS", "map-fifo-shuffle-ps"),
    ("MaxSRPT", "max-srpt"),
    ("MaxSRPT_head", "max-srpt:shuffle=head"),
    ("SplitSRPT", "split-srpt:idle=lost"),
    ("SplitSRPT_wc", "split-srpt"),
    ("SplitSRPT_we", "split-srpt:idle=empty"),
    ("Makespan", "makespan"),
];

/// Number, or fraction such as `"5/2"`.
#[derive(Clone, Copy, Deserialize)]
#[serde(try_from = "Value")]
struct Number(f64);

impl TryFrom<Value> for Number {
    type Error = String;

    fn try_from(value: Value) -> Result<Self, String> {
        let parsed = |text: &str| text.trim().parse::<f64>().ok();
        let number = match value.as_str().and_then(|text| text.split_once('/')) {
            Some((above, below)) => parsed(above).zip(parsed(below)).map(|(above, below)| above / below),
            None => value.as_f64(),
        };
        number.map(Self).ok_or_else(|| format!("{value} is not a number"))
    }
}

/// Jobs in the order of their arrival, with their indexes in the case.
struct FluidInstance {
    jobs: Vec<Job>,
    places: Vec<usize>,
    k: u32,
}

pub(super) fn compute(input: &Value, expect: &Map<String, Value>) -> Result<Value, String> {
    let instance = FluidInstance::new(input)?;
    let mut computed = Map::new();
    if expect.contains_key("lower_bound") || expect.contains_key("cycles") {
        let (total, cycles) = instance.lower_bound()?;
        computed.insert("lower_bound".to_owned(), json_of(total));
        computed.insert("cycles".to_owned(), list(cycles));
    }
    if let Some(name) = field::<Option<String>>(input, "policy")? {
        computed.extend(instance.run(&name)?);
        return Ok(computed.into());
    }
    let fields = BY_POLICY.iter().filter_map(|field| expect.get(*field)?.as_object());
    for name in fields.flat_map(Map::keys).collect::<BTreeSet<_>>() {
        for (field, value) in instance.run(name)? {
            let by_policy = computed.entry(field).or_insert_with(|| json!({}));
            by_policy[name] = value;
        }
    }
    Ok(computed.into())
}

impl FluidInstance {
    fn new(input: &Value) -> Result<Self, String> {
        let jobs: Vec<[Number; 3]> = field(input, "jobs")?;
        let k = field::<Option<NonZeroU32>>(input, "k")?.map_or(100, NonZeroU32::get);
        if jobs.is_empty() {
            return Err("`jobs` has no job".to_owned());
        }
        let job = |&[arrival, map, shuffle]: &[Number; 3]| Job {
            arrival: arrival.0,
            work: PerStation::new(map.0, shuffle.0, 0.0),
            ..Job::default()
        };
        let mut read: Vec<(usize, Job)> = jobs.iter().map(job).enumerate().collect();
        read.sort_by(|(_, one), (_, other)| one.arrival.total_cmp(&other.arrival));
        let (places, jobs) = read.into_iter().unzip();
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
        let known = POLICIES.iter().find(|(known, _)| *known == name);
        let (_, call) = known.ok_or_else(|| format!("there is no policy `{name}` in this model"))?;
        let call = if call.ends_with('=') { format!("{call}{}", self.k) } else { (*call).to_owned() };
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
        let fields =
            [list(completions), json_of(total), json_of(makespan), segments.into(), json!(shuffle_rates)];
        Ok(BY_POLICY.map(str::to_owned).into_iter().zip(fields).collect())
    }

    fn segment(&self, piece: &fluid::RateInterval<'_>) -> Value {
        let station = |station: usize| -> Map<String, Value> {
            let served = piece.rates.iter().filter(|(_, rates)| 0.0 < rates[station]);
            served
                .map(|&(seq, rates)| (self.places[seq as usize].to_string(), json_of(rates[station])))
                .collect()
        };
        json!({ "t0": piece.from, "t1": piece.to, "map": station(0), "shuffle": station(1) })
    }
}

#[cfg(test)]
mod tests;
