//! Flags of the address of a master, and of a listener beyond this machine.

use crate::settings::Settings;
use crate::trusted::{self, TrustError};
use crate::usage::{usage, usage_hinted};
use clap::Args;
use gristmill_worker::directory::Closed;
use gristmill_worker::http::{Endpoint, JoinLine, Permissions, Plaintext};
use std::io::{ErrorKind, Read};
use std::path::{Path, PathBuf};

/// Variable with the state directory. It is read here and not by clap, which would show it in usage lines.
const STATE_VARIABLE: &str = "GRISTMILL_STATE";

/// Name of the file with the join line in the state directory.
pub const JOIN_FILE: &str = "join";

/// Address of a master.
#[derive(Args, Clone, Debug, Default)]
#[command(next_help_heading = "Master")]
pub struct MasterFlags {
    /// Address of the master [default: the last one started here]
    #[arg(long, global = true, value_name = "HOST:PORT")]
    pub master: Option<Endpoint>,
    /// File with the master's join line, mode 0600; `-` for standard input [default: the one in the state directory]
    #[arg(long, global = true, value_name = "FILE")]
    pub join: Option<PathBuf>,
    /// Directory for the secret and the join line [default: $GRISTMILL_STATE, else gristmill in $XDG_STATE_HOME, else
    /// in ~/.local/state]
    #[arg(long, global = true, value_name = "DIR")]
    pub state: Option<PathBuf>,
    #[command(flatten)]
    pub plaintext: PlaintextFlag,
}

/// Permission to use plain HTTP.
#[derive(Args, Clone, Debug, Default)]
pub struct PlaintextFlag {
    /// Use plain HTTP on the network: everyone on the route can read all data
    #[arg(long, global = true, hide_short_help = true)]
    pub insecure_plaintext: bool,
}

impl MasterFlags {
    /// Returns the state directory.
    ///
    /// # Errors
    /// No directory was named and no home directory is known.
    pub fn state_dir(&self, settings: &Settings) -> anyhow::Result<PathBuf> {
        state_dir(self.state.as_ref(), settings)
    }

    /// Returns the master's address and secret.
    ///
    /// # Errors
    /// A missing or invalid join line.
    pub fn join_line(&self, settings: &Settings) -> anyhow::Result<JoinLine> {
        let text = match &self.join {
            Some(path) if path.as_os_str() == "-" => {
                let mut text = String::new();
                std::io::stdin().take(4096).read_to_string(&mut text)?;
                text
            }
            Some(path) => trusted::read(path, Closed::Altogether).map_err(|error| named_join(error, path))?,
            None => own_join(&self.state_dir(settings)?.join(JOIN_FILE))?,
        };
        let mut line: JoinLine = text.parse().map_err(|error| usage(format!("{error}")))?;
        if let Some(master) = &self.master {
            line.endpoint.host = master.host.clone();
            line.endpoint.port = master.port;
        }
        if self.plaintext.insecure_plaintext {
            line.plaintext = Plaintext::Everywhere;
        }
        Ok(line)
    }
}

/// Returns the state directory: the named one, else that of the variable, the settings or the home directory.
///
/// # Errors
/// No directory was named and no home directory is known.
pub fn state_dir(named: Option<&PathBuf>, settings: &Settings) -> anyhow::Result<PathBuf> {
    let of_variable = || std::env::var_os(STATE_VARIABLE).filter(|name| !name.is_empty()).map(PathBuf::from);
    if let Some(dir) = named.cloned().or_else(of_variable).or_else(|| settings.state.clone()) {
        return Ok(dir);
    }
    let home = || std::env::var_os("HOME").map(|home| PathBuf::from(home).join(".local/state"));
    let state = std::env::var_os("XDG_STATE_HOME").map(PathBuf::from).or_else(home);
    let state = state.ok_or_else(|| usage("no home directory: name one with --state".into()))?;
    Ok(state.join("gristmill"))
}

/// Reads the join line of the master that was started in this state directory.
fn own_join(path: &Path) -> anyhow::Result<String> {
    trusted::read(path, Closed::Altogether).map_err(|error| match error {
        TrustError::Io { path, source } => usage_hinted(
            format!("no master is known: could not read the join line in {} ({source})", path.display()),
            "start one with `gristmill cluster master`, or name the file with its join line with --join FILE",
        ),
        untrusted => untrusted.into(),
    })
}

/// Error of a named file that cannot be read.
fn named_join(error: TrustError, typed: &Path) -> anyhow::Error {
    match error {
        TrustError::Io { source, .. } if source.kind() == ErrorKind::NotFound => usage(format!(
            "could not read the join line: {} does not exist; where the master runs, `gristmill cluster token new work --output \
             FILE` writes one for workers (view and submit for people): copy it here with mode 0600",
            typed.display()
        )),
        TrustError::Io { path, source } => {
            usage(format!("could not read the join line in {} ({source}); name another file", path.display()))
        }
        untrusted => untrusted.into(),
    }
}

/// Permissions of a listener beyond this machine.
#[derive(Args, Clone, Debug, Default)]
#[command(next_help_heading = "Listening")]
pub struct ListenFlags {
    /// Listen on every network of this machine
    #[arg(long, hide_short_help = true)]
    pub listen_everywhere: bool,
    /// Allow running as root: holders of the secret then run code as root
    #[arg(long, hide_short_help = true)]
    pub allow_root: bool,
}

impl ListenFlags {
    /// Returns the permissions.
    pub fn permissions(&self, plaintext: &PlaintextFlag) -> Permissions {
        Permissions {
            insecure_plaintext: plaintext.insecure_plaintext,
            listen_everywhere: self.listen_everywhere,
            allow_root: self.allow_root,
        }
    }
}
