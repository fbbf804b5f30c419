//! `gristmill cluster doctor`: problems of this machine and of the cluster, and what to do about each.
//!
//! `facts` collects, `judge` decides and is pure.

mod facts;
mod judge;

use crate::flags::{DiskFlags, MasterFlags};
use crate::settings::Settings;
use crate::terminal::{stdout_json, stdout_line};
use clap::Args;
use facts::MasterFacts;
use gristmill_runtime::exit;
use gristmill_runtime::plural::counted;
use serde_json::json;

/// Diagnose this machine and cluster
///
/// Checks this machine (memory, disks, limits), and the master and its workers if one is known:
/// builds, clocks and routes between all of them.
#[derive(Args)]
pub struct DoctorCommand {
    /// Worker processes for this machine [default: one for each core]
    #[arg(long, value_name = "N")]
    workers: Option<u32>,
    /// Memory for workers of this machine [default: that of the settings]
    #[arg(long, value_name = "SIZE")]
    memory: Option<String>,
    /// Print JSON
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    disk: DiskFlags,
    #[command(flatten)]
    master: MasterFlags,
}

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
