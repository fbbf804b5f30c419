//! The shim for the C library (`shim.c`), built with the system's compiler if there is one.

use crate::support::Sandbox;
use crate::support::data::tool;
use std::path::Path;
use std::process::Command;

/// Returns the variable that preloads it. Returns `None` without a compiler, which is reported.
pub fn environment(sandbox: &Sandbox) -> Option<(String, String)> {
    library(sandbox).map(|library| ("LD_PRELOAD".to_owned(), library))
}

/// Builds it.
fn library(sandbox: &Sandbox) -> Option<String> {
    if !tool("cc", "faults of the C library") {
        return None;
    }
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/it/faults/shim.c");
    let library = sandbox.text("shim.so");
    let flags = ["-shared", "-fPIC", "-O1", "-o", &library];
    let status = Command::new("cc").args(flags).arg(source).arg("-ldl").status().unwrap();
    assert!(status.success(), "cc ended with {status}");
    Some(library)
}
