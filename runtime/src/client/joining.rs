//! Waiting for the workers of a new cluster.

use super::{AsyncClient, ClientError};
use crate::api::MasterStatus;
use std::time::Duration;
use tokio::time::{sleep, timeout};

/// Pause between two checks of the number of workers, for each of this many workers: a response lists them all.
const JOIN_PAUSE: Duration = Duration::from_millis(1);
const JOIN_PAUSE_WORKERS: u32 = 10;

impl AsyncClient {
    /// Waits until this many workers have joined; `None` if they have not within the given time.
    ///
    /// # Errors
    /// A master that does not respond.
    pub async fn await_workers(
        &self,
        workers: u32,
        patience: Duration,
    ) -> Result<Option<MasterStatus>, ClientError> {
        let all_there = async {
            loop {
                let master = self.master().await?;
                let here = master.workers.iter().filter(|worker| !worker.away).count();
                if workers as usize <= here {
                    return Ok(Some(master));
                }
                sleep(JOIN_PAUSE * workers.div_ceil(JOIN_PAUSE_WORKERS)).await;
            }
        };
        timeout(patience, all_there).await.unwrap_or(Ok(None))
    }
}
