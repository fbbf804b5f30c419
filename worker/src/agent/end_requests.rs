//! How whoever starts a worker tells it to end: in good order, or at once.

use tokio::sync::watch;

/// Two words; each turns true once.
#[derive(Clone)]
pub struct EndRequests {
    /// Leave in good order: end what runs, and stay until others have fetched what they lack. If its sender is gone,
    /// nobody will ask for it.
    pub leave: watch::Receiver<bool>,
    /// End at once. A sender that is gone means the same.
    pub end: watch::Receiver<bool>,
}

impl EndRequests {
    /// Those of somebody who only ever asks to end at once.
    #[must_use]
    pub fn at_once(end: watch::Receiver<bool>) -> Self {
        Self { leave: watch::channel(false).1, end }
    }

    /// Comes back once it is to leave.
    pub async fn to_leave(&mut self) {
        if self.leave.wait_for(|asked| *asked).await.is_err() {
            std::future::pending::<()>().await;
        }
    }

    /// Comes back once it is to end at once.
    pub async fn to_end(&mut self) {
        let _ = self.end.wait_for(|asked| *asked).await;
    }

    /// Comes back once it is to leave or to end.
    pub async fn to_go(&mut self) {
        let mut same = self.clone();
        tokio::select! {
            () = self.to_leave() => {}
            () = same.to_end() => {}
        }
    }

    /// Whether it is to leave or to end.
    #[must_use]
    pub fn is_to_go(&self) -> bool {
        *self.leave.borrow() || *self.end.borrow()
    }
}
