//! Route to the master. Frames that count are kept until the master has persisted them, and sent again to
//! its successor.
//!
//! Not here: finding the successor (`agent::rejoin`).
//!
//! Invariant: `unheard` holds the frames numbered `first` and up, each once, in their order.

use crate::protocol::{FrameError, Session, WorkerFrame, push_worker_frame};
use std::collections::VecDeque;
use tokio::sync::mpsc::UnboundedSender;

/// Maximum bytes of frames that are kept for a master that is away or does not persist them. Without
/// orders the number of frames is limited: this holds the results of a hundred thousand attempts.
const UNHEARD_BYTES_MAX: usize = 64 << 20;

/// Route to the master.
pub(super) struct MasterLink {
    /// Sends encoded frames to the master; `None` while it is away.
    frames: Option<UnboundedSender<Vec<u8>>>,
    /// Encoded frames to be sent at the end of this turn of the loop.
    pending: Vec<u8>,
    pub(super) session: Session,
    unheard: VecDeque<Vec<u8>>,
    unheard_bytes: usize,
    first: u64,
}

impl MasterLink {
    pub(super) fn new(frames: UnboundedSender<Vec<u8>>, session: Session) -> Self {
        Self {
            frames: Some(frames),
            pending: Vec::new(),
            session,
            unheard: VecDeque::new(),
            unheard_bytes: 0,
            first: 1,
        }
    }

    /// True if the connection is lost, and not replaced yet.
    pub(super) fn is_away(&self) -> bool {
        self.frames.is_none()
    }

    /// True if the kept frames exceed their limit.
    pub(super) fn is_full(&self) -> bool {
        UNHEARD_BYTES_MAX < self.unheard_bytes
    }

    /// Sends a frame, at the end of this turn of the loop, or once a master is connected.
    ///
    /// # Errors
    /// The frame is too long.
    pub(super) fn send(&mut self, frame: &WorkerFrame) -> Result<(), FrameError> {
        if !(self.session.returns && frame.is_numbered()) {
            // A delayed sign of life is useless.
            return if self.is_away() { Ok(()) } else { push_worker_frame(frame, &mut self.pending) };
        }
        let mut encoded = Vec::new();
        push_worker_frame(frame, &mut encoded)?;
        if !self.is_away() {
            self.pending.extend_from_slice(&encoded);
        }
        self.unheard_bytes += encoded.len();
        self.unheard.push_back(encoded);
        Ok(())
    }

    /// Sends the frames of this turn of the loop.
    pub(super) fn flush(&mut self) {
        if let Some(frames) = self.frames.as_ref().filter(|_| !self.pending.is_empty()) {
            // Fails only when the connection is lost, which the reading end detects.
            let _ = frames.send(std::mem::take(&mut self.pending));
        }
    }

    /// Handles that the master has persisted all frames up to this one.
    pub(super) fn heard(&mut self, through: u64) {
        while self.first <= through
            && let Some(frame) = self.unheard.pop_front()
        {
            self.unheard_bytes -= frame.len();
            self.first += 1;
        }
    }

    /// Handles the loss of the connection.
    pub(super) fn cut(&mut self) {
        self.frames = None;
        self.pending.clear();
    }

    /// Continues with a reconnected master. Returns true if it has received all frames that are not kept
    /// any more. If not, its state is too old to continue with this worker.
    #[must_use]
    pub(super) fn resume(&mut self, frames: UnboundedSender<Vec<u8>>, session: Session) -> bool {
        if session.heard + 1 < self.first {
            return false;
        }
        self.heard(session.heard);
        self.session = session;
        self.frames = Some(frames);
        self.pending = self.unheard.iter().flatten().copied().collect();
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::protocol::Heartbeat;
    use gristmill_scheduler::ids::{JobId, TaskId};
    use tokio::sync::mpsc::{UnboundedReceiver, unbounded_channel};

    fn session(heard: u64) -> Session {
        Session { generation: 1, returns: true, heard }
    }

    fn frame(epoch: u32) -> WorkerFrame {
        WorkerFrame::Returned { attempt: TaskId::map(JobId(1), 0).attempt(epoch) }
    }

    fn encoded(epochs: &[u32]) -> Vec<u8> {
        let mut bytes = Vec::new();
        epochs.iter().for_each(|epoch| push_worker_frame(&frame(*epoch), &mut bytes).unwrap());
        bytes
    }

    fn received(inbox: &mut UnboundedReceiver<Vec<u8>>) -> Vec<u8> {
        std::iter::from_fn(|| inbox.try_recv().ok()).flatten().collect()
    }

    #[test]
    fn frames_that_count_are_said_again_from_the_first_that_was_not_written_down() {
        let (frames, mut inbox) = unbounded_channel();
        let mut link = MasterLink::new(frames, session(0));
        (0..3).for_each(|epoch| link.send(&frame(epoch)).unwrap());
        link.flush();
        assert_eq!(received(&mut inbox), encoded(&[0, 1, 2]));
        link.heard(1);
        link.cut();
        link.send(&frame(3)).unwrap();
        link.send(&WorkerFrame::Heartbeat(Heartbeat::default())).unwrap();
        link.flush();
        let (frames, mut inbox) = unbounded_channel();
        assert!(link.resume(frames, session(2)));
        link.flush();
        assert_eq!(received(&mut inbox), encoded(&[2, 3]), "the sign of life is not said later");
    }

    #[test]
    fn master_that_has_forgotten_what_it_confirmed_is_not_gone_on_with() {
        let (frames, _inbox) = unbounded_channel();
        let mut link = MasterLink::new(frames, session(0));
        (0..3).for_each(|epoch| link.send(&frame(epoch)).unwrap());
        link.heard(2);
        link.cut();
        let (frames, _inbox) = unbounded_channel();
        assert!(!link.resume(frames.clone(), session(1)));
        assert!(link.resume(frames, session(2)));
    }

    #[test]
    fn nothing_is_kept_for_a_master_that_does_not_come_back() {
        let (frames, _inbox) = unbounded_channel();
        let mut link = MasterLink::new(frames, Session { returns: false, ..session(0) });
        link.send(&frame(0)).unwrap();
        assert!(link.unheard.is_empty());
    }
}
