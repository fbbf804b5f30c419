//! Archives that tasks find unpacked in their working directory: tar, plain or gzipped, and zip (jar).
//!
//! Unpacked once, where the job is submitted, by the libraries `tar` and `zip`, which write nothing outside
//! the directory.

use flate2::read::MultiGzDecoder;
use std::fs::{self, File};
use std::io::{self, BufReader, Read};
use std::path::{Path, PathBuf};
use tar::EntryType;
use zip::ZipArchive;

/// Maximum unpacked bytes of an archive: a small one can fill any disk.
const BYTES_MAX: u64 = 1 << 30;

/// Maximum number of files and directories in an archive.
const ENTRIES_MAX: usize = 1_000_000;

/// Error of an archive that is not unpacked.
#[derive(Debug, thiserror::Error)]
pub enum ArchiveError {
    #[error("its name ends neither in .tar, .tar.gz, .tgz, .zip nor in .jar")]
    Kind,
    #[error("it is not a regular file")]
    NoFile,
    #[error("`{}` in it leads out of it", .0.display())]
    Outside(PathBuf),
    #[error(
        "it unpacks to more than {} GiB or {ENTRIES_MAX} files: unpack it and ship the directory with -files",
        BYTES_MAX >> 30
    )]
    TooLarge,
    #[error("it cannot be unpacked")]
    Io(#[from] io::Error),
    #[error("it cannot be unpacked")]
    Zip(#[from] zip::result::ZipError),
}

/// Unpacks an archive into a directory, which is created.
///
/// # Errors
/// A file that is not a whole archive, is too large, or has entries outside of the directory.
pub fn unpack(archive: &Path, directory: &Path) -> Result<(), ArchiveError> {
    unpack_within(archive, directory, BYTES_MAX)
}

fn unpack_within(archive: &Path, directory: &Path, bytes_max: u64) -> Result<(), ArchiveError> {
    // Reading a pipe would block.
    if !fs::metadata(archive)?.is_file() {
        return Err(ArchiveError::NoFile);
    }
    fs::create_dir_all(directory)?;
    let name = archive.file_name().unwrap_or_default().to_string_lossy().to_ascii_lowercase();
    let is = |endings: &[&str]| endings.iter().any(|ending| name.ends_with(ending));
    let file = BufReader::new(File::open(archive)?);
    if is(&[".zip", ".jar"]) {
        unpack_zip(file, directory, bytes_max)
    } else if is(&[".tar.gz", ".tgz"]) {
        unpack_tar(MultiGzDecoder::new(file), directory, bytes_max)
    } else if is(&[".tar"]) {
        unpack_tar(file, directory, bytes_max)
    } else {
        Err(ArchiveError::Kind)
    }
}

fn unpack_tar(tar: impl Read, directory: &Path, bytes_max: u64) -> Result<(), ArchiveError> {
    let mut archive = tar::Archive::new(tar.take(bytes_max));
    let unpacked = unpack_entries(&mut archive, directory);
    // The checksum of a gzipped archive is after its last entry.
    let mut rest = archive.into_inner();
    let read = io::copy(&mut rest, &mut io::sink());
    if rest.limit() == 0 {
        return Err(ArchiveError::TooLarge);
    }
    unpacked.and(Ok(read.map(drop)?))
}

fn unpack_entries(archive: &mut tar::Archive<impl Read>, directory: &Path) -> Result<(), ArchiveError> {
    let mut directories = Vec::new();
    for (number, entry) in archive.entries()?.enumerate() {
        let mut entry = entry?;
        let name = entry.path()?.into_owned();
        if number >= ENTRIES_MAX {
            return Err(ArchiveError::TooLarge);
        } else if entry.header().entry_type() == EntryType::Directory {
            directories.push((name, entry));
        } else if !entry.unpack_in(directory)? {
            return Err(ArchiveError::Outside(name));
        }
    }
    // Last and from the inside out, as their permissions may forbid writes.
    directories.sort_by(|(one, _), (other, _)| other.cmp(one));
    for (name, mut entry) in directories {
        if !entry.unpack_in(directory)? {
            return Err(ArchiveError::Outside(name));
        }
    }
    Ok(())
}

fn unpack_zip(zip: BufReader<File>, directory: &Path, bytes_max: u64) -> Result<(), ArchiveError> {
    let mut archive = ZipArchive::new(zip)?;
    if archive.len() > ENTRIES_MAX {
        return Err(ArchiveError::TooLarge);
    }
    let mut bytes = 0;
    for number in 0..archive.len() {
        // Sizes in an archive may be false, and `extract` has no limit of its own.
        let entry = archive.by_index(number)?;
        bytes += io::copy(&mut entry.take(bytes_max + 1 - bytes), &mut io::sink())?;
        if bytes > bytes_max {
            return Err(ArchiveError::TooLarge);
        }
    }
    Ok(archive.extract(directory)?)
}

#[cfg(test)]
mod tests {
    use super::*;
    use flate2::Compression;
    use flate2::write::GzEncoder;
    use std::io::Write;
    use std::os::unix::fs::PermissionsExt;

    fn unpacked(name: &str, bytes: &[u8], bytes_max: u64) -> Result<tempfile::TempDir, ArchiveError> {
        let directory = tempfile::tempdir().unwrap();
        let archive = directory.path().join(name);
        fs::write(&archive, bytes).unwrap();
        unpack_within(&archive, &directory.path().join("to"), bytes_max)?;
        Ok(directory)
    }

    fn header(name: &str, kind: EntryType, mode: u32, size: usize) -> tar::Header {
        let mut header = tar::Header::new_gnu();
        header.as_mut_bytes()[..name.len()].copy_from_slice(name.as_bytes());
        header.set_entry_type(kind);
        header.set_mode(mode);
        header.set_size(size as u64);
        header
    }

    /// A tar file with a directory that is not writable, a program in it, a link to that program, and a file
    /// of this name.
    fn tarred(name: &str) -> Vec<u8> {
        let mut tar = tar::Builder::new(Vec::new());
        let mut add = |mut header: tar::Header, link: &str, content: &[u8]| {
            if !link.is_empty() {
                header.set_link_name(link).unwrap();
            }
            header.set_cksum();
            tar.append(&header, content).unwrap();
        };
        add(header("d/", EntryType::Directory, 0o500, 0), "", b"");
        add(header("d/run", EntryType::Regular, 0o755, 7), "", b"content");
        add(header("d/link", EntryType::Symlink, 0o777, 0), "run", b"");
        add(header(name, EntryType::Regular, 0o644, 1), "", b"x");
        tar.into_inner().unwrap()
    }

    fn gzipped(bytes: &[u8]) -> Vec<u8> {
        let mut packed = GzEncoder::new(Vec::new(), Compression::default());
        packed.write_all(bytes).unwrap();
        packed.finish().unwrap()
    }

    fn zipped(name: &str) -> Vec<u8> {
        let mut zip = zip::ZipWriter::new(io::Cursor::new(Vec::new()));
        let options = zip::write::SimpleFileOptions::default().unix_permissions(0o755);
        zip.start_file(name, options).unwrap();
        zip.write_all(b"content").unwrap();
        zip.finish().unwrap().into_inner()
    }

    #[test]
    fn archives_give_files_directories_and_links() {
        let tar = tarred("n");
        for (name, bytes) in [("a.tar", tar.clone()), ("a.TGZ", gzipped(&tar)), ("a.jar", zipped("d/run"))] {
            let directory = unpacked(name, &bytes, BYTES_MAX).unwrap();
            let program = directory.path().join("to/d/run");
            assert_eq!(fs::read(&program).unwrap(), b"content");
            assert_eq!(fs::metadata(&program).unwrap().permissions().mode() & 0o777, 0o755);
            if name != "a.jar" {
                assert_eq!(fs::read(directory.path().join("to/d/link")).unwrap(), b"content");
            }
        }
    }

    #[test]
    fn nothing_in_an_archive_leads_out_of_it() {
        assert!(matches!(unpacked("a.tar", &tarred("../out"), BYTES_MAX), Err(ArchiveError::Outside(_))));
        assert!(unpacked("a.zip", &zipped("../out"), BYTES_MAX).is_err());
        let mut tar = tar::Builder::new(Vec::new());
        let mut link = header("link", EntryType::Symlink, 0o777, 0);
        link.set_link_name("..").unwrap();
        link.set_cksum();
        tar.append(&link, &b""[..]).unwrap();
        let mut file = header("link/out", EntryType::Regular, 0o644, 1);
        file.set_cksum();
        tar.append(&file, &b"x"[..]).unwrap();
        assert!(unpacked("a.tar", &tar.into_inner().unwrap(), BYTES_MAX).is_err());
    }

    #[test]
    fn archives_that_are_damaged_or_too_large_are_refused() {
        let tar = tarred("n");
        let mut packed = gzipped(&tar);
        for (name, bytes, bytes_max) in
            [("a.tar", &tar, 1024), ("a.tgz", &packed, 1024), ("a.zip", &zipped("n"), 6)]
        {
            assert!(matches!(unpacked(name, bytes, bytes_max), Err(ArchiveError::TooLarge)), "{name}");
        }
        let end = packed.len() - 8;
        packed[end] ^= 1;
        let zip = zipped("n");
        for (name, bytes) in
            [("a.tgz", &packed[..]), ("a.tgz", b"none"), ("a.tar", b"none"), ("a.zip", &zip[..40])]
        {
            assert!(unpacked(name, bytes, BYTES_MAX).is_err(), "{name}");
        }
        assert!(matches!(unpacked("a.rar", b"", BYTES_MAX), Err(ArchiveError::Kind)));
    }
}
