//! Shipped files of a job in one tar file, for workers that do not see the files of the submitter.
//!
//! The bundle is a side input of the job, so it is transferred like any input, and is unpacked once on
//! each worker.

use super::directory::create_private;
use super::job::ShippedFile;
use std::fs::{self, File};
use std::io::{self, BufWriter, Read, Write};
use std::path::{Path, PathBuf};
use tar::{Archive, Builder, Header, HeaderMode};
use walkdir::{DirEntry, WalkDir};

/// Maximum bytes of a bundle. Workers hold it in memory while they unpack it.
pub const BUNDLE_BYTES_MAX: u64 = 1 << 30;

/// Maximum depth of a shipped directory.
const DEPTH_MAX: usize = 256;

/// Writes all files, and directories with their content, to a bundle. A named path may be a link and is
/// followed; within directories links stay links. A file that grows while it is read is cut at its size before.
///
/// # Errors
/// A path that cannot be read or is neither file, directory nor link, or more than 1 GiB.
pub fn write_bundle(files: &[ShippedFile], to: &Path) -> io::Result<()> {
    let mut bundle = Builder::new(BufWriter::new(File::create_new(to)?));
    let mut bytes = 0;
    for ShippedFile { name, path } in files {
        for entry in WalkDir::new(path).max_depth(DEPTH_MAX).sort_by_file_name() {
            let entry = entry?;
            let place: PathBuf = match entry.path().strip_prefix(path) {
                Ok(below) if 0 < entry.depth() => Path::new(name).join(below),
                _ => PathBuf::from(name),
            };
            add(&mut bundle, &entry, &place, &mut bytes).map_err(|error| {
                io::Error::new(error.kind(), format!("{}: {error}", entry.path().display()))
            })?;
        }
    }
    bundle.into_inner()?.flush()
}

fn add(bundle: &mut Builder<impl Write>, entry: &DirEntry, place: &Path, bytes: &mut u64) -> io::Result<()> {
    let path = entry.path();
    let found = if entry.depth() == 0 { fs::metadata(path)? } else { fs::symlink_metadata(path)? };
    let mut header = Header::new_gnu();
    header.set_metadata_in_mode(&found, HeaderMode::Deterministic);
    if found.is_symlink() {
        return bundle.append_link(&mut header, place, fs::read_link(path)?);
    }
    if found.is_dir() {
        return bundle.append_data(&mut header, place, io::empty());
    }
    if !found.is_file() {
        return Err(io::Error::other("it is neither a file, a directory nor a link"));
    }
    if found.len() == 0 && 0 < File::open(path)?.read(&mut [0])? {
        return Err(io::Error::other("it has content but no size; copy it and ship the copy"));
    }
    *bytes += found.len();
    if *bytes > BUNDLE_BYTES_MAX {
        return Err(io::Error::other(format!("with it more than {BUNDLE_BYTES_MAX} bytes are shipped")));
    }
    let mut content = File::open(path)?.take(found.len());
    bundle.append_data(&mut header, place, &mut content)?;
    match content.limit() {
        0 => Ok(()),
        _ => Err(io::Error::other("it became shorter while it was read")),
    }
}

/// Unpacked content of a bundle, removed on drop.
#[derive(Debug)]
pub(super) struct UnpackedBundle {
    directory: PathBuf,
    /// Shipped files with their paths here.
    pub files: Vec<ShippedFile>,
}

impl UnpackedBundle {
    /// Unpacks a bundle into a new directory of this name.
    ///
    /// # Errors
    /// Bytes that are not a bundle, links that lead out of it, an error of the file system.
    pub fn unpack(bytes: &[u8], directory: PathBuf) -> io::Result<Self> {
        create_private(&directory)?;
        let mut unpacked = Self { directory, files: Vec::new() };
        Archive::new(bytes).unpack(&unpacked.directory)?;
        for entry in fs::read_dir(&unpacked.directory)? {
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
        let _ = fs::remove_dir_all(&self.directory);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::{PermissionsExt, symlink};

    #[test]
    fn special_file_or_too_much_is_refused_before_it_is_read() {
        let directory = tempfile::tempdir().unwrap();
        let large = directory.path().join("large");
        File::create(&large).unwrap().set_len(BUNDLE_BYTES_MAX + 1).unwrap();
        for path in [PathBuf::from("/dev/zero"), PathBuf::from("/proc/self/status"), large] {
            let to = directory.path().join("bundle");
            let shipped = ShippedFile { name: "x".to_owned(), path: path.clone() };
            let error = write_bundle(&[shipped], &to).unwrap_err().to_string();
            assert!(error.starts_with(path.to_str().unwrap()), "{error}");
            assert!(fs::metadata(&to).unwrap().len() < 4096);
            fs::remove_file(to).unwrap();
        }
    }

    #[test]
    fn bundle_brings_files_directories_and_rights() {
        let directory = tempfile::tempdir().unwrap();
        let path = |name: &str| directory.path().join(name);
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
