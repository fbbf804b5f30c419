//! Tests of a worker's connection, between a stream in memory and a loop that does not receive.

use super::*;
use crate::master::ending::Ending;
use crate::master::tokens::Tokens;
use gristmill_scheduler::ids::{AttemptId, JobId, TaskId};
use gristmill_worker::http::{Endpoint, Plaintext, Secret};
use gristmill_worker::protocol::{Slots, ended_proof, push_frame, push_worker_frame};
use std::net::Ipv4Addr;
use tokio::io::{AsyncReadExt, DuplexStream};
use tokio::sync::mpsc::{self, UnboundedSender};

fn hello() -> WorkerFrame {
    WorkerFrame::Hello(Hello {
        protocol: PROTOCOL_VERSION,
        build: "build".to_owned(),
        slots: Slots::Unified(1),
        speed: 1.0,
        nic_bytes_per_second: None,
        shuffle: Endpoint { host: String::new(), port: 1000, pin: None },
        host: "host".to_owned(),
        pid: 1,
        ended_proof: ended_proof(&Secret::from_bytes([9; 32])),
        memory_bytes: 1 << 20,
        worker_ns: 0,
        rejoin: None,
    })
}

/// A worker that has joined, and the frames its master's loop has received.
struct Joined {
    worker: DuplexStream,
    fed: UnboundedReceiver<MasterInput>,
    frames: UnboundedSender<Vec<u8>>,
    shutdown: Arc<watch::Sender<Option<Ending>>>,
    attended: JoinHandle<()>,
    _all_left: mpsc::Receiver<()>,
}

fn handle() -> (MasterHandle, UnboundedReceiver<MasterInput>, mpsc::Receiver<()>) {
    let (inputs, fed) = unbounded_channel();
    let (_attended, all_left) = mpsc::channel(1);
    let handle = MasterHandle {
        inputs,
        shutdown: Arc::new(watch::channel(None).0),
        _attended,
        build: "build".to_owned(),
        plaintext: Plaintext::OnLoopback,
        tokens: Arc::new(Tokens::of_secret(Secret::from_bytes([7; 32]))),
        page_codes: Arc::default(),
        archive: None,
    };
    (handle, fed, all_left)
}

#[tokio::test]
async fn worker_whose_token_ends_before_its_hello_gets_no_job() {
    let (handle, mut fed, _all_left) = handle();
    handle.tokens.revoke("work-x@0").unwrap();
    let (mut worker, master) = tokio::io::duplex(64 << 10);
    let key = ShownKey("work-x@0".to_owned());
    let attended = tokio::spawn(serve_worker(handle, Box::new(master), Ipv4Addr::LOCALHOST.into(), key));
    write_frame(&mut worker, &hello()).await.unwrap();
    attended.await.unwrap();
    assert!(fed.try_recv().is_err(), "it joined");
}

async fn join() -> Joined {
    let (handle, mut fed, _all_left) = handle();
    let shutdown = Arc::clone(&handle.shutdown);
    let (mut worker, master) = tokio::io::duplex(64 << 10);
    let key = ShownKey("work@0".to_owned());
    let attended = tokio::spawn(serve_worker(handle, Box::new(master), Ipv4Addr::LOCALHOST.into(), key));
    write_frame(&mut worker, &hello()).await.unwrap();
    let Some(MasterInput::Join { frames, reply, .. }) = fed.recv().await else { panic!("it joins first") };
    reply.send(Ok((WorkerId(1), 1))).unwrap();
    Joined { worker, fed, frames, shutdown, attended, _all_left }
}

// Time advances only when all tasks are idle: then the worker waits to be read.
#[tokio::test(start_paused = true)]
async fn worker_that_says_more_than_is_heard_has_to_wait() {
    let Joined { mut worker, mut fed, frames: _frames, .. } = join().await;

    let mut much = Vec::new();
    for _ in 0..100_000 {
        let attempt = AttemptId { task: TaskId::map(JobId(1), 0), epoch: 0 };
        push_worker_frame(&WorkerFrame::CommitRequest { attempt }, &mut much).unwrap();
    }
    let patience = Duration::from_secs(3600);
    let said = worker.write_all(&much);
    let mut said = std::pin::pin!(said);
    assert!(tokio::time::timeout(patience, said.as_mut()).await.is_err(), "all of it was taken in");
    assert_eq!(fed.len(), BATCHES_AHEAD);

    let mut heard = 0;
    let hearing = async {
        while let Some(input) = fed.recv().await {
            if let MasterInput::Frames { frames, turn, .. } = input {
                heard += frames.len();
                drop(turn);
            }
            if heard == 100_000 {
                return;
            }
        }
    };
    let (said, ()) = tokio::join!(said, hearing);
    said.unwrap();
}

#[tokio::test(start_paused = true)]
async fn connection_stays_until_the_worker_has_heard_the_last_word_or_its_time_is_up() {
    for hears in [true, false] {
        let Joined { mut worker, fed: _fed, frames, shutdown, attended, .. } = join().await;
        let mut last_word = Vec::new();
        push_frame(&MasterFrame::Shutdown, &mut last_word).unwrap();
        frames.send(last_word.clone()).unwrap();
        shutdown.send_replace(Some(Ending::Abandons));
        drop(frames);
        let begun = tokio::time::Instant::now();
        // Neither further frames of the worker nor unread bytes must break the connection.
        for _ in 0..10_000 {
            let attempt = AttemptId { task: TaskId::map(JobId(1), 0), epoch: 0 };
            write_frame(&mut worker, &WorkerFrame::CommitRequest { attempt }).await.unwrap();
        }
        if hears {
            let mut heard = Vec::new();
            worker.read_to_end(&mut heard).await.unwrap();
            assert!(heard == last_word, "it heard {heard:?}");
            assert!(!attended.is_finished(), "the request did not wait for it");
            drop(worker);
        }
        attended.await.unwrap();
        let expected = if hears { Duration::ZERO } else { CLOSE_TIMEOUT };
        assert_eq!(begun.elapsed(), expected, "hears: {hears}");
    }
}

#[tokio::test(start_paused = true)]
async fn connection_stays_until_the_worker_closes_its_end_though_the_last_word_was_sent_at_once() {
    let Joined { mut worker, fed: _fed, frames, shutdown, attended, .. } = join().await;
    let mut last_word = Vec::new();
    push_frame(&MasterFrame::Shutdown, &mut last_word).unwrap();
    frames.send(last_word.clone()).unwrap();
    drop(frames);
    let mut heard = Vec::new();
    worker.read_to_end(&mut heard).await.unwrap();
    assert!(heard == last_word, "it heard {heard:?}");
    shutdown.send_replace(Some(Ending::Abandons));
    // On a real network the frame may be resent now, and must not be discarded because of unread bytes.
    for _ in 0..10_000 {
        let attempt = AttemptId { task: TaskId::map(JobId(1), 0), epoch: 0 };
        write_frame(&mut worker, &WorkerFrame::CommitRequest { attempt }).await.unwrap();
    }
    assert!(!attended.is_finished(), "the request did not wait for it");
    drop(worker);
    attended.await.unwrap();
}
