//! A link of the network as a TCP proxy that a test can make slow, silent, one-way or wrong, without root.
//!
//! Bytes go through as they come. [`Rule`]s say how long they take, or that they don't arrive, for as long as they
//! stand; [`Strike`]s damage a connection at one byte and are used up. Both count what they did, so that a test can
//! prove that its fault has fired. A silent link still accepts connections, since the kernel does: what is sent on them
//! never arrives.
//!
//! Plain HTTP goes through a proxy only if both ends were started with `--insecure-plaintext`.

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

/// Connections of one link at a time; more are closed at once.
const CONNECTIONS_MAX: usize = 1000;

/// Which way bytes go.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Way {
    /// From whoever has connected to the server behind the link.
    ToServer,
    /// Back.
    ToClient,
}

/// What becomes of bytes while a rule stands.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Treatment {
    /// They never arrive, and neither does the end of a connection; when the rule goes, they do.
    Hold,
    /// They arrive this much later.
    Delay(Duration),
    /// So many arrive in a second, for each connection.
    Throttle(u64),
    /// They arrive one by one, with this pause before each.
    Drip(Duration),
    /// The connection is reset, and every new one too.
    Refuse,
}

/// A treatment and what it applies to.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Rule {
    /// What is done.
    pub treatment: Treatment,
    /// To bytes that go this way; `None`: both.
    pub way: Option<Way>,
    /// On connections of this process; `None`: of all.
    pub from: Option<u32>,
}

impl Rule {
    /// For all connections, both ways.
    pub fn all(treatment: Treatment) -> Self {
        Self { treatment, way: None, from: None }
    }

    /// For all connections, one way.
    pub fn one_way(treatment: Treatment, way: Way) -> Self {
        Self { treatment, way: Some(way), from: None }
    }

    /// For the connections of one process, both ways.
    pub fn from_process(treatment: Treatment, pid: u32) -> Self {
        Self { treatment, way: None, from: Some(pid) }
    }
}

/// What happens to a connection at one byte.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Damage {
    /// It is reset.
    Reset,
    /// It ends there, in order, as if all had been sent.
    Truncate,
    /// One bit of the byte is another.
    Flip,
}

/// Damage that is still to be done, each time to the next connection that comes so far.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Strike {
    /// What is done.
    pub damage: Damage,
    /// To bytes that go this way.
    pub way: Way,
    /// At this byte, counted from 0 for each connection: from its beginning, or from the last strike that was added
    /// meanwhile.
    pub at: u64,
    /// So often.
    pub times: u32,
}

/// A proxy before one server. It ends with its last connection when it is dropped.
pub struct Link {
    address: SocketAddr,
    shared: Arc<Shared>,
    rules: watch::Sender<Vec<Rule>>,
    stop: watch::Sender<bool>,
    thread: Option<JoinHandle<()>>,
}

#[derive(Default)]
struct Shared {
    /// Looked up in order; the first that has times left and whose byte is in a chunk strikes.
    strikes: Mutex<Vec<Strike>>,
    /// How many were ever added.
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

    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Replaces all rules.
    pub fn set(&self, rules: impl IntoIterator<Item = Rule>) {
        self.rules.send_replace(rules.into_iter().collect());
    }

    /// Lifts all rules, and forgets strikes that are left.
    pub fn heal(&self) {
        self.set([]);
        self.shared.strikes.lock().unwrap().clear();
    }

    /// Adds damage to be done.
    pub fn strike(&self, strike: Strike) {
        self.shared.strikes.lock().unwrap().push(strike);
        self.shared.added.fetch_add(1, Ordering::Relaxed);
    }

    /// How often damage was done.
    pub fn struck(&self) -> u64 {
        self.shared.struck.load(Ordering::Relaxed)
    }

    /// How many chunks, ends or connections a rule has met.
    pub fn treated(&self) -> u64 {
        self.shared.treated.load(Ordering::Relaxed)
    }

    /// Bytes that went through this way.
    pub fn passed(&self, way: Way) -> u64 {
        self.shared.passed[way as usize].load(Ordering::Relaxed)
    }
}

impl Drop for Link {
    fn drop(&mut self) {
        self.stop.send_replace(true);
        if let Some(thread) = self.thread.take() {
            let ended = thread.join();
            // A panic of a test is told already.
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
    /// What is done with a connection's bytes now.
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
    // A server that is gone is one that resets, as far as this proxy can say so.
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
        // One way may end long before the other; a reset ends both.
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

/// Comes back when connections of this peer are refused.
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
