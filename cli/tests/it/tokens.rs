//! Tokens with roles: the rights of each, and that a revoked or rotated token has none.

use crate::support::http::{request, request_with};
use crate::support::standing::{JoinLine, Standing};
use crate::support::{Finished, Sandbox, process, until};
use rustix::process::Signal;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::os::unix::fs::MetadataExt;
use std::time::Duration;

const FORBIDDEN: u16 = 403;
const UNKNOWN: u16 = 401;

/// Makes the master create a token; returns the file with its join line.
fn made(sandbox: &Sandbox, name: &str, arguments: &[&str]) -> String {
    let file = sandbox.text(name);
    let fixed = ["token", "new", "--output", &file];
    sandbox.gristmill([&fixed[..], arguments].concat()).finish().expect_code(0);
    assert_eq!(std::fs::metadata(&file).unwrap().mode() & 0o7777, 0o600);
    file
}

fn with(sandbox: &Sandbox, join: &str, arguments: &[&str]) -> Finished {
    sandbox.gristmill([arguments, &["--join", join]].concat()).finish()
}

#[test]
fn token_opens_what_its_role_says_and_nothing_else() {
    let sandbox = Sandbox::new();
    let standing = Standing::start(&sandbox, 1);
    let input = sandbox.write("text", "b a\na\n");
    let view = made(&sandbox, "view", &["view", "--label", "page"]);
    let submit = made(&sandbox, "submit", &["submit"]);
    let work = made(&sandbox, "work", &["work"]);
    let job: &[&str] = &["submit", "wordcount", &input];
    let allowed = |join: &str, arguments: &[&str]| with(&sandbox, join, arguments).expect_code(0);
    let refused = |join: &str, arguments: &[&str]| {
        with(&sandbox, join, arguments).expect_code(6).expect_words(&[
            "does not allow",
            "hint: ",
            "gristmill cluster token new",
        ])
    };
    allowed(&submit, job).expect_words(&["succeeded"]);
    for join in [&view, &submit] {
        for look in
            [&["status"] as &[&str], &["jobs"], &["status", "job-1"], &["logs", "job-1"], &["wait", "job-1"]]
        {
            allowed(join, look);
        }
        refused(join, &["policy", "--policy", "fair"]);
        refused(join, &["token", "new", "admin", "--print-join"]);
        refused(join, &["token", "rotate"]);
    }
    refused(&view, job);
    refused(&view, &["cancel", "job-1"]);
    for arguments in [job, &["status"], &["cancel", "job-1"], &["policy", "--policy", "fair"]] {
        refused(&work, arguments);
    }
    // Only the worker role can join, besides the admin role.
    for join in [&view, &submit] {
        with(&sandbox, join, &["worker", "--workers", "1"]).expect_code(6);
    }
    let worker = sandbox.gristmill(["worker", "--workers", "1", "--slots", "1", "--join", &work]).start();
    standing.await_workers(2);
    // A user's own request, with the token in it.
    let line = JoinLine::read(&std::fs::read_to_string(&view).unwrap());
    let (host, bearer) = (line.address.to_string(), format!("Bearer {}", line.token));
    let headers = [("Host", &*host), ("Authorization", &*bearer)];
    assert_eq!(request(line.address, "GET", "/api/v1/status", &headers).status, 200);
    for (method, path) in [
        ("POST", "/api/v1/shutdown"),
        ("POST", "/api/v1/jobs"),
        ("POST", "/api/v1/workers/worker-1/drain"),
        ("GET", "/api/v1/cluster"),
        ("PUT", "/api/v1/policy"),
        ("GET", "/worker/connect"),
        ("GET", "/api/v1/no-such-route"),
    ] {
        assert_eq!(request(line.address, method, path, &headers).status, FORBIDDEN, "{method} {path}");
    }
    let mut standing = standing;
    standing.workers.push(worker);
    standing.end();
}

#[test]
fn worker_whose_token_is_revoked_is_lost_and_the_others_stay() {
    let sandbox = Sandbox::new();
    let standing = Standing::start(&sandbox, 1);
    let (one, other) = (
        made(&sandbox, "one", &["work", "--label", "one"]),
        made(&sandbox, "other", &["work", "--label", "other"]),
    );
    let start =
        |join: &str| sandbox.gristmill(["worker", "--workers", "1", "--slots", "1", "--join", join]).start();
    let (first, second) = (start(&one), start(&other));
    standing.await_workers(3);
    let name = JoinLine::read(&std::fs::read_to_string(&one).unwrap());
    let name = name.token.split_once(':').unwrap().0.to_owned();
    sandbox.gristmill(["token", "revoke", &name]).finish().expect_code(0);
    // Its process is replaced, and the new one is rejected.
    first.finish().expect_code(6).expect_words(&["refused the token"]);
    standing.await_workers(2);
    sandbox
        .gristmill(["token", "revoke", "nobody"])
        .finish()
        .expect_code(3)
        .expect_words(&["no token is called"]);
    let mut standing = standing;
    standing.workers.push(second);
    standing.end();
}

#[test]
fn tokens_of_before_a_rotation_open_nothing_and_the_state_directory_has_the_new_one() {
    let sandbox = Sandbox::new();
    let standing = Standing::start(&sandbox, 0);
    let (old, view) = (standing.join.text.clone(), made(&sandbox, "view", &["view"]));
    let kept = sandbox.write_private("kept", &old);
    let status = |join: &str| with(&sandbox, join, &["status"]);
    sandbox.gristmill(["token", "rotate", "--grace", "600"]).finish().expect_code(0);
    for join in [&kept, &view] {
        status(join).expect_code(0);
    }
    sandbox.gristmill(["token", "rotate"]).finish().expect_code(0);
    for join in [&kept, &view] {
        status(join).expect_code(6);
    }
    sandbox.gristmill(["status"]).finish().expect_code(0);
    let line = JoinLine::read(&std::fs::read_to_string(sandbox.path("state/join")).unwrap());
    assert!(line.token.starts_with("admin@2:"), "another generation");
    // Also after a restart.
    let before = made(&sandbox, "before", &["view"]);
    standing.end();
    let standing = Standing::start(&sandbox, 0);
    assert_eq!(standing.join.token, line.token);
    let again = sandbox.write_private(
        "again",
        standing
            .join
            .text
            .replace(&line.token, &JoinLine::read(&std::fs::read_to_string(&before).unwrap()).token),
    );
    status(&again).expect_code(0);
    let gone =
        sandbox.write_private("gone", standing.join.text.replace(&line.token, &JoinLine::read(&old).token));
    status(&gone).expect_code(6);
    let headers = |token: &str| (standing.join.address.to_string(), format!("Bearer {token}"));
    let (host, bearer) = headers(&JoinLine::read(&old).token);
    let headers = [("Host", &*host), ("Authorization", &*bearer)];
    assert_eq!(request(standing.join.address, "GET", "/api/v1/status", &headers).status, UNKNOWN);
    standing.end();
}

#[test]
fn worker_that_joined_with_a_token_of_before_is_lost_when_its_grace_is_over() {
    let sandbox = Sandbox::new();
    let standing = Standing::start(&sandbox, 0);
    let work = made(&sandbox, "work", &["work"]);
    let worker = sandbox.gristmill(["worker", "--workers", "1", "--slots", "1", "--join", &work]).start();
    standing.await_workers(1);
    sandbox.gristmill(["token", "rotate", "--grace", "1"]).finish().expect_code(0);
    worker.finish().expect_code(6).expect_words(&["refused the token"]);
    standing.await_workers(0);
    standing.end();
}

#[test]
fn attached_job_and_whoever_watches_it_end_with_their_token() {
    let sandbox = Sandbox::new();
    let standing = Standing::start(&sandbox, 1);
    let input = sandbox.write("text", "b a\na\n");
    let (submit, view) = (
        made(&sandbox, "submit", &["submit", "--label", "gone"]),
        made(&sandbox, "view", &["view", "--label", "gone"]),
    );
    sandbox.arm("map");
    let out = sandbox.text("out");
    let client =
        sandbox.gristmill(["submit", "wordcount", &input, "--join", &submit, "--output", &out]).start();
    sandbox.stopped_at("map");
    let watcher = sandbox.gristmill(["wait", "job-1", "--join", &view]).start();
    until("the watcher's connection", || process::is_connected(watcher.pid()).then_some(()));
    for name in ["view-gone@0", "submit-gone@0"] {
        sandbox.gristmill(["token", "revoke", name]).finish().expect_code(0);
    }
    // Both try to reconnect, and receive that their tokens are invalid now.
    watcher.finish().expect_code(6).expect_words(&["broke", "revoked"]);
    client.finish().expect_code(6).expect_words(&["broke", "revoked"]);
    sandbox.go_on("map");
    assert!(!sandbox.path("out").exists(), "published with a token that was revoked");
    standing.end();
}

#[test]
fn end_of_a_process_is_believed_of_whoever_started_it_only() {
    let sandbox = Sandbox::new();
    let standing = Standing::start(&sandbox, 1);
    let work = made(&sandbox, "work", &["work"]);
    let line = JoinLine::read(&std::fs::read_to_string(&work).unwrap());
    let status = sandbox.gristmill(["status", "--json"]).finish().expect_code(0).json();
    let worker = &status["workers"][0];
    let (host, bearer) = (line.address.to_string(), format!("Bearer {}", line.token));
    let headers = [("Host", &*host), ("Authorization", &*bearer), ("Content-Type", "application/json")];
    let end = serde_json::json!({
        "pid": worker["pid"], "host": worker["host"], "key": line.key, "signal": 9, "code": null,
        "last_words": "", "begun": [], "culprit": null,
    });
    let answer =
        request_with(line.address, "POST", "/api/v1/workers/ended", &headers, end.to_string().as_bytes());
    assert_eq!(answer.status, 404);
    standing.end();
}

#[test]
fn worker_of_the_state_directory_has_a_token_for_work_alone() {
    let sandbox = Sandbox::new();
    let mut standing = Standing::start(&sandbox, 1);
    let worker = standing.workers.pop().unwrap();
    sandbox.gristmill(["token", "revoke", "work-own@0"]).finish().expect_code(0);
    worker.finish().expect_code(6).expect_words(&["refused the token"]);
    standing.end();
}

#[test]
fn client_that_has_yet_to_close_an_output_is_gone_with_its_token() {
    let sandbox = Sandbox::new();
    let standing = Standing::start(&sandbox, 1);
    let input = sandbox.write("text", "b a\na\n");
    let submit = made(&sandbox, "submit", &["submit", "--label", "gone"]);
    sandbox.arm("map");
    let out = sandbox.text("out");
    let client =
        sandbox.gristmill(["submit", "wordcount", &input, "--join", &submit, "--output", &out]).start();
    sandbox.stopped_at("map");
    client.signal(Signal::STOP);
    sandbox.go_on("map");
    let state = |wanted: &str| {
        until(wanted, || (standing.job("job-1")["state"] == wanted).then_some(()));
    };
    state("publishing");
    sandbox.gristmill(["token", "revoke", "submit-gone@0"]).finish().expect_code(0);
    // The master closes it, as for a client that has died.
    state("succeeded");
    assert!(sandbox.path("out/_SUCCESS").exists());
    client.signal(Signal::KILL);
    client.finish();
    standing.end();
}

#[test]
fn token_goes_to_a_new_file_or_a_terminal_only_unless_told() {
    let sandbox = Sandbox::new();
    let standing = Standing::start(&sandbox, 0);
    sandbox
        .gristmill(["token", "new", "view"])
        .finish()
        .expect_code(2)
        .expect_words(&["--output", "--print-join"]);
    let there = sandbox.write("there", "mine");
    sandbox.gristmill(["token", "new", "view", "--output", &there]).finish().expect_code(3);
    assert_eq!(std::fs::read(&there).unwrap(), b"mine");
    // A hyphen is stdout, as elsewhere.
    sandbox
        .gristmill(["token", "new", "view", "--output", "-"])
        .finish()
        .expect_code(2)
        .expect_words(&["--output", "--print-join"]);
    for arguments in [&["--print-join"] as &[&str], &["--print-join", "--output", "-"]] {
        let printed = sandbox.gristmill([&["token", "new", "view"], arguments].concat()).finish();
        let line = JoinLine::read(&String::from_utf8(printed.expect_code(0).stdout).unwrap());
        assert!(line.token.starts_with("view@0:") && line.key != standing.join.key);
    }
    standing.end();
}

#[test]
fn request_whose_body_arrives_after_the_revocation_of_its_token_changes_nothing() {
    let sandbox = Sandbox::new();
    let standing = Standing::start(&sandbox, 0);
    let requests = [
        ("POST", "tokens", r#"{"role":"admin"}"#),
        ("POST", "tokens/rotate", r#"{"grace_seconds":0}"#),
        ("PUT", "policy", r#"{"policy":"fair"}"#),
    ];
    for (number, (method, path, body)) in requests.into_iter().enumerate() {
        let label = format!("x{number}");
        let join = made(&sandbox, &label, &["admin", "--label", &label]);
        let line = JoinLine::read(&std::fs::read_to_string(&join).unwrap());
        let mut stream = TcpStream::connect(line.address).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
        let head = format!(
            "{method} /api/v1/{path} HTTP/1.1\r\nHost: {}\r\nAuthorization: Bearer {}\r\nConnection: close\r\n\
             Content-Length: {}\r\nExpect: 100-continue\r\n\r\n",
            line.address,
            line.token,
            body.len()
        );
        stream.write_all(head.as_bytes()).unwrap();
        // The master requests the body once the head has passed.
        let asked = "HTTP/1.1 100 Continue\r\n\r\n";
        let mut answer = vec![0; asked.len()];
        stream.read_exact(&mut answer).unwrap();
        assert_eq!(String::from_utf8_lossy(&answer), asked);
        sandbox.gristmill(["token", "revoke", &format!("admin-{label}@0")]).finish().expect_code(0);
        stream.write_all(body.as_bytes()).unwrap();
        answer.clear();
        stream.read_to_end(&mut answer).unwrap();
        let answer = String::from_utf8_lossy(&answer);
        assert!(answer.starts_with("HTTP/1.1 401 ") && answer.contains("revoked"), "{path}: {answer}");
    }
    standing.end();
}

#[test]
fn path_that_only_begins_like_a_route_is_none() {
    let sandbox = Sandbox::new();
    let standing = Standing::start(&sandbox, 0);
    let (host, bearer) = (standing.join.address.to_string(), format!("Bearer {}", standing.join.token));
    let headers = [("Host", &*host), ("Authorization", &*bearer)];
    let status = |path| request(standing.join.address, "GET", path, &headers).status;
    assert_eq!(status("/api/v1/status"), 200);
    for path in ["/api/v1x/status", "/api/v10/status", "/api/v1.0/status", "/api/v1%2Fstatus"] {
        assert_eq!(status(path), UNKNOWN, "{path}");
    }
    standing.end();
}

#[test]
fn rotation_that_cannot_write_the_join_line_says_that_it_has_happened() {
    let sandbox = Sandbox::new();
    let standing = Standing::start(&sandbox, 0);
    let kept = sandbox.write_private("kept", &standing.join.text);
    let join = sandbox.path("state/join");
    std::fs::remove_file(&join).unwrap();
    std::fs::create_dir(&join).unwrap();
    with(&sandbox, &kept, &["token", "rotate"]).expect_code(3).expect_words(&[
        "all tokens were made new",
        "state/join",
        "directory",
        "restart the master",
    ]);
    with(&sandbox, &kept, &["status"]).expect_code(6);
    std::fs::remove_dir(&join).unwrap();
    // No token is left that could ask it to end.
    standing.master.signal(rustix::process::Signal::TERM);
    standing.master.finish().expect_code(0);
    let standing = Standing::start(&sandbox, 0);
    assert!(standing.join.token.starts_with("admin@1:"));
    sandbox.gristmill(["status"]).finish().expect_code(0);
    standing.end();
}

#[test]
fn state_directory_that_lost_its_tokens_file_is_refused() {
    let sandbox = Sandbox::new();
    let standing = Standing::start(&sandbox, 0);
    let view = made(&sandbox, "view", &["view", "--label", "gone"]);
    let text = std::fs::read_to_string(&view).unwrap();
    sandbox.gristmill(["token", "revoke", "view-gone@0"]).finish().expect_code(0);
    standing.end();
    std::fs::remove_file(sandbox.path("state/tokens")).unwrap();
    sandbox.gristmill(["master"]).finish().expect_code(3).expect_words(&[
        "state/tokens",
        "revoked",
        "state/secret",
    ]);
    assert!(!sandbox.path("state/tokens").exists(), "the second start would be let in");
    // Without its secret it is a new master, which accepts no earlier token.
    std::fs::remove_file(sandbox.path("state/secret")).unwrap();
    let standing = Standing::start(&sandbox, 0);
    let (old, new) = (JoinLine::read(&text), &standing.join);
    let again =
        sandbox.write_private("again", text.replace(&old.address.to_string(), &new.address.to_string()));
    with(&sandbox, &again, &["status"]).expect_code(6);
    standing.end();
}
