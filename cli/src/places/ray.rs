//! Workers in actors of Ray, which places them and replaces those whose nodes are lost (`cli/src/places/ray.py`).
//!
//! Ray shows the arguments of an actor, also the join line, to all users of its cluster, who may run any code there anyway.

use super::call::{UpError, call};
use super::flags::UpCommand;
use gristmill_runtime::cluster::{Tool, ToolCall, ToolInput};
use gristmill_worker::http::JoinLine;
use std::time::Duration;

/// The program that calls Ray.
const PROGRAM: &str = include_str!("ray.py");

/// Time for its end; it waits 60 s for actors to be placed.
const CALL_MAX: Duration = Duration::from_secs(150);

/// A call of the program in the Python of the environment, with these arguments after its verb and name. `RAY_ADDRESS` may
/// name another cluster than that of this machine.
fn ray(verb: &str, name: &str, further: Vec<String>, input: ToolInput) -> ToolCall {
    let mut words = ["-c", PROGRAM, verb, name, "auto"].map(str::to_owned).to_vec();
    words.extend(further);
    ToolCall { tool: Tool::Python("python3".into()), words, input, limit: CALL_MAX }
}

/// Creates the actors, and returns the number of workers in them.
///
/// # Errors
/// A cluster that is not reached or places no actor, or a Python without Ray.
pub async fn start(flags: &UpCommand, name: &str, line: &JoinLine) -> anyhow::Result<u32> {
    let (nodes, workers) = (flags.nodes, flags.workers_per_host.unwrap_or(1));
    let mut words = vec![nodes.to_string(), workers.to_string()];
    words.extend(flags.node_command("-")?);
    let input = ToolInput::Bytes(line.to_text().as_bytes().to_vec());
    let hosts = call("create the actors", ray("up", name, words, input)).await?;
    let placed = hosts.lines().count() as u32;
    if placed == 0 {
        return Err(UpError::Hosts(format!("none of {nodes} actors has a node")).into());
    }
    if placed < nodes {
        say!("{placed} of {nodes} actors have a node; Ray starts the others when it has one");
    }
    Ok(placed * workers)
}

/// Ends the actors.
///
/// # Errors
/// As [`start`].
pub async fn end(name: &str) -> anyhow::Result<()> {
    call("end the actors", ray("down", name, Vec::new(), ToolInput::Nothing)).await.map(drop)
}
