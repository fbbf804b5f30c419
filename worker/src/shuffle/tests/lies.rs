//! Tests with a worker that sends invalid responses: a raw socket with scripted responses.
//!
//! Each invalid response ends its request, with a failure that the plan retries or reports, and takes no more memory or
//! time than a valid one would. Damaged segments are covered by the tests of `segment`.

use super::super::{FetchHead, OutputHead, fetch_head_bytes_max, fetch_head_memory_max};
use super::{attempt, key};
use crate::budget::Budget;
use crate::codec;
use crate::http::{Endpoint, HttpError, Plaintext, Pool, Timeouts, answer_to_hello};
use crate::input::{FilePath, FilePlace, FileStamp};
use crate::segment::SpillDirs;
use crate::shuffle::fetch::{FetchError, FetchOutcome, Fetcher, RequestError};
use crate::shuffle::plan::{FetchLimits, FetchPlan, Retry};
use crate::shuffle::store::SegmentStore;
use gristmill_scheduler::ids::{AttemptId, JobId, WorkerId};
use gristmill_scheduler::units::Time;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::time::Duration;

/// Maximum time of a fetch from such a worker. Far more than needed, so that a busy machine fails no test.
const TIMEOUT: Duration = Duration::from_secs(30);

/// Starts a worker that responds to each request by this script, and closes the connection when the script ends.
fn liar(script: impl Fn(&mut TcpStream) -> std::io::Result<()> + Send + 'static) -> Endpoint {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let endpoint = Endpoint::of_address(listener.local_addr().unwrap(), None);
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = stream.unwrap();
            let reached = stream.local_addr().unwrap();
            // It knows the job's secret, as every worker of the job does.
            if let Some(proof) = answer_to_hello(&asked(&mut stream), reached, &key()) {
                stream.write_all(&proof).unwrap();
                asked(&mut stream);
            }
            // The fetching side may close the connection, which is the expected result.
            let _ = script(&mut stream);
        }
    });
    endpoint
}

/// Returns the head of a request; its body is short and arrives with it, or stays unread.
fn asked(stream: &mut TcpStream) -> String {
    let mut asked = Vec::new();
    while !asked.windows(4).any(|four| four == b"\r\n\r\n") {
        let mut some = [0; 4096];
        match stream.read(&mut some) {
            Ok(0) | Err(_) => break,
            Ok(got) => asked.extend_from_slice(&some[..got]),
        }
    }
    String::from_utf8_lossy(&asked).into_owned()
}

/// Returns the head of a response without an end, with a valid head of the shuffle.
fn response_head(head: &FetchHead) -> Vec<u8> {
    let mut encoded = Vec::new();
    codec::encode(head, &mut encoded);
    answer_with(&encoded)
}

fn answer_with(head: &[u8]) -> Vec<u8> {
    let mut bytes = b"HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n".to_vec();
    bytes.extend_from_slice(&(head.len() as u32).to_le_bytes());
    bytes.extend_from_slice(head);
    bytes
}

fn output(lengths: Vec<u64>) -> OutputHead {
    OutputHead { lengths, in_file: None }
}

/// Home of partition 0 of job 1 with `maps` maps, all of which the worker announces.
struct Home {
    fetcher: Fetcher,
    plan: FetchPlan,
    _spill: tempfile::TempDir,
}

impl Home {
    fn new(maps: u32, liar: &Endpoint) -> Self {
        let directory = tempfile::tempdir().unwrap();
        let store = SegmentStore::default();
        store.open_job(JobId(1), key(), maps);
        store.home(JobId(1), 0, 0);
        let mut plan = FetchPlan::new(FetchLimits::default());
        for map in 0..maps {
            plan.announce(attempt(1, map), WorkerId(1), liar);
        }
        let fetcher = Fetcher {
            pool: Pool::new(Timeouts::default(), Plaintext::OnLoopback),
            store,
            budget: Budget::new(1 << 20),
            spill: SpillDirs::new(vec![directory.path().to_owned()]),
            sees: None,
        };
        Self { fetcher, plan, _spill: directory }
    }

    /// Fetches once, as a worker's control loop does. Every map of the request must have a result, or the plan panics.
    async fn fetch(&mut self) -> Vec<FetchOutcome> {
        let fetch = self.plan.next(Time(0)).unwrap();
        let outcomes = tokio::time::timeout(TIMEOUT, self.fetcher.fetch(&fetch, &key())).await.unwrap();
        for outcome in &outcomes {
            match outcome.error {
                None => self.plan.arrived(fetch.id, outcome.map, outcome.bytes),
                Some(_) => assert_eq!(self.plan.failed(fetch.id, outcome.map, Time(0)), Retry::Later),
            }
        }
        self.plan.ended(fetch.id);
        outcomes
    }
}

fn maps_of(outcomes: &[FetchOutcome]) -> Vec<AttemptId> {
    outcomes.iter().map(|outcome| outcome.map).collect()
}

/// True if the request failed because the head of its response does not match it.
fn is_refused(outcome: &FetchOutcome) -> bool {
    let Some(FetchError::Request { source }) = &outcome.error else { return false };
    matches!(**source, RequestError::Head { .. })
}

#[tokio::test]
async fn order_of_a_file_that_nobody_asked_for_fails_its_request_and_nothing_else() {
    let stamp = FileStamp::from_metadata(&std::fs::metadata("/proc/self/exe").unwrap());
    let mut place = Vec::new();
    codec::encode(&(FilePath::from("/proc/self/exe"), FilePath::from("exe"), stamp), &mut place);
    let place: FilePlace = codec::decode(&place, 1 << 10).unwrap();
    let output = OutputHead { lengths: vec![100], in_file: Some((place, 0)) };
    let lie = FetchHead { outputs: vec![Some(output); 2], damaged: Vec::new() };
    let liar = liar(move |stream| stream.write_all(&[&response_head(&lie)[..], &[0; 200]].concat()));
    let mut home = Home::new(2, &liar);
    let outcomes = home.fetch().await;
    assert_eq!(maps_of(&outcomes), [attempt(1, 0), attempt(1, 1)]);
    assert!(outcomes.iter().all(is_refused), "{outcomes:?}");
}

#[tokio::test]
async fn answer_without_an_end_is_read_no_further_than_its_segments() {
    let head = FetchHead { outputs: vec![Some(output(vec![0]))], damaged: Vec::new() };
    let liar = liar(move |stream| {
        stream.write_all(&response_head(&head))?;
        loop {
            stream.write_all(&[7; 4 << 10])?;
        }
    });
    let mut home = Home::new(1, &liar);
    let outcomes = home.fetch().await;
    assert_eq!((outcomes[0].filled.as_slice(), home.fetcher.pool.idle_count()), ([0].as_slice(), 0));
}

#[test]
fn head_may_take_the_memory_of_a_right_one_and_no_more() {
    let (maps, partitions) = (16, 4096);
    let memory_max = fetch_head_memory_max(maps, partitions);
    let decodes = |bytes: &[u8]| codec::decode_message::<FetchHead>(bytes, memory_max).is_ok();
    let encoded = |head: &FetchHead| {
        let mut bytes = Vec::new();
        codec::encode(head, &mut bytes);
        bytes
    };
    assert!(decodes(&encoded(&FetchHead {
        outputs: vec![Some(output(vec![u64::MAX; partitions])); maps],
        damaged: Vec::new()
    })));
    // One byte each, and the size of an output in memory.
    let nothing = encoded(&FetchHead {
        outputs: vec![None; fetch_head_bytes_max(maps, partitions) - 10],
        damaged: Vec::new(),
    });
    assert!(nothing.len() <= fetch_head_bytes_max(maps, partitions) && !decodes(&nothing));
    // One byte each, and eight in memory.
    let ones = encoded(&FetchHead { outputs: vec![Some(output(vec![1; 600_000]))], damaged: Vec::new() });
    assert!(ones.len() <= fetch_head_bytes_max(maps, partitions) && !decodes(&ones));
}

#[tokio::test]
async fn segment_that_comes_a_byte_at_a_time_is_given_up() {
    let head = FetchHead { outputs: vec![Some(output(vec![1 << 20]))], damaged: Vec::new() };
    let liar = liar(move |stream| {
        stream.write_all(&response_head(&head))?;
        loop {
            stream.write_all(&[7])?;
            std::thread::sleep(Duration::from_millis(5));
        }
    });
    let mut home = Home::new(1, &liar);
    let timeouts = Timeouts { stall: Duration::from_millis(300), ..Timeouts::default() };
    home.fetcher.pool = Pool::new(timeouts, Plaintext::OnLoopback);
    let outcomes = home.fetch().await;
    let Some(FetchError::Request { source }) = &outcomes[0].error else { panic!("{outcomes:?}") };
    let RequestError::Http { source: HttpError::Timeout { .. }, .. } = &**source else { panic!("{source}") };
}
