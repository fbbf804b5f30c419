//! A network link as a TCP proxy that a test can make slow, silent, one-way or corrupt, without root.
//!
//! Bytes pass unchanged by default. [`Rule`]s delay or hold bytes for as long as the rules are set.
//! [`Strike`]s damage a connection at one byte and are used up. Both count their effects, so that a test can
//! prove that its fault has fired. A silent link still accepts connections, since the kernel does: bytes sent
//! on them never arrive.
//!
//! Plain HTTP passes through a proxy only if both ends were started with `--insecure-plaintext`.

mod pump;

use crate::support::process;
use pump::Pump;
use std::io;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::Duration;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;

/// Maximum number of open connections of a link; more are closed at once.
const CONNECTIONS_MAX: usize = 1000;

/// Direction of bytes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Way {
    /// From the client to the server behind the link.
    ToServer,
    /// From the server to the client.
    ToClient,
}

/// Treatment of bytes while a rule is set.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Treatment {
    /// Bytes and the end of a connection arrive only after the rule is removed.
    Hold,
    /// Bytes arrive this much later.
    Delay(Duration),
    /// This many bytes arrive per second, for each connection.
    Throttle(u64),
    /// Bytes arrive one by one, with this pause before each.
    Drip(Duration),
    /// The connection is reset, and so is every new one.
    Refuse,
}

/// A treatment and what it applies to.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Rule {
    /// The treatment.
    pub treatment: Treatment,
    /// Direction that it applies to, or `None` for both.
    pub way: Option<Way>,
    /// Process whose connections it applies to, or `None` for all.
    pub from: Option<u32>,
}

impl Rule {
    /// A rule for all connections in both directions.
    pub fn all(treatment: Treatment) -> Self {
        Self { treatment, way: None, from: None }
    }

    /// A rule for all connections in one direction.
    pub fn one_way(treatment: Treatment, way: Way) -> Self {
        Self { treatment, way: Some(way), from: None }
    }

    /// A rule for the connections of one process in both directions.
    pub fn from_process(treatment: Treatment, pid: u32) -> Self {
        Self { treatment, way: None, from: Some(pid) }
    }
}

/// Damage to a connection at one byte.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Damage {
    /// The connection is reset.
    Reset,
    /// The connection ends without an error, as if all bytes had been sent.
    Truncate,
    /// One bit of the byte is flipped.
    Flip,
}

/// Pending damage, each time to the next connection that reaches the byte.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Strike {
    /// The damage.
    pub damage: Damage,
    /// Direction of the damaged bytes.
    pub way: Way,
    /// Position of the byte, counted from 0 for each connection: from its start, or from the last strike
    /// added meanwhile.
    pub at: u64,
    /// Number of connections to damage.
    pub times: u32,
}

/// A proxy in front of one server. When it is dropped, it ends with its last connection.
pub struct Link {
    address: SocketAddr,
    shared: Arc<Shared>,
    rules: watch::Sender<Vec<Rule>>,
    stop: watch::Sender<bool>,
    thread: Option<JoinHandle<()>>,
}

#[derive(Default)]
struct Shared {
    /// Searched in order: the first with times left whose byte is in a chunk strikes.
    strikes: Mutex<Vec<Strike>>,
    /// Number of strikes ever added.
    added: AtomicU64,
    struck: AtomicU64,
    treated: AtomicU64,
    passed: [AtomicU64; 2],
}

impl Link {
    /// Listens at `at` (port 0: any) and forwards to `server`.
    pub fn start(at: SocketAddr, server: SocketAddr) -> io::Result<Self> {
        let listener = std::net::TcpListener::bind(at)?;
        listener.set_nonblocking(true)?;
        let address = listener.local_addr()?;
        let shared = Arc::new(Shared::default());
        let (rules, seen) = watch::channel(Vec::new());
        let (stop, stopped) = watch::channel(false);
        let setting = Setting { shared: shared.clone(), rules: seen, stopped };
        let thread = std::thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
            runtime
                .block_on(async { accept(TcpListener::from_std(listener).unwrap(), server, setting).await });
        });
        Ok(Self { address, shared, rules, stop, thread: Some(thread) })
    }

    /// Address at which it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Replaces all rules.
    pub fn set(&self, rules: impl IntoIterator<Item = Rule>) {
        self.rules.send_replace(rules.into_iter().collect());
    }

    /// Removes all rules and all strikes that are left.
    pub fn heal(&self) {
        self.set([]);
        self.shared.strikes.lock().unwrap().clear();
    }

    /// Adds damage to be done.
    pub fn strike(&self, strike: Strike) {
        self.shared.strikes.lock().unwrap().push(strike);
        self.shared.added.fetch_add(1, Ordering::Relaxed);
    }

    /// Number of times that damage was done.
    pub fn struck(&self) -> u64 {
        self.shared.struck.load(Ordering::Relaxed)
    }

    /// Number of chunks, ends or connections that a rule was applied to.
    pub fn treated(&self) -> u64 {
        self.shared.treated.load(Ordering::Relaxed)
    }

    /// Number of bytes that passed in this direction.
    pub fn passed(&self, way: Way) -> u64 {
        self.shared.passed[way as usize].load(Ordering::Relaxed)
    }
}

impl Drop for Link {
    fn drop(&mut self) {
        self.stop.send_replace(true);
        if let Some(thread) = self.thread.take() {
            let ended = thread.join();
            // A panic of a test is already reported.
            assert!(ended.is_ok() || std::thread::panicking(), "the proxy at {} panicked", self.address);
        }
    }
}

#[derive(Clone)]
struct Setting {
    shared: Arc<Shared>,
    rules: watch::Receiver<Vec<Rule>>,
    stopped: watch::Receiver<bool>,
}

impl Setting {
    /// Returns the treatment of a connection's bytes at this moment.
    fn treatment(&mut self, peer: SocketAddr, way: Option<Way>) -> Option<Treatment> {
        let rules = self.rules.borrow_and_update();
        let applies = |rule: &&Rule| {
            let on_the_way = way.is_none() || rule.way.is_none() || rule.way == way;
            on_the_way && rule.from.is_none_or(|pid| process::has_port(pid, peer))
        };
        rules.iter().find(applies).map(|rule| rule.treatment)
    }

    fn count_treated(&self) {
        self.shared.treated.fetch_add(1, Ordering::Relaxed);
    }
}

async fn accept(listener: TcpListener, server: SocketAddr, setting: Setting) {
    let mut connections = tokio::task::JoinSet::new();
    let mut stopped = setting.stopped.clone();
    loop {
        let accepted = tokio::select! {
            accepted = listener.accept() => accepted,
            _ = stopped.wait_for(|stopped| *stopped) => return,
        };
        while connections.try_join_next().is_some() {}
        let Ok((client, peer)) = accepted else { continue };
        if connections.len() < CONNECTIONS_MAX {
            connections.spawn(forward(client, peer, server, setting.clone()));
        }
    }
}

async fn forward(mut client: TcpStream, peer: SocketAddr, server: SocketAddr, mut setting: Setting) {
    if setting.treatment(peer, None) == Some(Treatment::Refuse) {
        setting.count_treated();
        let _ = client.set_zero_linger();
        return;
    }
    // The proxy reports a server that does not exist as a reset, the closest it can do.
    let Ok(mut behind) = TcpStream::connect(server).await else {
        let _ = client.set_zero_linger();
        return;
    };
    let _ = (client.set_nodelay(true), behind.set_nodelay(true));
    let in_order = {
        let (from_client, to_client) = client.split();
        let (from_server, to_server) = behind.split();
        let added = setting.shared.added.load(Ordering::Relaxed);
        let pump = |way| Pump { way, peer, setting: setting.clone(), seen: 0, added };
        let there = pump(Way::ToServer).run(from_client, to_server);
        let back = pump(Way::ToClient).run(from_server, to_client);
        // One direction may end long before the other; a reset ends both.
        let both = async { tokio::try_join!(there, back) };
        tokio::select! {
            ended = both => ended.is_ok(),
            () = refused(peer, setting.clone()) => false,
        }
    };
    if !in_order {
        let _ = (client.set_zero_linger(), behind.set_zero_linger());
    }
}

/// Returns when connections of this peer are refused.
async fn refused(peer: SocketAddr, mut setting: Setting) {
    loop {
        if setting.treatment(peer, None) == Some(Treatment::Refuse) {
            setting.count_treated();
            return;
        }
        if setting.rules.changed().await.is_err() {
            std::future::pending::<()>().await;
        }
    }
}

#[cfg(test)]
mod tests;
