//! Workers in actors of Ray, which places them and replaces those whose nodes are lost (`deploy/ray.py`).
//!
//! Ray shows the arguments of an actor, also the join line, to all users of its cluster, who may run any code there anyway.

use super::flags::UpCommand;
use super::{PlaceError, Row, call};
use gristmill_runtime::cluster::{Tool, ToolInput};
use gristmill_worker::http::JoinLine;
use serde::{Deserialize, Serialize};
use std::path::PathBuf;
use std::time::Duration;

/// The program that calls Ray.
const PROGRAM: &str = include_str!("../../../deploy/ray.py");

/// Time for its end; it waits 60 s for actors to be placed.
const CALL_MAX: Duration = Duration::from_secs(150);

/// Actors of Ray.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct RayPlace {
    /// The Python that has Ray.
    pub python: PathBuf,
    /// The cluster's address, as `ray.init` takes it.
    pub address: String,
}

/// Creates the actors.
///
/// # Errors
/// A cluster that is not reached or places no actor, or a Python without Ray.
pub async fn start(
    flags: &UpCommand,
    name: &str,
    place: &RayPlace,
    line: &JoinLine,
) -> anyhow::Result<Vec<Row>> {
    let (nodes, workers) = (flags.nodes, flags.workers_per_host);
    let command = flags.node_command("-")?;
    let numbers = [nodes, workers.unwrap_or(1)].map(|number| number.to_string());
    let mut words = vec!["-c", PROGRAM, "up", name, &place.address, &numbers[0], &numbers[1]];
    words.extend(command.iter().map(String::as_str));
    let input = ToolInput::Bytes(line.to_text().as_bytes().to_vec());
    let tool = Tool::Python(place.python.clone());
    let answer = call("create the actors", tool, &words, input, CALL_MAX).await?;
    let log = "that of its actor: `ray logs`";
    let row = |host: &str| Row { host: host.to_owned(), workers, log: log.to_owned() };
    let rows: Vec<Row> = answer.stdout.lines().map(row).collect();
    if rows.len() < nodes as usize {
        say!("{} of {nodes} actors have a node; Ray starts the others when it has one", rows.len());
    }
    match rows.is_empty() {
        true => Err(PlaceError::Hosts { refused: nodes as usize, hosts: nodes as usize, all: false }.into()),
        false => Ok(rows),
    }
}

/// Ends the actors.
///
/// # Errors
/// As [`start`].
pub async fn end(name: &str, place: &RayPlace) -> Result<(), PlaceError> {
    let words = ["-c", PROGRAM, "down", name, &place.address];
    let tool = Tool::Python(place.python.clone());
    call("end the actors", tool, &words, ToolInput::Nothing, CALL_MAX).await.map(drop)
}
