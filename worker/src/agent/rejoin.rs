//! Connections to the master: the first greeting, and reconnecting to a successor after the master was lost.

use super::config::{GREETING_TIMEOUT, WorkerConfig};
use super::frames::{read_frames, write_frames};
use crate::fault;
use crate::http::{Connection, Duplex, Endpoint, HttpError, Plaintext, Secret, Timeouts, Token};
use crate::protocol::{
    CONNECT_PATH, CONTROL_PROTOCOL, FrameError, FrameReader, HELLO_BYTES_MAX, Hello, MasterFrame, Rejoin,
    Session, WorkerFrame, push_frame,
};
use gristmill_scheduler::ids::WorkerId;
use std::time::{Duration, Instant};
use tokio::sync::mpsc::{Receiver, UnboundedSender, unbounded_channel};
use tokio::sync::oneshot;
use tokio::task::JoinHandle;

/// Time that a worker waits for a lost master, with all its outputs.
pub const ORPHAN_TIMEOUT: Duration = Duration::from_secs(600);

/// Pauses between two attempts: the first, which doubles, and the maximum.
const PAUSE: Duration = Duration::from_millis(50);
const PAUSE_MAX: Duration = Duration::from_secs(1);

/// Endpoint of the master, and the credentials of this worker.
#[derive(Clone)]
pub(super) struct MasterDoor {
    master: Endpoint,
    token: Token,
    plaintext: Plaintext,
}

/// Master that has accepted this worker.
pub(super) struct Greeted {
    /// Number that it assigned to the worker.
    pub worker: WorkerId,
    /// Interval of heartbeats that it requests, milliseconds.
    pub heartbeat_ms: u32,
    /// Key of this worker's listings and samples.
    pub list_key: Secret,
    /// Session that it remembers.
    pub session: Session,
    /// Sends encoded frames to it.
    pub frames: UnboundedSender<Vec<u8>>,
    /// Receives its frames.
    pub incoming: Receiver<Vec<MasterFrame>>,
    /// Completes when the frames are written.
    pub written: JoinHandle<()>,
}

/// Reason why a master has not accepted this worker.
pub(super) enum NotGreeted {
    /// It refused, for this reason.
    Refused(String),
    /// The connection was lost; a successor may come.
    Gone,
    /// It sent something else, or cannot be sent the introduction.
    Invalid(FrameError),
}

/// Introduces this worker over a control connection.
pub(super) async fn greet(io: Duplex, hello: &Hello) -> Result<Greeted, NotGreeted> {
    let (reader, writer) = tokio::io::split(io);
    let mut reader = FrameReader::new(reader, HELLO_BYTES_MAX);
    let mut first = Vec::new();
    push_frame(&WorkerFrame::Hello(hello.clone()), &mut first).map_err(NotGreeted::Invalid)?;
    let (frames, to_write) = unbounded_channel();
    let _ = frames.send(first);
    let written = tokio::spawn(write_frames(writer, to_write));
    match tokio::time::timeout(GREETING_TIMEOUT, reader.next()).await {
        Ok(Ok(Some(MasterFrame::Welcome { worker, heartbeat_ms, list_key, session }))) => {
            let incoming = read_frames(reader);
            Ok(Greeted { worker, heartbeat_ms, list_key, session, frames, incoming, written })
        }
        Ok(Ok(Some(MasterFrame::Refused { reason }))) => Err(NotGreeted::Refused(reason)),
        Ok(Err(source)) if !matches!(source, FrameError::Io { .. }) => Err(NotGreeted::Invalid(source)),
        _ => Err(NotGreeted::Gone),
    }
}

/// Connection state of the master.
pub(super) enum MasterSide {
    /// Connected; receives its frames.
    Here(Receiver<Vec<MasterFrame>>),
    /// Lost, and searched for; receives `None` when the search is given up.
    Away(oneshot::Receiver<Option<Greeted>>),
}

/// Event of the connection to the master.
pub(super) enum MasterNews {
    Frames(Vec<MasterFrame>),
    /// The connection was lost.
    Gone,
    /// A master has reconnected.
    Back(Greeted),
    /// The search was given up, or the master does not take this worker back.
    NoneComes,
}

impl MasterSide {
    /// Returns the next event. Cancel safe. Must not be called after [`MasterNews::Gone`] or
    /// [`MasterNews::NoneComes`].
    pub(super) async fn next(&mut self) -> MasterNews {
        match self {
            Self::Here(incoming) => incoming.recv().await.map_or(MasterNews::Gone, MasterNews::Frames),
            Self::Away(found) => found.await.ok().flatten().map_or(MasterNews::NoneComes, MasterNews::Back),
        }
    }
}

/// Result of an attempt.
enum Tried {
    Welcome(Greeted),
    /// No master responds; retry later.
    Later,
    /// A master responds and does not know this worker any more.
    Never(String),
}

impl MasterDoor {
    pub(super) fn from_config(config: &WorkerConfig) -> Self {
        let (master, token) = (config.master.clone(), config.token.clone());
        Self { master, token, plaintext: config.bind.permissions.plaintext() }
    }

    /// Opens a control connection.
    pub(super) async fn connect(&self) -> Result<Duplex, HttpError> {
        let connection = Connection::open(&self.master, Timeouts::default(), self.plaintext).await?;
        connection.upgrade(Some(&self.token), CONNECT_PATH, CONTROL_PROTOCOL).await
    }

    /// Retries in a separate task until a master greets, refuses, or the search is given up (`None`).
    pub(super) fn look_for_master(
        &self,
        worker: WorkerId,
        generation: u64,
        hello: Hello,
    ) -> oneshot::Receiver<Option<Greeted>> {
        let (found, answer) = oneshot::channel();
        let hello = Hello { rejoin: Some(Rejoin { worker, generation }), ..hello };
        let door = self.clone();
        tokio::spawn(async move {
            let found_master = door.find(&hello).await;
            let _ = found.send(found_master);
        });
        answer
    }

    async fn find(&self, hello: &Hello) -> Option<Greeted> {
        let (began, patience) = (Instant::now(), fault::span("worker.orphaned", ORPHAN_TIMEOUT));
        let mut pause = PAUSE;
        while began.elapsed() < patience {
            match self.try_once(hello).await {
                Tried::Welcome(back) => return Some(back),
                Tried::Never(reason) => {
                    tracing::warn!(master = %self.master, reason, "not taken back; joining as a new worker");
                    return None;
                }
                Tried::Later => tokio::time::sleep(pause).await,
            }
            pause = (2 * pause).min(PAUSE_MAX);
        }
        tracing::warn!(master = %self.master, seconds = patience.as_secs(), "no master has come back");
        None
    }

    async fn try_once(&self, hello: &Hello) -> Tried {
        let io = match self.connect().await {
            Ok(io) => io,
            Err(HttpError::Unauthorized { .. } | HttpError::Forbidden { .. }) => {
                return Tried::Never("the token does not hold any more".to_owned());
            }
            Err(error) => {
                tracing::debug!(%error, "the master is not there yet");
                return Tried::Later;
            }
        };
        match greet(io, hello).await {
            Ok(greeted) if is_outdated(hello, greeted.session) => {
                tracing::warn!("a master of an earlier generation is not obeyed any more");
                Tried::Later
            }
            Ok(greeted) => Tried::Welcome(greeted),
            Err(NotGreeted::Refused(reason)) => Tried::Never(reason),
            Err(NotGreeted::Gone | NotGreeted::Invalid(_)) => Tried::Later,
        }
    }
}

/// True if a master is older than one that this worker has worked for.
fn is_outdated(hello: &Hello, session: Session) -> bool {
    hello.rejoin.is_some_and(|before| session.generation < before.generation)
}
