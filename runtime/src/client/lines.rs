//! Stream of status lines from a master, until the last one.
//!
//! Parts are sent in their own lines before the status that they belong to, so that no line grows with the job. The
//! meaning of a state for a follower is in `client`.

use super::{AsyncClient, ClientError};
use crate::api::{BuiltPart, JobStatus, WatchLine};
use gristmill_worker::http::{Answer, Body, HttpError};
use gristmill_worker::protocol::Part;
use hyper::Method;
use serde::de::DeserializeOwned;
use std::time::Duration;

/// Longest line, bytes: a status contains the job's parameters, counters and incidents.
const LINE_BYTES_MAX: usize = 64 << 20;

/// Maximum number of parts received for one job; more than a job can have tasks.
const PARTS_MAX: usize = 1 << 25;

/// Time after the last line within which the stream must end.
const LAST_LINE_TIMEOUT: Duration = Duration::from_millis(100);

/// Stream of status lines.
pub(super) struct Lines<'a> {
    client: &'a AsyncClient,
    answer: Answer,
    read: Read,
    /// True if the master has ended the stream: it is gone, and has no successor.
    ended: bool,
}

impl<'a> Lines<'a> {
    pub(super) fn new(client: &'a AsyncClient, answer: Answer) -> Self {
        Self { client, answer, read: Read::default(), ended: false }
    }

    /// Reads the empty rest of the stream, so that the connection can be used again.
    pub(super) async fn end(&mut self) {
        // A failure here only costs the next request a new connection.
        let rest = async { while matches!(self.answer.chunk().await, Ok(Some(_))) {} };
        let _ = tokio::time::timeout(LAST_LINE_TIMEOUT, rest).await;
    }

    pub(super) async fn next(&mut self) -> Result<JobStatus, ClientError> {
        loop {
            match self.read.status().map_err(|source| ClientError::Answer { source })? {
                Some(status) => return Ok(status),
                None => {
                    let chunk = self.answer.chunk().await.map_err(|source| self.client.failed(source))?;
                    self.ended |= chunk.is_none();
                    if !chunk.is_some_and(|chunk| self.read.push(&chunk)) {
                        return Err(self.cut_short());
                    }
                }
            }
        }
    }

    /// True if the stream has ended regularly, as it does when a master ends in order.
    pub(super) fn has_ended(&self) -> bool {
        self.ended
    }

    fn cut_short(&self) -> ClientError {
        let master = self.client.master.clone();
        let source = std::io::Error::from(std::io::ErrorKind::UnexpectedEof);
        let source = HttpError::Connect { peer: master.to_string(), source };
        ClientError::Master { master, source: Box::new(source) }
    }
}

impl AsyncClient {
    pub(super) async fn open(
        &self,
        method: Method,
        path: &str,
        body: Body,
    ) -> Result<Lines<'_>, ClientError> {
        let answer = self.send(method, path, body).await?;
        Ok(Lines::new(self, answer))
    }
}

/// Received bytes that are not a whole line yet.
#[derive(Default)]
pub(super) struct LineBuffer {
    bytes: Vec<u8>,
    /// Number of bytes already searched for the end of a line.
    searched: usize,
}

impl LineBuffer {
    /// Appends received bytes. Returns false if they exceed `bytes_max`, the longest line.
    #[must_use]
    pub(super) fn push(&mut self, chunk: &[u8], bytes_max: usize) -> bool {
        self.bytes.extend_from_slice(chunk);
        self.bytes.len() <= bytes_max
    }

    /// The next line, if it is complete.
    pub(super) fn line<T: DeserializeOwned>(&mut self) -> serde_json::Result<Option<T>> {
        let Some(found) = memchr::memchr(b'\n', &self.bytes[self.searched..]) else {
            self.searched = self.bytes.len();
            return Ok(None);
        };
        let end = self.searched + found;
        let line = serde_json::from_slice(&self.bytes[..end])?;
        self.bytes.drain(..=end);
        self.searched = 0;
        Ok(Some(line))
    }
}

/// Received lines that are not a whole status yet.
#[derive(Default)]
struct Read {
    lines: LineBuffer,
    /// Parts of the next status, and their places.
    parts: (Vec<Part>, Vec<BuiltPart>),
}

impl Read {
    /// Appends received bytes. Returns false if they exceed the longest line.
    #[must_use]
    fn push(&mut self, chunk: &[u8]) -> bool {
        self.lines.push(chunk, LINE_BYTES_MAX) && self.parts.0.len() <= PARTS_MAX
    }

    /// The next status, if it is complete.
    fn status(&mut self) -> serde_json::Result<Option<JobStatus>> {
        while let Some(line) = self.lines.line()? {
            match line {
                WatchLine::Parts { mut parts, mut built } => {
                    self.parts.0.append(&mut parts);
                    self.parts.1.append(&mut built);
                }
                WatchLine::Status(status) => {
                    let (parts, built) = std::mem::take(&mut self.parts);
                    return Ok(Some(JobStatus { parts, built, ..*status }));
                }
            }
        }
        Ok(None)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::api::PARTS_OF_LINE_MAX;
    use crate::master::status_of;
    use crate::output_dir::join_parts;
    use gristmill_scheduler::ids::{JobId, TaskId};
    use gristmill_worker::commit::part_name;
    use gristmill_worker::input::FileStamp;
    use gristmill_worker::output::PartFormat;

    fn status(count: u32) -> JobStatus {
        let stamp = FileStamp::from_metadata(&std::fs::metadata("/").unwrap());
        let part = |index| Part {
            name: part_name(index, count, PartFormat::default()),
            bytes: u64::MAX,
            records: 2,
            crc32c: index,
            named: Vec::new(),
        };
        let built = |index| BuiltPart::new(TaskId::reduce(JobId(1), index).attempt(0), stamp);
        let (parts, built) = ((0..count).map(part).collect(), (0..count).map(built).collect());
        JobStatus { parts, built, ..status_of(JobId(1)) }
    }

    fn lines(status: JobStatus) -> Vec<Vec<u8>> {
        let line = |line| [serde_json::to_vec(&line).unwrap(), b"\n".to_vec()].concat();
        WatchLine::from_status(status).map(line).collect()
    }

    #[test]
    fn lines_do_not_grow_with_the_number_of_parts_and_give_all_of_them() {
        let count = 3 * PARTS_OF_LINE_MAX as u32 + 1;
        let (told, running) = (lines(status(count)), lines(status(0)));
        assert_eq!((told.len(), running.len()), (5, 1));
        let longest = told.iter().map(Vec::len).max().unwrap();
        assert!(longest <= 400 * PARTS_OF_LINE_MAX, "{longest} bytes");
        let mut read = Read::default();
        let mut all = Vec::new();
        for chunk in [running, told].concat().concat().chunks(1000) {
            assert!(read.push(chunk));
            while let Some(status) = read.status().unwrap() {
                all.push(status);
            }
            // Each byte is searched once, however long its line.
            assert_eq!(read.lines.searched, read.lines.bytes.len());
        }
        let [before, last] = all.try_into().unwrap();
        assert!(before.parts.is_empty());
        let expected = status(count);
        assert_eq!(last.parts, expected.parts);
        assert_eq!(last.built.len(), expected.built.len());
    }

    #[test]
    fn lines_do_not_grow_with_the_number_of_files_of_divided_parts() {
        let divided = |files: usize| {
            let JobStatus { parts, built, .. } = status(files as u32);
            join_parts(parts.into_iter().zip(built).collect()).unwrap()
        };
        for (files, expected) in [
            (vec![1, 1], vec![2]),
            (vec![PARTS_OF_LINE_MAX / 2, PARTS_OF_LINE_MAX / 2, 1], vec![2, 1]),
            (vec![1, PARTS_OF_LINE_MAX, 1], vec![1, 1, 1]),
            // One part is not spread over lines.
            (vec![2 * PARTS_OF_LINE_MAX, 1], vec![1, 1]),
        ] {
            let (parts, built): (Vec<Part>, Vec<BuiltPart>) =
                files.iter().map(|count| divided(*count)).unzip();
            let told = lines(JobStatus { parts, built: built.clone(), ..status(0) });
            let mut read = Read::default();
            assert!(told.iter().all(|line| read.push(line)));
            let counts = told.iter().map(|line| match serde_json::from_slice(line).unwrap() {
                WatchLine::Parts { parts, built } => {
                    assert_eq!(parts.len(), built.len());
                    parts.len()
                }
                WatchLine::Status(_) => 0,
            });
            assert_eq!(counts.collect::<Vec<_>>(), [expected, vec![0]].concat(), "{files:?}");
            assert_eq!(read.status().unwrap().unwrap().built, built);
        }
    }

    #[test]
    fn line_without_end_is_given_up() {
        let mut read = Read::default();
        let chunk = vec![b' '; LINE_BYTES_MAX / 2];
        assert!(read.push(&chunk) && read.push(&chunk));
        assert!(!read.push(b" "));
    }
}
