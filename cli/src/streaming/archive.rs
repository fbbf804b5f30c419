//! Archives that tasks find unpacked in their working directory: tar, plain or gzipped, and zip (jar).
//!
//! Unpacked where the job is submitted, once, into a folder of its own: nothing in an archive leads out of it, neither a
//! name nor a link on its way. One of which anything is lost is refused. How archives are written is the business of two
//! libraries; where what is in them may go is decided here. Not here: owners, times and devices, which commands have no
//! use for.

use flate2::read::MultiGzDecoder;
use std::collections::HashSet;
use std::ffi::{OsStr, OsString};
use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{OpenOptionsExt, symlink};
use std::path::{Component, Path, PathBuf};
use tar::EntryType;
use zip::ZipArchive;
use zip::result::ZipError;

/// Bytes that may come out of an archive.
const BYTES_MAX: u64 = 64 << 30;

/// Files and folders in an archive.
const ENTRIES_MAX: usize = 1_000_000;

/// The longest path that a link in a zip file leads along, bytes.
const LINK_BYTES_MAX: u64 = 4096;

/// Links that one may lead along, as the system has it.
const LINKS_MAX: usize = 40;

/// The part of an entry in the directory of a zip file that is as long in all of them, bytes.
const DIRECTORY_HEADER: usize = 46;

/// Bytes that are unpacked at once.
const COPIED_BYTES: usize = 64 << 10;

/// Extended headers of files of which only some pieces are in the archive.
const SPARSE: &[u8] = b"GNU.sparse.";

/// What a mode says of a link, and the bits that say what is there.
const MODE_OF_LINK: u32 = 0o120_000;
const KIND_BITS: u32 = 0o170_000;

/// Why an archive cannot be unpacked.
#[derive(Debug, thiserror::Error)]
pub enum ArchiveError {
    #[error("its name ends neither in .tar, .tar.gz, .tgz, .zip nor in .jar")]
    Kind,
    #[error("it cannot be read as what its name says: {0}")]
    Damaged(io::Error),
    #[error("`{0}` in it leads out of it")]
    Outside(String),
    #[error("`{0}` in it is neither a file nor a folder nor a link, or a file with holes")]
    Special(String),
    #[error("it holds more than {BYTES_MAX} bytes or {ENTRIES_MAX} files")]
    TooLarge,
    #[error("{0}")]
    Io(#[from] io::Error),
}

/// Unpacks an archive into a folder, which is made.
///
/// # Errors
/// What is no archive or not a whole one, or one that leads out of the folder.
pub fn unpack(archive: &Path, folder: &Path) -> Result<(), ArchiveError> {
    fs::create_dir_all(folder)?;
    let name =
        archive.file_name().map(|name| name.to_string_lossy().to_ascii_lowercase()).unwrap_or_default();
    let is = |endings: &[&str]| endings.iter().any(|ending| name.ends_with(ending));
    let mut unpacking = Unpacking { folder, bytes: 0, entries: 0, links: Vec::new() };
    if is(&[".zip", ".jar"]) {
        unpacking.zip(File::open(archive)?)?;
    } else if is(&[".tar.gz", ".tgz"]) {
        unpacking.tar(MultiGzDecoder::new(io::BufReader::new(File::open(archive)?)))?;
    } else if is(&[".tar"]) {
        unpacking.tar(io::BufReader::new(File::open(archive)?))?;
    } else {
        return Err(ArchiveError::Kind);
    }
    unpacking.refuse_links_out()
}

struct Unpacking<'a> {
    folder: &'a Path,
    bytes: u64,
    entries: usize,
    /// Where links were made.
    links: Vec<PathBuf>,
}

impl Unpacking<'_> {
    /// The place of a name, with its folders.
    fn place(&mut self, name: &Path) -> Result<PathBuf, ArchiveError> {
        self.entries += 1;
        if ENTRIES_MAX < self.entries {
            return Err(ArchiveError::TooLarge);
        }
        let outside = || ArchiveError::Outside(name.display().to_string());
        let mut path = self.folder.to_owned();
        for component in name.components() {
            match component {
                Component::Normal(name) => {
                    // A link that an earlier entry has made is not followed.
                    if fs::symlink_metadata(&path).is_ok_and(|found| found.is_symlink()) {
                        return Err(outside());
                    }
                    path.push(name);
                }
                Component::CurDir => {}
                _ => return Err(outside()),
            }
        }
        if let Some(parent) = path.parent().filter(|_| path != self.folder) {
            fs::create_dir_all(parent)?;
        }
        Ok(path)
    }

    fn write(&mut self, path: &Path, mode: u32, content: &mut dyn Read) -> Result<(), ArchiveError> {
        make_room(path)?;
        let mode = 0o600 | (mode & 0o111) | 0o044;
        let mut file = OpenOptions::new().write(true).create_new(true).mode(mode).open(path)?;
        let mut buffer = vec![0; COPIED_BYTES];
        loop {
            let count = match content.read(&mut buffer) {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                read => read.map_err(ArchiveError::Damaged)?,
            };
            if count == 0 {
                return Ok(());
            }
            self.bytes += count as u64;
            if BYTES_MAX < self.bytes {
                return Err(ArchiveError::TooLarge);
            }
            file.write_all(&buffer[..count])?;
        }
    }

    /// Makes a link. Where it leads is looked at when all are there.
    fn link(&mut self, path: PathBuf, target: &OsStr) -> Result<(), ArchiveError> {
        make_room(&path)?;
        symlink(target, &path)?;
        self.links.push(path);
        Ok(())
    }

    /// Makes a folder, also where there is a link.
    fn folder(&mut self, name: &Path) -> Result<(), ArchiveError> {
        let path = self.place(name)?;
        if fs::symlink_metadata(&path).is_ok_and(|found| found.is_symlink()) {
            make_room(&path)?;
        }
        Ok(fs::create_dir_all(path)?)
    }

    /// Gives a file that is there already another name.
    fn name_again(&mut self, path: PathBuf, file: &Path) -> Result<(), ArchiveError> {
        let file = self.place(file)?;
        if file == path && fs::symlink_metadata(&file).is_ok() {
            return Ok(());
        }
        if let Ok(target) = fs::read_link(&file) {
            return self.link(path, target.as_os_str());
        }
        make_room(&path)?;
        Ok(fs::hard_link(file, path)?)
    }

    fn refuse_links_out(&self) -> Result<(), ArchiveError> {
        match self.links.iter().find(|link| leads_out(self.folder, link)) {
            Some(link) => Err(ArchiveError::Outside(below(self.folder, link).display().to_string())),
            None => Ok(()),
        }
    }

    fn tar(&mut self, tar: impl Read) -> Result<(), ArchiveError> {
        let mut archive = tar::Archive::new(tar);
        for entry in archive.entries().map_err(ArchiveError::Damaged)? {
            let mut entry = entry.map_err(ArchiveError::Damaged)?;
            let name = PathBuf::from(OsStr::from_bytes(&entry.path_bytes()));
            let special = || ArchiveError::Special(name.display().to_string());
            let mut headers = entry.pax_extensions().map_err(ArchiveError::Damaged)?.into_iter().flatten();
            let has_holes =
                headers.any(|header| header.is_ok_and(|header| header.key_bytes().starts_with(SPARSE)));
            let target = entry.link_name_bytes().map(|target| OsStr::from_bytes(&target).to_owned());
            let kind = entry.header().entry_type();
            match (kind, target) {
                (EntryType::XGlobalHeader, _) => {}
                _ if has_holes => return Err(special()),
                (EntryType::Directory, _) => self.folder(&name)?,
                // So the oldest kind of tar has them.
                (EntryType::Regular, _) if entry.path_bytes().ends_with(b"/") => self.folder(&name)?,
                (EntryType::Symlink, Some(target)) => {
                    let place = self.place(&name)?;
                    self.link(place, &target)?;
                }
                (EntryType::Link, Some(target)) => {
                    let place = self.place(&name)?;
                    self.name_again(place, Path::new(&target))?;
                }
                (EntryType::Regular | EntryType::Continuous | EntryType::GNUSparse, _) => {
                    let place = self.place(&name)?;
                    let mode = entry.header().mode().map_err(ArchiveError::Damaged)?;
                    self.write(&place, mode, &mut entry)?;
                }
                _ => return Err(special()),
            }
        }
        // What a packed file says of itself at its end is looked at there.
        let mut rest = archive.into_inner().take(BYTES_MAX);
        io::copy(&mut rest, &mut io::sink()).map_err(ArchiveError::Damaged)?;
        Ok(())
    }

    fn zip(&mut self, zip: File) -> Result<(), ArchiveError> {
        let mut archive = ZipArchive::new(io::BufReader::new(zip)).map_err(damaged)?;
        for number in 0..archive.len() {
            let mut entry = archive.by_index(number).map_err(damaged)?;
            let name = PathBuf::from(OsStr::from_bytes(entry.name_raw()));
            let mode = entry.unix_mode().unwrap_or(0o644);
            if entry.name_raw().ends_with(b"/") {
                self.folder(&name)?;
                continue;
            }
            let place = self.place(&name)?;
            if mode & KIND_BITS == MODE_OF_LINK {
                let mut target = Vec::new();
                entry.take(LINK_BYTES_MAX).read_to_end(&mut target).map_err(ArchiveError::Damaged)?;
                self.link(place, OsStr::from_bytes(&target))?;
            } else {
                self.write(&place, mode, &mut entry)?;
            }
        }
        // Programs that count the files in two bytes let all others behind them go unseen.
        let (count, begin) = (archive.len(), archive.central_directory_start());
        match names_in_directory(archive.into_inner(), begin) {
            Ok(listed) if listed == count => Ok(()),
            Ok(_) => {
                Err(ArchiveError::Damaged(io::Error::other("its directory has other files than it says")))
            }
            Err(error) => Err(ArchiveError::Damaged(error)),
        }
    }
}

/// How many different names the directory of a zip file has, whatever number it tells.
fn names_in_directory(mut zip: impl Read + Seek, begin: u64) -> io::Result<usize> {
    let mut names = HashSet::new();
    zip.seek(SeekFrom::Start(begin))?;
    loop {
        let mut header = Vec::with_capacity(DIRECTORY_HEADER);
        zip.by_ref().take(DIRECTORY_HEADER as u64).read_to_end(&mut header)?;
        if header.len() < DIRECTORY_HEADER || !header.starts_with(b"PK\x01\x02") {
            return Ok(names.len());
        }
        let length = |at: usize| u64::from(u16::from_le_bytes([header[at], header[at + 1]]));
        let mut name = Vec::new();
        zip.by_ref().take(length(28)).read_to_end(&mut name)?;
        names.insert(name);
        io::copy(&mut zip.by_ref().take(length(30) + length(32)), &mut io::sink())?;
    }
}

fn damaged(error: ZipError) -> ArchiveError {
    ArchiveError::Damaged(match error {
        ZipError::Io(error) => error,
        error => io::Error::new(io::ErrorKind::InvalidData, error),
    })
}

/// Removes what is at a place: the last of several entries of a name counts.
fn make_room(path: &Path) -> io::Result<()> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}

/// A path as an archive has it.
fn below<'a>(folder: &Path, path: &'a Path) -> &'a Path {
    path.strip_prefix(folder).unwrap_or(path)
}

/// Whether a link in a folder leads out of it, at its end or on the way, as the system would follow it.
fn leads_out(folder: &Path, link: &Path) -> bool {
    let parts = |path: &Path| -> Vec<OsString> {
        path.components().rev().map(|part| part.as_os_str().to_owned()).collect()
    };
    // Where one is, and what is still to go, the next part last.
    let (mut within, mut ahead) = (PathBuf::new(), parts(below(folder, link)));
    let mut links = 0;
    while let Some(part) = ahead.pop() {
        match Path::new(&part).components().next() {
            Some(Component::Normal(name)) => within.push(name),
            Some(Component::ParentDir) if within.pop() => continue,
            Some(Component::CurDir) | None => continue,
            Some(_) => return true,
        }
        if let Ok(target) = fs::read_link(folder.join(&within)) {
            links += 1;
            if LINKS_MAX < links {
                // Nobody follows it further.
                return false;
            }
            within.pop();
            ahead.extend(parts(&target));
        }
    }
    false
}

#[cfg(test)]
mod tests {
    use super::*;
    use flate2::Compression;
    use flate2::write::GzEncoder;

    const TAR_BLOCK: usize = 512;

    /// One entry of a tar file.
    fn tar_entry(name: &str, kind: u8, link: &str, content: &[u8]) -> Vec<u8> {
        let mut header = vec![0; TAR_BLOCK];
        header[..name.len()].copy_from_slice(name.as_bytes());
        header[100..107].copy_from_slice(b"0000755");
        let size = format!("{:011o}", content.len());
        header[124..135].copy_from_slice(size.as_bytes());
        header[156] = kind;
        header[157..157 + link.len()].copy_from_slice(link.as_bytes());
        header[257..265].copy_from_slice(b"ustar  \0");
        header[148..156].fill(b' ');
        let sum: u32 = header.iter().map(|byte| u32::from(*byte)).sum();
        header[148..155].copy_from_slice(format!("{sum:06o}\0").as_bytes());
        header.extend_from_slice(content);
        header.resize(header.len().div_ceil(TAR_BLOCK) * TAR_BLOCK, 0);
        header
    }

    fn unpacked(name: &str, bytes: &[u8]) -> Result<tempfile::TempDir, ArchiveError> {
        let folder = tempfile::tempdir().unwrap();
        let archive = folder.path().join(name);
        fs::write(&archive, bytes).unwrap();
        unpack(&archive, &folder.path().join("to"))?;
        Ok(folder)
    }

    #[test]
    fn tar_gives_files_folders_and_links_with_long_names() {
        use std::os::unix::fs::PermissionsExt;
        let long = format!("d/{}", "n".repeat(150));
        let tar = [
            tar_entry("d/", b'5', "", b""),
            tar_entry("d/run", b'0', "", b"content"),
            tar_entry("d/link", b'2', "../d/run", b""),
            tar_entry("././@LongLink", b'L', "", format!("{long}\0").as_bytes()),
            tar_entry("cut", b'0', "", b"long"),
            vec![0; 2 * TAR_BLOCK],
        ];
        let folder = unpacked("a.tar", &tar.concat()).unwrap();
        let to = folder.path().join("to");
        assert_eq!(fs::read(to.join("d/run")).unwrap(), b"content");
        assert_eq!(fs::metadata(to.join("d/run")).unwrap().permissions().mode() & 0o700, 0o700);
        assert_eq!(fs::read(to.join("d/link")).unwrap(), b"content");
        assert_eq!(fs::read(to.join(long)).unwrap(), b"long");
    }

    #[test]
    fn nothing_in_an_archive_leads_out_of_it() {
        for tar in [
            vec![tar_entry("../out", b'0', "", b"x")],
            vec![tar_entry("/out", b'0', "", b"x")],
            vec![tar_entry("link", b'2', "../out", b"")],
            vec![tar_entry("link", b'2', "/etc", b"")],
            vec![tar_entry("d/l", b'2', "../e", b""), tar_entry("d/l/x", b'0', "", b"x")],
            // Three words lead down, and no more than one folder.
            vec![tar_entry("x/y/l", b'2', "../..", b""), tar_entry("out", b'2', "x/y/l/../x", b"")],
            vec![tar_entry("out", b'2', "x/y/l/../x", b""), tar_entry("x/y/l", b'2', "../..", b"")],
            vec![tar_entry("l", b'2', "../x", b""), tar_entry("again", b'1', "l", b"")],
            vec![tar_entry("again", b'1', "../x", b"")],
        ] {
            assert!(matches!(unpacked("a.tar", &tar.concat()), Err(ArchiveError::Outside(_))));
        }
        assert!(matches!(unpacked("a.rar", b""), Err(ArchiveError::Kind)));
    }

    #[test]
    fn archives_that_are_damaged_or_cut_off_are_refused() {
        let refused = |name: &str, bytes: &[u8]| {
            assert!(
                matches!(unpacked(name, bytes), Err(ArchiveError::Damaged(_))),
                "{} of {name}",
                bytes.len()
            );
        };
        let mut tar = tar_entry("d", b'0', "", &[b'x'; 700]);
        assert!(unpacked("a.tar", &tar).is_ok());
        refused("a.tar", &tar[..TAR_BLOCK + 700]);
        refused("a.tar", &tar[..TAR_BLOCK + 699]);
        let mut packed = GzEncoder::new(Vec::new(), Compression::default());
        packed.write_all(&[&tar[..], &[0; 2 * TAR_BLOCK]].concat()).unwrap();
        let mut packed = packed.finish().unwrap();
        assert!(unpacked("a.tgz", &packed).is_ok());
        let end = packed.len() - 8;
        refused("a.tgz", &packed[..end]);
        // The sum of all bytes, which are read from blocks before it.
        packed[end] ^= 1;
        refused("a.tgz", &packed);
        refused("a.tar", &tar[..100]);
        tar[0] = b'e';
        refused("a.tar", &tar);
        refused("a.tar", b"no tar");
        refused("a.zip", b"PK\x03\x04");
        assert!(matches!(unpacked("a.zip", b"no zip"), Err(ArchiveError::Damaged(_))));
        let zip = zipped(&["a", "b", "c"]);
        let folder = unpacked("a.zip", &zip).unwrap();
        assert_eq!(fs::read(folder.path().join("to/b")).unwrap(), b"of b");
        let entries: Vec<_> = zip.windows(4).enumerate().filter(|(_, four)| four == b"PK\x01\x02").collect();
        for (at, _) in entries {
            let mut zip = zip.clone();
            zip[at + 2] = b'x';
            refused("a.zip", &zip);
        }
        // One that tells fewer files than it has.
        let mut fewer = zip.clone();
        let at = fewer.windows(4).rposition(|four| four == b"PK\x05\x06").unwrap();
        (fewer[at + 8], fewer[at + 10]) = (2, 2);
        refused("a.zip", &fewer);
        let mut zip = zip;
        let at = zip.windows(4).position(|four| four == b"of b").unwrap();
        zip[at] = b'x';
        refused("a.zip", &zip);
    }

    #[test]
    fn name_in_a_zip_that_ends_in_a_backslash_is_a_files() {
        let folder = unpacked("a.zip", &zipped(&["foo\\", "d/"])).unwrap();
        assert_eq!(fs::read(folder.path().join("to/foo\\")).unwrap(), b"of foo\\");
        assert!(folder.path().join("to/d").is_dir());
    }

    /// A zip file in which each of these has a word in it.
    fn zipped(names: &[&str]) -> Vec<u8> {
        let stored =
            zip::write::SimpleFileOptions::DEFAULT.compression_method(zip::CompressionMethod::Stored);
        let mut zip = zip::ZipWriter::new(io::Cursor::new(Vec::new()));
        for name in names {
            zip.start_file(*name, stored).unwrap();
            write!(zip, "of {name}").unwrap();
        }
        zip.finish().unwrap().into_inner()
    }

    #[test]
    fn what_only_tasks_could_miss_is_refused() {
        for kind in [b'3', b'4', b'6', b'M', b'V'] {
            let tar = tar_entry("d", kind, "", b"");
            assert!(matches!(unpacked("a.tar", &tar), Err(ArchiveError::Special(_))), "{kind}");
        }
        let header = b"22 GNU.sparse.major=1\n";
        let tar = [tar_entry("h", b'x', "", header), tar_entry("d", b'0', "", b"x")].concat();
        assert!(matches!(unpacked("a.tar", &tar), Err(ArchiveError::Special(_))));
    }

    #[test]
    fn names_of_one_file_are_one_file_and_the_last_entry_of_a_name_counts() {
        let tar = [
            tar_entry("d/one", b'0', "", b"old"),
            tar_entry("d/one", b'0', "", b"x"),
            tar_entry("two", b'1', "d/one", b""),
            tar_entry("to-one", b'2', "d/../d/one", b""),
            tar_entry("again", b'1', "to-one", b""),
            tar_entry("loop", b'2', "loop", b""),
            tar_entry("two", b'1', "two", b""),
            tar_entry("old/", 0, "", b""),
            tar_entry("old/y", 0, "", b"y"),
            tar_entry("folder", b'2', "d", b""),
            tar_entry("folder/", b'5', "", b""),
            tar_entry("folder/z", b'0', "", b"z"),
        ];
        let folder = unpacked("a.tar", &tar.concat()).unwrap();
        for name in ["d/one", "two", "to-one", "again"] {
            assert_eq!(fs::read(folder.path().join("to").join(name)).unwrap(), b"x", "{name}");
        }
        assert_eq!(fs::read(folder.path().join("to/old/y")).unwrap(), b"y");
        assert!(folder.path().join("to/folder/z").exists() && !folder.path().join("to/d/z").exists());
    }
}
