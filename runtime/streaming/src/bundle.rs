//! Shipped files of a job in one file, for workers that do not see the files of the submitter.
//!
//! The bundle is a side input of the job, so it is transferred like any input, and is unpacked once on
//! each worker. Each entry has: kind (a byte), mode, length of the name and of the content (big-endian,
//! 4, 4 and 8 bytes), name, content. The content of a link is its target.

use super::ShippedFile;
use std::fs::{self, DirBuilder, File, Metadata, OpenOptions};
use std::io::{self, BufWriter, Read, Write};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt, PermissionsExt, symlink};
use std::path::{Component, Path, PathBuf};

/// Maximum bytes of a bundle. Workers hold it in memory while they unpack it.
const BUNDLE_BYTES_MAX: u64 = 1 << 30;

/// Maximum depth of directories.
const DEPTH_MAX: usize = 64;

const FILE: u8 = 0;
const FOLDER: u8 = 1;
const LINK: u8 = 2;

/// Writes all files, and directories with their content, to a bundle.
///
/// # Errors
/// A file that cannot be read, or more than 1 GiB.
pub fn write_bundle(files: &[ShippedFile], to: &Path) -> io::Result<()> {
    let mut bundle = Bundle { out: BufWriter::new(File::create_new(to)?), bytes: 0 };
    for file in files {
        bundle.add(&file.path, Path::new(&file.name), 0)?;
    }
    bundle.out.flush()
}

struct Bundle {
    out: BufWriter<File>,
    bytes: u64,
}

impl Bundle {
    fn add(&mut self, path: &Path, name: &Path, depth: usize) -> io::Result<()> {
        // A named path may be a link and is followed. Within directories links stay links.
        let found = if depth == 0 { fs::metadata(path) } else { fs::symlink_metadata(path) };
        let found =
            found.map_err(|error| io::Error::new(error.kind(), format!("{}: {error}", path.display())))?;
        if found.is_symlink() {
            return self.entry(LINK, 0, name, fs::read_link(path)?.as_os_str().as_bytes());
        }
        let mode = found.permissions().mode();
        if !found.is_dir() {
            return self.file(path, mode, name, &found);
        }
        self.entry(FOLDER, mode, name, b"")?;
        if depth == DEPTH_MAX {
            return Err(io::Error::other(format!("{}: folders are too deep", path.display())));
        }
        for entry in fs::read_dir(path)? {
            let entry = entry?;
            self.add(&entry.path(), &name.join(entry.file_name()), depth + 1)?;
        }
        Ok(())
    }

    /// Writes a file with its current content. If it grows meanwhile it is truncated, if it shrinks it is
    /// refused.
    fn file(&mut self, path: &Path, mode: u32, name: &Path, found: &Metadata) -> io::Result<()> {
        let said = |why: String| io::Error::other(format!("{}: {why}", path.display()));
        if !found.is_file() {
            // A pipe would block, and a device may have no end.
            return Err(said("it is neither a file, a folder nor a link".to_owned()));
        }
        if found.len() == 0 {
            // Files that the system generates on reading have no length.
            let mut content = Vec::new();
            let read =
                File::open(path).and_then(|file| file.take(BUNDLE_BYTES_MAX + 1).read_to_end(&mut content));
            read.map_err(|error| said(error.to_string()))?;
            return self.entry(FILE, mode, name, &content).map_err(|error| said(error.to_string()));
        }
        self.head(FILE, mode, name, found.len()).map_err(|error| said(error.to_string()))?;
        let copied = io::copy(&mut File::open(path)?.take(found.len()), &mut self.out);
        match copied.map_err(|error| said(error.to_string()))? {
            bytes if bytes == found.len() => Ok(()),
            _ => Err(said("it has become shorter while it was read".to_owned())),
        }
    }

    fn entry(&mut self, kind: u8, mode: u32, name: &Path, content: &[u8]) -> io::Result<()> {
        self.head(kind, mode, name, content.len() as u64)?;
        self.out.write_all(content)
    }

    /// Writes the header of an entry with this many bytes of content.
    fn head(&mut self, kind: u8, mode: u32, name: &Path, content: u64) -> io::Result<()> {
        let name = name.as_os_str().as_bytes();
        self.bytes = self.bytes.saturating_add(content).saturating_add(name.len() as u64);
        if BUNDLE_BYTES_MAX < self.bytes {
            return Err(io::Error::other(format!("what is shipped has more than {BUNDLE_BYTES_MAX} bytes")));
        }
        let length = u32::try_from(name.len()).map_err(io::Error::other)?;
        self.out.write_all(&[kind])?;
        self.out.write_all(&mode.to_be_bytes())?;
        self.out.write_all(&length.to_be_bytes())?;
        self.out.write_all(&content.to_be_bytes())?;
        self.out.write_all(name)
    }
}

/// Unpacked content of a bundle, removed on drop.
#[derive(Debug)]
pub(super) struct UnpackedBundle {
    folder: PathBuf,
    files: Vec<ShippedFile>,
}

impl UnpackedBundle {
    /// Unpacks a bundle into a new directory of this name.
    ///
    /// # Errors
    /// Bytes that are not a bundle, names that lead out of it, an error of the file system.
    pub fn unpack(mut bytes: &[u8], folder: PathBuf) -> io::Result<Self> {
        match fs::remove_dir_all(&folder) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
        DirBuilder::new().mode(0o700).create(&folder)?;
        let mut unpacked = Self { folder, files: Vec::new() };
        while !bytes.is_empty() {
            unpacked
                .entry(&mut bytes)
                .ok_or_else(|| io::Error::other("the bundle of files is cut off"))??;
        }
        Ok(unpacked)
    }

    /// Unpacks the first entry; `None` if it is incomplete.
    fn entry(&mut self, bytes: &mut &[u8]) -> Option<io::Result<()>> {
        let (kind, rest) = bytes.split_first()?;
        let (mode, rest) = rest.split_first_chunk::<4>()?;
        let (name_length, rest) = rest.split_first_chunk::<4>()?;
        let (length, rest) = rest.split_first_chunk::<8>()?;
        let (name, rest) = rest.split_at_checked(u32::from_be_bytes(*name_length) as usize)?;
        let (content, rest) = rest.split_at_checked(usize::try_from(u64::from_be_bytes(*length)).ok()?)?;
        *bytes = rest;
        let name = Path::new(std::ffi::OsStr::from_bytes(name));
        Some(self.make(*kind, u32::from_be_bytes(*mode), name, content))
    }

    fn make(&mut self, kind: u8, mode: u32, name: &Path, content: &[u8]) -> io::Result<()> {
        let outside = || io::Error::other(format!("`{}` leads out of the bundle", name.display()));
        let mut place = self.folder.clone();
        for component in name.components() {
            // No file is created behind a link.
            if !matches!(component, Component::Normal(_)) || fs::symlink_metadata(&place)?.is_symlink() {
                return Err(outside());
            }
            place.push(component);
        }
        if name.components().count() == 1 {
            self.files.push(ShippedFile { name: name.to_string_lossy().into_owned(), path: place.clone() });
        }
        match kind {
            FOLDER => DirBuilder::new().mode(0o700).create(place),
            LINK => symlink(std::ffi::OsStr::from_bytes(content), place),
            _ => {
                let mode = 0o600 | (mode & 0o111);
                OpenOptions::new().write(true).create_new(true).mode(mode).open(place)?.write_all(content)
            }
        }
    }

    /// Returns the shipped files with their paths here.
    pub fn files(&self) -> &[ShippedFile] {
        &self.files
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

    #[test]
    fn what_is_no_file_or_too_much_is_refused_before_it_is_read() {
        let folder = tempfile::tempdir().unwrap();
        let large = folder.path().join("large");
        File::create(&large).unwrap().set_len(BUNDLE_BYTES_MAX + 1).unwrap();
        for path in [PathBuf::from("/dev/zero"), large] {
            let to = folder.path().join("bundle");
            let shipped = ShippedFile { name: "x".to_owned(), path: path.clone() };
            let error = write_bundle(&[shipped], &to).unwrap_err().to_string();
            assert!(error.starts_with(path.to_str().unwrap()), "{error}");
            assert_eq!(fs::metadata(&to).unwrap().len(), 0);
            fs::remove_file(to).unwrap();
        }
    }

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
        let names: Vec<&str> = unpacked.files().iter().map(|file| file.name.as_str()).collect();
        assert_eq!(names, ["r", "t"]);
        assert_eq!(fs::read(path("to/t/link")).unwrap(), b"words");
        assert_eq!(fs::metadata(path("to/r")).unwrap().permissions().mode() & 0o777, 0o711);
        drop(unpacked);
        assert!(!path("to").exists());
        for wrong in [&bytes[..bytes.len() - 1], b"x", &b"\0\0\0\0\0\0\0\0\x04\0\0\0\0\0\0\0\0../x"[..]] {
            assert!(UnpackedBundle::unpack(wrong, path("to")).is_err());
            assert!(!path("to").exists() && !path("x").exists());
        }
    }
}
