//! `gristmill doctor`: what keeps jobs from running here, and what to do about it.
//!
//! `facts` gathers what there is to know, `judge` says what of it is wrong and is pure.

mod facts;
mod judge;

use crate::flags::{MasterFlags, WorkerFlags};
use crate::settings::Settings;
use crate::terminal::stdout_line;
use clap::Args;
use facts::MasterFacts;
use gristmill_runtime::exit;
use gristmill_runtime::plural::counted;
use gristmill_worker::http::ListenAddress;
use serde_json::json;
use std::path::PathBuf;

/// Say what keeps jobs from running here, and what to do about it
///
/// Looks at this machine (ports, memory, disks, limits, clock), and at the master and its workers if there is one: builds,
/// clocks, ways between all of them, and whether they see a path.
#[derive(Args)]
pub struct DoctorCommand {
    #[command(flatten)]
    master: MasterFlags,
    #[command(flatten)]
    workers: WorkerFlags,
    /// Memory that is to be used [default: that of the settings]
    #[arg(long, value_name = "SIZE")]
    memory: Option<String>,
    /// An address on which something is to listen here, perhaps with ports: 192.0.2.1:7100-7119
    #[arg(long, value_name = "ADDR[:PORT-PORT]")]
    listen: Option<ListenAddress>,
    /// A file or folder that all workers are to see
    #[arg(long, value_name = "PATH")]
    path: Option<PathBuf>,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// `gristmill doctor`.
pub fn doctor(settings: &Settings, flags: &DoctorCommand) -> anyhow::Result<u8> {
    let facts = facts::gather(settings, flags)?;
    let findings = judge::judge(&facts);
    if flags.json {
        let listed: Vec<_> =
            findings.iter().map(|it| json!({"wrong": it.wrong, "remedy": it.remedy})).collect();
        stdout_line(&serde_json::to_string_pretty(&json!({"findings": listed}))?)?;
    } else {
        for finding in &findings {
            stdout_line(&format!("wrong: {}\n  do:  {}", finding.wrong, finding.remedy))?;
        }
        let looked = "this machine's ports, memory, disks, limits and clock";
        let beyond = match &facts.master {
            MasterFacts::None => "; no master is known here".to_owned(),
            MasterFacts::Unusable { .. } => "; nothing behind the master".to_owned(),
            MasterFacts::There(cluster) => {
                let workers = counted(cluster.workers.len() as u64, "worker", "workers");
                format!(", the master and {workers}, and the ways between them")
            }
        };
        let result = if findings.is_empty() { "nothing is wrong" } else { "all else is well" };
        stdout_line(&format!("{result}: looked at {looked}{beyond}"))?;
    }
    Ok(if findings.is_empty() { exit::OK } else { exit::FAILED })
}
