//! The connection of a worker, between a stream in memory and a loop that does not hear.

use super::*;
use crate::master::tokens::Tokens;
use gristmill_scheduler::ids::{AttemptId, JobId, TaskId};
use gristmill_worker::http::{Endpoint, Plaintext, Secret};
use gristmill_worker::protocol::{SlotCounts, ended_proof, push_worker_frame};
use std::net::Ipv4Addr;
use tokio::sync::mpsc;

fn hello() -> WorkerFrame {
    WorkerFrame::Hello(Hello {
        protocol: PROTOCOL_VERSION,
        build: "build".to_owned(),
        slots: SlotCounts::Unified(1),
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

// Time stands still until nobody has anything to do: then the worker waits to be heard.
#[tokio::test(start_paused = true)]
async fn worker_that_says_more_than_is_heard_has_to_wait() {
    let (inputs, mut fed) = unbounded_channel();
    let (_attended, _all_left) = mpsc::channel(1);
    let handle = MasterHandle {
        inputs,
        shutdown: Arc::new(watch::channel(false).0),
        _attended,
        build: "build".to_owned(),
        plaintext: Plaintext::OnLoopback,
        tokens: Arc::new(Tokens::of_secret(Secret::from_bytes([7; 32]))),
        page_codes: Arc::default(),
        archive: None,
        programs: None,
    };
    let (mut worker, master) = tokio::io::duplex(64 << 10);
    tokio::spawn(attend(handle, Box::new(master), Ipv4Addr::LOCALHOST.into(), ShownKey("work@0".to_owned())));
    write_frame(&mut worker, &hello()).await.unwrap();
    let Some(MasterInput::Join { frames: _frames, reply, .. }) = fed.recv().await else {
        panic!("it joins first")
    };
    reply.send(Ok((WorkerId(1), 1))).unwrap();

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
