//! Several machines, simulated by network namespaces that share no directory with the data.
//!
//! Needs root; reports a skip otherwise. Networks that lose or delay packets are not tested here.

use crate::support::data::{Random, tool};
use crate::support::namespace::Network;
use crate::support::sandbox::{Invocation, Running, Sandbox};
use crate::support::standing::{JoinLine, await_join_line};
use crate::support::{is_root, oracle, process, until};
use rustix::process::Signal;
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::time::Duration;

/// Number of the master's host.
const MASTER: u8 = 1;
const FIRST_WORKER: u8 = 2;
const SECOND_WORKER: u8 = 3;
const SUBMITTER: u8 = 4;

/// Timeout of a scanned port.
const SCAN_TIMEOUT: Duration = Duration::from_secs(5);

fn possible(what: &str) -> bool {
    is_root(what) && tool("ip", what) && tool("unshare", what)
}

/// A master and two workers on hosts of their own; none of them sees the sandbox's directory `data`.
struct Lan<'a> {
    sandbox: &'a Sandbox,
    network: Network,
    master: Running,
    workers: Vec<Running>,
    join: String,
}

impl<'a> Lan<'a> {
    /// Starts all processes. `flags` apply to all of them; `prepare` runs on each worker's host first.
    fn start(sandbox: &'a Sandbox, flags: &[&'a str], prepare: &dyn Fn(u8) -> String) -> Self {
        let network = Network::new(4);
        let hide = hide(sandbox);
        let listen = SocketAddr::new(network.address(MASTER), 0).to_string();
        let arguments = [&["master", "--listen", &listen], flags].concat();
        let master = network.gristmill(sandbox, MASTER, &hide, &arguments).start();
        let line = await_join_line(&master);
        let join = sandbox.write_private("join-line", &line.text);
        let mut lan = Self { sandbox, network, master, workers: Vec::new(), join };
        for host in [FIRST_WORKER, SECOND_WORKER] {
            let prepare = format!("{hide}\n{}", prepare(host));
            let fixed = ["worker", "--workers", "1", "--slots", "1", "--join", &lan.join];
            let worker = lan.network.gristmill(sandbox, host, &prepare, &[&fixed, flags].concat()).start();
            lan.workers.push(worker);
            let joined = lan.workers.len();
            until(&format!("worker {joined}"), || {
                let plain = flags.iter().find(|flag| **flag == "--insecure-plaintext");
                let fixed = ["status", "--json", "--join", &lan.join];
                let asked: Vec<&str> = fixed.into_iter().chain(plain.copied()).collect();
                let status = lan.command(&asked).finish().expect_code(0).json();
                (status["workers"].as_array().unwrap().len() == joined).then_some(())
            });
        }
        lan
    }

    /// A command on the submitter's host, which sees the data.
    fn command(&self, arguments: &[&str]) -> Invocation {
        self.network.gristmill(self.sandbox, SUBMITTER, "", arguments)
    }

    fn end(self) {
        // Workers first: otherwise they wait for the next master.
        for process in self.workers.into_iter().chain([self.master]) {
            process.signal(Signal::TERM);
            process.finish().expect_code(0);
        }
        self.sandbox.assert_nothing_left();
    }
}

#[test]
fn join_line_of_a_master_that_listens_everywhere_is_one_that_another_host_can_use() {
    if !possible("a master that listens on every network") {
        return;
    }
    let sandbox = Sandbox::new();
    let network = Network::new(2);
    let everywhere = ["master", "--listen", "0.0.0.0:0", "--listen-everywhere", "--allow-root"];
    let master = network.gristmill(&sandbox, MASTER, "", &everywhere).start();
    let line = await_join_line(&master);
    assert_eq!(line.address.ip(), network.address(MASTER));
    until("a word on how it is reached", || {
        let said = master.stderr();
        said.contains(&format!("the join line names {}", line.address)).then_some(())
    });
    let join = sandbox.write_private("join-line", &line.text);
    let fixed = ["worker", "--workers", "1", "--slots", "1", "--allow-root", "--join", &join];
    let worker = network.gristmill(&sandbox, FIRST_WORKER, "", &fixed).start();
    until("the worker", || {
        let asked = network.gristmill(&sandbox, FIRST_WORKER, "", &["status", "--json", "--join", &join]);
        let status = asked.finish().expect_code(0).json();
        (status["workers"].as_array().unwrap().len() == 1).then_some(())
    });
    for process in [worker, master] {
        process.signal(Signal::TERM);
        process.finish().expect_code(0);
    }
    sandbox.assert_nothing_left();
}

/// Hides the directory `data` of the sandbox behind an empty one.
fn hide(sandbox: &Sandbox) -> String {
    std::fs::create_dir_all(sandbox.path("data")).unwrap();
    format!("mount -t tmpfs none '{}'", sandbox.text("data"))
}

/// Writes input for the four jobs. Returns their arguments, with the same number of parts everywhere.
fn four_jobs(sandbox: &Sandbox) -> Vec<(&'static str, Vec<String>)> {
    let text = sandbox.write("data/text", Random::seeded(141).text(60_000, &[" ", "\n"]));
    let mut random = Random::seeded(142);
    let mut rows = |count: usize| -> String {
        (0..count).map(|row| format!("{},\"value, {row}\"\n", random.below(50))).collect()
    };
    let (left, right) =
        (sandbox.write("data/left.csv", rows(300)), sandbox.write("data/right.csv", rows(60)));
    let words = |text: &[&str]| -> Vec<String> {
        text.iter()
            .chain(&["--reduces", "3", "--split-size", "4KiB"])
            .map(|word| (*word).to_owned())
            .collect()
    };
    vec![
        ("wordcount", words(&["wordcount", &text])),
        ("sort", words(&["sort", &text])),
        ("grep", words(&["grep", "Word[ab]", &text])),
        (
            "join",
            words(&["join", "--left", &left, "--right", &right, "--on", "1=1", "--strategy", "repartition"]),
        ),
        (
            "broadcast",
            words(&["join", "--left", &left, "--right", &right, "--on", "1", "--strategy", "broadcast"]),
        ),
    ]
}

/// Checks that the four jobs give the same output on the LAN as on one machine.
fn four_jobs_equal_a_local_run(flags: &[&str]) {
    let sandbox = Sandbox::new();
    let lan = Lan::start(&sandbox, flags, &|_| String::new());
    for (name, arguments) in four_jobs(&sandbox) {
        let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
        let (local, remote) = (format!("data/{name}-local"), format!("data/{name}-remote"));
        let here = sandbox.text(&local);
        let run = [&["run"], &arguments[..], &["--output", &here]].concat();
        sandbox.gristmill(run).finish().expect_code(0);
        let out = sandbox.text(&remote);
        let fixed = ["--join", &lan.join, "--json", "--output", &out];
        let submit = [&["submit"], flags, &arguments[..], &fixed].concat();
        let report = lan.command(&submit).finish().expect_code(0).json();
        assert!(
            oracle::parts(&sandbox.path(&remote)) == oracle::parts(&sandbox.path(&local)),
            "{name} differs"
        );
        let names = oracle::names(&sandbox.path(&remote));
        assert_eq!(names, oracle::names(&sandbox.path(&local)), "{name} left something");
        let totals = &report["status"]["totals"];
        assert_eq!((&totals["splits_local"], &totals["splits_same_host"]), (&0.into(), &0.into()), "{name}");
        assert_eq!(totals["splits_remote"], report["status"]["maps"]["total"], "{name}");
    }
    lan.end();
}

#[test]
fn four_jobs_run_on_hosts_that_do_not_see_the_data() {
    if possible("four jobs on several hosts") {
        four_jobs_equal_a_local_run(&["--allow-root"]);
    }
}

#[test]
fn four_jobs_run_in_plain_http_if_that_was_allowed() {
    if possible("four jobs in plain HTTP on several hosts") {
        four_jobs_equal_a_local_run(&["--allow-root", "--insecure-plaintext"]);
    }
}

#[test]
fn parts_that_are_sent_are_synced_unless_that_was_waived() {
    if !possible("syncing sent parts") {
        return;
    }
    let sandbox = Sandbox::new();
    let lan = Lan::start(&sandbox, &["--allow-root"], &|_| String::new());
    let text = sandbox.write("data/text", "b a\na\n");
    // The first sync fails, which costs an attempt.
    sandbox.arm("submitter.sync");
    let token = sandbox.path("faults/submitter.sync");
    for (flag, synced) in [(&["--no-sync"] as &[&str], false), (&[], true)] {
        let out = sandbox.text(&format!("data/{synced}"));
        let fixed = ["submit", "wordcount", &text, "--reduces", "1", "--allow-root", "--join", &lan.join];
        let arguments = [&fixed, flag, &["--output", &out]].concat();
        lan.command(&arguments).finish().expect_code(0);
        assert_eq!(token.exists(), !synced, "{flag:?}");
        let part = sandbox.path(&format!("data/{synced}/part-00000"));
        assert_eq!(std::fs::read_to_string(part).unwrap(), "a\t2\nb\t1\n");
    }
    lan.end();
}

#[test]
fn plain_http_between_hosts_is_refused_on_either_side_unless_allowed() {
    if !possible("plain HTTP between hosts") {
        return;
    }
    let sandbox = Sandbox::new();
    let lan = Lan::start(&sandbox, &["--allow-root", "--insecure-plaintext"], &|_| String::new());
    let worker = ["worker", "--workers", "1", "--join", &lan.join, "--allow-root"];
    for arguments in [&worker as &[&str], &["status", "--join", &lan.join]] {
        let refused = lan.network.gristmill(&sandbox, SECOND_WORKER, "", arguments).finish().expect_code(3);
        refused.expect_words(&["refused", "without TLS", "--insecure-plaintext"]);
    }
    lan.end();
}

#[test]
fn between_hosts_everything_is_encrypted_by_default() {
    if !possible("encryption between hosts") {
        return;
    }
    let sandbox = Sandbox::new();
    let lan = Lan::start(&sandbox, &["--allow-root"], &|_| String::new());
    let line = JoinLine::read(&std::fs::read_to_string(&lan.join).unwrap());
    assert!(line.text.contains('.') && line.text.ends_with(|c: char| c != '='), "no key in {}", line.text);
    let doors: Vec<SocketAddr> =
        sandbox.processes().iter().flat_map(|found| process::listening(found.pid)).collect();
    assert_eq!(doors.len(), 3, "{doors:?}");
    for door in doors {
        let answer = lan.network.on(SUBMITTER, || {
            use std::io::{Read, Write};
            let mut stream = TcpStream::connect(door).unwrap();
            stream.set_read_timeout(Some(SCAN_TIMEOUT)).unwrap();
            stream.write_all(b"GET /api/v1/status HTTP/1.1\r\nHost: x\r\n\r\n").unwrap();
            let mut answer = Vec::new();
            // It may close or reset the connection.
            let _ = stream.read_to_end(&mut answer);
            answer
        });
        assert!(!process::holds(&answer, "HTTP"), "{door} speaks plain HTTP: {answer:?}");
    }
    // A server with another key is not the one of the join line, and gets no data.
    let (rest, pin) = line.text.rsplit_once('.').unwrap();
    let first = if pin.starts_with('A') { 'B' } else { 'A' };
    let impostor = sandbox.write_private("impostor", format!("{rest}.{first}{}", &pin[1..]));
    let finished = lan.command(&["status", "--join", &impostor]).finish();
    assert_ne!(finished.status.code(), Some(0));
    finished.expect_words(&["error: "]);
    lan.end();
}

#[test]
fn file_on_a_worker_is_read_on_that_worker() {
    if !possible("files on workers") {
        return;
    }
    let sandbox = Sandbox::new();
    let own = sandbox.text("own");
    std::fs::create_dir(&own).unwrap();
    let prepare =
        |host: u8| format!("mount -t tmpfs none '{own}'\necho 'kept on host {host}' > '{own}/file'");
    let lan = Lan::start(&sandbox, &["--allow-root"], &prepare);
    let submit = |paths: &[&str], out: &str| {
        let fixed = ["submit", "--allow-root", "grep", "kept"];
        let rest = ["--join", &lan.join, "--json", "--output", out];
        lan.command(&[&fixed[..], paths, &rest].concat()).finish()
    };
    let (one, two) = (format!("worker-1:{own}/file"), format!("worker-2:{own}/file"));
    let report = submit(&[&two, &one], &sandbox.text("data/out")).expect_code(0).json();
    assert_eq!(oracle::whole(&sandbox.path("data/out")), b"kept on host 3\nkept on host 2\n");
    let totals = &report["status"]["totals"];
    assert_eq!((&totals["splits_local"], &totals["splits_remote"]), (&2.into(), &0.into()));

    let missing = format!("worker-2:{own}/not-there");
    submit(&[&missing], &sandbox.text("data/out2")).expect_code(4).expect_words(&[&missing]);
    lan.end();
}

#[test]
fn detached_job_is_refused_where_the_master_does_not_see_its_paths() {
    if !possible("detached jobs without a shared directory") {
        return;
    }
    let sandbox = Sandbox::new();
    let lan = Lan::start(&sandbox, &["--allow-root"], &|_| String::new());
    let input = sandbox.write("data/text", "a\n");
    let out = sandbox.text("data/out");
    let submit =
        ["submit", "--allow-root", "wordcount", &input, "--join", &lan.join, "--detach", "--output", &out];
    lan.command(&submit).finish().expect_code(3).expect_words(&["a detached job needs", "does not see"]);
    assert!(!sandbox.path("data/out").exists());
    lan.end();
}

#[test]
fn worker_on_another_host_that_is_killed_changes_nothing() {
    if !possible("a host that is lost") {
        return;
    }
    let sandbox = Sandbox::new();
    let mut lan = Lan::start(&sandbox, &["--allow-root"], &|_| String::new());
    let text = Random::seeded(143).text(60_000, &[" ", "\n"]);
    let input = sandbox.write("data/text", &text);
    sandbox.arm("map");
    let out = sandbox.text("data/out");
    let submit = ["submit", "--allow-root", "wordcount", &input, "--join", &lan.join, "--output", &out];
    let client = lan.command(&[&submit[..], &["--split-size", "4KiB"]].concat()).start();
    let stopped = sandbox.stopped_at("map");
    // The worker whose process stopped, with its supervisor: as if the machine were switched off.
    let lost =
        lan.workers.iter().position(|worker| process::parent_of(stopped) == Some(worker.pid())).unwrap();
    let lost = lan.workers.remove(lost);
    lost.signal(Signal::KILL);
    process::kill(stopped);
    sandbox.go_on("map");
    lost.finish();
    let finished = client.finish().expect_code(0).expect_words(&["lost with a worker", "succeeded"]);
    assert!(finished.stderr.contains("remote"), "{}", finished.stderr);
    assert!(oracle::counts_of_parts(&oracle::parts(&sandbox.path("data/out"))) == oracle::word_counts(&text));
    // No process is left on that host to remove its directories; a user has to.
    for name in oracle::names(&sandbox.path("tmp")) {
        if !lan.workers.is_empty() && directory_is_of_nobody(&sandbox, &name) {
            std::fs::remove_dir_all(sandbox.path("tmp").join(name)).unwrap();
        }
    }
    lan.end();
}

/// True if no live process has a file of this temporary directory open.
fn directory_is_of_nobody(sandbox: &Sandbox, name: &str) -> bool {
    let directory = sandbox.path("tmp").join(name);
    sandbox.processes().iter().all(|found| {
        let files = std::fs::read_dir(format!("/proc/{}/fd", found.pid)).into_iter().flatten().flatten();
        files
            .filter_map(|file| std::fs::read_link(file.path()).ok())
            .all(|target| !target.starts_with(&directory))
    })
}

#[test]
fn worker_deletes_parts_that_it_has_sent_while_the_job_goes_on() {
    if !possible("parts that are sent") {
        return;
    }
    let sandbox = Sandbox::new();
    let lan = Lan::start(&sandbox, &["--allow-root"], &|_| String::new());
    let input = sandbox.write("data/text", "word\n".repeat(4000));
    let out = sandbox.text("data/out");
    sandbox.arm("commit.before");
    let submit = ["submit", "--allow-root", "grep", "word", &input, "--split-size", "4KiB"];
    let client = lan.command(&[&submit[..], &["--join", &lan.join, "--output", &out]].concat()).start();
    let stopped = sandbox.stopped_at("commit.before");
    let arrived = until("all parts but one", || {
        let names = oracle::names(&sandbox.path("data/out/_temporary"));
        let parts = names.iter().filter(|name| name.contains("-map-") && !name.contains("arriving")).count();
        (parts == 4).then_some(parts)
    });
    let kept = || {
        let directories = oracle::names(&sandbox.path("tmp")).into_iter().flat_map(|name| {
            let directory = sandbox.path("tmp").join(name);
            oracle::names(&directory).into_iter().map(move |inner| directory.join(inner)).collect::<Vec<_>>()
        });
        let files = directories
            .filter(|directory| directory.is_dir())
            .flat_map(|directory| oracle::names(&directory));
        files.filter(|name| name.contains("-map-")).collect::<Vec<String>>()
    };
    until("the sent parts to be deleted", || (kept().len() == 1).then_some(()));
    assert_eq!(arrived, 4, "and the one that process {stopped} has not sent is there");
    sandbox.go_on("commit.before");
    client.finish().expect_code(0);
    lan.end();
}

#[test]
fn port_scan_of_a_run_from_another_host_finds_nothing() {
    if !possible("port scan") {
        return;
    }
    let sandbox = Sandbox::new();
    let network = Network::new(2);
    let (victim, stranger) = (1, 2);
    let input = sandbox.write("text", "a b\n");
    sandbox.arm("map");
    let running =
        network.gristmill(&sandbox, victim, "", &["run", "wordcount", &input, "--workers", "2"]).start();
    sandbox.stopped_at("map");
    // A port opened on purpose shows that the scan would find one.
    let bait = network.on(victim, || TcpListener::bind("0.0.0.0:0").unwrap());
    let target = network.address(victim);
    let open: Vec<u16> = network.on(stranger, || {
        let is_open =
            |port: &u16| TcpStream::connect_timeout(&SocketAddr::new(target, *port), SCAN_TIMEOUT).is_ok();
        (1..=u16::MAX).filter(is_open).collect()
    });
    assert_eq!(open, [bait.local_addr().unwrap().port()]);
    sandbox.go_on("map");
    running.finish().expect_code(0);
}
