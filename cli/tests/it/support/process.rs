//! Processes as the kernel shows them: their owner, the ports that they listen on, and what others can read
//! of them.

use super::until;
use rustix::process::{Pid, Signal, kill_process};
use std::collections::BTreeSet;
use std::fs;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

/// One live process.
#[derive(Clone, Debug)]
pub struct Process {
    /// Process id.
    pub pid: u32,
    /// Command line, words joined by spaces.
    pub command: String,
}

/// Returns live processes whose environment contains this text. Zombies have no environment and do not count.
pub fn marked(mark: &str) -> Vec<Process> {
    let mut found = Vec::new();
    for entry in fs::read_dir("/proc").unwrap().flatten() {
        let Some(pid) = entry.file_name().to_str().and_then(|name| name.parse::<u32>().ok()) else {
            continue;
        };
        if holds(&environment(pid), mark) {
            found.push(Process { pid, command: command_line(pid) });
        }
    }
    found
}

/// True if `bytes` contain `text`.
pub fn holds(bytes: &[u8], text: &str) -> bool {
    bytes.windows(text.len()).any(|window| window == text.as_bytes())
}

/// Returns the environment of a process as the kernel shows it; empty if the process does not exist or is
/// another user's.
pub fn environment(pid: u32) -> Vec<u8> {
    fs::read(format!("/proc/{pid}/environ")).unwrap_or_default()
}

/// Returns the command line of a process; empty if it does not exist.
pub fn command_line(pid: u32) -> String {
    let bytes = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
    String::from_utf8_lossy(&bytes).replace('\0', " ").trim_end().to_owned()
}

/// True if a process exists and is not a zombie. Its environment cannot be used for this: it is empty for a
/// moment while the process executes another program.
pub fn is_alive(pid: u32) -> bool {
    !is_zombie(pid)
}

/// True if a process was stopped.
pub fn is_stopped(pid: u32) -> bool {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    stat.rsplit(')').next().is_some_and(|rest| rest.trim_start().starts_with('T'))
}

/// True if a process has ended and released all its resources but its process id.
pub fn is_zombie(pid: u32) -> bool {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    let state = stat.rsplit(')').next().unwrap_or_default().trim_start();
    // Its first thread may have ended before others, which still hold its files and locks.
    let threads = || fs::read_dir(format!("/proc/{pid}/task")).map_or(0, Iterator::count);
    state.is_empty() || state.starts_with('Z') && threads() <= 1
}

/// Sends a signal. A process that does not exist is no error, since tests race with the end of processes that
/// they kill.
pub fn signal(pid: u32, signal: Signal) {
    let pid = Pid::from_raw(i32::try_from(pid).unwrap()).unwrap();
    match kill_process(pid, signal) {
        Ok(()) | Err(rustix::io::Errno::SRCH) => {}
        Err(error) => panic!("could not signal {pid:?}: {error}"),
    }
}

/// `kill -9`. It has ended after this; on a busy machine that takes a moment.
pub fn kill(pid: u32) {
    signal(pid, Signal::KILL);
    until("the end of a killed process", || is_zombie(pid).then_some(()));
}

/// Number of times that the main thread of a process has waited for something so far.
pub fn pauses(pid: u32) -> u64 {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("voluntary_ctxt_switches:"));
    line.unwrap().trim().parse().unwrap()
}

/// Returns the parent of a process.
pub fn parent_of(pid: u32) -> Option<u32> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    stat.rsplit(')').next()?.split_whitespace().nth(1)?.parse().ok()
}

/// Returns the addresses at which a process listens for TCP connections.
pub fn listening(pid: u32) -> Vec<SocketAddr> {
    tcp(pid).into_iter().filter(|(_, listens)| *listens).map(|(address, _)| address).collect()
}

/// Number of TCP connections that a process has open.
pub fn connections(pid: u32) -> usize {
    tcp(pid).into_iter().filter(|(_, listens)| !listens).count()
}

/// True if a process has a TCP socket with this local address: it is then the other end of a connection.
pub fn has_port(pid: u32, own: SocketAddr) -> bool {
    tcp(pid).contains(&(own, false))
}

/// True if a process has any TCP connection.
pub fn is_connected(pid: u32) -> bool {
    tcp(pid).iter().any(|(_, listens)| !listens)
}

/// Returns the children of a process that still run.
pub fn children(pid: u32) -> Vec<u32> {
    let listed = fs::read_to_string(format!("/proc/{pid}/task/{pid}/children")).unwrap_or_default();
    listed.split_whitespace().map(|child| child.parse().unwrap()).collect()
}

/// Returns the local address of each TCP socket of a process, and true if it listens there.
fn tcp(pid: u32) -> Vec<(SocketAddr, bool)> {
    let inodes = sockets(pid);
    let mut found = Vec::new();
    for file in ["tcp", "tcp6"] {
        let table = fs::read_to_string(format!("/proc/{pid}/net/{file}")).unwrap_or_default();
        for line in table.lines().skip(1) {
            let words: Vec<&str> = line.split_whitespace().collect();
            // The fourth column is the state, 0A for listening; the tenth is the number of the socket.
            if inodes.contains(words[9]) {
                found.push((address(words[1]), words[3] == "0A"));
            }
        }
    }
    found
}

fn sockets(pid: u32) -> BTreeSet<String> {
    let mut inodes = BTreeSet::new();
    for entry in fs::read_dir(format!("/proc/{pid}/fd")).into_iter().flatten().flatten() {
        let target = fs::read_link(entry.path()).unwrap_or_default();
        let target = target.to_string_lossy().into_owned();
        if let Some(inode) = target.strip_prefix("socket:[").and_then(|rest| rest.strip_suffix(']')) {
            inodes.insert(inode.to_owned());
        }
    }
    inodes
}

/// Parses `0100007F:1F90`: the address as 32-bit words in the machine's byte order, the port in plain order.
fn address(text: &str) -> SocketAddr {
    let (address, port) = text.split_once(':').unwrap();
    let words: Vec<u32> = (0..address.len())
        .step_by(8)
        .map(|at| u32::from_str_radix(&address[at..at + 8], 16).unwrap())
        .collect();
    let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_ne_bytes()).collect();
    let ip = match <[u8; 4]>::try_from(bytes.as_slice()) {
        Ok(four) => IpAddr::V4(Ipv4Addr::from(four)),
        Err(_) => IpAddr::V6(Ipv6Addr::from(<[u8; 16]>::try_from(bytes.as_slice()).unwrap())),
    };
    SocketAddr::new(ip, u16::from_str_radix(port, 16).unwrap())
}
