//! Shipping of this program with its jobs.

use super::asynchronous::AsyncClient;
use super::outcome::ClientError;
use crate::api::ROOT;
use gristmill_worker::http::file_body;
use gristmill_worker::protocol::{ProgramSum, ShippedProgram};
use hyper::Method;
use std::fs::File;
use std::io;
use std::sync::OnceLock;

/// File of this process's program, also after it has been replaced.
const OWN_PROGRAM: &str = "/proc/self/exe";

/// Checksum and size of this program. Blocking.
fn own_program() -> io::Result<ShippedProgram> {
    // The file of a running process does not change.
    static KNOWN: OnceLock<ShippedProgram> = OnceLock::new();
    if let Some(known) = KNOWN.get() {
        return Ok(*known);
    }
    let (sum, bytes) = ProgramSum::of_reader(File::open(OWN_PROGRAM)?)?;
    Ok(*KNOWN.get_or_init(|| ShippedProgram { sum, bytes }))
}

impl AsyncClient {
    /// Uploads this program to the master if it does not have it.
    pub(super) async fn ship(&self) -> Result<ShippedProgram, ClientError> {
        let unreadable = |source| ClientError::Program { source };
        let known = tokio::task::spawn_blocking(own_program).await;
        let program = known.unwrap_or_else(|panic| Err(io::Error::other(panic))).map_err(unreadable)?;
        let path = format!("{ROOT}/programs/{}/{}", program.sum, program.bytes);
        if self.get(&path).await? {
            return Ok(program);
        }
        let (reading, body) = file_body(File::open(OWN_PROGRAM).map_err(unreadable)?);
        let sent = self.send(Method::PUT, &path, body).await;
        // The reader ends with the request. Its own error appears as a body that breaks off.
        let _: Result<io::Result<()>, _> = reading.await;
        sent?;
        Ok(program)
    }
}
