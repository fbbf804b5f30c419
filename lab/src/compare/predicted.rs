//! What the cluster simulator says of a run with the same arrivals and task times, beside what happened.
//!
//! Not here: reading journals and simulating (`replay`).

use super::Site;
use super::record::{Predicted, RunRecord, phases};
use super::run::JOURNAL;
use crate::predict::{Measured, predict};
use gristmill_runtime::registry::Registry;
use std::path::Path;

/// Adds the prediction to a run that has ended, or why there is none.
pub(super) fn add(registry: &Registry, site: &Site, folder: &Path, record: &mut RunRecord) {
    let Site::Embedded(config) = site else {
        record.unpredicted = Some("the journal of a given master is its own affair".to_owned());
        return;
    };
    let contender = &record.contender;
    let predicted = Measured::read(&folder.join(JOURNAL))
        .map_err(|error| gristmill_runtime::chain(&error))
        .and_then(|measured| {
            predict(registry, &measured, &contender.policy, &contender.placement, &config.deciders.estimator)
                .map_err(|error| gristmill_runtime::chain(&error))
        });
    match predicted {
        Ok(jobs) => {
            let of = |job: u32| record.jobs.iter().find(|known| known.job == job).map(|known| known.index);
            record.predicted = jobs
                .into_iter()
                .filter_map(|job| {
                    let index = of(job.job.0)?;
                    let phases = phases(job.arrived, job.started, job.maps_done, job.shuffle_done, job.ended);
                    Some(Predicted { index, phases })
                })
                .collect();
        }
        Err(reason) => record.unpredicted = Some(reason),
    }
}
