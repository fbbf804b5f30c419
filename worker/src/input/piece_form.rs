//! Encoding of pieces: a name that is the end of the path, as almost all are, is sent as its length.

use super::path::FilePath;
use super::split::{Compression, FileStamp, Piece, Place};
use super::table::Table;
use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// Piece as it is sent.
#[derive(Serialize, Deserialize)]
struct SentPiece<P, T> {
    path: P,
    name: PieceName,
    place: Place,
    offset: u64,
    length: u64,
    stamp: FileStamp,
    compression: Compression,
    table: Option<T>,
}

/// Name of a piece relative to its path.
#[derive(Serialize, Deserialize)]
enum PieceName {
    /// It is this many bytes at the end of the path.
    End(usize),
    /// It is another one, for example where a link was followed.
    Other(FilePath),
}

impl Serialize for Piece {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let (path, name) = (self.path.as_bytes(), self.name.as_bytes());
        let name = match path.ends_with(name) {
            true => PieceName::End(name.len()),
            false => PieceName::Other(self.name.clone()),
        };
        let sent = SentPiece {
            path: &self.path,
            name,
            place: self.place,
            offset: self.offset,
            length: self.length,
            stamp: self.stamp,
            compression: self.compression,
            table: self.table.as_deref(),
        };
        sent.serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for Piece {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let SentPiece { path, name, place, offset, length, stamp, compression, table } =
            SentPiece::<FilePath, Box<Table>>::deserialize(deserializer)?;
        let name = match name {
            PieceName::End(bytes) => path.end(bytes).ok_or_else(|| {
                D::Error::custom(format!(
                    "the name of a piece is said to be the last {bytes} bytes of {path}"
                ))
            })?,
            PieceName::Other(name) => name,
        };
        Ok(Self { path, name, place, offset, length, stamp, compression, table })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::codec::{decode_message, encode};
    use std::ffi::OsStr;
    use std::os::unix::ffi::OsStrExt as _;
    use std::path::Path;

    fn piece(path: &[u8], name: &[u8]) -> Piece {
        let path_of = |bytes| FilePath::from(Path::new(OsStr::from_bytes(bytes)));
        let stamp = FileStamp { size: 7, modified_ns: -1, inode: u64::MAX };
        let (path, name) = (path_of(path), path_of(name));
        let (place, compression) = (Place::Submitter, Compression::None);
        Piece { path, name, place, offset: 3, length: 4, stamp, compression, table: None }
    }

    #[test]
    fn piece_comes_back_as_it_was_whatever_its_name() {
        let names: [&[u8]; 5] = [b"/a/b\xff%", b"b\xff%", b"\xff%", b"", b"../a/b"];
        for name in names {
            let piece = piece(b"/a/b\xff%", name);
            let mut bytes = Vec::new();
            encode(&piece, &mut bytes);
            assert_eq!(decode_message::<Piece>(&bytes, 1000).unwrap(), piece);
            let text = serde_json::to_string(&piece).unwrap();
            assert_eq!(serde_json::from_str::<Piece>(&text).unwrap(), piece, "{text}");
        }
    }

    #[test]
    fn name_that_is_longer_than_its_path_is_refused() {
        let mut text = serde_json::to_value(piece(b"/a", b"a")).unwrap();
        text["name"]["End"] = 3.into();
        let error = serde_json::from_value::<Piece>(text).unwrap_err().to_string();
        assert!(error.contains("the last 3 bytes of /a"), "{error}");
    }
}
