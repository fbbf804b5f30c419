//! `_SUCCESS`: the file that marks an output as complete, and its content.

use crate::api::{JobStatus, NamedBadRecord, SCHEMA};
use gristmill_worker::directory::Directory;
use gristmill_worker::objects::{self, ObjectUrl, is_url};
use gristmill_worker::protocol::Part;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::io::{self, Read};
use std::path::Path;

/// Name of the file that marks an output as complete.
pub const SUCCESS: &str = "_SUCCESS";

/// Longest `_SUCCESS` that is read from a store, bytes: that of a million parts.
pub(super) const SUCCESS_BYTES_MAX: u64 = 256 << 20;

/// Name of the file that lists the skipped bad records of the input, if there are any.
pub const BAD_RECORDS: &str = "_BAD_RECORDS";

/// Content of `_SUCCESS`, as JSON.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Success {
    /// Version of these fields.
    pub schema: u32,
    /// Name of the job.
    pub job: String,
    /// Its parameters.
    pub parameters: serde_json::Value,
    /// Meaning of the columns, if the job defines it.
    pub columns: Option<Vec<String>>,
    /// The parts in order, with their checksums.
    pub parts: Vec<Part>,
    /// Number of records of all parts.
    pub records: u64,
    /// Number of bytes of all parts.
    pub bytes: u64,
    /// User counters.
    pub counters: BTreeMap<String, u64>,
    /// Remarks of the plan.
    pub remarks: Vec<String>,
    /// Skipped records of the input; they are listed in [`BAD_RECORDS`].
    #[serde(skip)]
    pub bad_records: Vec<NamedBadRecord>,
}

impl Success {
    /// Creates it from the last status of a job.
    #[must_use]
    pub fn from_status(status: &JobStatus, columns: Option<Vec<String>>) -> Self {
        Self {
            schema: SCHEMA,
            job: status.name.clone(),
            parameters: serde_json::from_str(&status.parameters).unwrap_or_default(),
            columns,
            parts: status.parts.clone(),
            records: status.totals.records_out,
            bytes: status.totals.bytes_out,
            counters: status.counters.clone(),
            remarks: status.remarks.clone(),
            bad_records: status.bad_records.clone(),
        }
    }

    /// Content of [`BAD_RECORDS`]: a line for each record, with file, offset and reason separated by tabs.
    pub(super) fn bad_records_text(&self) -> String {
        let line = |bad: &NamedBadRecord| format!("{}\t{}\t{}\n", bad.path, bad.offset, bad.reason);
        let lines: String = self.bad_records.iter().map(line).collect();
        format!("file\tbyte\treason\n{lines}")
    }

    /// Reads the `_SUCCESS` of a directory, or of a prefix of a store given by its URL.
    ///
    /// # Errors
    /// A file that is missing or was not written by this program, and errors of a store.
    pub fn read(directory: &Path) -> io::Result<Self> {
        match directory.to_str().filter(|path| is_url(path)) {
            Some(url) => Self::read_stored(url),
            None => Self::read_in(&Directory::open(directory)?),
        }
    }

    fn read_stored(url: &str) -> io::Result<Self> {
        let got = ObjectUrl::parse(url).and_then(|url| {
            let bucket = objects::open(&url)?;
            bucket.get(&url.child_key(SUCCESS), SUCCESS_BYTES_MAX)
        });
        let (text, _) = got.map_err(|error| io::Error::other(gristmill_worker::error_text::chain(&error)))?;
        serde_json::from_slice(&text).map_err(io::Error::other)
    }

    pub(super) fn read_in(directory: &Directory) -> io::Result<Self> {
        let mut text = Vec::new();
        directory.open_file(SUCCESS)?.take(SUCCESS_BYTES_MAX).read_to_end(&mut text)?;
        // A longer file is cut off and fails to parse.
        serde_json::from_slice(&text).map_err(io::Error::other)
    }
}
