//! How a master runs, and why it cannot begin.

use super::programs::ProgramLimits;
use super::recovery::RecallError;
use super::tokens::Tokens;
use crate::deciders::MadeDeciders;
use crate::registry::Registry;
use gristmill_worker::http::Bind;
use std::collections::BTreeMap;
use std::io;
use std::path::PathBuf;
use std::sync::Arc;

/// How a master runs.
pub struct MasterConfig {
    /// Where it listens.
    pub bind: Bind,
    /// Further host names under which it is reached.
    pub host_names: Vec<String>,
    /// What may reach which of its routes.
    pub tokens: Arc<Tokens>,
    /// Identifies the executable.
    pub build: String,
    /// Who decides.
    pub deciders: MadeDeciders,
    /// What makes other policies and placements when somebody asks for them.
    pub registry: Registry,
    /// The pools that there are, with their weights; when empty, every name is a pool of the policy's usual weight.
    pub pools: BTreeMap<String, f64>,
    /// Workers have slots of their own for maps and for reduces; one that offers others is refused.
    pub divided_slots: bool,
    /// Slow tasks get a second attempt. A master that goes on where another ended does as that one did.
    pub backups: bool,
    /// A file to be made, into which every fact and every order is written.
    pub journal: Option<PathBuf>,
    /// Where what the estimator has learned is kept between runs.
    pub history: Option<PathBuf>,
    /// Where is written down what the next master in its place goes on from; `None`: its jobs end with it.
    pub recovery: Option<PathBuf>,
    /// Where the numbers and ends of jobs are kept, so that none comes twice; `None`: numbers begin at 1.
    pub register: Option<PathBuf>,
    /// Folder of what is kept of each job that has ended, beside a register; `None`: it goes with the master.
    pub archive: Option<PathBuf>,
    /// Folder of the programs that jobs are shipped with, and how many it may hold; `None`: jobs are of this program alone.
    pub programs: Option<(PathBuf, ProgramLimits)>,
}

/// Why a master cannot begin.
#[derive(Debug, thiserror::Error)]
#[expect(missing_docs, reason = "the messages say what the fields are")]
#[non_exhaustive]
pub enum MasterError {
    /// The journal's file could not be made; one that exists is not touched.
    #[error("could not begin the journal {path}")]
    Journal {
        path: PathBuf,
        #[source]
        source: io::Error,
    },
    /// An earlier master ended without notice, and what it has written down cannot be gone on from.
    #[error(
        "could not go on where the last master ended, from {path}; move that file away to begin anew, and the jobs that \
         master had are lost"
    )]
    Recovery {
        path: PathBuf,
        #[source]
        source: RecallError,
    },
    /// What a later master would go on from could not be begun.
    #[error("could not begin the journal to come back from, {path}")]
    RecoveryBegin {
        path: PathBuf,
        #[source]
        source: io::Error,
    },
    /// The folder of ended jobs could not be opened.
    #[error("could not open the folder of ended jobs {path}")]
    Archive {
        path: PathBuf,
        #[source]
        source: io::Error,
    },
    /// The folder of shipped programs could not be opened.
    #[error("could not open the folder of shipped programs {path}")]
    Programs {
        path: PathBuf,
        #[source]
        source: io::Error,
    },
    /// The register of jobs could not be read or written: numbers of jobs might come twice.
    #[error("could not open the register of jobs {path}")]
    Register {
        path: PathBuf,
        #[source]
        source: io::Error,
    },
}
