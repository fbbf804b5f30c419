//! Tests that frames are decoded as encoded, however the connection splits them.

use super::*;
use gristmill_scheduler::ids::TaskId;
use proptest::prelude::*;
use std::pin::Pin;
use std::task::{Context, Poll};
use tokio::io::{AsyncRead, ReadBuf};

/// Connection that returns the numbers of bytes in this list at a time, cyclically.
struct Chopped {
    bytes: Vec<u8>,
    at: usize,
    sizes: Vec<usize>,
    turn: usize,
}

impl AsyncRead for Chopped {
    fn poll_read(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
        out: &mut ReadBuf<'_>,
    ) -> Poll<std::io::Result<()>> {
        let size = self.sizes[self.turn % self.sizes.len()].min(out.remaining());
        self.turn += 1;
        let end = (self.at + size).min(self.bytes.len());
        out.put_slice(&self.bytes[self.at..end]);
        self.at = end;
        Poll::Ready(Ok(()))
    }
}

fn frame(job: u32, bytes: usize) -> WorkerFrame {
    WorkerFrame::Log { attempt: Some(TaskId::map(JobId(job), 0).attempt(0)), bytes: vec![7; bytes] }
}

fn words(frame: &WorkerFrame) -> String {
    format!("{frame:?}")
}

fn run<T>(future: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(future)
}

/// Returns all frames, and the end of the connection.
async fn read_all(bytes: Vec<u8>, sizes: Vec<usize>, limit: usize) -> (Vec<String>, Result<(), FrameError>) {
    let mut reader = FrameReader::new(Chopped { bytes, at: 0, sizes, turn: 0 }, limit);
    let mut read = Vec::new();
    loop {
        match reader.next::<WorkerFrame>().await {
            Ok(Some(frame)) => read.push(words(&frame)),
            Ok(None) => return (read, Ok(())),
            Err(error) => return (read, Err(error)),
        }
    }
}

proptest! {
    #[test]
    fn frames_come_out_as_they_went_in_wherever_the_connection_cuts_them(
        lengths in prop::collection::vec(prop_oneof![0..40_usize, 60_000..200_000_usize], 0..6),
        sizes in prop::collection::vec(1..100_000_usize, 1..5),
        cut in 0..10_usize,
    ) {
        let frames: Vec<WorkerFrame> = (0..).zip(&lengths).map(|(job, &length)| frame(job, length)).collect();
        let mut bytes = Vec::new();
        for frame in &frames {
            push_frame(frame, &mut bytes).unwrap();
        }
        // A connection that ends inside a frame returns the frames before it.
        let whole = bytes.len();
        bytes.truncate(whole - cut.min(whole));
        let expected = frames.len() - usize::from(bytes.len() < whole);
        let (read, end) = run(read_all(bytes, sizes, FRAME_BYTES_MAX));
        prop_assert!(end.is_ok());
        prop_assert_eq!(&read[..], &frames.iter().map(words).collect::<Vec<_>>()[..expected]);
    }
}

#[test]
fn a_frame_over_the_limit_is_refused_before_its_bytes_have_come() {
    let mut bytes = Vec::new();
    push_frame(&frame(1, 10), &mut bytes).unwrap();
    bytes.extend_from_slice(&100_u32.to_le_bytes());
    let (read, end) = run(read_all(bytes, vec![4], 50));
    assert_eq!(read.len(), 1);
    assert!(matches!(end, Err(FrameError::TooLong { length: 100, limit: 50 })), "{end:?}");
}

#[test]
fn bytes_that_are_no_frame_are_refused() {
    let mut bytes = 3_u32.to_le_bytes().to_vec();
    bytes.extend_from_slice(&[250, 250, 250]);
    let (_, end) = run(read_all(bytes, vec![7], FRAME_BYTES_MAX));
    assert!(matches!(end, Err(FrameError::Decode { length: 3, .. })), "{end:?}");
}

#[test]
fn order_of_more_tasks_than_a_job_can_have_is_refused_where_it_is_decoded() {
    let order = |maps, partitions| JobOrder {
        job: JobId(1),
        name: String::new(),
        parameters: String::new(),
        maps,
        partitions,
        cuts: Vec::new(),
        key: Secret::from_bytes([9; 32]),
        output: crate::input::FilePath::from("/nowhere"),
        output_probe: "probe".parse().unwrap(),
        part_format: Default::default(),
        side: Vec::new(),
        submitter: None,
        peers: Vec::new(),
        limits: RecordLimits { record_bytes_max: 1, expansion_max: 1, bad_records_max: 0 },
        sync: false,
        hang_ms: 1,
    };
    let decoded = |maps, partitions| {
        let mut bytes = Vec::new();
        crate::codec::encode(&order(maps, partitions), &mut bytes);
        crate::codec::decode_message::<JobOrder>(&bytes, 1 << 16).is_ok()
    };
    assert!(decoded(1_000_000, 100_000));
    assert!(!decoded(1_000_001, 1) && !decoded(u32::MAX, 1));
    assert!(!decoded(1, 100_001) && !decoded(1, u32::MAX));
}
