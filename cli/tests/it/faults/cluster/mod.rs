//! A master and workers, with a [`Link`] between each worker and the master, and one in front of each worker.
//!
//! A worker joins by a line that names its own link to the master. It advertises a loopback address of its
//! own. The link in front of its shuffle server listens on that address, on the server's port. When the
//! supervisor replaces the worker process, a new link is started.

mod door;

use super::proxy::{Link, Rule, Strike};
use crate::support::memory_group::MemoryGroup;
use crate::support::sandbox::Running;
use crate::support::standing::{Standing, await_join_line, await_join_line_within};
use crate::support::{Sandbox, process, until};
use door::Door;
use std::cell::RefCell;
use std::collections::BTreeSet;
use std::net::{Ipv4Addr, SocketAddr};
use std::process::ExitStatus;
use std::time::Duration;

/// Timeout for the return of a master. A debug build that has run jobs for an hour takes long to read its
/// state.
const RETURN_TIMEOUT: Duration = Duration::from_secs(170);

/// Last byte of the first worker's address, 127.0.0.N.
const FIRST_ADDRESS: u8 = 11;

/// Settings of a worker apart from its addresses.
#[derive(Clone, Debug, Default)]
pub struct WorkerSpec {
    /// More flags.
    pub flags: Vec<String>,
    /// Variables of its environment.
    pub environment: Vec<(String, String)>,
    /// A shell script that runs first, for example one that mounts over a directory. Its mounts are private.
    pub prepare: Option<String>,
}

/// Settings of a cluster.
#[derive(Debug, Default)]
pub struct Fleet {
    /// More flags of the master.
    pub master: Vec<String>,
    /// Variables of the environment of the master.
    pub environment: Vec<(String, String)>,
    /// The workers, each of one process with one slot.
    pub workers: Vec<WorkerSpec>,
    /// The control groups of the workers, if they have some.
    pub groups: Vec<MemoryGroup>,
}

impl Fleet {
    /// A plain master and these workers.
    pub fn new(workers: Vec<WorkerSpec>) -> Self {
        Self { workers, ..Self::default() }
    }
}

/// A cluster on loopback in which every link can be broken.
pub struct Cluster<'a> {
    /// The sandbox of all processes.
    pub sandbox: &'a Sandbox,
    /// The processes.
    pub standing: Standing<'a>,
    /// The settings that it was started with.
    pub fleet: &'a Fleet,
    /// The master that has replaced a killed one.
    successor: RefCell<Option<Running>>,
    to_master: Vec<Link>,
    doors: Vec<Door>,
    /// Workers that were switched off.
    lost: RefCell<BTreeSet<usize>>,
}

impl<'a> Cluster<'a> {
    /// Starts a cluster and waits until all workers have joined.
    pub fn start(sandbox: &'a Sandbox, fleet: &'a Fleet) -> Self {
        let master = master(sandbox, fleet);
        let join = await_join_line(&master);
        let mut cluster = Self {
            sandbox,
            standing: Standing::new(sandbox, master, Vec::new(), join),
            fleet,
            successor: RefCell::default(),
            to_master: Vec::new(),
            doors: Vec::new(),
            lost: RefCell::default(),
        };
        for _ in &fleet.workers {
            cluster.add_worker();
        }
        cluster
    }

    /// Starts a worker and waits until it has joined.
    fn add_worker(&mut self) {
        let index = self.doors.len();
        let link = Link::start(any_port(Ipv4Addr::LOCALHOST), self.standing.join.address).unwrap();
        self.to_master.push(link);
        let worker = self.start_worker(index);
        self.doors.push(Door::keep(own_address(index), worker.pid()));
        self.standing.workers.push(worker);
        let joined = self.standing.workers.len();
        self.standing.await_workers(joined);
        until("a link before the worker", || self.doors[index].pid());
    }

    fn start_worker(&self, index: usize) -> Running {
        let (spec, line) = (&self.fleet.workers[index], &self.standing.join);
        let through = self.to_master[index].address().to_string();
        let line = line.text.replace(&line.address.to_string(), &through);
        let line = self.sandbox.write_private(&format!("links/join-{index}"), line);
        let host = own_address(index).to_string();
        let fixed = ["worker", "--workers", "1", "--slots", "1", "--insecure-plaintext"];
        let mut arguments = [&fixed[..], &["--join", &line, "--advertise", &host]].concat();
        arguments.extend(spec.flags.iter().map(String::as_str));
        let mut worker = match &spec.prepare {
            None => self.sandbox.gristmill(arguments),
            Some(script) => self.sandbox.prepared(script, &arguments),
        };
        for (name, value) in &spec.environment {
            worker = worker.env(name, value);
        }
        worker.start()
    }

    /// Kills a worker and its supervisor.
    pub fn switch_off(&self, index: usize) {
        let pid = self.pid(index);
        // The supervisor goes first, so that it cannot report how its child has ended.
        process::kill(self.standing.workers[index].pid());
        process::kill(pid);
        self.lost.borrow_mut().insert(index);
    }

    /// Starts another worker on the machine of one that was switched off or has left. Returns the exit status
    /// of the old one.
    pub fn switch_on(&mut self, index: usize) -> ExitStatus {
        let worker = self.start_worker(index);
        self.doors[index] = Door::keep(own_address(index), worker.pid());
        let old = std::mem::replace(&mut self.standing.workers[index], worker).finish();
        self.lost.borrow_mut().remove(&index);
        old.status
    }

    /// Kills the master; its workers keep running.
    pub fn kill_master(&self) {
        process::kill(self.standing.master.pid());
    }

    /// Starts a master in place of a killed one and waits until it listens.
    pub fn start_master(&self) {
        let successor = master(self.sandbox, self.fleet);
        await_join_line_within(&successor, RETURN_TIMEOUT);
        self.successor.replace(Some(successor));
    }

    /// Makes the successor the master.
    pub fn succeed(&mut self) {
        let Some(successor) = self.successor.take() else { return };
        let old = std::mem::replace(&mut self.standing.master, successor);
        assert_eq!(old.finish().status.code(), None, "a master that was killed ended in order");
    }

    /// Heals all links, restarts all workers that were switched off, and waits until all have joined.
    pub fn restore(&mut self) {
        self.succeed();
        self.heal();
        let lost: Vec<usize> = self.lost.borrow().iter().copied().collect();
        for index in lost {
            let code = self.switch_on(index).code();
            assert_eq!(code, None, "a worker that was switched off ended in order");
        }
        self.standing.await_workers(self.len());
    }

    /// Number of workers that were started.
    pub fn len(&self) -> usize {
        self.doors.len()
    }

    /// Returns the link from a worker to the master.
    pub fn to_master(&self, worker: usize) -> &Link {
        &self.to_master[worker]
    }

    /// Returns the process of a worker that is running now.
    pub fn pid(&self, worker: usize) -> u32 {
        until("the process of a worker", || self.doors[worker].pid())
    }

    /// Returns the process of a worker, if it is running and has its link.
    pub fn pid_now(&self, worker: usize) -> Option<u32> {
        self.doors[worker].pid().filter(|pid| process::is_alive(*pid))
    }

    /// Returns the index of the worker that a process belongs to.
    pub fn index_of(&self, pid: u32) -> usize {
        let found = (0..self.len()).find(|worker| self.doors[*worker].pid() == Some(pid));
        found.unwrap_or_else(|| panic!("process {pid} is of no worker"))
    }

    /// Replaces the rules of the link in front of a worker's shuffle server.
    pub fn set_rules(&self, worker: usize, rules: impl IntoIterator<Item = Rule>) {
        self.doors[worker].with(|link| link.set(rules));
    }

    /// Adds damage to the link in front of a worker's shuffle server.
    pub fn strike(&self, worker: usize, strike: Strike) {
        self.doors[worker].with(|link| link.strike(strike));
    }

    /// The same counts for the two links of one worker.
    pub fn fired_at(&self, worker: usize) -> (u64, u64) {
        let (door, master) = (self.doors[worker].fired(), &self.to_master[worker]);
        (door.0 + master.struck(), door.1 + master.treated())
    }

    /// Number of times that the links in front of the shuffle servers did damage, and that their rules
    /// applied.
    pub fn fired(&self) -> (u64, u64) {
        (0..self.len())
            .map(|worker| self.fired_at(worker))
            .fold((0, 0), |sum, one| (sum.0 + one.0, sum.1 + one.1))
    }

    /// Heals the link in front of a worker's shuffle server.
    pub fn heal_door(&self, worker: usize) {
        self.doors[worker].with(Link::heal);
    }

    /// Heals all links.
    pub fn heal(&self) {
        self.to_master.iter().for_each(Link::heal);
        self.doors.iter().for_each(|door| door.with(Link::heal));
    }

    /// Ends the cluster as a user would. Returns a description of each process that did not end in order.
    pub fn end(self) -> Vec<String> {
        let mut wrong = Vec::new();
        self.standing.request("POST", "shutdown", "");
        let code = self.standing.master.finish().status.code();
        if code != Some(0) {
            wrong.push(format!("the master ended with {code:?}"));
        }
        for (index, worker) in self.standing.workers.into_iter().enumerate() {
            let code = worker.finish().status.code();
            if !matches!(code, Some(0 | 5)) {
                wrong.push(format!("worker {index} ended with {code:?}"));
            }
        }
        wrong
    }
}

fn master(sandbox: &Sandbox, fleet: &Fleet) -> Running {
    let fixed = ["master", "--insecure-plaintext", "--allow-host", "127.0.0.1"];
    let master = sandbox.gristmill(fixed.into_iter().chain(fleet.master.iter().map(String::as_str)));
    fleet.environment.iter().fold(master, |master, (name, value)| master.env(name, value)).start()
}

fn own_address(index: usize) -> Ipv4Addr {
    Ipv4Addr::new(127, 0, 0, FIRST_ADDRESS + u8::try_from(index).unwrap())
}

fn any_port(address: Ipv4Addr) -> SocketAddr {
    SocketAddr::new(address.into(), 0)
}
