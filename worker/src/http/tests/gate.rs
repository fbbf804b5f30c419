//! Tests of the gate's results, without sockets.

use std::time::Duration;

use hyper::StatusCode;
use hyper::http::request::Builder;
use tokio::time::Instant;

use super::*;
use crate::http::gate::{Arrival, Gate, GateVerdict};
use crate::http::limits::{GUESSES_MAX, GUESSING_PEERS_MAX, ServerLimits};
use crate::http::proof::ServerSessions;

const REFUSED_HOST: GateVerdict = GateVerdict::Refuse(StatusCode::MISDIRECTED_REQUEST);
const REFUSED_PAGE: GateVerdict = GateVerdict::Refuse(StatusCode::FORBIDDEN);
const NO_SECRET: GateVerdict = GateVerdict::Refuse(StatusCode::UNAUTHORIZED);
const TOO_MANY: GateVerdict = GateVerdict::Refuse(StatusCode::TOO_MANY_REQUESTS);
const OPEN: GateVerdict = GateVerdict::Pass { authenticated: false };
const PASSED: GateVerdict = GateVerdict::Pass { authenticated: true };

fn gate() -> Gate {
    let host_names = ["Mill.Example.".to_owned()];
    Gate::new(Arc::new(TestAuth), &host_names, false, &ServerLimits::default())
}

fn arrival() -> Arrival {
    arrival_from("192.0.2.7:50000")
}

fn arrival_from(peer: &str) -> Arrival {
    Arrival { peer: peer.parse().unwrap(), local: "192.0.2.1:7000".parse().unwrap() }
}

fn judge(request: Builder) -> GateVerdict {
    gate().judge(&request.body(()).unwrap(), &ServerSessions::default(), arrival(), Instant::now())
}

fn get(path: &str) -> Builder {
    Request::get(path).header("host", "localhost:7000")
}

fn bearer(secret: &Secret) -> String {
    format!("Bearer {}", *secret.to_text())
}

#[test]
fn host_that_is_ours_passes() {
    for host in [
        "localhost:7000",
        "LOCALHOST:7000",
        "localhost.:7000",
        "127.0.0.1:7000",
        "127.1.2.3:7000",
        "[::1]:7000",
        "192.0.2.1:7000",
        "[::ffff:192.0.2.1]:7000",
        "mill.example:7000",
        "MILL.example.",
        "mill.example:443",
    ] {
        assert_eq!(judge(Request::get("/open").header("host", host)), OPEN, "{host}");
    }
}

#[test]
fn host_that_is_not_ours_is_refused_before_anything_else() {
    for host in [
        "",
        "evil.example",
        "evil.example:7000",
        "EVIL.EXAMPLE:7000",
        "evil.example.:7000",
        "127.0.0.1.evil.example:7000",
        "localhost.evil.example:7000",
        "evil-localhost:7000",
        "localhost",
        "localhost:80",
        "127.0.0.1",
        "127.0.0.1:7001",
        "192.0.2.2:7000",
        "[::2]:7000",
        "[fe80::1%eth0]:7000",
        "[::1",
        "::1:7000",
        "127.1:7000",
        "0x7f.1:7000",
        "2130706433:7000",
        "user@localhost:7000",
        "localhost:7000/",
        "localhost:7000, evil.example",
        "localhost..:7000",
        "localhost:+7000",
        "localhost:07000x",
        "localhost :7000",
        "mill.example.evil.example",
    ] {
        let request =
            Request::get("/data").header("host", host).header("authorization", bearer(&cluster_secret()));
        assert_eq!(judge(request), REFUSED_HOST, "{host:?}");
    }
}

#[test]
fn host_must_be_there_exactly_once() {
    assert_eq!(judge(Request::get("/open")), REFUSED_HOST);
    assert_eq!(judge(get("/open").header("host", "localhost:7000")), REFUSED_HOST);
    assert_eq!(judge(get("/open").header("host", "evil.example")), REFUSED_HOST);
}

#[test]
fn absolute_target_must_name_the_same_host() {
    let check = |target: &str, expected: GateVerdict| assert_eq!(judge(get(target)), expected, "{target}");
    check("http://localhost:7000/open", OPEN);
    check("http://LOCALHOST.:7000/open", OPEN);
    check("http://evil.example/open", REFUSED_HOST);
    check("http://127.0.0.1:7000/open", REFUSED_HOST);
    check("http://localhost:7000@evil.example/open", REFUSED_HOST);
    check("http://localhost/open", REFUSED_HOST);
    check("ftp://localhost:7000/open", REFUSED_HOST);
    let evil_both = Request::get("http://evil.example/open").header("host", "evil.example");
    assert_eq!(judge(evil_both), REFUSED_HOST);
    assert_eq!(judge(get("evil.example:80").method("CONNECT")), REFUSED_HOST);
    assert_eq!(judge(get("localhost:7000").method("CONNECT")), NO_SECRET);
}

#[test]
fn foreign_page_is_refused_even_with_the_secret() {
    let check = |name: &'static str, value: &str, expected: GateVerdict| {
        let request = get("/data").header("authorization", bearer(&cluster_secret())).header(name, value);
        assert_eq!(judge(request), expected, "{name}: {value}");
    };
    check("sec-fetch-site", "same-origin", PASSED);
    check("sec-fetch-site", "none", PASSED);
    check("sec-fetch-site", "same-site", REFUSED_PAGE);
    check("sec-fetch-site", "cross-site", REFUSED_PAGE);
    check("sec-fetch-site", "", REFUSED_PAGE);
    check("origin", "http://localhost:7000", PASSED);
    check("origin", "http://evil.example", REFUSED_PAGE);
    check("origin", "http://localhost:3000", REFUSED_PAGE);
    check("origin", "http://127.0.0.1:7000", REFUSED_PAGE);
    check("origin", "http://localhost:7000.evil.example", REFUSED_PAGE);
    check("origin", "null", REFUSED_PAGE);
    check("origin", "", REFUSED_PAGE);
}

#[test]
fn one_foreign_origin_among_several_is_enough_to_refuse() {
    let request =
        get("/open").header("origin", "http://localhost:7000").header("origin", "http://evil.example");
    assert_eq!(judge(request), REFUSED_PAGE);
}

#[test]
fn door_opens_to_its_own_secret_only() {
    let check = |path: &str, authorization: &str, expected: GateVerdict| {
        assert_eq!(
            judge(get(path).header("authorization", authorization)),
            expected,
            "{path} {authorization}"
        );
    };
    check("/data", &bearer(&cluster_secret()), PASSED);
    check("/data", &bearer(&cluster_secret()).replace("Bearer", "bearer"), PASSED);
    check("/data", &bearer(&job_secret()), NO_SECRET);
    check("/job", &bearer(&job_secret()), PASSED);
    check("/job", &bearer(&cluster_secret()), NO_SECRET);
    check("/unknown", &bearer(&cluster_secret()), NO_SECRET);
    check("/data/", &bearer(&cluster_secret()), NO_SECRET);
    for authorization in ["", "Bearer", "Bearer ", "Basic YTpi", &cluster_secret().to_text(), "Bearer x y"] {
        check("/data", authorization, NO_SECRET);
    }
}

#[test]
fn secret_counts_only_once_and_only_in_its_header() {
    let token = cluster_secret().to_text();
    let twice = get("/data")
        .header("authorization", bearer(&cluster_secret()))
        .header("authorization", bearer(&cluster_secret()));
    assert_eq!(judge(twice), NO_SECRET);
    assert_eq!(judge(get(&format!("/data?token={}", *token))), NO_SECRET);
    assert_eq!(judge(get("/data").header("cookie", format!("token={}", *token))), NO_SECRET);
}

#[test]
fn wrong_secrets_are_limited_by_address_and_second() {
    let gate = gate();
    let start = Instant::now();
    let at = |milliseconds: u64| start + Duration::from_millis(milliseconds);
    let ask = |secret: &Secret, peer: &str, now: Instant| {
        let request = get("/data").header("authorization", bearer(secret)).body(()).unwrap();
        gate.judge(&request, &ServerSessions::default(), arrival_from(peer), now)
    };
    for guess in 0..GUESSES_MAX {
        assert_eq!(ask(&job_secret(), "192.0.2.7:50000", start), NO_SECRET, "guess {guess}");
    }
    assert_eq!(ask(&job_secret(), "192.0.2.7:50001", at(999)), TOO_MANY);
    assert_eq!(ask(&job_secret(), "[::ffff:192.0.2.7]:50002", at(999)), TOO_MANY, "the same address");
    assert_eq!(ask(&job_secret(), "192.0.2.8:50000", at(999)), NO_SECRET, "another address");
    assert_eq!(ask(&cluster_secret(), "192.0.2.7:50000", at(999)), PASSED, "the right one always passes");
    assert_eq!(ask(&job_secret(), "192.0.2.7:50000", at(1000)), NO_SECRET, "another second");
}

#[test]
fn request_without_secret_is_no_guess() {
    let gate = gate();
    for _ in 0..=GUESSES_MAX {
        let request = get("/data").body(()).unwrap();
        assert_eq!(gate.judge(&request, &ServerSessions::default(), arrival(), Instant::now()), NO_SECRET);
    }
}

#[test]
fn guesses_from_very_many_addresses_share_one_count() {
    let gate = gate();
    let now = Instant::now();
    let refused_at_first = (0..GUESSING_PEERS_MAX as u32 + GUESSES_MAX + 1)
        .map(|number| {
            let peer = SocketAddr::from((std::net::Ipv4Addr::from(0x0a00_0000 + number), 1));
            let request = get("/data").header("authorization", "Bearer x").body(()).unwrap();
            gate.judge(&request, &ServerSessions::default(), Arrival { peer, ..arrival() }, now)
        })
        .filter(|verdict| *verdict == TOO_MANY)
        .count();
    assert_eq!(refused_at_first, 1);
}
