//! Configuration of a master, and the errors that prevent its start.

use super::recovery::RecallError;
use super::tokens::Tokens;
use crate::deciders::MadeDeciders;
use crate::registry::Registry;
use gristmill_worker::exit::ExitsWith;
use gristmill_worker::http::Bind;
use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Configuration of a master.
pub struct MasterConfig {
    /// Listening address.
    pub bind: Bind,
    /// Further host names under which it can be reached.
    pub host_names: Vec<String>,
    /// Access tokens of its routes.
    pub tokens: Arc<Tokens>,
    /// Identifies the executable.
    pub build: String,
    /// The policy and its companions that decide.
    pub deciders: MadeDeciders,
    /// Creates other policies and placements on request.
    pub registry: Registry,
    /// The defined pools with their weights. If empty, every name is a pool of the policy's default weight.
    pub pools: BTreeMap<String, f64>,
    /// True if workers have separate slots for maps and reduces. A worker that offers shared slots is then refused.
    pub divided_slots: bool,
    /// True to enable speculative attempts. A recovered master keeps the setting of its predecessor.
    pub backups: bool,
    /// True to divide running maps for idle slots; likewise.
    pub divides: bool,
    /// New file to which every fact and every order is written.
    pub journal: Option<PathBuf>,
    /// Recovery file for the next master; `None` if its jobs end with it.
    pub recovery: Option<PathBuf>,
    /// File of the numbers and outcomes of jobs, so that no number is used twice. `None` if numbers start at 1.
    pub register: Option<PathBuf>,
    /// Directory of archived jobs, used together with a register; `None` if they are dropped with the master.
    pub archive: Option<PathBuf>,
}

/// Error that prevents the start of a master.
#[derive(Debug, thiserror::Error)]
#[expect(missing_docs, reason = "the messages say what the fields are")]
#[non_exhaustive]
pub enum MasterError {
    /// A journal, the register of jobs or the directory of ended jobs could not be used.
    #[error("could not {action} {path}")]
    File {
        action: &'static str,
        path: PathBuf,
        #[source]
        source: io::Error,
    },
    /// An earlier master ended without notice, and its recovery file cannot be used.
    #[error(
        "could not go on where the last master ended, from {path}; move that file away to start without it, and the jobs that \
         master had are lost"
    )]
    Recovery {
        path: PathBuf,
        #[source]
        source: RecallError,
    },
}

impl MasterError {
    pub(super) fn file(action: &'static str, path: &Path) -> impl FnOnce(io::Error) -> Self + use<> {
        let path = path.to_owned();
        move |source| Self::File { action, path, source }
    }
}

impl ExitsWith for MasterError {}
