//! `gristmill cluster doctor`: problems of this machine and of the cluster, and what to do about each.
//!
//! `facts` collects, `judge` decides and is pure.

mod facts;
mod flags;
mod judge;

use crate::settings::Settings;
use crate::terminal::{stdout_json, stdout_line};
use facts::MasterFacts;
pub use flags::DoctorCommand;
use gristmill_runtime::exit;
use gristmill_runtime::plural::counted;
use serde_json::json;

/// `gristmill cluster doctor`.
pub fn doctor(settings: &Settings, flags: &DoctorCommand) -> anyhow::Result<u8> {
    let facts = facts::gather(settings, flags)?;
    let findings = judge::judge(&facts);
    if flags.json {
        let listed: Vec<_> =
            findings.iter().map(|it| json!({"wrong": it.wrong, "remedy": it.remedy})).collect();
        stdout_json(&json!({"findings": listed}))?;
    } else {
        for finding in &findings {
            stdout_line(&format!("wrong: {}\n  do:  {}", finding.wrong, finding.remedy))?;
        }
        let looked = "this machine's memory, disks and limits";
        let beyond = match &facts.master {
            MasterFacts::None => "; no master is known here".to_owned(),
            MasterFacts::Unusable { .. } => "; not at what is behind the master".to_owned(),
            MasterFacts::There(cluster) => {
                let workers = counted(cluster.workers.len() as u64, "worker", "workers");
                format!(", the master and {workers}, and the routes between them")
            }
        };
        let result = if findings.is_empty() { "nothing is wrong" } else { "all else is well" };
        stdout_line(&format!("{result}: looked at {looked}{beyond}"))?;
    }
    Ok(if findings.is_empty() { exit::OK } else { exit::FAILED })
}
