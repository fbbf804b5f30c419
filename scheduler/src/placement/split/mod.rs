//! Splits: the fraction of arriving tasks that each worker gets, and the placement that assigns maps accordingly.
//!
//! A split takes the known properties of the workers and returns `lambda_i`. On a cluster, the maps of every job are
//! assigned to the workers' queues in the proportion `lambda_i / lambda` when the job arrives.

use crate::catalogue::{ArgumentError, Arguments, Parameter};
use crate::ids::TaskKind;
use crate::ids::WorkerId;
use crate::ledger::Worker;
use crate::placement::Pull;
use crate::placement::interface::{AssignmentRequest, Choice, HomeRequest, Offer, Placement};
use crate::queueing::{Dtd, QueueError, QueueSetting, Server};
use std::collections::BTreeMap;

/// Relative change of a rate after which a split is computed again.
const STALE: f64 = 0.05;
/// Minimum weight of the newest measurement in the rates used for assignment. Reports of workers follow their last few
/// tasks, and splits that leave little spare rate amplify such noise; so it is averaged over some hundred assignments.
const NEWEST: f64 = 1.0 / 256.0;

/// Weight of the mean over all workers, in measurements of each worker. Otherwise one long task early on would look
/// like a slow worker, which a split may then leave without the tasks that could correct this.
const SHARED: f64 = 16.0;

/// Function that divides arriving tasks among workers. Fails in a setting without a solution.
type Divide = dyn Fn(&QueueSetting<'_>) -> Result<Division, QueueError> + Send;

/// Split with its parameters.
pub struct TaskSplit {
    /// The thesis' D in seconds, for [`QueueSetting::new`].
    pub(super) delay: f64,
    pub(super) divide: Box<Divide>,
    /// True if assignments are even while the arrival rate is unknown or exceeds the capacity of the workers. Else they
    /// are proportional to the service rates then, which is the limit of splits as the load grows.
    pub(super) even: bool,
}

impl TaskSplit {
    pub(super) fn new(
        delay: f64,
        divide: impl Fn(&QueueSetting<'_>) -> Result<Division, QueueError> + Send + 'static,
    ) -> Self {
        Self { delay, divide: Box::new(divide), even: false }
    }
}

/// Result of a split.
#[derive(Clone, PartialEq, Debug)]
pub struct Division {
    /// Tasks per second for each worker. Their sum is lambda; a negative rate means that work is passed on.
    pub rates: Vec<f64>,
    /// Value that is equal for all workers in this equilibrium (alpha), in the unit of the split; `None` if there is
    /// none.
    pub level: Option<f64>,
    /// Completion times at each worker in the split's own model; `None` if the rate of one reaches its capacity.
    pub times: Option<Vec<Dtd>>,
}

/// If rates may be negative, which means that a worker passes on work that it never got.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Sign {
    /// Workers whose rate would be negative get nothing.
    NonNegative,
    /// As the equations give them.
    Raw,
}

pub(crate) const DELAY: Parameter =
    Parameter { name: "d", default: "0", meaning: "what tasks take at least on a fully loaded worker, s" };
pub(crate) const SIGN: Parameter = Parameter {
    name: "rates",
    default: "nonneg",
    meaning: "nonneg: slow workers get nothing at least; raw: as printed, negative where work is handed on",
};

pub(crate) fn read_delay(arguments: &mut Arguments<'_>) -> Result<f64, ArgumentError> {
    arguments.value("d", 0.0, "a time of at least 0 s", |d: f64| d.is_finite() && 0.0 <= d)
}

pub(crate) fn read_sign(arguments: &mut Arguments<'_>) -> Result<Sign, ArgumentError> {
    Ok(if arguments.choice("rates", &["nonneg", "raw"])? == 0 { Sign::NonNegative } else { Sign::Raw })
}

/// Placement that assigns maps by a split. Negative rates count as 0, since waiting maps are not passed on. Reduces,
/// homes and retries are placed as by [`Pull`].
pub struct SplitPlacement {
    name: &'static str,
    split: TaskSplit,
    rest: Pull,
    /// Rounding remainder of each worker from the last assignment to whole maps; between -1 and 1.
    owed: BTreeMap<WorkerId, f64>,
    /// Mean seconds of a map at each worker, divided by its slots.
    seconds: BTreeMap<WorkerId, Average>,
    /// Mean seconds between arrivals of maps.
    between: Average,
    last: Option<Weights>,
}

/// Mean over all measurements that forgets slowly.
#[derive(Clone, Copy, Default)]
struct Average {
    count: u32,
    mean: f64,
}

impl Average {
    fn add(&mut self, value: f64) {
        self.count = self.count.saturating_add(1);
        self.mean += (value - self.mean) * (1.0 / f64::from(self.count)).max(NEWEST);
    }
}

/// Weights, and the rates for which they were computed.
struct Weights {
    ids: Vec<WorkerId>,
    mu: Vec<f64>,
    lambda: Option<f64>,
    /// Fractions of all maps; their sum is 1.
    parts: Vec<f64>,
}

impl SplitPlacement {
    /// Creates a placement that assigns by this split.
    #[must_use]
    pub fn new(name: &'static str, split: TaskSplit) -> Self {
        Self {
            name,
            split,
            rest: Pull::new(),
            owed: BTreeMap::new(),
            seconds: BTreeMap::new(),
            between: Average::default(),
            last: None,
        }
    }

    /// Returns the service rates of the usable workers and the arrival rate, both averaged over assignments.
    fn measure(&mut self, request: AssignmentRequest<'_>) -> (Vec<f64>, Option<f64>) {
        let known: Vec<(WorkerId, Option<f64>)> =
            request.usable().map(|worker| (worker.id(), worker.service_rate())).collect();
        self.seconds.retain(|id, _| request.workers.get(*id).is_some());
        for (id, rate) in &known {
            if let Some(rate) = rate.filter(|rate| 0.0 < *rate) {
                self.seconds.entry(*id).or_default().add(1.0 / rate);
            }
        }
        if let Some(rate) = request.tasks_per_second.filter(|rate| rate.is_finite() && 0.0 < *rate) {
            self.between.add(1.0 / rate);
        }
        let lambda = (0 < self.between.count).then_some(1.0 / self.between.mean);
        (service_rates(request, &self.seconds), lambda)
    }

    /// Updates `last`.
    fn weigh(&mut self, request: AssignmentRequest<'_>) -> &Weights {
        let ids: Vec<WorkerId> = request.usable().map(Worker::id).collect();
        let (mu, lambda) = self.measure(request);
        let kept = self.last.take().filter(|last| last.ids == ids && last.fits(&mu, lambda));
        self.last.insert(kept.unwrap_or_else(|| {
            let parts = parts(&self.split, &mu, lambda);
            Weights { ids, mu, lambda, parts }
        }))
    }
}

impl Weights {
    /// True if these rates are close to those for which the weights were computed.
    fn fits(&self, mu: &[f64], lambda: Option<f64>) -> bool {
        let near = |(old, new): (&f64, &f64)| (old - new).abs() <= STALE * old;
        self.mu.iter().zip(mu).all(near)
            && match (&self.lambda, &lambda) {
                (Some(old), Some(new)) => near((old, new)),
                (old, new) => old == new,
            }
    }
}

/// Returns the service rates of the usable workers, shrunk towards their mean per slot while there are few
/// measurements.
fn service_rates(request: AssignmentRequest<'_>, seconds: &BTreeMap<WorkerId, Average>) -> Vec<f64> {
    let slots = |worker: &Worker| f64::from(worker.slots().count(TaskKind::Map)).max(1.0);
    // Seconds of a map in one slot.
    let known = request.usable().filter_map(|worker| Some(seconds.get(&worker.id())?.mean * slots(worker)));
    let (total, count) = known.fold((0.0, 0.0), |sum, seconds| (sum.0 + seconds, sum.1 + 1.0));
    let shared = if 0.0 < count { total / count } else { 1.0 };
    let rate = |worker: &Worker| {
        let own = seconds.get(&worker.id()).copied().unwrap_or_default();
        let (count, slots) = (f64::from(own.count), slots(worker));
        slots * (count + SHARED) / (own.mean * slots * count + shared * SHARED)
    };
    request.usable().map(rate).collect()
}

/// Returns the fraction of all maps for each worker; their sum is 1.
fn parts(split: &TaskSplit, mu: &[f64], lambda: Option<f64>) -> Vec<f64> {
    let servers: Vec<Server> = mu.iter().map(|&mu| Server::exponential(mu)).collect();
    let computed = lambda.and_then(|lambda| {
        let setting = QueueSetting::new(&servers, lambda, split.delay).ok()?;
        Some((split.divide)(&setting).ok()?.rates)
    });
    let weights = computed.unwrap_or_else(|| if split.even { vec![1.0; mu.len()] } else { mu.to_vec() });
    let weights: Vec<f64> = weights.into_iter().map(|weight| weight.max(0.0)).collect();
    let total: f64 = weights.iter().sum();
    weights.into_iter().map(|weight| weight / total).collect()
}

impl Placement for SplitPlacement {
    fn name(&self) -> &'static str {
        self.name
    }

    fn choose(&mut self, offer: Offer<'_>) -> Option<Choice> {
        self.rest.choose(offer)
    }

    fn assign(&mut self, request: AssignmentRequest<'_>) -> Option<Vec<WorkerId>> {
        let maps = request.maps;
        let weights = self.weigh(request);
        let ids = weights.ids.clone();
        let wishes: Vec<f64> = weights.parts.iter().map(|part| part * maps as f64).collect();
        self.owed.retain(|id, _| ids.binary_search(id).is_ok());
        let wishes: Vec<f64> = ids
            .iter()
            .zip(wishes)
            .map(|(id, wish)| wish + self.owed.get(id).copied().unwrap_or(0.0))
            .collect();
        let counts = round(&wishes, maps);
        for ((id, wish), count) in ids.iter().zip(&wishes).zip(&counts) {
            self.owed.insert(*id, (wish - *count as f64).clamp(-1.0, 1.0));
        }
        Some(interleave(&ids, &counts))
    }

    fn home(&mut self, request: HomeRequest<'_>) -> WorkerId {
        self.rest.home(request)
    }
}

/// Rounds these values to integers with this total: down first, then up by the largest remainder.
fn round(wishes: &[f64], total: usize) -> Vec<usize> {
    let mut counts: Vec<usize> = wishes.iter().map(|wish| wish.max(0.0).floor() as usize).collect();
    let mut order: Vec<usize> = (0..wishes.len()).collect();
    let rest = |i: usize, counts: &[usize]| wishes[i] - counts[i] as f64;
    order.sort_by(|&i, &j| rest(j, &counts).total_cmp(&rest(i, &counts)).then(i.cmp(&j)));
    let mut given: usize = counts.iter().sum();
    // The values sum up to the total except for the remainders, so one round adds or removes the difference. The loops
    // end in any case, since every round changes something.
    while given < total {
        for &i in order.iter().take(total - given) {
            counts[i] += 1;
            given += 1;
        }
    }
    while total < given {
        for &i in order.iter().rev() {
            if 0 < counts[i] && total < given {
                counts[i] -= 1;
                given -= 1;
            }
        }
    }
    counts
}

/// Returns this many ids of each worker, evenly mixed: neighbours in a job often have similar sizes.
fn interleave(ids: &[WorkerId], counts: &[usize]) -> Vec<WorkerId> {
    let mut assigned: Vec<(f64, WorkerId)> = Vec::with_capacity(counts.iter().sum());
    for (&id, &count) in ids.iter().zip(counts) {
        assigned.extend((0..count).map(|k| ((k as f64 + 0.5) / count as f64, id)));
    }
    assigned.sort_by(|(due, id), (other, other_id)| due.total_cmp(other).then(id.cmp(other_id)));
    assigned.into_iter().map(|(_, id)| id).collect()
}

#[cfg(test)]
mod tests;
