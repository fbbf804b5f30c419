//! Inputs and outputs on object stores, against an S3 server within the test (`server`).
//!
//! `reading` covers inputs, `writing` covers outputs, and `commit` covers when outputs become complete:
//! processes are killed at each step, and two writers collide. `refusals` checks the messages when a store
//! refuses a request, and that secrets are never exposed. Stores other than S3 are not tested, for lack of a
//! server.

mod commit;
mod reading;
mod refusals;
pub mod server;
mod writing;

use crate::support::Sandbox;
use crate::support::sandbox::{Finished, Invocation};
use serde_json::Value;
use server::StoreServer;

/// The program with these arguments and the variables of the server.
fn command<A: AsRef<std::ffi::OsStr>>(
    sandbox: &Sandbox,
    server: &StoreServer,
    arguments: impl IntoIterator<Item = A>,
) -> Invocation {
    with(sandbox.gristmill(arguments), server.variables())
}

fn with(invocation: Invocation, variables: Vec<(&'static str, String)>) -> Invocation {
    variables.into_iter().fold(invocation, |invocation, (name, value)| invocation.env(name, value))
}

/// Runs it to its end; nothing may be left.
fn run<A: AsRef<std::ffi::OsStr>>(
    sandbox: &Sandbox,
    server: &StoreServer,
    arguments: impl IntoIterator<Item = A>,
) -> Finished {
    let finished = command(sandbox, server, arguments).finish();
    sandbox.assert_nothing_left();
    finished
}

/// Returns the `_SUCCESS` of an output, or `None` if it does not exist.
fn success(server: &StoreServer, prefix: &str) -> Option<Value> {
    let path = server.path(&format!("{prefix}/_SUCCESS"));
    let text = std::fs::read(path).ok()?;
    Some(serde_json::from_slice(&text).unwrap())
}

/// The names of the parts of an output, from its `_SUCCESS`.
fn part_names(server: &StoreServer, prefix: &str) -> Vec<String> {
    let success = success(server, prefix).unwrap_or_else(|| panic!("{prefix} has no _SUCCESS"));
    let parts = success["parts"].as_array().unwrap().iter();
    parts.map(|part| part["name"].as_str().unwrap().to_owned()).collect()
}

/// The parts of an output, concatenated; each must have the length and the checksum of `_SUCCESS`.
fn whole(server: &StoreServer, prefix: &str) -> Vec<u8> {
    let success = success(server, prefix).unwrap_or_else(|| panic!("{prefix} has no _SUCCESS"));
    let mut whole = Vec::new();
    for part in success["parts"].as_array().unwrap() {
        let bytes = server.get(&format!("{prefix}/{}", part["name"].as_str().unwrap()));
        assert_eq!(part["bytes"], bytes.len(), "{part}");
        assert_eq!(part["crc32c"], crc32c::crc32c(&bytes), "{part}");
        whole.extend_from_slice(&bytes);
    }
    whole
}

/// Fails unless an output is complete and nothing else exists below its prefix.
fn assert_whole_and_alone(server: &StoreServer, prefix: &str, expected: &[u8]) {
    assert!(whole(server, prefix) == expected, "{prefix} holds something else");
    let mut keys = part_names(server, prefix);
    keys.push("_SUCCESS".to_owned());
    keys.sort();
    assert_eq!(server.keys(prefix), keys, "something else is below {prefix}");
}
