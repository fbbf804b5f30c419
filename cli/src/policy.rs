//! `cluster policy`: shows or changes the policy of a running master.

use crate::flags::MasterFlags;
use crate::settings::Settings;
use crate::terminal::{stdout_json, stdout_line};
use crate::usage::usage;
use clap::Args;
use gristmill_runtime::api::{JobTurn, MasterStatus, PolicyChange, Turns};
use gristmill_runtime::client::Client;
use gristmill_runtime::exit;
use gristmill_runtime::plural::counted;
use gristmill_runtime::registry::Registry;

/// Maximum number of turns that are shown.
const TURNS_SHOWN: usize = 10;

/// Show or change the policy of a running master
///
/// Without flags it only shows, with who gets the next slots and why. After a change attempts that run go on, and all else
/// is decided again. A restarted master uses its own flags.
#[derive(Args)]
#[command(after_help = "\
Examples:
  gristmill cluster policy
  gristmill cluster policy --policy max-srpt
  gristmill cluster policy --policy fair --placement m-ep")]
pub struct PolicyCommand {
    /// New policy: NAME or NAME:PARAMETERS
    #[arg(long, value_name = "POLICY")]
    policy: Option<String>,
    /// New placement, which chooses workers: NAME or NAME:PARAMETERS
    #[arg(long, value_name = "PLACEMENT")]
    placement: Option<String>,
    /// Print JSON
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    master: MasterFlags,
}

/// `gristmill cluster policy`.
pub fn policy(registry: &Registry, settings: &Settings, flags: &PolicyCommand) -> anyhow::Result<u8> {
    // The master is the same program: whatever it would refuse is refused here, without a request.
    if let Some(policy) = &flags.policy {
        registry.make_policy(policy).map_err(usage)?;
    }
    if let Some(placement) = &flags.placement {
        registry.make_placement(placement).map_err(usage)?;
    }
    let client = Client::connect(&flags.master.join_line(settings)?)?;
    let status = match (&flags.policy, &flags.placement) {
        (None, None) => client.master()?,
        (policy, placement) => {
            let change = PolicyChange { policy: policy.clone(), placement: placement.clone() };
            client.block_on(client.requests().decide_by(&change))?
        }
    };
    match flags.json {
        true => stdout_json(&status)?,
        false => {
            stdout_line(&deciders(&status))?;
            for line in next(&client.block_on(client.requests().turns())?) {
                stdout_line(&line)?;
            }
        }
    }
    Ok(exit::OK)
}

/// Jobs that get the next slots, in words.
fn next(told: &Turns) -> Vec<String> {
    let Some(first) = told.turns.first() else {
        return vec!["no task waits for a slot".to_owned()];
    };
    let line = |turn: &JobTurn| {
        let tasks = format!("{} {}{}", turn.tasks, turn.kind, if turn.tasks == 1 { "" } else { "s" });
        format!("  {tasks} of {}: {}", turn.job, turn.reason)
    };
    let mut lines = vec!["the next slots go to".to_owned(), line(first)];
    lines.extend(told.turns[1..].iter().take(TURNS_SHOWN - 1).map(line));
    let more = (told.turns.len().saturating_sub(TURNS_SHOWN)) as u64 + told.omitted;
    if 0 < more {
        lines.push(format!("  then to others, in {more} more turns"));
    }
    lines
}

/// Deciders, on one line.
pub fn deciders(master: &MasterStatus) -> String {
    let MasterStatus { policy, placement, estimator, .. } = master;
    let panics = match master.policy_panics {
        0 => String::new(),
        count => format!(
            "\nthe policy panicked {}, and fifo replaced it; the last time: {}",
            counted(count, "time", "times"),
            master.policy_panic
        ),
    };
    format!("policy {policy}, placement {placement}, estimator {estimator}{panics}")
}
