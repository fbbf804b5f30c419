//! Preparation before the first run: generates inputs, and records the properties that make two
//! comparisons the same.

use super::comparison::{Options, Site};
use super::store::{self, ComparisonStore, StoreError};
use super::workload::Workload;
use super::{CompareError, run};
use gristmill_runtime::cluster::ClusterConfig;
use gristmill_runtime::generate::GenerateArgs;
use gristmill_worker::protocol::Slots;
use serde_json::{Value, json};

/// Generates inputs and files of times that do not exist yet.
pub(super) fn make_data(workload: &Workload, store: &ComparisonStore) -> Result<(), CompareError> {
    let data = store.data();
    std::fs::create_dir_all(&data).map_err(StoreError::io("make", &data))?;
    for set in &workload.data {
        let (output, done) = (data.join(&set.name), data.join(format!(".{}-done", set.name)));
        if done.exists() {
            continue;
        }
        store::remove_tree(&output)
            .or_else(|_| std::fs::remove_file(&output).map_err(StoreError::io("remove", &output)))?;
        if set.kind == gristmill_runtime::generate::Kind::Tables {
            std::fs::create_dir_all(&output).map_err(StoreError::io("make", &output))?;
        }
        let arguments = GenerateArgs {
            kind: set.kind,
            output,
            size: set.bytes,
            seed: set.seed,
            words: 100_000,
            exponent: 1.0,
            overwrite: true,
        };
        gristmill_runtime::generate::run(&arguments).map_err(|source| CompareError::Data { source })?;
        store.write(&done, b"")?;
    }
    for (place, kind) in workload.kinds.iter().enumerate().filter(|(_, kind)| kind.plays_exact) {
        let text = serde_json::to_vec(&kind.exact).unwrap_or_default();
        store.write(&run::times_file(&data, place), &text)?;
    }
    Ok(())
}

/// Returns the properties that must be equal for two runs to be comparable.
pub(super) fn setting(workload: &Workload, options: &Options) -> Value {
    let site = match &options.site {
        Site::Embedded(ClusterConfig { workers, deciders, pools, journal: _, backups, divides }) => json!({
            "workers": workers.count,
            "slots": workers.each.slots.total(),
            "pools": match workers.each.slots {
                Slots::Unified(_) => None,
                Slots::Pools { map, reduce } => Some((map, reduce)),
            },
            // Sorted after `workers`, from which it may follow: only the first difference is reported.
            "workers_memory_bytes": workers.memory(),
            "estimator": deciders.estimator,
            "pool_weights": pools,
            "speeds": workers.speeds,
            "nic_bytes_per_second": workers.each.nic_bytes_per_second,
            "shuffle": workers.each.shuffle,
            "backups": backups,
            "divides": divides,
        }),
        Site::Given(line) => json!({"master": line.endpoint.to_string()}),
    };
    json!({
        "version": env!("CARGO_PKG_VERSION"),
        "build": gristmill_worker::build_id(),
        "workload": workload,
        "cluster": site,
        "contenders": options.contenders,
        "against": options.against,
        "isolated": options.isolated,
        "sync": options.sync,
    })
}
