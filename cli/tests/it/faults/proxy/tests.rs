//! Tests of the proxy itself: a fault injection that has no effect proves nothing.

use super::*;
use std::io::{Read, Write};
use std::net::TcpStream as Plain;
use std::time::Instant;

/// Timeout for bytes that must arrive.
const TIMEOUT: Duration = Duration::from_secs(20);

/// Time to wait for bytes that must not arrive.
const QUIET: Duration = Duration::from_millis(100);

/// A link in front of an echo server; both end when they are dropped.
fn echo() -> Link {
    let server = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = server.local_addr().unwrap();
    std::thread::spawn(move || {
        for mut stream in server.incoming().flatten() {
            std::thread::spawn(move || {
                let mut back = stream.try_clone().unwrap();
                // Its client may have disconnected.
                let _ = std::io::copy(&mut stream, &mut back);
                let _ = back.shutdown(std::net::Shutdown::Write);
            });
        }
    });
    Link::start("127.0.0.1:0".parse().unwrap(), address).unwrap()
}

fn connect(link: &Link) -> Plain {
    let stream = Plain::connect(link.address()).unwrap();
    stream.set_read_timeout(Some(TIMEOUT)).unwrap();
    stream
}

/// Sends bytes, ends its own direction, and reads to the end.
fn exchange(link: &Link, bytes: &[u8]) -> io::Result<Vec<u8>> {
    let mut stream = connect(link);
    stream.write_all(bytes)?;
    // A connection that was reset meanwhile is no longer connected; reading reports the cause.
    match stream.shutdown(std::net::Shutdown::Write) {
        Err(gone) if gone.kind() == io::ErrorKind::NotConnected => {}
        done => done?,
    }
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer)?;
    Ok(answer)
}

#[test]
fn link_without_rules_changes_nothing_and_counts_what_passes() {
    let link = echo();
    let bytes: Vec<u8> = (0..200_000u32).map(|number| number as u8).collect();
    assert_eq!(exchange(&link, &bytes).unwrap(), bytes);
    assert_eq!((link.passed(Way::ToServer), link.passed(Way::ToClient)), (200_000, 200_000));
    assert_eq!((link.struck(), link.treated()), (0, 0));
}

#[test]
fn held_bytes_arrive_when_the_rule_is_lifted() {
    for way in [Way::ToServer, Way::ToClient] {
        let link = echo();
        let mut stream = connect(&link);
        link.set([Rule::one_way(Treatment::Hold, way)]);
        stream.write_all(b"held").unwrap();
        stream.set_read_timeout(Some(QUIET)).unwrap();
        let mut answer = [0; 4];
        let kind = stream.read(&mut answer).unwrap_err().kind();
        assert!(matches!(kind, io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut), "{kind}");
        assert_eq!(link.treated(), 1);
        assert_eq!(link.passed(Way::ToServer), if way == Way::ToServer { 0 } else { 4 });
        link.heal();
        stream.set_read_timeout(Some(TIMEOUT)).unwrap();
        stream.read_exact(&mut answer).unwrap();
        assert_eq!(&answer, b"held");
    }
}

#[test]
fn delayed_and_throttled_bytes_take_their_time() {
    for treatment in [Treatment::Delay(QUIET), Treatment::Throttle(40)] {
        let link = echo();
        link.set([Rule::one_way(treatment, Way::ToServer)]);
        let start = Instant::now();
        assert_eq!(exchange(&link, b"four").unwrap(), b"four");
        assert!(QUIET <= start.elapsed(), "{treatment:?}: {:?}", start.elapsed());
        assert!(0 < link.treated());
    }
}

#[test]
fn dripping_bytes_come_one_by_one_until_the_rule_is_lifted() {
    let link = echo();
    link.set([Rule::one_way(Treatment::Drip(QUIET / 4), Way::ToClient)]);
    let mut stream = connect(&link);
    let start = Instant::now();
    stream.write_all(b"drops").unwrap();
    let mut answer = [0; 5];
    assert_eq!(stream.read(&mut answer).unwrap(), 1);
    stream.read_exact(&mut answer[1..4]).unwrap();
    assert!(QUIET <= start.elapsed(), "{:?}", start.elapsed());
    assert_eq!((&answer[..4], link.treated()), (&b"drop"[..], 1));
    link.heal();
    stream.read_exact(&mut answer[4..]).unwrap();
    assert_eq!(&answer, b"drops");
}

#[test]
fn refused_connections_are_reset_old_and_new() {
    let link = echo();
    let mut old = connect(&link);
    old.write_all(b"x").unwrap();
    old.read_exact(&mut [0]).unwrap();
    link.set([Rule::all(Treatment::Refuse)]);
    let kinds =
        [old.read(&mut [0]).unwrap_err(), exchange(&link, b"new").unwrap_err()].map(|error| error.kind());
    for kind in kinds {
        assert!(matches!(kind, io::ErrorKind::ConnectionReset | io::ErrorKind::BrokenPipe), "{kind}");
    }
    assert!(2 <= link.treated());
    link.heal();
    assert_eq!(exchange(&link, b"again").unwrap(), b"again");
}

#[test]
fn rule_for_a_process_leaves_others_alone() {
    let link = echo();
    link.set([Rule::from_process(Treatment::Refuse, 1)]);
    assert_eq!(exchange(&link, b"mine").unwrap(), b"mine");
    assert_eq!(link.treated(), 0);
    link.set([Rule::from_process(Treatment::Refuse, std::process::id())]);
    exchange(&link, b"mine").unwrap_err();
}

#[test]
fn strikes_damage_the_byte_that_they_name_as_often_as_they_say() {
    let (bytes, at) = (vec![b'a'; 40_000], 30_000u64);
    let strike = |damage| Strike { damage, way: Way::ToClient, at, times: 1 };
    let link = echo();
    link.strike(strike(Damage::Truncate));
    assert_eq!(exchange(&link, &bytes).unwrap(), bytes[..30_000]);
    assert_eq!(exchange(&link, &bytes).unwrap(), bytes, "one strike, one connection");
    link.strike(strike(Damage::Flip));
    let flipped = exchange(&link, &bytes).unwrap();
    let changed: Vec<usize> = (0..bytes.len()).filter(|byte| flipped[*byte] != bytes[*byte]).collect();
    assert_eq!(changed, [30_000]);
    link.strike(strike(Damage::Reset));
    assert_eq!(exchange(&link, &bytes).unwrap_err().kind(), io::ErrorKind::ConnectionReset);
    assert_eq!(link.struck(), 3);
}

#[test]
fn strike_counts_the_bytes_of_an_old_connection_from_when_it_was_added() {
    let link = echo();
    let mut stream = connect(&link);
    let mut answer = [0; 8];
    stream.write_all(b"old byte").unwrap();
    stream.read_exact(&mut answer).unwrap();
    link.strike(Strike { damage: Damage::Flip, way: Way::ToClient, at: 4, times: 1 });
    stream.write_all(b"new byte").unwrap();
    stream.read_exact(&mut answer).unwrap();
    assert_eq!((&answer, link.struck()), (b"new ryte", 1));
}
