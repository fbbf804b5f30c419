//! Objects of stores as input: the objects of a URL, and their bytes.
//!
//! `s3://bucket/key` is an object. If it does not exist, the URL stands for all objects below `key/`, as
//! a directory stands for its files. Names that start with `_` or `.` are omitted, and objects in
//! "directories" below are an error unless they are requested. A name with wildcards stands for the objects whose keys
//! match. The output of a job is defined by its `_SUCCESS`: only the parts named there are read, as a store may hold
//! objects of other attempts and writers.
//! Not here: access to a store (`objects`), and writing.

use super::error::InputError;
use super::listed::{ListedFile, Subdirectories};
use super::path::FilePath;
use super::source::ByteSource;
use super::split::{FileStamp, Piece};
use super::table::TableKind;
use super::wildcards::{self, NamePattern};
use crate::objects::{
    self, AttemptObject, CLAIM, Object, ObjectBucket, ObjectError, ObjectFailure, ObjectReader, ObjectStamp,
    ObjectUrl,
};
use serde::Deserialize;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// Name of the object that marks an output as complete and lists its parts.
const SUCCESS: &str = "_SUCCESS";

/// Maximum bytes of a `_SUCCESS` that are read: that of a million parts.
const SUCCESS_BYTES_MAX: u64 = 256 << 20;

/// Returns the objects of a URL, in the order of their keys.
///
/// # Errors
/// A URL without objects, and the errors of the store.
pub fn list_stored(path: &FilePath, below: Subdirectories) -> Result<Vec<ListedFile>, InputError> {
    let url = ObjectUrl::parse(&path.to_text()).map_err(InputError::store)?;
    let bucket = objects::open(&url).map_err(InputError::store)?;
    let missing = || InputError::Missing { path: path.clone() };
    if url.scheme().is_web() {
        return match bucket.stamp(url.key()) {
            Ok(stamp) => Ok(vec![ListedFile { path: path.clone(), stamp: file_stamp(stamp) }]),
            Err(ObjectError { cause: ObjectFailure::Missing, .. }) => Err(missing()),
            Err(source) => Err(InputError::store(source)),
        };
    }
    let place = Prefix { bucket: &bucket, url: &url, below };
    let mut found = match place.itself()? {
        Some(object) => vec![object],
        // A key may contain a backslash: without wildcards it is used unchanged.
        None if url.key().contains(['*', '?', '[']) => place.matching(path)?,
        None => {
            let listed = bucket.list(&url.prefix()).map_err(InputError::store)?;
            if listed.is_empty() {
                return Err(missing());
            }
            place.files(url.key(), &listed)?
        }
    };
    // An empty object is not read, so its `ETag` is not needed. As a table it is refused.
    let is_table = |key: &str| TableKind::of_name(&FilePath::from(key)).is_some();
    found.retain(|object| 0 < object.stamp.size || is_table(&object.key));
    let listed = found.into_iter().map(|object| ListedFile {
        path: FilePath::from(url.with_key(&object.key).to_string().as_str()),
        stamp: file_stamp(object.stamp),
    });
    Ok(listed.collect())
}

/// Listing of a bucket.
struct Prefix<'a> {
    bucket: &'a Arc<dyn ObjectBucket>,
    /// URL as the user named it.
    url: &'a ObjectUrl,
    below: Subdirectories,
}

impl Prefix<'_> {
    /// Returns the object of exactly this name, if it exists.
    fn itself(&self) -> Result<Option<Object>, InputError> {
        if self.url.is_prefix() {
            return Ok(None);
        }
        let key = self.url.key().to_owned();
        match self.bucket.stamp(&key) {
            Ok(stamp) => Ok(Some(Object { key, stamp })),
            Err(ObjectError { cause: ObjectFailure::Missing, .. }) => Ok(None),
            Err(source) => Err(InputError::store(source)),
        }
    }

    /// Returns the objects whose keys match the key with wildcards of `path`.
    fn matching(&self, path: &FilePath) -> Result<Vec<Object>, InputError> {
        let pattern = self.url.key();
        // Up to the first wildcard all keys are equal.
        let literal = pattern.find(['*', '?', '[', '\\']).map_or(pattern, |at| &pattern[..at]);
        let rule = NamePattern::new(pattern.as_bytes());
        let mut objects = self.bucket.list(literal).map_err(InputError::store)?;
        objects.retain(|object| rule.finds(object.key.as_bytes()));
        if objects.is_empty() {
            return Err(InputError::NoMatch { path: path.clone() });
        }
        // A store also holds the parts of attempts that do not count.
        let is_part = |object: &&Object| {
            let name = object.key.rsplit('/').next().unwrap_or_default();
            AttemptObject::parse(name).is_some()
        };
        match objects.iter().find(is_part) {
            None => Ok(objects),
            Some(part) => Err(InputError::refused(format!(
                "input {path} matches {}, a part of an output of which only those in its `_SUCCESS` count; name the output, \
                 without wildcards",
                self.name(&part.key)
            ))),
        }
    }

    /// Returns those of the objects below `key` that are input.
    fn files(&self, key: &str, listed: &[Object]) -> Result<Vec<Object>, InputError> {
        let prefix = self.url.with_key(key).prefix();
        let name_of = |object: &Object| object.key.strip_prefix(&prefix).unwrap_or_default().to_owned();
        // Directories of an output, complete or not, are named outputs, which are read only if they are
        // named.
        let is_output = listed.iter().any(|object| [SUCCESS, CLAIM].contains(&&*name_of(object)));
        let mut directories: BTreeMap<String, Vec<&Object>> = BTreeMap::new();
        for object in listed {
            let name = name_of(object);
            let directory = name.rsplit_once('/').map_or("", |(directory, _)| directory);
            // Some programs create an object that ends with `/` for a directory.
            if name.is_empty() || directory.split('/').any(is_hidden) {
                continue;
            }
            if self.below == Subdirectories::Refused && !directory.is_empty() {
                if is_output || is_hidden(name.rsplit('/').next().unwrap_or_default()) {
                    continue;
                }
                let directory = directory.split('/').next().unwrap_or_default();
                return Err(InputError::subdirectory(&self.name(&format!("{prefix}{directory}"))));
            }
            directories.entry(format!("{prefix}{directory}")).or_default().push(object);
        }
        let mut files = Vec::new();
        for (directory, objects) in directories {
            files.extend(self.files_of(directory.trim_end_matches('/'), &objects)?);
        }
        files.sort_unstable_by(|one, other| one.key.cmp(&other.key));
        Ok(files)
    }

    /// Returns those of the objects in one directory that are input. Of an output these are the parts
    /// named in its `_SUCCESS`.
    fn files_of(&self, directory: &str, objects: &[&Object]) -> Result<Vec<Object>, InputError> {
        let url = self.url.with_key(directory);
        let mut names: BTreeMap<&str, &Object> = BTreeMap::new();
        for &object in objects {
            let known = names.entry(object.key.rsplit('/').next().unwrap_or_default()).or_insert(object);
            // `name/`, which represents a directory, is listed as `name`, and is empty.
            if known.stamp.size < object.stamp.size {
                *known = object;
            }
        }
        let parts = if names.contains_key(SUCCESS) {
            self.parts(&url.child_key(SUCCESS), None)?
        } else if names.contains_key(CLAIM) {
            return Err(InputError::store(ObjectFailure::Unfinished.during("read", &url)));
        } else if names.keys().any(|name| AttemptObject::parse(name).is_some()) {
            self.parts_of_named(directory)?
        } else {
            None
        };
        let absent = parts.iter().flatten().find(|part| !names.contains_key(&***part));
        if let Some(absent) = absent {
            return Err(InputError::Missing { path: self.name(&url.child_key(absent)) });
        }
        names.retain(|name, _| !is_hidden(name) && parts.as_ref().is_none_or(|parts| parts.contains(*name)));
        Ok(names.into_values().cloned().collect())
    }

    /// Returns the names of the parts in a `_SUCCESS`, or those of a named output if one is given. `None`
    /// if it names none, like the empty ones of other systems.
    fn parts(&self, key: &str, named: Option<&str>) -> Result<Option<BTreeSet<String>>, InputError> {
        let (text, _) = match self.bucket.get(key, SUCCESS_BYTES_MAX) {
            Err(ObjectError { cause: ObjectFailure::Missing, .. }) => return Ok(None),
            got => got.map_err(InputError::store)?,
        };
        let Ok(told) = serde_json::from_slice::<SuccessFile>(&text) else { return Ok(None) };
        let counts =
            |part: &SuccessPart| named.is_none_or(|named| part.named.iter().any(|one| one.output == named));
        Ok(Some(told.parts.into_iter().filter(counts).map(|part| part.name).collect()))
    }

    /// Returns the parts of a named output, whose `_SUCCESS` is next to its directory.
    fn parts_of_named(&self, key: &str) -> Result<Option<BTreeSet<String>>, InputError> {
        let (above, name) = key.rsplit_once('/').unwrap_or(("", key));
        let success = self.url.with_key(above).child_key(SUCCESS);
        let parts = self.parts(&success, Some(name))?;
        if parts.is_none() {
            let source = ObjectFailure::Unfinished.during("read", &self.url.with_key(key));
            return Err(InputError::store(source));
        }
        Ok(parts)
    }

    /// Returns the name of a key in messages.
    fn name(&self, key: &str) -> FilePath {
        FilePath::from(self.url.with_key(key).to_string().as_str())
    }
}

/// True if a name is omitted.
fn is_hidden(name: &str) -> bool {
    wildcards::is_hidden(name.as_bytes())
}

/// Fields of a `_SUCCESS` that are read.
#[derive(Deserialize)]
struct SuccessFile {
    parts: Vec<SuccessPart>,
}

#[derive(Deserialize)]
struct SuccessPart {
    name: String,
    #[serde(default)]
    named: Vec<SuccessNamedPart>,
}

#[derive(Deserialize)]
struct SuccessNamedPart {
    output: String,
}

/// Opens the object of a piece. The first request is sent at the first read.
pub(super) fn open_stored(piece: &Piece) -> Result<Box<dyn ByteSource>, InputError> {
    let url = ObjectUrl::parse(&piece.path.to_text()).map_err(InputError::store)?;
    let bucket = objects::open(&url).map_err(InputError::store)?;
    let reader = bucket.reader(url.key(), object_stamp(piece.stamp), piece.end());
    Ok(Box::new(StoreFile(reader)))
}

struct StoreFile(Box<dyn ObjectReader>);

impl ByteSource for StoreFile {
    fn read_at(&mut self, offset: u64, buffer: &mut [u8]) -> Result<(), InputError> {
        self.0.read_at(offset, buffer).map_err(InputError::store)
    }
}

/// Nanoseconds per second.
const SECOND_NS: i64 = 1_000_000_000;

fn file_stamp(stamp: ObjectStamp) -> FileStamp {
    let ObjectStamp { size, modified_s, tag } = stamp;
    FileStamp { size, modified_ns: modified_s.saturating_mul(SECOND_NS), inode: tag }
}

fn object_stamp(stamp: FileStamp) -> ObjectStamp {
    let FileStamp { size, modified_ns, inode } = stamp;
    ObjectStamp { size, modified_s: modified_ns.div_euclid(SECOND_NS), tag: inode }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stamp_of_an_object_survives_the_way_to_a_worker() {
        for modified_s in [0, 1_800_000_000, -5] {
            let stamp = ObjectStamp { size: 7, modified_s, tag: u64::MAX };
            assert_eq!(object_stamp(file_stamp(stamp)), stamp);
        }
    }
}
