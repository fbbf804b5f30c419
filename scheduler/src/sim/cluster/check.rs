//! Checks of the clusters that can be simulated, and the core that decides for them.

use crate::core::{Core, CoreConfig};
use crate::ids::TaskKind;
use crate::sim::SimError;
use crate::sim::cluster::{Config, Deciders};
use crate::units::Bytes;

/// Creates a core for this cluster; its workers join later.
pub(super) fn core_of(
    config: &Config,
    Deciders { policy, placement, estimator }: Deciders,
) -> Result<Core, SimError> {
    check(config)?;
    if policy.suspends_maps() {
        let value = policy.name().to_owned();
        return Err(SimError::Setting {
            name: "policy",
            value,
            wanted: "one that leaves running maps alone",
        });
    }
    let rate = config.network.in_rate.min(config.network.out_rate);
    let network = rate.is_finite().then(|| Bytes((rate.round() as u64).max(1)));
    let core = Core::new(CoreConfig { network, ..config.core.clone() }, policy, placement);
    Ok(match estimator {
        Some(estimator) => core.with_estimator(estimator),
        None => core,
    })
}

fn check(config: &Config) -> Result<(), SimError> {
    let refuse = |name, value: String, wanted| Err(SimError::Setting { name, value, wanted });
    let Some(first) = config.workers.first() else {
        return refuse("workers", "0".to_owned(), "at least 1");
    };
    for worker in &config.workers {
        if [TaskKind::Map, TaskKind::Reduce].iter().any(|&kind| worker.slots.of(kind) == 0) {
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
    let network = &config.network;
    for (name, rate) in [("in_rate", network.in_rate), ("out_rate", network.out_rate)] {
        if rate.is_nan() || rate < 1.0 {
            return refuse(name, rate.to_string(), "at least 1 byte per second");
        }
    }
    if !(0.0..=1e9).contains(&network.latency) {
        return refuse("latency", network.latency.to_string(), "a number of seconds from 0 to 1e9");
    }
    if network.lanes == 0 {
        return refuse("lanes", "0".to_owned(), "at least 1");
    }
    let [map, reduce] = config.report;
    let costs = [("suspend_cost", config.suspend_cost), ("resume_cost", config.resume_cost)];
    for (name, delay) in [("report", map), ("report", reduce)].into_iter().chain(costs) {
        if !(0.0..=1e9).contains(&delay) {
            return refuse(name, delay.to_string(), "a number of seconds from 0 to 1e9");
        }
    }
    if let Some(system) = config.system {
        if system.cores == 0 {
            return refuse("cores", "0".to_owned(), "at least 1");
        }
        let [costs, bytes] = [system.task, system.byte];
        for cost in costs.into_iter().chain(bytes).chain([
            system.request,
            system.fetch,
            system.segment,
            system.fetch_byte,
        ]) {
            if !(0.0..=1e9).contains(&cost) {
                return refuse("system", cost.to_string(), "a number from 0 to 1e9");
            }
        }
    }
    if config.request_bytes.is_nan() || config.request_bytes <= 0.0 {
        return refuse("request_bytes", config.request_bytes.to_string(), "above 0");
    }
    if config.task_seconds.is_nan() || config.task_seconds <= 0.0 {
        return refuse("task_seconds", config.task_seconds.to_string(), "above 0");
    }
    Ok(())
}
