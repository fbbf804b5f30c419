//! The sizes that a Parquet file says in Thrift's compact form, read before they are believed: of a page, from its header, and
//! of the schema, from the footer. All else in it is left to the crate that decodes.
//! See the compact protocol of Apache Thrift, and `parquet.thrift`.

/// Structures within structures.
const DEPTH_MAX: usize = 64;

/// Groups within groups of a schema: the crate goes down by recursion.
const SCHEMA_DEPTH_MAX: usize = 100;

/// Kinds of fields.
const STOP: u8 = 0;
const TRUE: u8 = 1;
const FALSE: u8 = 2;
const BYTE: u8 = 3;
const DOUBLE: u8 = 7;
const BINARY: u8 = 8;
const LIST: u8 = 9;
const SET: u8 = 10;
const MAP: u8 = 11;
const STRUCT: u8 = 12;
const UUID: u8 = 13;

/// What a page says of itself.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(super) struct PageHeader {
    pub kind: PageKind,
    /// Bytes of the page in memory, and as it lies behind its header.
    pub unpacked: i64,
    pub packed: i64,
    /// Values in it, nulls among them.
    pub values: i64,
    /// How they are encoded, by the number that `parquet.thrift` gives.
    pub encoding: i64,
    /// Bytes of the header itself.
    pub length: usize,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(super) enum PageKind {
    Data,
    Dictionary,
    /// Of an index, which the format has never made use of.
    Index,
    #[default]
    Other,
}

impl PageHeader {
    /// The header with which these bytes begin; `None` if they are none, or not all of one.
    pub fn read(bytes: &[u8]) -> Option<Self> {
        let mut header = Self::default();
        let mut reader = Compact { bytes, at: 0 };
        reader.structure(0, &mut |reader, id, _| {
            match id {
                1 => {
                    header.kind = match reader.integer()? {
                        0 | 3 => PageKind::Data,
                        1 => PageKind::Index,
                        2 => PageKind::Dictionary,
                        _ => PageKind::Other,
                    }
                }
                2 => header.unpacked = reader.integer()?,
                3 => header.packed = reader.integer()?,
                // Of a page of data in either form, and of a dictionary.
                5 | 7 | 8 => {
                    let encoding = if id == 8 { 4 } else { 2 };
                    reader.structure(1, &mut |reader, id, _| {
                        match id {
                            1 => header.values = reader.integer()?,
                            _ if id == encoding => header.encoding = reader.integer()?,
                            _ => return Some(false),
                        }
                        Some(true)
                    })?;
                }
                _ => return Some(false),
            }
            Some(true)
        })?;
        header.length = reader.at;
        Some(header)
    }
}

/// Whether the groups of a file's schema have no more children than there are columns and groups, and are not nested deeper
/// than anybody nests them; `None` if these bytes are no footer.
pub(super) fn schema_is_sound(footer: &[u8]) -> Option<bool> {
    let mut children = Vec::new();
    Compact { bytes: footer, at: 0 }.structure(0, &mut |reader, id, kind| {
        if id != 2 || kind != LIST {
            return Some(false);
        }
        let (count, _) = reader.list()?;
        for _ in 0..count {
            let mut own = 0;
            reader.structure(1, &mut |reader, id, _| {
                if id == 5 {
                    own = reader.integer()?;
                }
                Some(id == 5)
            })?;
            children.push(own);
        }
        Some(true)
    })?;
    let mut open: Vec<i64> = Vec::new();
    for &own in &children {
        if !(0..=children.len() as i64).contains(&own) {
            return Some(false);
        }
        if let Some(left) = open.last_mut() {
            *left -= 1;
        }
        open.push(own);
        while open.last() == Some(&0) {
            open.pop();
        }
        if SCHEMA_DEPTH_MAX < open.len() {
            return Some(false);
        }
    }
    Some(true)
}

/// A varint: seven bits a byte, the lowest first.
pub(super) fn varint(bytes: &[u8], at: &mut usize) -> Option<u64> {
    let mut number = 0;
    for shift in (0..64).step_by(7) {
        let byte = *bytes.get(*at)?;
        *at += 1;
        number |= u64::from(byte & 0x7f) << shift;
        if byte & 0x80 == 0 {
            return Some(number);
        }
    }
    None
}

/// A number whose sign is its lowest bit.
pub(super) fn zigzag(number: u64) -> i64 {
    (number >> 1).cast_signed() ^ -(number & 1).cast_signed()
}

struct Compact<'a> {
    bytes: &'a [u8],
    at: usize,
}

/// Takes a field of a structure, by number and kind; `false` if it has left that to be passed over.
type Take<'t, 'a> = &'t mut dyn FnMut(&mut Compact<'a>, i16, u8) -> Option<bool>;

impl<'a> Compact<'a> {
    fn byte(&mut self) -> Option<u8> {
        let byte = *self.bytes.get(self.at)?;
        self.at += 1;
        Some(byte)
    }

    fn integer(&mut self) -> Option<i64> {
        varint(self.bytes, &mut self.at).map(zigzag)
    }

    fn pass(&mut self, count: u64) -> Option<()> {
        let left = self.bytes.len() - self.at;
        let count = usize::try_from(count).ok().filter(|count| *count <= left)?;
        self.at += count;
        Some(())
    }

    /// The head of a list: items and their kind.
    fn list(&mut self) -> Option<(u64, u8)> {
        let head = self.byte()?;
        let short = u64::from(head >> 4);
        let count = if short == 15 { varint(self.bytes, &mut self.at)? } else { short };
        Some((count, head & 0xf))
    }

    fn structure(&mut self, depth: usize, take: Take<'_, 'a>) -> Option<()> {
        let mut last = 0_i16;
        loop {
            let head = self.byte()?;
            let kind = head & 0xf;
            if kind == STOP {
                return Some(());
            }
            last = match i16::from(head >> 4) {
                0 => i16::try_from(self.integer()?).ok()?,
                step => last.checked_add(step)?,
            };
            if !take(self, last, kind)? {
                self.pass_value(kind, depth + 1)?;
            }
        }
    }

    fn pass_value(&mut self, kind: u8, depth: usize) -> Option<()> {
        if DEPTH_MAX < depth {
            return None;
        }
        match kind {
            // Their kind is their value.
            TRUE | FALSE => Some(()),
            BYTE => self.pass(1),
            DOUBLE => self.pass(8),
            UUID => self.pass(16),
            BINARY => {
                let length = varint(self.bytes, &mut self.at)?;
                self.pass(length)
            }
            LIST | SET => {
                let (count, kind) = self.list()?;
                (0..count).try_for_each(|_| self.pass_item(kind, depth + 1))
            }
            MAP => {
                let count = varint(self.bytes, &mut self.at)?;
                let kinds = if 0 < count { self.byte()? } else { 0 };
                (0..count).try_for_each(|_| {
                    self.pass_item(kinds >> 4, depth + 1)?;
                    self.pass_item(kinds & 0xf, depth + 1)
                })
            }
            STRUCT => self.structure(depth, &mut |_, _, _| Some(false)),
            4..=6 => self.integer().map(drop),
            _ => None,
        }
    }

    /// Of a list or map, where truth takes a byte.
    fn pass_item(&mut self, kind: u8, depth: usize) -> Option<()> {
        if matches!(kind, TRUE | FALSE) { self.pass(1) } else { self.pass_value(kind, depth) }
    }
}

#[cfg(test)]
mod tests {
    use super::{PageHeader, PageKind, schema_is_sound};

    #[test]
    fn header_of_a_page_says_its_sizes_and_nothing_while_it_is_cut() {
        // A page of data: 260 bytes either way, a checksum, 24 values encoded plainly.
        let bytes = b"\x15\x00\x15\x88\x04\x15\x88\x04\x15\xa7\x8f\xaf\x93\x03\x1c\x15\x30\x15\x00\x15\x06\x15\x06\x1c\x00\x00\x00rest";
        let (header, length) = (PageHeader::read(bytes).unwrap(), bytes.len() - 4);
        let expected =
            PageHeader { kind: PageKind::Data, unpacked: 260, packed: 260, values: 24, encoding: 0, length };
        assert_eq!(header, expected);
        assert!((0..length).all(|cut| PageHeader::read(&bytes[..cut]).is_none()));
    }

    #[test]
    fn schema_is_unsound_when_a_group_has_more_children_than_there_are() {
        // A version, then a list of a root with as many children as given, and one leaf.
        let footer =
            |children: &[u8]| [&b"\x15\x02\x19\x2c\x55"[..], children, b"\x00\x15\x02\x00\x00"].concat();
        assert_eq!(schema_is_sound(&footer(b"\x02")), Some(true));
        assert_eq!(schema_is_sound(&footer(b"\xfe\xff\xff\xff\x0f")), Some(false));
        assert_eq!(schema_is_sound(&footer(b"\x01")), Some(false));
        assert_eq!(schema_is_sound(b"\x15"), None);
    }
}
