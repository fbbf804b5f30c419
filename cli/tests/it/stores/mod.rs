//! Inputs and outputs on object stores, against an S3 server within the test (`server`).
//!
//! `reading` and `writing` are about what is read and what is there afterwards, `commit` about when it is: processes are killed
//! at each step, and two writers meet. `refusals` looks at what a person reads when a store says no, and at what must stand
//! nowhere. Not here: other stores than S3, for which there is no server to ask.

mod commit;
mod reading;
mod refusals;
pub mod server;
mod writing;

use crate::support::Sandbox;
use crate::support::sandbox::{Finished, Invocation};
use serde_json::Value;
use server::StoreServer;

/// The program with these arguments, which finds the server.
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

/// Runs it to its end; nothing of it may be left.
fn run<A: AsRef<std::ffi::OsStr>>(
    sandbox: &Sandbox,
    server: &StoreServer,
    arguments: impl IntoIterator<Item = A>,
) -> Finished {
    let finished = command(sandbox, server, arguments).finish();
    sandbox.assert_nothing_left();
    finished
}

/// What the `_SUCCESS` of an output says; `None` if there is none.
fn success(server: &StoreServer, prefix: &str) -> Option<Value> {
    let path = server.path(&format!("{prefix}/_SUCCESS"));
    let text = std::fs::read(path).ok()?;
    Some(serde_json::from_slice(&text).unwrap())
}

/// The names of the parts of an output, as its `_SUCCESS` has them.
fn part_names(server: &StoreServer, prefix: &str) -> Vec<String> {
    let success = success(server, prefix).unwrap_or_else(|| panic!("{prefix} has no _SUCCESS"));
    let parts = success["parts"].as_array().unwrap().iter();
    parts.map(|part| part["name"].as_str().unwrap().to_owned()).collect()
}

/// The parts of an output one after another; each is as long, and has the checksum, that `_SUCCESS` says.
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

/// Fails unless an output is whole and there is nothing else below its prefix.
fn assert_whole_and_alone(server: &StoreServer, prefix: &str, expected: &[u8]) {
    assert!(whole(server, prefix) == expected, "{prefix} holds something else");
    let mut keys = part_names(server, prefix);
    keys.push("_SUCCESS".to_owned());
    keys.sort();
    assert_eq!(server.keys(prefix), keys, "something else is below {prefix}");
}
