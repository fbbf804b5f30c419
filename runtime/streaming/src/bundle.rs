//! Shipped files of a job in one tar file, for workers that do not see the files of the submitter.
//!
//! The bundle is a side input of the job, so it is transferred like any input, and is unpacked once on
//! each worker.

use super::ShippedFile;
use super::folder::create_private;
use std::fs::{self, File};
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};
use tar::{Archive, Builder, HeaderMode};

/// Maximum bytes of a bundle. Workers hold it in memory while they unpack it.
pub const BUNDLE_BYTES_MAX: u64 = 1 << 30;

/// Writes all files, and directories with their content, to a bundle. A named path may be a link and is
/// followed; within directories links stay links.
///
/// # Errors
/// A file that cannot be read, or more than 1 GiB.
pub fn write_bundle(files: &[ShippedFile], to: &Path) -> io::Result<()> {
    let mut bundle = Builder::new(BufWriter::new(File::create_new(to)?));
    bundle.follow_symlinks(false);
    bundle.mode(HeaderMode::Deterministic);
    for ShippedFile { name, path } in files {
        let added = match path.is_dir() {
            true => bundle.append_dir_all(name, path),
            false => File::open(path).and_then(|mut file| bundle.append_file(name, &mut file)),
        };
        added.map_err(|error| io::Error::new(error.kind(), format!("{}: {error}", path.display())))?;
    }
    bundle.into_inner()?.flush()?;
    match fs::metadata(to)?.len() > BUNDLE_BYTES_MAX {
        true => Err(io::Error::other(format!("what is shipped has more than {BUNDLE_BYTES_MAX} bytes"))),
        false => Ok(()),
    }
}

/// Unpacked content of a bundle, removed on drop.
#[derive(Debug)]
pub(super) struct UnpackedBundle {
    folder: PathBuf,
    /// Shipped files with their paths here.
    pub files: Vec<ShippedFile>,
}

impl UnpackedBundle {
    /// Unpacks a bundle into a new directory of this name.
    ///
    /// # Errors
    /// Bytes that are not a bundle, links that lead out of it, an error of the file system.
    pub fn unpack(bytes: &[u8], folder: PathBuf) -> io::Result<Self> {
        create_private(&folder)?;
        let mut unpacked = Self { folder, files: Vec::new() };
        Archive::new(bytes).unpack(&unpacked.folder)?;
        for entry in fs::read_dir(&unpacked.folder)? {
            let path = entry?.path();
            let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
            unpacked.files.push(ShippedFile { name, path });
        }
        Ok(unpacked)
    }
}

impl Drop for UnpackedBundle {
    fn drop(&mut self) {
        // Remaining files are removed with the directory of the worker.
        let _ = fs::remove_dir_all(&self.folder);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::{PermissionsExt, symlink};

    #[test]
    fn bundle_brings_files_folders_and_rights() {
        let folder = tempfile::tempdir().unwrap();
        let path = |name: &str| folder.path().join(name);
        fs::create_dir_all(path("tree/sub")).unwrap();
        fs::write(path("tree/sub/words"), "words").unwrap();
        symlink("sub/words", path("tree/link")).unwrap();
        fs::write(path("run.sh"), "run").unwrap();
        fs::set_permissions(path("run.sh"), fs::Permissions::from_mode(0o755)).unwrap();
        let shipped = |name: &str, path| ShippedFile { name: name.to_owned(), path };
        let files = [shipped("r", path("run.sh")), shipped("t", path("tree"))];
        write_bundle(&files, &path("bundle")).unwrap();
        let bytes = fs::read(path("bundle")).unwrap();
        let unpacked = UnpackedBundle::unpack(&bytes, path("to")).unwrap();
        let mut names: Vec<&str> = unpacked.files.iter().map(|file| file.name.as_str()).collect();
        names.sort_unstable();
        assert_eq!(names, ["r", "t"]);
        assert_eq!(fs::read(path("to/t/link")).unwrap(), b"words");
        assert_eq!(fs::metadata(path("to/r")).unwrap().permissions().mode() & 0o777, 0o755);
        drop(unpacked);
        assert!(!path("to").exists());
        for wrong in [&bytes[..700], b"x"] {
            assert!(UnpackedBundle::unpack(wrong, path("to")).is_err());
            assert!(!path("to").exists());
        }
    }
}
