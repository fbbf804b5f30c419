//! Network namespaces as separate machines: each has an address of its own on a common switch, and mounts of
//! its own.
//!
//! Needs root and the `ip` program. Names are unique to the process and are removed when the network is
//! dropped.

use super::sandbox::{Invocation, PROGRAM, Sandbox};
use std::fs::File;
use std::net::IpAddr;
use std::path::Path;
use std::process::Command;
use std::sync::atomic::{AtomicU32, Ordering};

/// Counter of the networks of this process.
static NUMBER: AtomicU32 = AtomicU32::new(0);

/// Hosts on a switch.
pub struct Network {
    name: String,
    hosts: u8,
}

impl Network {
    /// Creates this many hosts, numbered from 1, with addresses from 10.77.0.1.
    pub fn new(hosts: u8) -> Self {
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let network = Self { name: format!("gm{}x{number}", std::process::id()), hosts };
        let switch = network.namespace(0);
        ip(&["netns", "add", &switch]);
        ip(&["-n", &switch, "link", "add", "switch", "type", "bridge"]);
        ip(&["-n", &switch, "link", "set", "switch", "up"]);
        for host in 1..=hosts {
            let (namespace, cable) = (network.namespace(host), format!("cable{host}"));
            ip(&["netns", "add", &namespace]);
            let end = ["peer", "name", "eth0", "netns", &namespace];
            ip(&[&["-n", &switch, "link", "add", &cable, "type", "veth"], &end[..]].concat());
            ip(&["-n", &switch, "link", "set", &cable, "master", "switch", "up"]);
            let address = format!("{}/24", network.address(host));
            ip(&["-n", &namespace, "address", "add", &address, "dev", "eth0"]);
            for link in ["lo", "eth0"] {
                ip(&["-n", &namespace, "link", "set", link, "up"]);
            }
        }
        network
    }

    fn namespace(&self, host: u8) -> String {
        format!("{}h{host}", self.name)
    }

    /// Returns the address of a host.
    pub fn address(&self, host: u8) -> IpAddr {
        IpAddr::from([10, 77, 0, host])
    }

    /// The program on a host. `prepare` is a shell script that runs there first and may mount over
    /// directories: those mounts are private.
    pub fn gristmill(&self, sandbox: &Sandbox, host: u8, prepare: &str, arguments: &[&str]) -> Invocation {
        let (namespace, script) = (self.namespace(host), format!("set -e\n{prepare}\nexec \"$@\""));
        let shell = ["netns", "exec", &namespace, "unshare", "-m", "sh", "-c", &script, "sh", PROGRAM];
        sandbox.program(Path::new("ip"), shell.iter().chain(arguments))
    }

    /// Drops everything that host `from` sends to host `to` from now on, without an error: it is sent to a
    /// network card that does not exist.
    pub fn cut(&self, from: u8, to: u8) {
        let address = self.address(to).to_string();
        let nobody = ["lladdr", "02:00:00:00:00:ee", "nud", "permanent", "dev", "eth0"];
        ip(&[&["-n", &self.namespace(from), "neigh", "replace", &address], &nobody[..]].concat());
    }

    /// Undoes [`Network::cut`].
    pub fn mend(&self, from: u8, to: u8) {
        let address = self.address(to).to_string();
        ip(&["-n", &self.namespace(from), "neigh", "del", &address, "dev", "eth0"]);
    }

    /// Limits both directions of this host's link to `rate`, a rate of `tc`.
    pub fn throttle(&self, host: u8, rate: &str) {
        let limit = ["root", "tbf", "rate", rate, "burst", "4kb", "latency", "400ms"];
        let own = ("eth0".to_owned(), self.namespace(host));
        for (link, namespace) in [own, (format!("cable{host}"), self.namespace(0))] {
            let replace = ["netns", "exec", &namespace, "tc", "qdisc", "replace", "dev", &link];
            ip(&[&replace[..], &limit[..]].concat());
        }
    }

    /// Removes the limit of this host's link.
    pub fn free(&self, host: u8) {
        let own = ("eth0".to_owned(), self.namespace(host));
        for (link, namespace) in [own, (format!("cable{host}"), self.namespace(0))] {
            ip(&["netns", "exec", &namespace, "tc", "qdisc", "del", "dev", &link, "root"]);
        }
    }

    /// Number of times that packets of this host had to wait for its throttle.
    pub fn throttled(&self, host: u8) -> u64 {
        let show = ["netns", "exec", &self.namespace(host), "tc", "-s", "qdisc", "show", "dev", "eth0"];
        let said = Command::new("ip").args(show).output().unwrap().stdout;
        let said = String::from_utf8_lossy(&said).into_owned();
        let (_, count) = said.split_once("overlimits ").unwrap();
        count.split_whitespace().next().unwrap().parse().unwrap()
    }

    /// Runs a function as a process on that host would, as far as sockets are concerned.
    pub fn on<T: Send>(&self, host: u8, work: impl FnOnce() -> T + Send) -> T {
        let file = File::open(format!("/run/netns/{}", self.namespace(host))).unwrap();
        std::thread::scope(|scope| {
            // A thread of its own, which moves to the namespace and ends there.
            let thread = scope.spawn(move || {
                let kind = rustix::thread::LinkNameSpaceType::Network;
                rustix::thread::move_into_link_name_space(std::os::fd::AsFd::as_fd(&file), Some(kind))
                    .unwrap();
                work()
            });
            thread.join().unwrap()
        })
    }
}

impl Drop for Network {
    fn drop(&mut self) {
        for host in 0..=self.hosts {
            // Links are removed with their namespaces.
            let _ = Command::new("ip").args(["netns", "delete", &self.namespace(host)]).output();
        }
    }
}

fn ip(arguments: &[&str]) {
    let output = Command::new("ip").args(arguments).output().unwrap();
    assert!(output.status.success(), "ip {arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
}
