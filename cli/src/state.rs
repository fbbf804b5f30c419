//! The state directory of a master that a user starts: its lock, and the port by which its workers know it.
//!
//! A lock that the system releases with the process excludes a second master, which would overwrite the first
//! one's address and reuse its job numbers.

use gristmill_worker::exit::ExitsWith;
use gristmill_worker::http::{Bind, BindError};
use gristmill_worker::whole_file::{self, Promise};
use std::fs::{self, DirBuilder, File, TryLockError};
use std::io::{self, Read, Seek, Write};
use std::net::SocketAddr;
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use tokio::net::TcpListener;

/// Name of the file that is locked while a master runs, and describes the master.
const LOCK_FILE: &str = "lock";

/// Name of the file with the port of the last master.
const PORT_FILE: &str = "port";

/// Start of the description of a holder; its process number follows.
const HOLDER_PREFIX: &str = "process ";

/// Longest description of a holder that is read, bytes.
const HOLDER_BYTES_MAX: u64 = 256;

/// Error of a master's state directory.
#[derive(Debug, thiserror::Error)]
pub enum StateError {
    /// Another master uses it.
    #[error("the state directory {} is held by another master, {holder}", path.display())]
    Held {
        /// The directory.
        path: PathBuf,
        /// Description of the other master.
        holder: String,
    },
    /// An operation of the file system failed.
    #[error("could not {action} {}", path.display())]
    Io {
        /// Attempted action.
        action: &'static str,
        /// File or directory.
        path: PathBuf,
        /// Error of the system.
        #[source]
        source: io::Error,
    },
    /// The port of the last master is taken.
    #[error(
        "cannot listen on {address}: another process listens on the port of this state directory's last master, at which \
         its workers come back; end that process, name another address with --listen, or remove {}",
        file.display()
    )]
    PortTaken {
        /// The address.
        address: SocketAddr,
        /// Description of its holder.
        file: PathBuf,
    },
    /// The requested address cannot be listened on.
    #[error(transparent)]
    Bind {
        /// The cause.
        #[from]
        source: BindError,
    },
}

impl ExitsWith for StateError {}

/// State directory that this process holds.
pub struct StateDirectory {
    path: PathBuf,
    lock: File,
}

impl StateDirectory {
    /// Creates the directory if needed and locks it, for as long as this value lives.
    ///
    /// # Errors
    /// A directory that cannot be used, or that another master holds.
    pub fn lock(path: PathBuf) -> Result<Self, StateError> {
        let made = DirBuilder::new().mode(0o700).recursive(true).create(&path);
        made.map_err(failed("create the state directory", &path))?;
        let file = path.join(LOCK_FILE);
        let opened =
            File::options().read(true).write(true).create(true).truncate(false).mode(0o600).open(&file);
        let mut lock = opened.map_err(failed("open", &file))?;
        match lock.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => {
                let mut holder = String::new();
                let read = (&lock).take(HOLDER_BYTES_MAX).read_to_string(&mut holder);
                let known = read.is_ok() && !holder.is_empty();
                let holder = if known { holder } else { "of unknown process".to_owned() };
                return Err(StateError::Held { path, holder });
            }
            Err(TryLockError::Error(source)) => {
                return Err(StateError::Io { action: "lock", path: file, source });
            }
        }
        let words = format!("{HOLDER_PREFIX}{} on {}", std::process::id(), gristmill_worker::host_name());
        let said =
            lock.set_len(0).and_then(|()| lock.rewind()).and_then(|()| lock.write_all(words.as_bytes()));
        said.map_err(failed("write", &file))?;
        whole_file::remove_drafts(&path).map_err(failed("tidy up", &path))?;
        Ok(Self { path, lock })
    }

    /// Returns the process of the master that holds a directory, if any.
    pub fn holder(path: &Path) -> Option<u32> {
        let mut lock = File::open(path.join(LOCK_FILE)).ok()?;
        let Err(TryLockError::WouldBlock) = lock.try_lock() else { return None };
        let mut holder = String::new();
        lock.read_to_string(&mut holder).ok()?;
        holder.strip_prefix(HOLDER_PREFIX)?.split(' ').next()?.parse().ok()
    }

    /// Path of the directory.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Listens; port 0 is the port of the last master here, or for any if there was none. Keeps the port.
    ///
    /// # Errors
    /// An address that cannot be listened on, or a port that cannot be stored.
    pub async fn listen(&mut self, bind: &Bind) -> Result<(TcpListener, SocketAddr), StateError> {
        let file = self.path.join(PORT_FILE);
        let kept = match bind.address.port() {
            0 => fs::read_to_string(&file).ok().and_then(|text| text.trim().parse::<u16>().ok()),
            _ => None,
        };
        let mut bind = bind.clone();
        bind.address.set_port(kept.unwrap_or(bind.address.port()));
        let listener = bind.listen().await.map_err(|error| match error {
            BindError::InUse { address } if kept.is_some() => {
                StateError::PortTaken { address, file: file.clone() }
            }
            source => StateError::Bind { source },
        })?;
        let address = listener.local_addr().map_err(failed("ask for the address of", &file))?;
        let text = format!("{}\n", address.port());
        whole_file::replace(&file, Promise::PrivateAndDurable, |file| file.write_all(text.as_bytes()))
            .map_err(failed("write", &file))?;
        let words = format!(", which listens on {address}");
        self.lock.write_all(words.as_bytes()).map_err(failed("write", &self.path.join(LOCK_FILE)))?;
        Ok((listener, address))
    }
}

fn failed(action: &'static str, path: &Path) -> impl FnOnce(io::Error) -> StateError {
    let path = path.to_owned();
    move |source| StateError::Io { action, path, source }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_killed_master_was_writing_is_gone_once_the_next_one_has_the_directory() {
        let directory = tempfile::tempdir().unwrap();
        let left = [".gristmill-draft-Ab3", "jobs"].map(|name| directory.path().join(name));
        left.iter().for_each(|path| fs::write(path, "half").unwrap());
        let held = StateDirectory::lock(directory.path().to_owned()).unwrap();
        assert_eq!(left.map(|path| path.exists()), [false, true]);
        fs::write(directory.path().join(".gristmill-draft-Xy9"), "of the holder").unwrap();
        assert!(StateDirectory::lock(directory.path().to_owned()).is_err());
        assert!(
            directory.path().join(".gristmill-draft-Xy9").exists(),
            "a process that does not get the directory removes nothing"
        );
        drop(held);
    }
}
