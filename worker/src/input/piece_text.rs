//! Encoding of pieces. Between workers and the master they are sent whole. As text, used in submissions
//! of many small files, redundant fields are omitted: a name that the path ends with, the first byte, the
//! length of a whole file.

use super::path::FilePath;
use super::split::{Compression, FileStamp, Piece, Place};
use super::table::Table;
use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// All fields of a [`Piece`], for encodings without field names.
#[derive(Serialize, Deserialize)]
#[serde(remote = "Piece")]
struct WholePiece {
    path: FilePath,
    name: FilePath,
    place: Place,
    offset: u64,
    length: u64,
    stamp: FileStamp,
    compression: Compression,
    table: Option<Box<Table>>,
}

/// Piece as it is written.
#[derive(Serialize)]
struct WrittenPiece<'a> {
    path: &'a FilePath,
    #[serde(skip_serializing_if = "PieceName::is_path")]
    name: PieceName<&'a FilePath>,
    #[serde(skip_serializing_if = "is_submitters")]
    place: Place,
    #[serde(skip_serializing_if = "is_zero")]
    offset: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    length: Option<u64>,
    stamp: FileStamp,
    #[serde(skip_serializing_if = "is_unpacked")]
    compression: Compression,
    #[serde(skip_serializing_if = "Option::is_none")]
    table: Option<&'a Table>,
}

/// Piece as it is read.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ReadPiece {
    path: FilePath,
    #[serde(default)]
    name: PieceName<FilePath>,
    #[serde(default = "submitters")]
    place: Place,
    #[serde(default)]
    offset: u64,
    length: Option<u64>,
    stamp: FileStamp,
    #[serde(default)]
    compression: Compression,
    #[serde(default)]
    table: Option<Box<Table>>,
}

/// Name of a piece relative to its path.
#[derive(Default, Serialize, Deserialize)]
#[serde(untagged)]
enum PieceName<T> {
    /// It equals the path.
    #[default]
    Path,
    /// It is this many bytes at the end of the path.
    End(usize),
    /// It is another one, for example where a link was followed.
    Other(T),
}

impl<T> PieceName<T> {
    fn is_path(&self) -> bool {
        matches!(self, Self::Path)
    }
}

impl<'a> PieceName<&'a FilePath> {
    fn from_piece(piece: &'a Piece) -> Self {
        match (&piece.path, &piece.name) {
            (path, name) if path == name => Self::Path,
            (path, name) if path.as_bytes().ends_with(name.as_bytes()) => Self::End(name.as_bytes().len()),
            (_, name) => Self::Other(name),
        }
    }
}

fn is_submitters(place: &Place) -> bool {
    *place == Place::Submitter
}

fn submitters() -> Place {
    Place::Submitter
}

fn is_zero(offset: &u64) -> bool {
    *offset == 0
}

fn is_unpacked(compression: &Compression) -> bool {
    *compression == Compression::None
}

impl Serialize for Piece {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        if !serializer.is_human_readable() {
            return WholePiece::serialize(self, serializer);
        }
        let written = WrittenPiece {
            path: &self.path,
            name: PieceName::from_piece(self),
            place: self.place,
            offset: self.offset,
            length: Some(self.length).filter(|length| *length != self.stamp.size),
            stamp: self.stamp,
            compression: self.compression,
            table: self.table.as_deref(),
        };
        written.serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for Piece {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        if !deserializer.is_human_readable() {
            return WholePiece::deserialize(deserializer);
        }
        let ReadPiece { path, name, place, offset, length, stamp, compression, table } =
            ReadPiece::deserialize(deserializer)?;
        let name = match name {
            PieceName::Path => path.clone(),
            PieceName::End(bytes) => path.end(bytes).ok_or_else(|| {
                D::Error::custom(format!(
                    "the name of a piece is said to be the last {bytes} bytes of {path}"
                ))
            })?,
            PieceName::Other(name) => name,
        };
        Ok(Self {
            path,
            name,
            place,
            offset,
            length: length.unwrap_or(stamp.size),
            stamp,
            compression,
            table,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn piece(path: &[u8], name: &[u8]) -> Piece {
        use std::os::unix::ffi::OsStrExt;
        let path_of = |bytes| FilePath::from(std::path::Path::new(std::ffi::OsStr::from_bytes(bytes)));
        let stamp = FileStamp { size: 7, modified_ns: -1, inode: u64::MAX };
        let (path, name) = (path_of(path), path_of(name));
        let (place, compression) = (Place::Submitter, Compression::None);
        Piece { path, name, place, offset: 0, length: 7, stamp, compression, table: None }
    }

    fn check(piece: &Piece, expected: &str) {
        let text = serde_json::to_string(piece).unwrap();
        let text = text.replace(r#""stamp":{"size":7,"modified_ns":-1,"inode":18446744073709551615}"#, "...");
        assert_eq!(text, expected);
        let text = serde_json::to_string(piece).unwrap();
        assert_eq!(serde_json::from_str::<Piece>(&text).unwrap(), *piece, "{text}");
        let mut bytes = Vec::new();
        crate::codec::encode(piece, &mut bytes);
        assert_eq!(crate::codec::decode::<Piece>(&bytes, 1000).unwrap(), *piece, "{text}");
    }

    #[test]
    fn piece_of_a_whole_file_is_its_path_and_stamp() {
        check(&piece(b"/a/b", b"/a/b"), r#"{"path":"/a/b",...}"#);
        check(&piece(b"/a/b", b"b"), r#"{"path":"/a/b","name":1,...}"#);
        check(&piece(b"/a/b", b"../a/b"), r#"{"path":"/a/b","name":"../a/b",...}"#);
        check(&piece(b"/a/\xff%", b"\xff%"), r#"{"path":"/a/%FF%25","name":2,...}"#);
        check(&piece(b"/a/b", b""), r#"{"path":"/a/b","name":0,...}"#);
    }

    #[test]
    fn piece_tells_what_is_not_as_of_a_whole_file() {
        let whole = piece(b"/a", b"/a");
        check(&Piece { offset: 3, length: 4, ..whole.clone() }, r#"{"path":"/a","offset":3,"length":4,...}"#);
        let packed = Piece { place: Place::Worker(gristmill_scheduler::ids::WorkerId(3)), ..whole };
        let packed = Piece { compression: Compression::Zstd, ..packed };
        check(&packed, r#"{"path":"/a","place":{"Worker":3},...,"compression":"Zstd"}"#);
    }

    #[test]
    fn name_that_is_longer_than_its_path_or_unknown_field_is_refused() {
        let stamp = r#""stamp":{"size":7,"modified_ns":0,"inode":1}"#;
        for wrong in [r#""name":3"#, r#""name":-1"#, r#""compresion":"Zstd""#] {
            let text = format!(r#"{{"path":"/a",{wrong},{stamp}}}"#);
            assert!(serde_json::from_str::<Piece>(&text).is_err(), "{text}");
        }
    }
}
