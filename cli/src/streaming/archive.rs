//! Archives that tasks find unpacked in their working directory: tar, plain or gzipped, and zip (jar).
//!
//! Unpacked once, where the job is submitted, by the libraries `tar` and `zip`, which write nothing outside
//! the directory.

use flate2::read::MultiGzDecoder;
use std::fs::{self, File};
use std::io::{self, BufReader, Read};
use std::path::Path;
use zip::ZipArchive;

/// Error of an archive that is not unpacked.
#[derive(Debug, thiserror::Error)]
pub enum ArchiveError {
    #[error("its name ends neither in .tar, .tar.gz, .tgz, .zip nor in .jar")]
    Kind,
    #[error("it is not a regular file")]
    NoFile,
    #[error("it has more than {0} bytes when it is unpacked; put the files where all workers see them")]
    Large(u64),
    #[error("it cannot be unpacked")]
    Io(#[from] io::Error),
    #[error("it cannot be unpacked")]
    Zip(#[from] zip::result::ZipError),
}

/// Unpacks an archive into a directory, which is created. Entries outside of the directory are skipped or
/// refused.
///
/// # Errors
/// A file that is not a whole archive, or has more than `bytes_max` bytes when it is unpacked.
pub fn unpack(archive: &Path, directory: &Path, bytes_max: u64) -> Result<(), ArchiveError> {
    // Reading a pipe would block.
    if !fs::metadata(archive)?.is_file() {
        return Err(ArchiveError::NoFile);
    }
    fs::create_dir_all(directory)?;
    let name = archive.file_name().unwrap_or_default().to_string_lossy().to_ascii_lowercase();
    let is = |endings: &[&str]| endings.iter().any(|ending| name.ends_with(ending));
    let file = BufReader::new(File::open(archive)?);
    if is(&[".zip", ".jar"]) {
        let mut zip = ZipArchive::new(file)?;
        match zip.decompressed_size() {
            Some(bytes) if bytes <= u128::from(bytes_max) => Ok(zip.extract(directory)?),
            _ => Err(ArchiveError::Large(bytes_max)),
        }
    } else if is(&[".tar.gz", ".tgz"]) {
        unpack_tar(MultiGzDecoder::new(file), directory, bytes_max)
    } else if is(&[".tar"]) {
        unpack_tar(file, directory, bytes_max)
    } else {
        Err(ArchiveError::Kind)
    }
}

fn unpack_tar(tar: impl Read, directory: &Path, bytes_max: u64) -> Result<(), ArchiveError> {
    let mut tar = tar.take(bytes_max);
    // The checksum of a gzipped archive is after its last entry.
    let unpacked =
        tar::Archive::new(&mut tar).unpack(directory).and_then(|()| io::copy(&mut tar, &mut io::sink()));
    match tar.limit() {
        0 => Err(ArchiveError::Large(bytes_max)),
        _ => Ok(unpacked.map(drop)?),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use flate2::Compression;
    use flate2::write::GzEncoder;
    use std::io::Write;
    use std::os::unix::fs::PermissionsExt;
    use tar::EntryType;

    fn unpacked(name: &str, bytes: &[u8]) -> Result<tempfile::TempDir, ArchiveError> {
        let directory = tempfile::tempdir().unwrap();
        let archive = directory.path().join(name);
        fs::write(&archive, bytes).unwrap();
        unpack(&archive, &directory.path().join("to"), 1 << 14)?;
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
            let directory = unpacked(name, &bytes).unwrap();
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
        let directory = unpacked("a.tar", &tarred("../out")).unwrap();
        assert!(!directory.path().join("out").exists());
        assert!(unpacked("a.zip", &zipped("../out")).is_err());
        let mut tar = tar::Builder::new(Vec::new());
        let mut link = header("link", EntryType::Symlink, 0o777, 0);
        link.set_link_name("..").unwrap();
        link.set_cksum();
        tar.append(&link, &b""[..]).unwrap();
        let mut file = header("link/out", EntryType::Regular, 0o644, 1);
        file.set_cksum();
        tar.append(&file, &b"x"[..]).unwrap();
        assert!(unpacked("a.tar", &tar.into_inner().unwrap()).is_err());
    }

    #[test]
    fn archive_with_more_bytes_than_can_be_shipped_is_refused() {
        let mut tar = tar::Builder::new(Vec::new());
        let mut file = header("zeros", EntryType::Regular, 0o644, 1 << 14);
        file.set_cksum();
        tar.append(&file, &[0; 1 << 14][..]).unwrap();
        let tgz = gzipped(&tar.into_inner().unwrap());
        assert!(matches!(unpacked("a.tgz", &tgz), Err(ArchiveError::Large(_))));
        let mut zip = zip::ZipWriter::new(io::Cursor::new(Vec::new()));
        zip.start_file("zeros", zip::write::SimpleFileOptions::default()).unwrap();
        zip.write_all(&vec![0; (1 << 14) + 1]).unwrap();
        let zip = zip.finish().unwrap().into_inner();
        assert!(matches!(unpacked("a.zip", &zip), Err(ArchiveError::Large(_))));
    }

    #[test]
    fn archives_that_are_damaged_are_refused() {
        let mut packed = gzipped(&tarred("n"));
        let end = packed.len() - 8;
        packed[end] ^= 1;
        let zip = zipped("n");
        for (name, bytes) in
            [("a.tgz", &packed[..]), ("a.tgz", b"none"), ("a.tar", b"none"), ("a.zip", &zip[..40])]
        {
            assert!(unpacked(name, bytes).is_err(), "{name}");
        }
        assert!(matches!(unpacked("a.rar", b""), Err(ArchiveError::Kind)));
    }
}
