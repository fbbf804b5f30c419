//! Checks of the clusters that can be simulated, and the core that decides for them.

use crate::core::{Core, CoreConfig};
use crate::ids::TaskKind;
use crate::policy::Policy;
use crate::sim::SimError;
use crate::sim::cluster::{Config, Deciders, SystemWork};
use crate::units::Bytes;

/// Creates a core for this cluster; its workers join later.
pub(super) fn core_of(
    config: &Config,
    Deciders { policy, placement, estimator }: Deciders,
) -> Result<Core, SimError> {
    check(config)?;
    check_policy(&*policy)?;
    let rate = config.network.in_rate.min(config.network.out_rate);
    let network = || rate.is_finite().then(|| Bytes((rate.round() as u64).max(1)));
    let network = config.core.network.or_else(network);
    let core = Core::new(CoreConfig { network, ..config.core.clone() }, policy, placement);
    Ok(match estimator {
        Some(estimator) => core.with_estimator(estimator),
        None => core,
    })
}

/// Refuses a policy that suspends maps, which no worker supports.
pub(super) fn check_policy(policy: &dyn Policy) -> Result<(), SimError> {
    if !policy.suspends_maps() {
        return Ok(());
    }
    let value = policy.name().to_owned();
    Err(SimError::Setting { name: "policy", value, wanted: "one that leaves running maps alone" })
}

fn check(config: &Config) -> Result<(), SimError> {
    let refuse = |name, value: String, wanted| Err(SimError::Setting { name, value, wanted });
    let Some(first) = config.workers.first() else {
        return refuse("workers", "0".to_owned(), "at least 1");
    };
    for worker in &config.workers {
        if [TaskKind::Map, TaskKind::Reduce].iter().any(|&kind| worker.slots.count(kind) == 0) {
            return refuse("slots", "0".to_owned(), "at least 1 on each worker, of each kind");
        }
        if worker.slots.unified() != first.slots.unified() {
            return refuse("slots", format!("{:?}", worker.slots), "of the kind of the first worker's slots");
        }
        if !(worker.speed.is_finite() && 0.0 < worker.speed) {
            return refuse("speed", worker.speed.to_string(), "a finite number above 0");
        }
        if let Some(dtd) = worker.service.filter(|dtd| dtd.offset < 0.0) {
            return refuse("service", dtd.offset.to_string(), "a distribution of numbers of at least 0");
        }
    }
    const SECONDS: &str = "a number of seconds from 0 to 1e9";
    let (network, above) = (&config.network, f64::MIN_POSITIVE);
    let mut numbers = vec![
        ("in_rate", network.in_rate, 1.0..=f64::INFINITY, "at least 1 byte per second"),
        ("out_rate", network.out_rate, 1.0..=f64::INFINITY, "at least 1 byte per second"),
        ("latency", network.latency, 0.0..=1e9, SECONDS),
        ("lanes", f64::from(network.lanes), 1.0..=f64::INFINITY, "at least 1"),
        ("report", config.report[0], 0.0..=1e9, SECONDS),
        ("report", config.report[1], 0.0..=1e9, SECONDS),
        ("suspend_cost", config.suspend_cost, 0.0..=1e9, SECONDS),
        ("resume_cost", config.resume_cost, 0.0..=1e9, SECONDS),
        ("request_bytes", config.request_bytes, above..=f64::INFINITY, "above 0"),
        ("task_seconds", config.task_seconds, above..=f64::INFINITY, "above 0"),
    ];
    if let Some(system) = config.system {
        numbers.push(("cores", f64::from(system.cores), 1.0..=f64::INFINITY, "at least 1"));
        let SystemWork { task, byte, request, fetch, segment, fetch_byte, .. } = system;
        let costs = task.into_iter().chain(byte).chain([request, fetch, segment, fetch_byte]);
        numbers.extend(costs.map(|cost| ("system", cost, 0.0..=1e9, "a number from 0 to 1e9")));
    }
    match numbers.into_iter().find(|(_, value, range, _)| !range.contains(value)) {
        Some((name, value, _, wanted)) => refuse(name, value.to_string(), wanted),
        None => Ok(()),
    }
}
