//! Workers in actors of Ray, which places them, replaces those whose nodes are lost, and lets them go.
//!
//! A small program of Python does what Ray asks to be done in Python (`ray_guests.py`); what to do goes to it over standard
//! input. Ray keeps what an actor is made of, the join line too, for whoever reaches the cluster: who does may run any
//! code there anyway.

use super::PlaceError;
use super::record::RayPlace;
use gristmill_runtime::cluster::{Tool, ToolCall, ToolInput};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use std::time::Duration;

/// The program.
const PROGRAM: &str = include_str!("ray_guests.py");

/// How long it may take: a cluster that places no actor is waited for.
const ANSWER_MAX: Duration = Duration::from_secs(150);

/// What the program is told.
#[derive(Serialize)]
struct Order<'a> {
    verb: &'static str,
    name: &'a str,
    address: &'a str,
    nodes: u32,
    processors: u32,
    words: &'a [String],
    join: &'a str,
}

/// What it answers of workers that begin.
#[derive(Deserialize)]
pub struct Begun {
    /// Host, process, and its exit code if it has ended.
    pub guests: Vec<(String, u32, Option<i32>)>,
    /// Actors that no node has taken yet.
    pub late: usize,
    /// What went wrong with others.
    pub failed: Vec<String>,
}

/// What it answers of workers that end.
#[derive(Deserialize)]
pub struct Ended {
    /// How many actors' workers did not end by themselves.
    pub killed: u32,
}

/// Makes the actors.
///
/// # Errors
/// A cluster that is not reached, or a Python without Ray.
pub async fn begin(
    place: &RayPlace,
    words: &[String],
    processors: u32,
    join: &str,
) -> Result<Begun, PlaceError> {
    let RayPlace { name, address, nodes, .. } = place;
    let order = Order { verb: "up", name, address, nodes: *nodes, processors, words, join };
    call(place, &order).await
}

/// Ends the actors.
///
/// # Errors
/// As [`begin`].
pub async fn end(place: &RayPlace) -> Result<Ended, PlaceError> {
    let RayPlace { name, address, nodes, .. } = place;
    let order = Order { verb: "down", name, address, nodes: *nodes, processors: 0, words: &[], join: "" };
    call(place, &order).await
}

async fn call<T: DeserializeOwned>(place: &RayPlace, order: &Order<'_>) -> Result<T, PlaceError> {
    let refused = |said: String| PlaceError::Refused { what: "have Ray do its part", said };
    let input = serde_json::to_vec(order).map_err(|error| refused(error.to_string()))?;
    let call = ToolCall {
        tool: Tool::Python(place.python.clone()),
        words: vec!["-c".to_owned(), PROGRAM.to_owned()],
        input: ToolInput::Bytes(input),
        limit: ANSWER_MAX,
    };
    let answer = call.make().await?;
    match (answer.code, serde_json::from_str(answer.stdout.lines().last().unwrap_or_default())) {
        (Some(0), Ok(said)) => Ok(said),
        _ => {
            let lines: Vec<&str> = answer.stderr.lines().filter(|line| !line.trim().is_empty()).collect();
            Err(refused(lines.last().map_or("it said nothing", |line| line.trim()).to_owned()))
        }
    }
}
