//! Files that a command writes for one person: 0600, as they name files and tell what jobs said.

use anyhow::Context as _;
use std::fs;
use std::io::Write;
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::path::Path;

/// Writes a file that only its owner may read; `what` it is stands in the error.
pub fn write(what: &str, path: &Path, bytes: &[u8]) -> anyhow::Result<()> {
    let write = || {
        let mut options = fs::File::options();
        let mut file = options.write(true).create(true).truncate(true).mode(0o600).open(path)?;
        // One that was there keeps its mode otherwise; a pipe or a terminal is whose it is.
        if file.metadata()?.is_file() {
            file.set_permissions(fs::Permissions::from_mode(0o600))?;
        }
        file.write_all(bytes)
    };
    write().with_context(|| format!("could not write {what} {}", path.display()))
}
