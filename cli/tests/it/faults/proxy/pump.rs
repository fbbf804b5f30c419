//! One direction of one connection: reads bytes, treats them as the rules demand, applies pending strikes,
//! and writes them.

use super::{Damage, Setting, Strike, Treatment, Way};
use std::io;
use std::net::SocketAddr;
use std::sync::atomic::Ordering;
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::tcp::{ReadHalf, WriteHalf};

/// Maximum number of bytes forwarded at once.
const CHUNK_BYTES: usize = 16 << 10;

/// One direction of a connection ended with an error: the whole connection is reset.
pub struct Broken;

/// One direction of one connection.
pub struct Pump {
    pub way: Way,
    pub peer: SocketAddr,
    pub setting: Setting,
    /// Number of bytes since the start, or since the last strike was added.
    pub seen: u64,
    /// Number of strikes that had been added then.
    pub added: u64,
}

impl Pump {
    /// Forwards until the end of this direction.
    pub async fn run(mut self, mut from: ReadHalf<'_>, mut to: WriteHalf<'_>) -> Result<(), Broken> {
        let mut chunk = vec![0; CHUNK_BYTES];
        loop {
            let got = match from.read(&mut chunk).await {
                Ok(got) => got,
                Err(_) => return Err(Broken),
            };
            if let Some(pause) = self.hold_back(got).await {
                if self.drip(pause, &chunk[..got], &mut to).await.is_err() {
                    return Err(Broken);
                }
                continue;
            }
            if got == 0 {
                let _ = to.shutdown().await;
                return Ok(());
            }
            let struck = self.strike(&mut chunk[..got]);
            let whole = match struck {
                Some((Damage::Truncate | Damage::Reset, keep)) => keep,
                Some((Damage::Flip, _)) | None => got,
            };
            if to.write_all(&chunk[..whole]).await.is_err() {
                return Err(Broken);
            }
            self.seen += got as u64;
            self.setting.shared.passed[self.way as usize].fetch_add(whole as u64, Ordering::Relaxed);
            match struck {
                Some((Damage::Reset, _)) => return Err(Broken),
                Some((Damage::Truncate, _)) => {
                    let _ = to.shutdown().await;
                    drain(from).await;
                    return Ok(());
                }
                Some((Damage::Flip, _)) | None => {}
            }
        }
    }

    /// Waits as long as the rules demand for this many bytes. Returns the pause between bytes if they have to
    /// drip.
    async fn hold_back(&mut self, bytes: usize) -> Option<Duration> {
        let mut counted = false;
        loop {
            let treatment = self.setting.treatment(self.peer, Some(self.way));
            if treatment.is_some() && !std::mem::replace(&mut counted, true) {
                self.setting.count_treated();
            }
            match treatment {
                None => return None,
                Some(Treatment::Drip(pause)) => return (0 < bytes).then_some(pause),
                Some(Treatment::Delay(time)) => {
                    tokio::time::sleep(time).await;
                    return None;
                }
                Some(Treatment::Throttle(per_second)) => {
                    let seconds = bytes as f64 / per_second as f64;
                    let whole = tokio::time::sleep(Duration::from_secs_f64(seconds));
                    // A rule that is removed meanwhile releases the bytes at once.
                    tokio::select! {
                        () = whole => return None,
                        _ = self.setting.rules.changed() => {}
                    }
                }
                // A connection that is refused is ended by `refused`.
                Some(Treatment::Hold | Treatment::Refuse) => {
                    if self.setting.rules.changed().await.is_err() {
                        return None;
                    }
                }
            }
        }
    }

    /// Sends bytes one by one. When the rules change, the rest is sent at once.
    async fn drip(&mut self, pause: Duration, bytes: &[u8], to: &mut WriteHalf<'_>) -> io::Result<()> {
        let mut sent = 0;
        while sent < bytes.len() {
            let next = tokio::select! {
                () = tokio::time::sleep(pause) => sent + 1,
                _ = self.setting.rules.changed() => bytes.len(),
            };
            to.write_all(&bytes[sent..next]).await?;
            sent = next;
        }
        self.seen += bytes.len() as u64;
        self.setting.shared.passed[self.way as usize].fetch_add(bytes.len() as u64, Ordering::Relaxed);
        Ok(())
    }

    /// Uses up a strike whose byte is in this chunk. Returns the number of bytes before it.
    fn strike(&mut self, chunk: &mut [u8]) -> Option<(Damage, usize)> {
        let added = self.setting.shared.added.load(Ordering::Relaxed);
        if self.added < added {
            (self.added, self.seen) = (added, 0);
        }
        let end = self.seen + chunk.len() as u64;
        let mut strikes = self.setting.shared.strikes.lock().unwrap();
        let due = |strike: &&mut Strike| {
            strike.way == self.way && 0 < strike.times && (self.seen..end).contains(&strike.at)
        };
        let strike = strikes.iter_mut().find(due)?;
        strike.times -= 1;
        self.setting.shared.struck.fetch_add(1, Ordering::Relaxed);
        let keep = usize::try_from(strike.at - self.seen).unwrap();
        if strike.damage == Damage::Flip {
            chunk[keep] ^= 1 << 4;
        }
        Some((strike.damage, keep))
    }
}

/// Reads what is sent after the end that the other side was notified of.
async fn drain(mut from: ReadHalf<'_>) {
    let mut rest = vec![0; CHUNK_BYTES];
    while from.read(&mut rest).await.is_ok_and(|got| 0 < got) {}
}
