//! What a tar file says between the contents of its entries, seen as the library reads it: how much there is, where the
//! archive ends, and what extended headers say. The library takes each line of these for a record, passes over what it cannot
//! read, and takes all of a header into memory; an entry under a name that was cut, or 6 GB for an archive of 2 MB, would be
//! the outcome.

use std::cell::RefCell;
use std::io::{self, Read};
use std::ops::Range;
use std::rc::Rc;
use tar::{EntryType, Header};

/// What a tar file is written in, bytes.
const BLOCK: usize = 512;

/// Bytes between the contents of two entries, and behind the last one: headers, long names, zeros.
const BETWEEN_BYTES_MAX: usize = 8 << 20;

/// Zeros at the end of an archive, bytes.
const END_BYTES: u64 = 2 * BLOCK as u64;

/// Where a size begins in a header, by a mark if it is written in binary, and what of that is above 64 bits; where the kind
/// of the header stands, its version, and the folders of the name.
const SIZE: usize = 124;
const SIZE_ABOVE: Range<usize> = 125..128;
const BINARY: u8 = 0x80;
const MAGIC: Range<usize> = 257..263;
const VERSION: Range<usize> = 263..265;
const PREFIX: usize = 345;

/// Names of extended headers of files of which only some pieces are in the archive begin so.
const SPARSE: &[u8] = b"GNU.sparse.";

/// What was read of an archive.
#[derive(Default)]
struct Seen {
    bytes: u64,
    /// What lies behind the content of the last entry, while no other is read.
    between: Option<Vec<u8>>,
    /// Where the content of the last entry ends, with what fills its block.
    content_end: u64,
}

/// An archive as it is read.
pub(super) struct Watched<R> {
    inner: R,
    seen: Rc<RefCell<Seen>>,
}

/// Says what was seen.
pub(super) struct Watch(Rc<RefCell<Seen>>);

/// What the headers before that of an entry say of it.
#[derive(Default)]
pub(super) struct Extended {
    /// Its name and where it leads, by a header that holds nothing else, and by one of records.
    long: [Option<Vec<u8>>; 2],
    recorded: [Option<Vec<u8>>; 2],
    size: Option<u64>,
    /// Whether the file has holes, as these headers describe them.
    pub has_holes: bool,
}

/// Watches what is read of an archive, from before its first entry on.
pub(super) fn watched<R: Read>(inner: R) -> (Watched<R>, Watch) {
    let seen = Rc::new(RefCell::new(Seen { between: Some(Vec::new()), ..Seen::default() }));
    (Watched { inner, seen: seen.clone() }, Watch(seen))
}

impl<R: Read> Read for Watched<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let count = self.inner.read(buffer)?;
        let mut seen = self.seen.borrow_mut();
        seen.bytes += count as u64;
        if let Some(between) = &mut seen.between {
            if BETWEEN_BYTES_MAX < between.len() + count {
                let said = format!("more than {BETWEEN_BYTES_MAX} bytes of headers, names or zeros in a row");
                return Err(io::Error::new(io::ErrorKind::InvalidData, said));
            }
            between.extend_from_slice(&buffer[..count]);
        }
        Ok(count)
    }
}

impl Watch {
    /// The headers before the content of an entry are read: what the extended ones say.
    ///
    /// # Errors
    /// One that is no list of records.
    pub(super) fn at_content(&self) -> io::Result<Extended> {
        let mut seen = self.0.borrow_mut();
        let between = seen.between.take().unwrap_or_default();
        let filled = (seen.content_end + between.len() as u64 - seen.bytes) as usize;
        let mut rest = between.get(filled..).unwrap_or_default();
        let mut extended = Extended::default();
        while let Some((block, behind)) = rest.split_at_checked(BLOCK) {
            let header = Header::from_byte_slice(block);
            rest = behind;
            let kind = header.entry_type();
            if block.iter().all(|byte| *byte == 0) {
                continue;
            }
            if !matches!(kind, EntryType::XHeader | EntryType::GNULongName | EntryType::GNULongLink) {
                break;
            }
            let length = usize::try_from(header.entry_size()?).unwrap_or(usize::MAX);
            let Some(content) = rest.get(..length) else { break };
            let name = || content.split(|byte| *byte == 0).next().map(<[u8]>::to_vec);
            match kind {
                EntryType::GNULongName => extended.long[0] = name(),
                EntryType::GNULongLink => extended.long[1] = name(),
                _ => extended.read(content)?,
            }
            rest = rest.get(length.next_multiple_of(BLOCK)..).unwrap_or_default();
        }
        Ok(extended)
    }

    /// The content of an entry is read.
    pub(super) fn at_end_of_content(&self) {
        let mut seen = self.0.borrow_mut();
        seen.content_end = seen.bytes.next_multiple_of(BLOCK as u64);
        seen.between = Some(Vec::new());
    }

    /// All is read, zeros included.
    ///
    /// # Errors
    /// An archive without the mark at its end: something may be cut off.
    pub(super) fn at_end(&self) -> io::Result<()> {
        let seen = self.0.borrow();
        match seen.content_end + END_BYTES <= seen.bytes {
            true => Ok(()),
            false => Err(io::Error::new(
                io::ErrorKind::UnexpectedEof,
                "the two blocks of zeros at its end are missing: it is cut off",
            )),
        }
    }
}

impl Extended {
    /// What the records of a header for all entries behind it say.
    ///
    /// # Errors
    /// What is no list of records, or says something of these entries that the library does not heed.
    pub(super) fn of_all(content: impl Read) -> io::Result<()> {
        let mut records = Vec::new();
        content.take(BETWEEN_BYTES_MAX as u64).read_to_end(&mut records)?;
        let mut extended = Self::default();
        extended.read(&records)?;
        let says = extended.recorded.iter().any(Option::is_some) || extended.size.is_some();
        if says || extended.has_holes {
            let said = "a header says of all entries behind it what they are called, or how long they are";
            return Err(io::Error::new(io::ErrorKind::InvalidData, said));
        }
        Ok(())
    }

    /// Whether two headers give the entry different names, of which each program takes another.
    pub(super) fn names_differ(&self) -> bool {
        let pairs = self.long.iter().zip(&self.recorded);
        pairs.into_iter().any(|(long, recorded)| long.is_some() && recorded.is_some() && long != recorded)
    }

    /// The name of the entry, and where it leads, if that is said here.
    pub(super) fn names(&self) -> [Option<&[u8]>; 2] {
        [0, 1].map(|which| self.long[which].as_deref().or(self.recorded[which].as_deref()))
    }

    /// Bytes of its content, if its header says this of them.
    pub(super) fn size_or(&self, of_header: u64) -> u64 {
        self.size.unwrap_or(of_header)
    }

    /// Takes the records of a header, `LENGTH NAME=VALUE` and the end of a line each, length included; zeros may fill it up.
    fn read(&mut self, mut records: &[u8]) -> io::Result<()> {
        let damaged = || io::Error::new(io::ErrorKind::InvalidData, "an extended header is damaged");
        while records.iter().any(|byte| *byte != 0) {
            let (name, value, rest) = record(records).ok_or_else(damaged)?;
            match name {
                b"path" => self.recorded[0] = Some(value.to_vec()),
                b"linkpath" => self.recorded[1] = Some(value.to_vec()),
                b"size" => self.size = Some(number(value).ok_or_else(damaged)?),
                _ => self.has_holes |= name.starts_with(SPARSE),
            }
            records = rest;
        }
        Ok(())
    }
}

/// Refuses a header of which the library reads less than it says.
///
/// # Errors
/// A size of more bytes than there are anywhere, and folders of a name in a header of a version that it does not know.
pub(super) fn refuse_unread(header: &Header) -> io::Result<()> {
    let bytes = header.as_bytes();
    let is_too_long = bytes[SIZE] & BINARY != 0
        && (bytes[SIZE] != BINARY || bytes[SIZE_ABOVE].iter().any(|byte| *byte != 0));
    let is_cut = bytes[MAGIC] == *b"ustar\0" && bytes[VERSION] != *b"00" && bytes[PREFIX] != 0;
    let why = match (is_too_long, is_cut) {
        (true, _) => "an entry says that it has more bytes than there can be",
        (_, true) => "an entry has a header of an unknown version",
        _ => return Ok(()),
    };
    Err(io::Error::new(io::ErrorKind::InvalidData, why))
}

/// A number in digits alone.
fn number(digits: &[u8]) -> Option<u64> {
    let digits = str::from_utf8(digits).ok()?;
    digits.bytes().all(|byte| byte.is_ascii_digit()).then(|| digits.parse().ok())?
}

/// The first record, and what is behind it.
fn record(records: &[u8]) -> Option<(&[u8], &[u8], &[u8])> {
    let digits = records.iter().position(|byte| *byte == b' ')?;
    let length = usize::try_from(number(&records[..digits])?).ok()?;
    let (record, rest) = records.split_at_checked(length)?;
    let text = record.get(digits + 1..)?.strip_suffix(b"\n")?;
    let equals = text.iter().position(|byte| *byte == b'=')?;
    Some((&text[..equals], &text[equals + 1..], rest))
}
