//! Archives that tasks find unpacked in their working directory: tar, plain or gzipped, and zip (jar).
//!
//! Unpacked where the job is submitted, once, into a folder of its own: nothing in an archive leads out of it. Not here:
//! owners, times, devices and hard links to what stands outside, which commands have no use for.

use flate2::CrcReader;
use flate2::read::{DeflateDecoder, MultiGzDecoder};
use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::os::unix::fs::{OpenOptionsExt, symlink};
use std::path::{Component, Path, PathBuf};

/// Bytes that may come out of an archive.
const BYTES_MAX: u64 = 64 << 30;

/// Files and folders in an archive.
const ENTRIES_MAX: usize = 1_000_000;

/// A header of tar, and what its contents are filled up to.
const TAR_BLOCK: usize = 512;

/// The longest name or header of a header, bytes.
const NAME_BYTES_MAX: u64 = 1 << 20;

/// Why an archive cannot be unpacked.
#[derive(Debug, thiserror::Error)]
pub enum ArchiveError {
    #[error("its name ends neither in .tar, .tar.gz, .tgz, .zip nor in .jar")]
    Kind,
    #[error("it is damaged: {0}")]
    Damaged(&'static str),
    #[error("`{0}` in it leads out of it")]
    Outside(String),
    #[error("it holds more than {BYTES_MAX} bytes or {ENTRIES_MAX} files")]
    TooLarge,
    #[error("{0}")]
    Io(#[from] io::Error),
}

/// What is wrong with an archive of which a part is missing.
const CUT_OFF: ArchiveError = ArchiveError::Damaged("it is cut off");

/// Unpacks an archive into a folder, which is made.
///
/// # Errors
/// What is no archive, or one that leads out of the folder.
pub fn unpack(archive: &Path, folder: &Path) -> Result<(), ArchiveError> {
    fs::create_dir_all(folder)?;
    let name =
        archive.file_name().map(|name| name.to_string_lossy().to_ascii_lowercase()).unwrap_or_default();
    let is = |endings: &[&str]| endings.iter().any(|ending| name.ends_with(ending));
    let mut unpacking = Unpacking { folder, bytes: 0, entries: 0 };
    if is(&[".zip", ".jar"]) {
        unpacking.zip(File::open(archive)?)
    } else if is(&[".tar.gz", ".tgz"]) {
        unpacking.tar(MultiGzDecoder::new(io::BufReader::new(File::open(archive)?)))
    } else if is(&[".tar"]) {
        unpacking.tar(io::BufReader::new(File::open(archive)?))
    } else {
        Err(ArchiveError::Kind)
    }
}

struct Unpacking<'a> {
    folder: &'a Path,
    bytes: u64,
    entries: usize,
}

impl Unpacking<'_> {
    /// The place of a name, with its folders.
    fn place(&mut self, name: &str) -> Result<PathBuf, ArchiveError> {
        self.entries += 1;
        if ENTRIES_MAX < self.entries {
            return Err(ArchiveError::TooLarge);
        }
        let outside = || ArchiveError::Outside(name.to_owned());
        let mut path = self.folder.to_owned();
        for component in Path::new(name).components() {
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
        // The last of several entries of a name counts; a link in its place goes.
        match fs::remove_file(path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error.into()),
            _ => {}
        }
        let mode = 0o600 | (mode & 0o111) | 0o044;
        let mut file = OpenOptions::new().write(true).create_new(true).mode(mode).open(path)?;
        let left = BYTES_MAX - self.bytes;
        let copied = io::copy(&mut content.take(left + 1), &mut file)?;
        if left < copied {
            return Err(ArchiveError::TooLarge);
        }
        self.bytes += copied;
        file.flush()?;
        Ok(())
    }

    fn link(&self, path: &Path, target: &str) -> Result<(), ArchiveError> {
        let outside = || ArchiveError::Outside(target.to_owned());
        let below =
            path.parent().and_then(|parent| parent.strip_prefix(self.folder).ok()).ok_or_else(outside)?;
        let mut depth = below.components().count();
        for component in Path::new(target).components() {
            match component {
                Component::Normal(_) => depth += 1,
                Component::ParentDir if 0 < depth => depth -= 1,
                Component::CurDir => {}
                _ => return Err(outside()),
            }
        }
        Ok(symlink(target, path)?)
    }

    fn tar(&mut self, mut tar: impl Read) -> Result<(), ArchiveError> {
        let (mut long_name, mut long_link) = (None, None);
        loop {
            let Some(header) = tar_header(&mut tar)? else { return Ok(()) };
            let size = tar_number(&header[124..136]).ok_or(ArchiveError::Damaged("a size is no number"))?;
            let mode = tar_number(&header[100..108]).unwrap_or(0o644) as u32;
            let padded = size.div_ceil(TAR_BLOCK as u64) * TAR_BLOCK as u64;
            let mut content = (&mut tar).take(padded);
            match header[156] {
                kind @ (b'L' | b'K' | b'x' | b'g') => {
                    if NAME_BYTES_MAX < size {
                        return Err(ArchiveError::Damaged("a name is too long"));
                    }
                    let mut text = vec![0; size as usize];
                    content.read_exact(&mut text)?;
                    match kind {
                        b'L' => long_name = Some(tar_text(&text)),
                        b'K' => long_link = Some(tar_text(&text)),
                        b'x' => {
                            long_name = pax(&text, "path").or(long_name);
                            long_link = pax(&text, "linkpath").or(long_link);
                        }
                        _ => {}
                    }
                }
                kind => {
                    let name = long_name.take().unwrap_or_else(|| tar_name(&header));
                    let target = long_link.take().unwrap_or_else(|| tar_text(&header[157..257]));
                    let place = self.place(&name)?;
                    match kind {
                        b'5' => fs::create_dir_all(&place)?,
                        b'2' => self.link(&place, &target)?,
                        b'1' => {
                            let source = self.place(&target)?;
                            fs::copy(source, &place)?;
                        }
                        b'0' | 0 | b'7' => self.write(&place, mode, &mut (&mut content).take(size))?,
                        _ => {}
                    }
                }
            }
            io::copy(&mut content, &mut io::sink())?;
            // The last block may lack what it is filled up with, but nothing of the file.
            if padded - size < content.limit() {
                return Err(CUT_OFF);
            }
        }
    }

    fn zip(&mut self, mut zip: File) -> Result<(), ArchiveError> {
        let directory = zip_directory(&mut zip)?;
        let mut rest = &directory[..];
        while let Some(header) = rest.first_chunk::<46>().filter(|header| header.starts_with(b"PK\x01\x02")) {
            let [name_length, extra, comment] = [28, 30, 32].map(|at| usize::from(u16_at(header, at)));
            let damaged = ArchiveError::Damaged("its directory is cut off");
            let name = rest.get(46..46 + name_length).ok_or(damaged)?;
            let name = String::from_utf8_lossy(name).into_owned();
            let (packed, begin) = (u64::from(u32_at(header, 20)), u64::from(u32_at(header, 42)));
            let mode = u32_at(header, 38) >> 16;
            let method = u16_at(header, 10);
            rest = rest.get(46 + name_length + extra + comment..).unwrap_or_default();
            let place = self.place(&name)?;
            if name.ends_with('/') {
                fs::create_dir_all(&place)?;
                continue;
            }
            zip.seek(SeekFrom::Start(begin))?;
            let mut local = [0; 30];
            zip.read_exact(&mut local)?;
            let skipped = i64::from(u16_at(&local, 26)) + i64::from(u16_at(&local, 28));
            zip.seek(SeekFrom::Current(skipped))?;
            let content = (&mut zip).take(packed);
            let content: Box<dyn Read + '_> = match method {
                0 => Box::new(content),
                8 => Box::new(DeflateDecoder::new(content)),
                _ => {
                    return Err(ArchiveError::Damaged(
                        "a file in it is packed in a way that is not known here",
                    ));
                }
            };
            let mut content = CrcReader::new(content);
            self.write(&place, mode, &mut content)?;
            if content.crc().sum() != u32_at(header, 16) {
                return Err(ArchiveError::Damaged("a file in it does not have the bytes that its sum is of"));
            }
        }
        Ok(())
    }
}

/// The directory at the end of a zip file.
fn zip_directory(zip: &mut File) -> Result<Vec<u8>, ArchiveError> {
    /// The longest comment, and the record before it.
    const END_BYTES_MAX: u64 = (1 << 16) + 22;
    const DIRECTORY_BYTES_MAX: u32 = 1 << 28;
    let length = zip.metadata()?.len();
    zip.seek(SeekFrom::Start(length.saturating_sub(END_BYTES_MAX)))?;
    let mut end = Vec::new();
    Read::by_ref(zip).take(END_BYTES_MAX).read_to_end(&mut end)?;
    let at = end.windows(4).rposition(|four| four == b"PK\x05\x06");
    let record =
        at.and_then(|at| end.get(at..at + 22)).ok_or(ArchiveError::Damaged("it has no directory"))?;
    let (size, begin) = (u32_at(record, 12), u32_at(record, 16));
    if begin == u32::MAX || DIRECTORY_BYTES_MAX < size {
        return Err(ArchiveError::Damaged("it is larger than 4 GiB, or its directory is too long"));
    }
    zip.seek(SeekFrom::Start(u64::from(begin)))?;
    let mut directory = Vec::new();
    Read::by_ref(zip).take(u64::from(size)).read_to_end(&mut directory)?;
    Ok(directory)
}

fn u16_at(bytes: &[u8], at: usize) -> u16 {
    u16::from_le_bytes([bytes[at], bytes[at + 1]])
}

fn u32_at(bytes: &[u8], at: usize) -> u32 {
    u32::from(u16_at(bytes, at)) | u32::from(u16_at(bytes, at + 2)) << 16
}

/// The next header; `None` at the end, which is a block of zeros, or of the file.
fn tar_header(tar: &mut impl Read) -> Result<Option<[u8; TAR_BLOCK]>, ArchiveError> {
    let mut bytes = Vec::with_capacity(TAR_BLOCK);
    tar.take(TAR_BLOCK as u64).read_to_end(&mut bytes)?;
    if bytes.iter().all(|byte| *byte == 0) {
        return Ok(None);
    }
    let header: [u8; TAR_BLOCK] = bytes.try_into().map_err(|_| CUT_OFF)?;
    // The sum of all bytes, where those of the sum itself count as blanks.
    let own = header[148..156].iter().map(|byte| u64::from(*byte)).sum::<u64>();
    let sum = header.iter().map(|byte| u64::from(*byte)).sum::<u64>() - own + 8 * u64::from(b' ');
    if tar_number(&header[148..156]) != Some(sum) {
        return Err(ArchiveError::Damaged("what should be a header of tar is none"));
    }
    Ok(Some(header))
}

/// Text up to the first zero byte.
fn tar_text(bytes: &[u8]) -> String {
    let end = bytes.iter().position(|byte| *byte == 0).unwrap_or(bytes.len());
    String::from_utf8_lossy(&bytes[..end]).into_owned()
}

/// The name of an entry, with the folder that newer headers have for it.
fn tar_name(header: &[u8]) -> String {
    let name = tar_text(&header[..100]);
    let prefix = if &header[257..262] == b"ustar" && header[263] != b' ' {
        tar_text(&header[345..500])
    } else {
        String::new()
    };
    if prefix.is_empty() { name } else { format!("{prefix}/{name}") }
}

/// A number in octal digits, or with its first bit set in bytes.
fn tar_number(field: &[u8]) -> Option<u64> {
    if field.first().is_some_and(|first| first & 0x80 != 0) {
        let low = field.last_chunk::<8>()?;
        return Some(u64::from_be_bytes(*low)).filter(|number| *number <= BYTES_MAX);
    }
    let text = String::from_utf8_lossy(field);
    let digits = text.trim_matches(['\0', ' ']);
    if digits.is_empty() { Some(0) } else { u64::from_str_radix(digits, 8).ok() }
}

/// The value of a name in a header of headers: `LENGTH NAME=VALUE\n`.
fn pax(text: &[u8], name: &str) -> Option<String> {
    let text = String::from_utf8_lossy(text);
    let records = text.lines().filter_map(|line| line.split_once(' ')?.1.split_once('='));
    records.rev().find(|(key, _)| *key == name).map(|(_, value)| value.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// One entry of a tar file.
    fn tar_entry(name: &str, kind: u8, link: &str, content: &[u8]) -> Vec<u8> {
        let mut header = vec![0; TAR_BLOCK];
        header[..name.len()].copy_from_slice(name.as_bytes());
        header[100..107].copy_from_slice(b"0000755");
        let size = format!("{:011o}", content.len());
        header[124..135].copy_from_slice(size.as_bytes());
        header[156] = kind;
        header[157..157 + link.len()].copy_from_slice(link.as_bytes());
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
        assert!(
            unpacked("a.tar", &tar[..TAR_BLOCK + 700]).is_ok(),
            "it lacks only what its last block is filled up with"
        );
        refused("a.tar", &tar[..TAR_BLOCK + 699]);
        refused("a.tar", &tar[..100]);
        tar[0] = b'e';
        refused("a.tar", &tar);
        refused("a.tar", b"no tar");
        refused("a.zip", b"PK\x03\x04");
        assert!(matches!(unpacked("a.zip", b"no zip"), Err(ArchiveError::Damaged(_))));
    }
}
