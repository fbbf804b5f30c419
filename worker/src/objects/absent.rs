//! Buckets of a program built without store support: opening one returns an error.
//!
//! None of the other functions can be called, so this is not a second implementation. The signatures are
//! those of `bucket` and `reader`.

use super::error::{ObjectError, ObjectFailure};
use super::{Object, ObjectStamp, ObjectUrl, ObjectVersion};
use std::fs::File;
use std::sync::Arc;

/// Bucket, of which no value exists.
#[derive(Debug)]
pub enum ObjectBucket {}

/// Reader of an object, of which no value exists. The private field hides that, so that callers' code is
/// not reported as unreachable.
#[derive(Debug)]
pub struct ObjectReader(std::convert::Infallible);

#[expect(missing_docs, reason = "never called; `bucket` says what they do")]
impl ObjectBucket {
    pub fn of(url: &ObjectUrl) -> Result<Arc<Self>, ObjectError> {
        Err(ObjectFailure::NotBuiltIn.of("use", url))
    }

    pub fn list(&self, _prefix: &str) -> Result<Vec<Object>, ObjectError> {
        match *self {}
    }

    pub fn look(&self, _key: &str) -> Result<ObjectStamp, ObjectError> {
        match *self {}
    }

    pub fn get(&self, _key: &str, _bytes_max: u64) -> Result<(Vec<u8>, ObjectVersion), ObjectError> {
        match *self {}
    }

    pub fn create(&self, _key: &str, _bytes: Vec<u8>) -> Result<ObjectVersion, ObjectError> {
        match *self {}
    }

    pub fn replace(
        &self,
        _key: &str,
        _bytes: Vec<u8>,
        _version: ObjectVersion,
    ) -> Result<ObjectVersion, ObjectError> {
        match *self {}
    }

    pub fn put(&self, _key: &str, _bytes: Vec<u8>) -> Result<(), ObjectError> {
        match *self {}
    }

    pub fn delete(&self, _keys: &[String]) -> Result<(), ObjectError> {
        match *self {}
    }

    pub fn upload(&self, _key: &str, _file: File, _expected: (u64, u32)) -> Result<ObjectStamp, ObjectError> {
        match *self {}
    }
}

#[expect(missing_docs, reason = "never called; `reader` says what it does")]
impl ObjectReader {
    pub fn new(bucket: Arc<ObjectBucket>, _key: &str, _stamp: ObjectStamp, _end: u64) -> Self {
        match *bucket {}
    }

    pub fn read_at(&mut self, _offset: u64, _buffer: &mut [u8]) -> Result<(), ObjectError> {
        match self.0 {}
    }
}
