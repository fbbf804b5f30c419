//! Feed of changes at a master, line by line, as used by its live page.
//!
//! The caller decides how long it waits for a silent master, and merges the lines (`top`).

use super::lines::LineBuffer;
use super::{AsyncClient, ClientError};
use crate::api::FeedLine;
use gristmill_worker::http::{Answer, HttpError};

/// Longest line, bytes: thousands of attempts, and in the first line the parameters and counters of all live jobs.
const LINE_BYTES_MAX: usize = 256 << 20;

/// Lines of a feed.
pub struct Feed<'a> {
    client: &'a AsyncClient,
    answer: Answer,
    rest: LineBuffer,
}

impl<'a> Feed<'a> {
    pub(super) fn new(client: &'a AsyncClient, answer: Answer) -> Self {
        Self { client, answer, rest: LineBuffer::default() }
    }

    /// Waits for the next line. A master sends one four times a second, even without changes.
    ///
    /// # Errors
    /// A master that is gone or sends invalid data, or a token that was revoked.
    pub async fn next(&mut self) -> Result<FeedLine, ClientError> {
        loop {
            if let Some(line) = self.rest.line().map_err(|source| ClientError::Answer { source })? {
                return Ok(line);
            }
            let chunk = self.answer.chunk().await.map_err(|source| self.client.failed(source))?;
            if !chunk.is_some_and(|chunk| self.rest.push(&chunk, LINE_BYTES_MAX)) {
                let source = std::io::Error::from(std::io::ErrorKind::UnexpectedEof);
                let peer = self.client.master.to_string();
                return Err(self.client.failed(HttpError::Connect { peer, source }));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_read_whole_however_they_are_cut() {
        let line = |now: u64| {
            format!(
                "{{\"master\":{{\"schema\":1,\"version\":\"\",\"build\":\"\",\"policy\":\"fifo\",\"placement\":\"\",\
                 \"now_ns\":{now},\"workers\":[],\"jobs_live\":0}},\"workers\":[],\"left\":[7],\
                 \"jobs\":[],\"attempts\":[[1,0,2,0,1,5,0,0,\"running\"]],\"fetches\":[],\"more\":false}}\n"
            )
        };
        let text = line(1) + &line(2) + &line(3);
        for size in [1, 7, 100, text.len()] {
            let (mut rest, mut seen) = (LineBuffer::default(), Vec::new());
            for chunk in text.as_bytes().chunks(size) {
                assert!(rest.push(chunk, LINE_BYTES_MAX));
                while let Some(line) = rest.line::<FeedLine>().unwrap() {
                    seen.push(line.master.now_ns);
                }
            }
            assert_eq!(seen, [1, 2, 3], "in pieces of {size}");
        }
        let mut rest = LineBuffer::default();
        assert!(rest.push(b"<html>\n", LINE_BYTES_MAX));
        assert!(rest.line::<FeedLine>().is_err());
    }
}
