//! Archives that tasks find unpacked in their working directory: tar, plain or gzipped, and zip (jar).
//!
//! Unpacked where the job is submitted, once, into a folder of its own: nothing in an archive leads out of it, neither a
//! name nor a link on its way. One of which anything is lost, or may be, is refused. How archives are written is the
//! business of two libraries; where what is in them may go is decided here. Not here: owners, times and devices, which
//! commands have no use for.

mod headers;

use super::links::way;
use flate2::read::MultiGzDecoder;
use gristmill_worker::input::FilePath;
use headers::{Extended, refuse_unread, watched};
use std::collections::HashSet;
use std::ffi::OsStr;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::ops::Range;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{FileExt, OpenOptionsExt, symlink};
use std::path::{Component, Path, PathBuf};
use tar::EntryType;
use zip::ZipArchive;
use zip::result::ZipError;

/// Bytes that may come out of an archive: small ones can be made that fill any disk.
const BYTES_MAX: u64 = 1 << 30;

/// Files and folders in an archive.
const ENTRIES_MAX: usize = 1_000_000;

/// The longest path that a link in a zip file leads along, bytes.
const LINK_BYTES_MAX: u64 = 4096;

/// Folders and links that all links of an archive may lead along.
const STEPS_MAX: usize = 5_000_000;

/// The part of an entry in the directory of a zip file that is as long in all of them, bytes.
const DIRECTORY_HEADER: usize = 46;

/// The longest name in an archive, as the system has it, bytes.
const NAME_BYTES_MAX: usize = 4096;

/// Folders in each other: of deeper ones not all can be opened at once, as whoever removes them does.
const FOLDERS_MAX: usize = 256;

/// Where the rights stand in the header of an entry of a tar file.
const TAR_MODE: Range<usize> = 100..108;

/// Bytes that are unpacked at once.
const COPIED_BYTES: usize = 64 << 10;

/// What a mode says of a link, a file, a folder and a pipe, and the bits that say what is there.
const MODE_OF_LINK: u32 = 0o120_000;
const MODE_OF_FILE: u32 = 0o100_000;
const MODE_OF_FOLDER: u32 = 0o040_000;
const MODE_OF_PIPE: u32 = 0o010_000;
const KIND_BITS: u32 = 0o170_000;

/// What stands before the content of a file in a zip archive, without its name, bytes; where in it the length of that is.
const LOCAL_HEADER: usize = 30;
const LENGTH_OF_LOCAL_NAME: usize = 26;

/// The end of a zip archive but for its comment, bytes; where in it the length of the directory is.
const ZIP_END: usize = 22;
const BYTES_OF_DIRECTORY: Range<usize> = 12..16;

/// Why an archive cannot be unpacked.
#[derive(Debug, thiserror::Error)]
pub enum ArchiveError {
    #[error("its name ends neither in .tar, .tar.gz, .tgz, .zip nor in .jar")]
    Kind,
    #[error("it cannot be read as what its name says: {0}")]
    Damaged(io::Error),
    #[error("it is no file")]
    NoFile,
    #[error("`{0}` in it leads out of it")]
    Outside(FilePath),
    #[error("`{0}` in it is neither a file nor a folder nor a link, or a file with holes")]
    Special(FilePath),
    #[error("`{0}` in it cannot be made here: {1}")]
    Entry(FilePath, io::Error),
    #[error("a name in it has more than {NAME_BYTES_MAX} bytes or {FOLDERS_MAX} folders")]
    LongName,
    #[error("its links lead along more than {STEPS_MAX} folders in all")]
    LongWay,
    #[error(
        "it unpacks to more than {} GiB or {ENTRIES_MAX} files: unpack it and ship the directory with -files",
        BYTES_MAX >> 30
    )]
    TooLarge,
    #[error("{0}")]
    Io(#[from] io::Error),
}

impl ArchiveError {
    /// The same, of an entry of this name.
    fn of_entry(self, name: &Path) -> Self {
        match self {
            Self::Io(error) => Self::Entry(name.into(), error),
            other => other,
        }
    }

    fn damaged(why: &'static str) -> Self {
        Self::Damaged(io::Error::new(io::ErrorKind::InvalidData, why))
    }
}

/// Unpacks an archive into a folder, which is made.
///
/// # Errors
/// What is no archive or not a whole one, or one that leads out of the folder.
pub fn unpack(archive: &Path, folder: &Path) -> Result<(), ArchiveError> {
    // A pipe would be waited for.
    if !fs::metadata(archive)?.is_file() {
        return Err(ArchiveError::NoFile);
    }
    fs::create_dir_all(folder)?;
    let name =
        archive.file_name().map(|name| name.to_string_lossy().to_ascii_lowercase()).unwrap_or_default();
    let is = |endings: &[&str]| endings.iter().any(|ending| name.ends_with(ending));
    let mut unpacking = Unpacking { folder, bytes: 0, entries: 0, links: Vec::new() };
    if is(&[".zip", ".jar"]) {
        unpacking.zip(File::open(archive)?, &File::open(archive)?)?;
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
        if NAME_BYTES_MAX < name.as_os_str().len() || FOLDERS_MAX < name.components().count() {
            return Err(ArchiveError::LongName);
        }
        let outside = || ArchiveError::Outside(name.into());
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

    /// Refuses links that lead out, at their ends or on the way.
    fn refuse_links_out(&self) -> Result<(), ArchiveError> {
        let mut steps = 0;
        for link in self.links.iter().map(|link| below(self.folder, link)) {
            let way = way(self.folder, link, STEPS_MAX - steps);
            steps += way.steps;
            if way.end.is_none() {
                return Err(ArchiveError::Outside(link.into()));
            }
            if STEPS_MAX <= steps {
                return Err(ArchiveError::LongWay);
            }
        }
        Ok(())
    }

    fn tar(&mut self, tar: impl Read) -> Result<(), ArchiveError> {
        let (tar, watch) = watched(tar);
        let mut archive = tar::Archive::new(tar);
        // To the last byte: behind zeros there may be more, and what a packed file says of itself at its end is looked at
        // there.
        archive.set_ignore_zeros(true);
        for entry in archive.entries().map_err(ArchiveError::Damaged)? {
            let mut entry = entry.map_err(ArchiveError::Damaged)?;
            let extended = watch.at_content().map_err(ArchiveError::Damaged)?;
            let header = entry.header();
            refuse_unread(header).map_err(ArchiveError::Damaged)?;
            let kind = header.entry_type();
            let (path, link) = (header.path_bytes(), header.link_name_bytes());
            let [long_path, long_link] = extended.names();
            let name = OsStr::from_bytes(long_path.unwrap_or(&path)).to_owned();
            let name = Path::new(&name);
            let target = long_link.or(link.as_deref()).map(|link| OsStr::from_bytes(link).to_owned());
            let size = extended.size_or(header.entry_size().map_err(ArchiveError::Damaged)?);
            let is_lost = kind == EntryType::XGlobalHeader && (long_path.is_some() || long_link.is_some());
            if is_lost || (kind != EntryType::GNUSparse && size != entry.size()) {
                return Err(ArchiveError::damaged("an extended header cannot be read"));
            }
            if extended.names_differ() {
                return Err(ArchiveError::damaged("an entry has two names"));
            }
            if extended.has_holes {
                return Err(ArchiveError::Special(name.into()));
            }
            if matches!(kind, EntryType::Directory | EntryType::Symlink | EntryType::Link) && 0 < size {
                // There may be as much behind it, or nothing.
                return Err(ArchiveError::damaged("a folder or a link in it has a length"));
            }
            self.tar_entry(kind, name, target.as_deref(), &mut entry)
                .map_err(|error| error.of_entry(name))?;
            io::copy(&mut entry, &mut io::sink()).map_err(ArchiveError::Damaged)?;
            watch.at_end_of_content();
        }
        watch.at_end().map_err(ArchiveError::Damaged)
    }

    fn tar_entry(
        &mut self,
        kind: EntryType,
        name: &Path,
        target: Option<&OsStr>,
        entry: &mut tar::Entry<'_, impl Read>,
    ) -> Result<(), ArchiveError> {
        let ends_as_folder = name.as_os_str().as_bytes().ends_with(b"/");
        match (kind, target) {
            (EntryType::XGlobalHeader, _) => Extended::of_all(entry).map_err(ArchiveError::Damaged),
            (EntryType::Directory, _) => self.folder(name),
            // So the oldest kind of tar has them.
            (EntryType::Regular, _) if ends_as_folder && entry.size() == 0 => self.folder(name),
            (EntryType::Symlink, Some(target)) => {
                let place = self.place(name)?;
                self.link(place, target)
            }
            (EntryType::Link, Some(target)) => {
                let place = self.place(name)?;
                self.name_again(place, Path::new(target))
            }
            (EntryType::Regular | EntryType::Continuous | EntryType::GNUSparse, _) if !ends_as_folder => {
                let place = self.place(name)?;
                let is_blank =
                    entry.header().as_bytes()[TAR_MODE].iter().all(|byte| [0, b' '].contains(byte));
                let mode = if is_blank { Ok(0) } else { entry.header().mode() };
                let mode = mode.map_err(ArchiveError::Damaged)?;
                self.write(&place, mode, entry)
            }
            _ => Err(ArchiveError::Special(name.into())),
        }
    }

    /// `headers` is the same file.
    fn zip(&mut self, zip: File, headers: &File) -> Result<(), ArchiveError> {
        let mut archive = ZipArchive::new(io::BufReader::new(zip)).map_err(damaged)?;
        if archive.is_empty() {
            let mut end = [0; ZIP_END];
            let at = headers.metadata()?.len().saturating_sub((ZIP_END + archive.comment().len()) as u64);
            headers.read_exact_at(&mut end, at).map_err(ArchiveError::Damaged)?;
            if end[BYTES_OF_DIRECTORY].iter().any(|byte| *byte != 0) {
                return Err(ArchiveError::damaged(
                    "it says that it has no files, and has a directory of some",
                ));
            }
        }
        let begin = archive.central_directory_start();
        let listed = names_in_directory(io::BufReader::new(headers), begin).map_err(ArchiveError::Damaged)?;
        if listed.len() != archive.len() {
            // Programs that count the files in two bytes let all others behind them go unseen.
            return Err(ArchiveError::damaged("its directory has other files than it says"));
        }
        for number in 0..archive.len() {
            let mut entry = archive.by_index(number).map_err(damaged)?;
            let name = entry.name_raw().to_owned();
            let local = local_name(headers, entry.header_start()).map_err(ArchiveError::Damaged)?;
            // A name in Unicode beside another one stands in neither place.
            if local != name && (listed.contains(&name) || !listed.contains(&local)) {
                return Err(ArchiveError::damaged(
                    "a file has two names, in its directory and before its content",
                ));
            }
            let name = Path::new(OsStr::from_bytes(&name));
            self.zip_entry(name, &mut entry).map_err(|error| error.of_entry(name))?;
        }
        Ok(())
    }

    fn zip_entry(
        &mut self,
        name: &Path,
        entry: &mut zip::read::ZipFile<'_, impl Read>,
    ) -> Result<(), ArchiveError> {
        let mode = entry.unix_mode().unwrap_or(MODE_OF_FILE | 0o644);
        let kind = mode & KIND_BITS;
        if entry.name_raw().ends_with(b"/") || (kind == MODE_OF_FOLDER && entry.size() == 0) {
            return self.folder(name);
        }
        let place = self.place(name)?;
        match kind {
            MODE_OF_LINK => {
                let mut target = Vec::new();
                entry.take(LINK_BYTES_MAX).read_to_end(&mut target).map_err(ArchiveError::Damaged)?;
                self.link(place, OsStr::from_bytes(&target))
            }
            // What came by a pipe when the archive was made is here whole.
            0 | MODE_OF_FILE | MODE_OF_PIPE => self.write(&place, mode, entry),
            _ => Err(ArchiveError::Special(name.into())),
        }
    }
}

/// The name that stands before the content of a file in a zip archive.
fn local_name(zip: &File, begin: u64) -> io::Result<Vec<u8>> {
    let mut header = [0; LOCAL_HEADER];
    zip.read_exact_at(&mut header, begin)?;
    let length = u16::from_le_bytes([header[LENGTH_OF_LOCAL_NAME], header[LENGTH_OF_LOCAL_NAME + 1]]);
    let mut name = vec![0; usize::from(length)];
    zip.read_exact_at(&mut name, begin + LOCAL_HEADER as u64)?;
    Ok(name)
}

/// The different names that the directory of a zip file has, whatever number it tells.
fn names_in_directory(mut zip: impl Read + Seek, begin: u64) -> io::Result<HashSet<Vec<u8>>> {
    let mut names = HashSet::new();
    zip.seek(SeekFrom::Start(begin))?;
    loop {
        let mut header = Vec::with_capacity(DIRECTORY_HEADER);
        zip.by_ref().take(DIRECTORY_HEADER as u64).read_to_end(&mut header)?;
        if header.len() < DIRECTORY_HEADER || !header.starts_with(b"PK\x01\x02") {
            return Ok(names);
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

#[cfg(test)]
mod tests {
    use super::*;
    use flate2::Compression;
    use flate2::write::GzEncoder;

    /// Links of one way.
    const LINKS: usize = 39;

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
        sum_up(&mut header);
        header.extend_from_slice(content);
        header.resize(header.len().div_ceil(TAR_BLOCK) * TAR_BLOCK, 0);
        header
    }

    /// Writes the sum of a header into it.
    fn sum_up(header: &mut [u8]) {
        header[148..156].fill(b' ');
        let sum: u32 = header.iter().map(|byte| u32::from(*byte)).sum();
        header[148..155].copy_from_slice(format!("{sum:06o}\0").as_bytes());
    }

    fn unpacked(name: &str, bytes: &[u8]) -> Result<tempfile::TempDir, ArchiveError> {
        let folder = tempfile::tempdir().unwrap();
        let archive = folder.path().join(name);
        fs::write(&archive, bytes).unwrap();
        unpack(&archive, &folder.path().join("to"))?;
        Ok(folder)
    }

    #[test]
    fn archive_that_unpacks_to_more_than_fits_is_given_up_with_the_number() {
        let folder = tempfile::tempdir().unwrap();
        let mut unpacking =
            Unpacking { folder: folder.path(), bytes: BYTES_MAX - 3, entries: 0, links: Vec::new() };
        let mut write =
            |name: &str, content: &[u8]| unpacking.write(&folder.path().join(name), 0, &mut &*content);
        write("fits", b"abc").unwrap();
        let said = write("more", b"d").unwrap_err().to_string();
        assert!(said.starts_with("it unpacks to more than 1 GiB or 1000000 files: "), "{said}");
    }

    /// A tar file of these entries, with its end.
    fn tar_of(entries: &[Vec<u8>]) -> Vec<u8> {
        [entries.concat(), vec![0; 2 * TAR_BLOCK]].concat()
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
        ];
        let folder = unpacked("a.tar", &tar_of(&tar)).unwrap();
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
            assert!(matches!(unpacked("a.tar", &tar_of(&tar)), Err(ArchiveError::Outside(_))));
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
        let mut tar = tar_of(&[tar_entry("d", b'0', "", &[b'x'; 700]), tar_entry("e", b'0', "", b"")]);
        assert!(unpacked("a.tar", &tar).is_ok());
        (0..tar.len()).step_by(TAR_BLOCK / 4).for_each(|length| refused("a.tar", &tar[..length]));
        refused("a.tar", &tar[..tar.len() - 1]);
        refused("a.tar", &[&tar[..], b"more"].concat());
        let mut packed = GzEncoder::new(Vec::new(), Compression::default());
        packed.write_all(&tar).unwrap();
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
    fn tar_is_read_to_its_end_also_behind_zeros() {
        let [one, two] = ["one", "two"].map(|name| tar_entry(name, b'0', "", name.as_bytes()));
        for zeros in [TAR_BLOCK, 2 * TAR_BLOCK, 20 * TAR_BLOCK] {
            let folder = unpacked("a.tar", &tar_of(&[one.clone(), vec![0; zeros], two.clone()])).unwrap();
            assert_eq!(fs::read(folder.path().join("to/two")).unwrap(), b"two", "{zeros}");
        }
        assert!(unpacked("a.tar", &tar_of(&[])).is_ok());
        for (name, bytes) in [("a.tar", tar_of(&[vec![0; 9 << 20]])), ("a.tar", Vec::new())] {
            assert!(matches!(unpacked(name, &bytes), Err(ArchiveError::Damaged(_))), "{}", bytes.len());
        }
    }

    #[test]
    fn extended_headers_name_an_entry_or_are_refused() {
        let long = "n".repeat(150);
        let of = |records: &str| {
            let header = tar_entry("h", b'x', "", records.as_bytes());
            unpacked("a.tar", &tar_of(&[header, tar_entry("cut", b'0', "", b"x")]))
        };
        // A value may have any bytes in it, and zeros may be behind all; the library takes the end of a line for a value's.
        let (name, value) = (format!("160 path={long}\n"), "22 SCHILY.xattr.a=b\nc\n");
        let empty_line = "21 SCHILY.xattr.a=\n\n\n";
        let twice = format!("9 path=x\n{name}");
        for records in [
            name.clone(),
            format!("{value}{name}"),
            format!("{empty_line}{name}"),
            format!("{name}\0\0"),
            twice,
        ] {
            let folder = of(&records).unwrap();
            assert_eq!(fs::read(folder.path().join("to").join(&long)).unwrap(), b"x");
        }
        // Of another length, cut off, and lengths of content that the library passes over.
        let wrong = [
            format!("960 path={long}\n"),
            format!("160 path={long}"),
            format!("{value}9 size=2\n"),
            "10 size=5x\n".to_owned(),
            "10 size=+1\n".to_owned(),
            "+9 path=x\n".to_owned(),
        ];
        for wrong in wrong {
            assert!(matches!(of(&wrong), Err(ArchiveError::Damaged(_))), "{wrong}");
        }
        // What is between a header and its entry.
        let named = |kind, name: &str| tar_entry("h", kind, "", name.as_bytes());
        for header in [named(b'x', &name), named(b'L', &long), named(b'K', &long)] {
            let tar = tar_of(&[header, named(b'g', "8 c=abc\n"), tar_entry("cut", b'0', "", b"x")]);
            assert!(matches!(unpacked("a.tar", &tar), Err(ArchiveError::Damaged(_))));
        }
        let tar = tar_of(&[named(b'g', "8 c=abc\n"), named(b'x', &name), tar_entry("cut", b'0', "", b"x")]);
        assert!(unpacked("a.tar", &tar).unwrap().path().join("to").join(&long).exists());
        // What is said of all entries, and two names of one, of which others read another; one name twice is one.
        let entry = || tar_entry("cut", b'0', "", b"x");
        for said in ["9 path=x\n", "13 linkpath=x\n", "9 size=1\n", "22 GNU.sparse.name=ab\n", "9 c=abc\n"] {
            let tar = tar_of(&[named(b'g', said), entry()]);
            assert!(matches!(unpacked("a.tar", &tar), Err(ArchiveError::Damaged(_))), "{said}");
        }
        for other in ["another", &*long] {
            let tar = tar_of(&[named(b'L', other), named(b'x', &name), entry()]);
            assert_eq!(unpacked("a.tar", &tar).is_ok(), other == long);
        }
        // Zeros end a name.
        let folder = unpacked("a.tar", &tar_of(&[named(b'L', "name\0\0\0rest"), entry()])).unwrap();
        assert_eq!(fs::read(folder.path().join("to/name")).unwrap(), b"x");
    }

    #[test]
    fn headers_of_which_less_would_be_read_than_they_say_are_refused() {
        let changed = |change: &dyn Fn(&mut Vec<u8>)| {
            let mut entry = tar_entry("f", b'0', "", b"one");
            change(&mut entry);
            sum_up(&mut entry[..TAR_BLOCK]);
            unpacked("a.tar", &tar_of(&[entry]))
        };
        let with_prefix = |version: &[u8]| {
            changed(&|entry| {
                entry[257..265].copy_from_slice(&[b"ustar\0", version].concat());
                entry[345] = b'p';
            })
        };
        assert!(with_prefix(b"00").unwrap().path().join("to/p/f").exists());
        for version in [b"\0\0", b"  "] {
            assert!(matches!(with_prefix(version), Err(ArchiveError::Damaged(_))));
        }
        let of_size = |above: &[u8; 4]| {
            changed(&|entry| {
                entry[124..136].copy_from_slice(&[&above[..], &[0, 0, 0, 0, 0, 0, 0, 3]].concat());
            })
        };
        assert!(of_size(&[0x80, 0, 0, 0]).is_ok());
        for above in [[0x80, 0x7f, 0, 0], [0x80, 0, 0, 1], [0x81, 0, 0, 0], [0xff; 4]] {
            assert!(matches!(of_size(&above), Err(ArchiveError::Damaged(_))), "{above:?}");
        }
    }

    #[test]
    fn links_and_folders_with_a_length_and_names_and_ways_without_end_are_refused() {
        for kind in [b'1', b'2', b'5'] {
            let tar = tar_of(&[tar_entry("a", b'0', "", b""), tar_entry("b", kind, "a", b"hello")]);
            assert!(matches!(unpacked("a.tar", &tar), Err(ArchiveError::Damaged(_))));
        }
        let long = tar_entry("h", b'L', "", "a/".repeat(NAME_BYTES_MAX).as_bytes());
        let tar = tar_of(&[long, tar_entry("cut", b'0', "", b"")]);
        assert!(matches!(unpacked("a.tar", &tar), Err(ArchiveError::LongName)));
        for folders in [FOLDERS_MAX - 1, FOLDERS_MAX] {
            let deep = tar_entry("h", b'L', "", format!("{}f", "a/".repeat(folders)).as_bytes());
            let unpacked = unpacked("a.tar", &tar_of(&[deep, tar_entry("cut", b'0', "", b"")]));
            assert_eq!(unpacked.is_ok(), folders < FOLDERS_MAX);
        }
        let mut entries = vec![tar_entry("d/", b'5', "", b"")];
        for number in 0..LINKS {
            let way = format!("{}c{}", "d/../".repeat(700), number + 1);
            entries.push(tar_entry("h", b'K', "", way.as_bytes()));
            entries.push(tar_entry(&format!("c{number}"), b'2', "cut", b""));
        }
        entries.extend((0..100).map(|number| tar_entry(&format!("l{number}"), b'2', "c0", b"")));
        assert!(matches!(unpacked("a.tar", &tar_of(&entries)), Err(ArchiveError::LongWay)));
    }

    #[test]
    fn zip_with_two_names_for_a_file_or_files_that_it_does_not_count_is_refused() {
        let zip = zipped(&["model.bin"]);
        let names = zip.windows(9).enumerate().filter(|(_, name)| name == b"model.bin").map(|(at, _)| at);
        let names: Vec<usize> = names.filter(|at| !zip[at - 3..].starts_with(b"of ")).collect();
        assert_eq!(names.len(), 2);
        for at in names {
            let mut zip = zip.clone();
            zip[at] = b'n';
            assert!(matches!(unpacked("a.zip", &zip), Err(ArchiveError::Damaged(_))), "{at}");
        }
        let mut none = zip;
        let at = none.windows(4).rposition(|four| four == b"PK\x05\x06").unwrap();
        (none[at + 8], none[at + 10]) = (0, 0);
        assert!(matches!(unpacked("a.zip", &none), Err(ArchiveError::Damaged(_))));
        assert!(unpacked("a.zip", &zipped(&[])).is_ok());
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
            let tar = tar_of(&[tar_entry("d", kind, "", b"")]);
            assert!(matches!(unpacked("a.tar", &tar), Err(ArchiveError::Special(_))), "{kind}");
        }
        let header = b"22 GNU.sparse.major=1\n";
        let tar = tar_of(&[tar_entry("h", b'x', "", header), tar_entry("d", b'0', "", b"x")]);
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
        let folder = unpacked("a.tar", &tar_of(&tar)).unwrap();
        for name in ["d/one", "two", "to-one", "again"] {
            assert_eq!(fs::read(folder.path().join("to").join(name)).unwrap(), b"x", "{name}");
        }
        assert_eq!(fs::read(folder.path().join("to/old/y")).unwrap(), b"y");
        assert!(folder.path().join("to/folder/z").exists() && !folder.path().join("to/d/z").exists());
    }
}
