//! Requests to end a worker, from its parent: gracefully, or at once.

use tokio::sync::watch;

/// Two flags, each of which turns true once.
#[derive(Clone)]
pub struct EndRequests {
    /// Request to leave gracefully: finish running attempts, and stay until others have fetched missing
    /// outputs. If the sender is dropped, it will not be requested.
    pub leave: watch::Receiver<bool>,
    /// Request to end at once. A dropped sender means the same.
    pub end: watch::Receiver<bool>,
}

impl EndRequests {
    /// Creates requests of a parent that only ever ends the worker at once.
    #[must_use]
    pub fn at_once(end: watch::Receiver<bool>) -> Self {
        Self { leave: watch::channel(false).1, end }
    }

    /// Waits for the request to leave.
    pub async fn to_leave(&mut self) {
        if self.leave.wait_for(|asked| *asked).await.is_err() {
            std::future::pending::<()>().await;
        }
    }

    /// Waits for the request to end at once.
    pub async fn to_end(&mut self) {
        let _ = self.end.wait_for(|asked| *asked).await;
    }

    /// Waits for either request.
    pub async fn to_go(&mut self) {
        let mut same = self.clone();
        tokio::select! {
            () = self.to_leave() => {}
            () = same.to_end() => {}
        }
    }

    /// True if either was requested.
    #[must_use]
    pub fn is_to_go(&self) -> bool {
        *self.leave.borrow() || *self.end.borrow()
    }
}
