//! Unauthenticated clients: without the secret they read nothing and change nothing, and the secret is never
//! exposed.

use crate::support::http::request;
use crate::support::sandbox::PROGRAM;
use crate::support::standing::Standing;
use crate::support::{Sandbox, data::Random, is_root, oracle, process, until};
use rustix::process::Signal;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener};
use std::os::unix::fs::MetadataExt;
use std::sync::{Arc, Mutex};
use std::thread;

/// Every route of a master and of a worker, and some that do not exist.
const ROUTES: [&str; 26] = [
    "/page",
    "/api/v1",
    "/api/v1/status",
    "/api/v1/jobs",
    "/api/v1/jobs/job-1",
    "/api/v1/jobs/job-1/watch",
    "/api/v1/jobs/job-1/trace",
    "/api/v1/jobs/job-1/logs",
    "/api/v1/jobs/job-1/cancel",
    "/api/v1/workers/ended",
    "/api/v1/workers/worker-1/drain",
    "/api/v1/shutdown",
    "/api/v1/feed",
    "/api/v1/page",
    "/api/v1/page/submit",
    "/metrics",
    "/api/v1/no-such-route",
    "/worker/connect",
    "/shuffle/job-1",
    "/files/job-1",
    "/files/sample",
    "/list",
    "/check",
    "/parts/map-0.0/1/00000000",
    "/..%2f..%2fetc/passwd",
    "/favicon.ico",
];

const METHODS: [&str; 8] = ["GET", "HEAD", "POST", "PUT", "DELETE", "PATCH", "OPTIONS", "TRACE"];

/// Returns the addresses of a master and its worker processes, after a job whose data could leak.
fn doors(sandbox: &Sandbox, standing: &Standing<'_>) -> Vec<SocketAddr> {
    let input = sandbox.write("text", "a secret word\n");
    sandbox.gristmill(["submit", "grep", "secret", &input]).finish().expect_code(0);
    let mut doors: Vec<SocketAddr> =
        sandbox.processes().iter().flat_map(|found| process::listening(found.pid)).collect();
    doors.sort();
    doors.dedup();
    assert!(doors.contains(&standing.join.address));
    assert_eq!(doors.len(), 2, "a master and a worker process: {doors:?}");
    doors
}

#[test]
fn every_route_is_closed_without_the_secret() {
    let sandbox = Sandbox::new();
    let standing = Standing::start(&sandbox, 1);
    let wrong = format!("Bearer {}", standing.join.with_wrong_token().split_once('#').unwrap().1);
    for door in doors(&sandbox, &standing) {
        let host = door.to_string();
        let without: &[(&str, &str)] = &[("Host", &host)];
        let forms = [
            without.to_vec(),
            vec![("Host", &host), ("Authorization", &wrong)],
            vec![("Host", &host), ("Authorization", "Basic Z3Jpc3Q6bWlsbA==")],
        ];
        for route in ROUTES {
            for method in METHODS {
                for (number, form) in forms.iter().enumerate() {
                    let answer = request(door, method, route, form);
                    // After many wrong secrets the server stops checking more; it does not open.
                    let closed = answer.status == 401 || (number != 0 && answer.status == 429);
                    assert!(closed, "{method} {door}{route} {form:?}: {}", answer.status);
                    assert!(answer.body.is_empty(), "{method} {door}{route} answers {:?}", answer.body);
                }
            }
        }
    }
    // The right secret still works: unauthenticated clients cannot lock the owner out.
    let bearer = format!("Bearer {}", standing.join.token);
    let host = standing.join.address.to_string();
    let form = [("Host", host.as_str()), ("Authorization", bearer.as_str())];
    assert_eq!(request(standing.join.address, "GET", "/api/v1/status", &form).status, 200);
    standing.end();
}

#[test]
fn request_for_another_host_is_refused_even_with_the_secret() {
    let sandbox = Sandbox::new();
    let standing = Standing::start(&sandbox, 1);
    let bearer = format!("Bearer {}", standing.join.token);
    for door in doors(&sandbox, &standing) {
        let good = door.to_string();
        for host in ["evil.example", "evil.example:80", "127.0.0.1:1", "", "127.0.0.1.evil.example"] {
            let form = [("Host", host), ("Authorization", &bearer)];
            let answer = request(door, "GET", "/api/v1/status", &form);
            assert_eq!((answer.status, answer.body.len()), (421, 0), "Host {host:?}");
        }
        let twice = [("Host", good.as_str()), ("Host", "evil.example"), ("Authorization", &bearer)];
        assert_eq!(request(door, "GET", "/api/v1/status", &twice).status, 421);
        let page = [("Host", good.as_str()), ("Authorization", &bearer), ("Origin", "http://evil.example")];
        assert_eq!(request(door, "GET", "/api/v1/status", &page).status, 403);
    }
    standing.end();
}

#[test]
fn secret_is_in_no_command_line_environment_or_log() {
    let sandbox = Sandbox::new();
    let standing = Standing::start(&sandbox, 1);
    sandbox.arm("map");
    let input = sandbox.write("text", "a\n");
    let client = sandbox.gristmill(["submit", "wordcount", &input]).env("GRISTMILL_LOG", "trace").start();
    sandbox.stopped_at("map");
    let token = standing.join.key.clone();
    let processes = sandbox.processes();
    assert_eq!(processes.len(), 4, "a master, a worker and its process, a client: {processes:#?}");
    for found in &processes {
        assert!(!found.command.contains(&token), "{}", found.command);
        assert!(!process::holds(&process::environment(found.pid), &token), "{}", found.command);
    }
    sandbox.go_on("map");
    client.finish().expect_code(0);
    assert!(standing.master.stdout().is_empty(), "stdout is a file that others may read");
    standing.end();
    let logs = oracle::names(&sandbox.path("log"));
    for name in logs.iter().filter(|name| name.ends_with(".stderr")) {
        let log = std::fs::read(sandbox.path(&format!("log/{name}"))).unwrap();
        assert!(!process::holds(&log, &token), "the secret is in {name}");
    }
}

/// Listens where another process did, responds to every request with success, and records what it receives.
struct Impostor {
    taken: Arc<Mutex<Vec<u8>>>,
}

impl Impostor {
    fn at(address: SocketAddr) -> Self {
        let taken = Arc::new(Mutex::new(Vec::new()));
        let kept = taken.clone();
        let listener = until("the port of a process that has ended", || TcpListener::bind(address).ok());
        thread::spawn(move || {
            for stream in listener.incoming() {
                let (mut stream, kept) = (stream.unwrap(), kept.clone());
                thread::spawn(move || {
                    let mut bytes = [0; 4096];
                    while let Ok(count @ 1..) = stream.read(&mut bytes) {
                        kept.lock().unwrap().extend(&bytes[..count]);
                        let lie = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}";
                        let _ = stream.write_all(lie);
                    }
                });
            }
        });
        Self { taken }
    }

    /// Returns what was received since the last call.
    fn take(&self) -> String {
        String::from_utf8(std::mem::take(&mut *self.taken.lock().unwrap())).unwrap()
    }
}

#[test]
fn whoever_takes_the_port_of_a_killed_master_learns_nothing() {
    let sandbox = Sandbox::new();
    let mut standing = Standing::start(&sandbox, 1);
    let input = sandbox.write("text", "b a\na\n");
    sandbox.gristmill(["submit", "wordcount", &input]).finish().expect_code(0);
    standing.master.signal(Signal::KILL);
    let (token, address) = (standing.join.key.clone(), standing.join.address);
    let check = |who: &str, taken: String| {
        assert!(taken.contains("POST /hello HTTP/1.1\r\n"), "{who} did not call: {taken:?}");
        let lower = taken.to_ascii_lowercase();
        assert!(!taken.contains(&token) && !lower.contains("authorization"), "{who} told a secret: {taken}");
        let requests = taken.matches("HTTP/1.1\r\n").count();
        assert_eq!(taken.matches("POST /hello HTTP/1.1\r\n").count(), requests, "{who} told more: {taken}");
    };
    let impostor = Impostor::at(address);
    // The worker, and its supervisor, which would report the process that it replaces.
    let worker = standing.workers.remove(0).finish().expect_code(6);
    worker.expect_words(&["refused the token"]);
    check("a worker", impostor.take());
    for command in [
        &["status"] as &[&str],
        &["jobs"],
        &["wait", "job-1"],
        &["cancel", "job-1"],
        &["policy"],
        &["submit", "wordcount", &input],
    ] {
        sandbox.gristmill(command).finish().expect_code(6).expect_words(&["does not know the secret"]);
        check(command[0], impostor.take());
    }
    // The same for a client that was tricked into calling another address.
    let other = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let impostor = Impostor::at(other);
    sandbox.gristmill(["status", "--master", &other.to_string()]).finish().expect_code(6);
    check("a client", impostor.take());
}

#[test]
fn secret_of_an_embedded_cluster_is_in_no_command_line_or_environment() {
    let sandbox = Sandbox::new();
    let input = sandbox.write("text", Random::seeded(131).text(10_000, &[" ", "\n"]));
    sandbox.arm("map");
    let running = sandbox.gristmill(["run", "wordcount", &input, "--workers", "2"]).start();
    sandbox.stopped_at("map");
    // No test knows the secret itself: any text that is long enough and looks random is suspicious.
    let suspicious = |text: &str| {
        let mut words = text.split(|c: char| !(c.is_ascii_alphanumeric() || "-_".contains(c)));
        words.any(|word| word.len() == 43)
    };
    assert!(suspicious(&format!("--secret={}", "x".repeat(43))));
    let processes = sandbox.processes();
    assert_eq!(processes.len(), 4, "{processes:#?}");
    let own = process::environment(running.pid());
    for found in processes {
        assert!(!suspicious(&found.command), "{}", found.command);
        assert_eq!(
            process::environment(found.pid),
            own,
            "{} was given an environment of its own",
            found.command
        );
        let name = found.command.split(' ').next().unwrap();
        assert_eq!(name, PROGRAM, "children are seen under the program's name");
    }
    sandbox.go_on("map");
    running.finish().expect_code(0);
}

#[test]
fn run_listens_on_loopback_alone() {
    let sandbox = Sandbox::new();
    let input = sandbox.write("text", Random::seeded(132).text(10_000, &[" ", "\n"]));
    sandbox.arm("map");
    let running = sandbox.gristmill(["run", "wordcount", &input, "--workers", "2"]).start();
    sandbox.stopped_at("map");
    let doors: Vec<SocketAddr> =
        sandbox.processes().iter().flat_map(|found| process::listening(found.pid)).collect();
    assert!(doors.len() >= 3, "a master and two workers: {doors:?}");
    assert!(doors.iter().all(|door| door.ip().is_loopback()), "{doors:?}");
    sandbox.go_on("map");
    running.finish().expect_code(0);
    sandbox.assert_nothing_left();
    for door in doors {
        assert!(std::net::TcpStream::connect(door).is_err(), "{door} is still open");
    }
}

#[test]
fn directories_of_a_run_are_closed_to_others() {
    let sandbox = Sandbox::new();
    // So little memory that maps must spill.
    let input = sandbox.write("text", Random::seeded(133).text(6_000_000, &[" ", "\n"]));
    sandbox.arm("reduce");
    let arguments = ["run", "sort", "-r", &input, "--workers", "2", "--memory", "16MiB", "--reduces", "1"];
    let running = sandbox.gristmill(arguments).start();
    sandbox.stopped_at("reduce");
    let mut seen = 0;
    let mut open = vec![sandbox.path("tmp")];
    while let Some(directory) = open.pop() {
        for name in oracle::names(&directory) {
            let path = directory.join(name);
            let metadata = std::fs::metadata(&path).unwrap();
            let outermost = directory == sandbox.path("tmp");
            if metadata.is_dir() {
                // The content of a private directory is private.
                assert!(!outermost || metadata.mode() & 0o7777 == 0o700, "{}", path.display());
                open.push(path);
            } else {
                assert!(!outermost, "{} lies open", path.display());
                seen += 1;
            }
        }
    }
    assert!(seen > 0, "there was nothing to see");
    sandbox.go_on("reduce");
    running.finish().expect_code(0);
}

#[test]
fn master_refuses_to_listen_openly_unless_told() {
    let sandbox = Sandbox::new();
    let refused = |flags: &[&str], flag: &str| {
        let finished = sandbox.gristmill([&["master"], flags].concat()).finish().expect_code(3);
        finished.expect_words(&["refused to listen", flag]);
    };
    refused(&["--listen", "0.0.0.0:0"], "--listen-everywhere");
    refused(&["--listen", "[::]:0", "--insecure-plaintext", "--allow-root"], "--listen-everywhere");
    if is_root("a master as root beyond this machine") {
        // An address that this machine does not have: refused before the system is asked.
        refused(&["--listen", "192.0.2.1:0"], "--allow-root");
        refused(&["--listen", "192.0.2.1:0", "--insecure-plaintext"], "--allow-root");
    }
}

#[test]
fn names_that_drive_a_terminal_or_are_too_long_are_refused_and_not_repeated() {
    let sandbox = Sandbox::new();
    let standing = Standing::start(&sandbox, 1);
    let input = sandbox.write("text", "a\n");
    let long = "x".repeat(100_000);
    for flag in ["--label", "--pool"] {
        for (name, words) in [
            ("a\u{1b}]52;c;eA==\u{7}", "`a\\u001b]52;c;eA==\\u0007` holds characters"),
            ("a\u{9b}2J", "`a\\u009b2J` holds characters"),
            ("\u{202e}txt.exe", "`\\u202etxt.exe` holds characters"),
            (&long, "has 100000 bytes; a name has 1 to 256"),
        ] {
            let arguments = ["submit", "wordcount", &input, flag, name, "--quiet"];
            let refused = sandbox.gristmill(arguments).finish().expect_code(2).expect_words(&[words]);
            assert!(!refused.stderr.chars().any(|c| c.is_control() && c != '\n'), "{:?}", refused.stderr);
            assert!(refused.stderr.len() < 1000);
        }
    }
    // The argument cannot be a job or a task.
    let refused = sandbox.gristmill(["status", "job-\u{1b}[2J"]).finish().expect_code(2);
    assert!(!refused.stderr.contains('\u{1b}'), "{:?}", refused.stderr);
    standing.end();
}
