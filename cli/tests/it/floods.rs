//! Floods of connections that send little: they cost a running job nothing but time.

use crate::support::sandbox::{PROGRAM, Running};
use crate::support::standing::{Standing, await_join_line};
use crate::support::{Sandbox, data::Random, oracle, process, say_skipped, until};
use rustix::net::{AddressFamily, SocketFlags, SocketType, bind, connect, ipproto, socket_with};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use std::fs;
use std::io::{ErrorKind, Read, Write};
use std::net::{Ipv4Addr, SocketAddr, SocketAddrV4, TcpStream};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

/// Connections that the flood holds open at each server.
const CONNECTIONS: usize = 1000;

/// KiB that a process may use beyond its budget under a flood.
const BEYOND_BUDGET_KIB: u64 = 64 << 10;

/// Keeps many connections open to each server, from 127.0.0.2 to 127.0.0.6, and replaces those that are
/// closed.
struct Flood {
    stop: Arc<AtomicBool>,
    opened: Arc<AtomicUsize>,
    threads: Vec<JoinHandle<()>>,
}

impl Flood {
    fn start(doors: &[SocketAddr]) -> Self {
        let (stop, opened) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicUsize::new(0)));
        let besiege = |&door: &SocketAddr| {
            let (stop, opened) = (stop.clone(), opened.clone());
            std::thread::spawn(move || besiege(door, &stop, &opened))
        };
        let threads = doors.iter().map(besiege).collect();
        Self { stop, opened, threads }
    }

    /// Waits until the flood has opened this many more.
    fn await_more(&self, connections: usize) {
        let before = self.opened.load(Ordering::Relaxed);
        until("a flood", || (before + connections <= self.opened.load(Ordering::Relaxed)).then_some(()));
    }

    fn end(self) {
        self.stop.store(true, Ordering::Relaxed);
        for thread in self.threads {
            thread.join().unwrap();
        }
    }
}

fn besiege(door: SocketAddr, stop: &AtomicBool, opened: &AtomicUsize) {
    let mut held: Vec<Option<TcpStream>> = (0..CONNECTIONS).map(|_| None).collect();
    while !stop.load(Ordering::Relaxed) {
        for (number, place) in held.iter_mut().enumerate() {
            let is_closed = |stream: &mut TcpStream| match stream.read(&mut [0; 512]) {
                Ok(got) => got == 0,
                Err(error) => error.kind() != ErrorKind::WouldBlock,
            };
            if place.as_mut().is_none_or(is_closed) {
                *place = knock(door, 2 + number as u8 % 5).ok();
                opened.fetch_add(usize::from(place.is_some()), Ordering::Relaxed);
            }
        }
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// Connects from 127.0.0.`from` and sends the start of a request.
fn knock(door: SocketAddr, from: u8) -> std::io::Result<TcpStream> {
    let socket =
        socket_with(AddressFamily::INET, SocketType::STREAM, SocketFlags::CLOEXEC, Some(ipproto::TCP))?;
    bind(&socket, &SocketAddrV4::new(Ipv4Addr::new(127, 0, 0, from), 0))?;
    connect(&socket, &door)?;
    let mut stream = TcpStream::from(socket);
    stream.write_all(b"POST /shuffle/job-1 HTTP/1.1\r\nHost: ")?;
    stream.set_nonblocking(true)?;
    Ok(stream)
}

/// Peak memory of a process so far, KiB.
fn memory_peak_kib(pid: u32) -> u64 {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap();
    line.trim().trim_end_matches("kB").trim().parse().unwrap()
}

/// The program under limits of the shell's `ulimit`.
fn limited(sandbox: &Sandbox, limits: &str, words: &str) -> Running {
    let script = format!("ulimit {limits} && exec \"$0\" {words}");
    sandbox.program(Path::new("/bin/sh"), ["-c", &script, PROGRAM]).start()
}

/// Starts a master and two workers under these limits.
fn start<'a>(sandbox: &'a Sandbox, limits: &str) -> Standing<'a> {
    let master = limited(sandbox, limits, "master");
    let join = await_join_line(&master);
    let worker = "worker --workers 1 --slots 1 --memory 64MiB";
    let workers = (0..2).map(|_| limited(sandbox, limits, worker)).collect();
    let standing = Standing::new(sandbox, master, workers, join);
    standing.await_workers(2);
    standing
}

#[test]
fn thousand_connections_of_a_stranger_cost_a_running_job_nothing_but_time() {
    let needed = 3 * CONNECTIONS as u64 + 200;
    let limit = getrlimit(Resource::Nofile);
    if limit.maximum.is_some_and(|most| most < needed) {
        return say_skipped("a flood of connections", "needs more open files than this process may have");
    }
    let raised = Rlimit { current: Some(needed.max(limit.current.unwrap_or(0))), maximum: limit.maximum };
    setrlimit(Resource::Nofile, raised).unwrap();

    let sandbox = Sandbox::new();
    let standing = start(&sandbox, "-n 1024");
    let input = sandbox.write("text", Random::seeded(171).text(3_000_000, &[" ", "\n"]));
    let arguments = |output: &str| {
        let output = sandbox.text(output);
        ["submit", "wordcount", &input, "--split-size", "256KiB", "--reduces", "4", "--output", &output]
            .map(str::to_owned)
    };
    sandbox.gristmill(arguments("before")).finish().expect_code(0);

    let processes: Vec<u32> = sandbox.processes().iter().map(|found| found.pid).collect();
    let doors_of = |pid: &u32| (*pid, process::listening(*pid));
    let listening: Vec<(u32, Vec<SocketAddr>)> =
        processes.iter().map(doors_of).filter(|(_, doors)| !doors.is_empty()).collect();
    assert_eq!(listening.len(), 3, "a master and two workers: {listening:?}");
    let doors: Vec<SocketAddr> = listening.iter().flat_map(|(_, doors)| doors.clone()).collect();
    let before: Vec<u64> = listening.iter().map(|(pid, _)| memory_peak_kib(*pid)).collect();
    let flood = Flood::start(&doors);
    flood.await_more(2 * CONNECTIONS * doors.len());
    sandbox.arm("map");
    let job = sandbox.gristmill(arguments("under")).start();
    sandbox.stopped_at("map");
    flood.await_more(CONNECTIONS);
    sandbox.gristmill(["status"]).finish().expect_code(0);
    sandbox.go_on("map");
    job.finish().expect_code(0);
    flood.await_more(CONNECTIONS);
    for ((pid, _), before) in listening.iter().zip(before) {
        let peak = memory_peak_kib(*pid);
        assert!(peak <= before + BEYOND_BUDGET_KIB, "process {pid} took {peak} KiB, and {before} KiB before");
    }
    flood.end();
    let counts = |output: &str| oracle::counts_of_parts(&oracle::parts(&sandbox.path(output)));
    assert_eq!(counts("under"), counts("before"));
    let status = standing.job("job-2");
    let attempts = &status["attempts"];
    assert_eq!((&attempts["failed_other"], &attempts["lost"]), (&0.into(), &0.into()), "{status}");
    standing.end();
}

#[test]
fn low_limit_of_open_files_is_raised_as_far_as_it_may_be() {
    let sandbox = Sandbox::new();
    let standing = start(&sandbox, "-Sn 100 && ulimit -Hn 900");
    let mut seen = 0;
    for found in sandbox.processes() {
        if process::listening(found.pid).is_empty() {
            continue;
        }
        let limits = fs::read_to_string(format!("/proc/{}/limits", found.pid)).unwrap();
        let line = limits.lines().find_map(|line| line.strip_prefix("Max open files")).unwrap();
        let words: Vec<&str> = line.split_whitespace().collect();
        assert_eq!(words[..2], ["900", "900"], "{}", found.command);
        seen += 1;
    }
    assert_eq!(seen, 3, "a master and two workers");
    standing.end();
}
