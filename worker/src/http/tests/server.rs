//! Tests of the server with unauthenticated and slow peers, and with oversized requests.

use std::time::Duration;

use tokio::net::TcpSocket;
use tokio::time::timeout;

use super::*;
use crate::http::limits::ServerLimits;
use crate::http::watch::Watched;

const METHODS: [&str; 10] =
    ["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE", "PROPFIND", "JUNK"];
const PATHS: [&str; 9] =
    ["/", "/data", "/job", "/upgrade", "/unknown", "/data/../open", "//open", "/open/", "/OPEN"];

async fn with_limits(change: impl FnOnce(&mut ServerLimits)) -> Running {
    let mut config = ServerConfig::new(Transport::Plain);
    change(&mut config.limits);
    Running::start(config).await
}

/// Builds a request after which the server closes the connection.
fn last_request(method: &str, path: &str, address: SocketAddr, headers: &str) -> String {
    format!("{method} {path} HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n{headers}\r\n")
}

fn authorization(secret: &Secret) -> String {
    format!("Authorization: Bearer {}\r\n", *secret.to_text())
}

#[tokio::test]
async fn every_method_and_path_answers_401_alike_without_the_right_secret() {
    let server = with_limits(|limits| limits.guesses_max = u32::MAX).await;
    let foreign = authorization(&cluster_secret().derive("another job"));
    let mut answers = std::collections::BTreeSet::new();
    for method in METHODS {
        for path in PATHS {
            for headers in ["", "Authorization: Bearer wrong\r\n", "Authorization: Basic eDp5\r\n", &foreign]
            {
                let answer = raw(server.address, &last_request(method, path, server.address, headers)).await;
                assert_eq!(status(&answer), 401, "{method} {path} {headers}");
                assert_eq!(body(&answer), "", "{method} {path} {headers}");
                let without_date = answer.lines().filter(|line| !line.starts_with("date:"));
                // The response to HEAD may omit the length of the body that it never has.
                let comparable: Vec<_> =
                    without_date.filter(|line| !line.starts_with("content-length:")).collect();
                answers.insert(comparable.join("\n"));
            }
        }
    }
    assert_eq!(answers.len(), 1, "{answers:#?}");
}

#[tokio::test]
async fn door_does_not_open_to_the_secret_of_another() {
    let server = Running::plain().await;
    let ask = async |path: &str, secret: &Secret| {
        let request = last_request("GET", path, server.address, &authorization(secret));
        status(&raw(server.address, &request).await)
    };
    assert_eq!(ask("/data", &cluster_secret()).await, 200);
    assert_eq!(ask("/data", &job_secret()).await, 401);
    assert_eq!(ask("/job", &job_secret()).await, 200);
    assert_eq!(ask("/job", &cluster_secret()).await, 401);
}

#[tokio::test]
async fn wrong_host_answers_421_on_open_and_closed_doors() {
    let server = Running::plain().await;
    for path in ["/open", "/data", "/unknown"] {
        for head in [
            format!("GET {path} HTTP/1.1\r\nHost: evil.example\r\nOrigin: http://evil.example\r\n"),
            format!("GET {path} HTTP/1.1\r\nHost: 127.0.0.1.evil.example:{}\r\n", server.address.port()),
            format!("GET {path} HTTP/1.1\r\n"),
            format!("GET {path} HTTP/1.0\r\n"),
            format!("GET {path} HTTP/1.1\r\nHost: {0}\r\nHost: {0}\r\n", server.address),
            format!("GET http://evil.example{path} HTTP/1.1\r\nHost: {}\r\n", server.address),
        ] {
            let answer = raw(server.address, &format!("{head}\r\n")).await;
            assert!(answer.contains(" 421 "), "{head} {answer}");
            assert_eq!(body(&answer), "");
        }
    }
}

#[tokio::test]
async fn foreign_page_answers_403() {
    let server = Running::plain().await;
    for header in ["Origin: http://evil.example\r\n", "Sec-Fetch-Site: cross-site\r\n"] {
        let answer = raw(server.address, &last_request("GET", "/open", server.address, header)).await;
        assert_eq!(status(&answer), 403, "{header}");
    }
}

#[tokio::test]
async fn eleventh_wrong_secret_answers_429() {
    let server = Running::plain().await;
    // One write, so that all guesses are within one second. Each gets its response before the next is read.
    let mut connection = TcpStream::connect(server.address).await.unwrap();
    let right =
        format!("GET /data HTTP/1.1\r\nHost: {}\r\n{}\r\n", server.address, authorization(&cluster_secret()));
    let wrong = format!("GET /data HTTP/1.1\r\nHost: {}\r\nAuthorization: Bearer x\r\n\r\n", server.address);
    let last = last_request("GET", "/data", server.address, "Authorization: Bearer x\r\n");
    connection.write_all(format!("{right}{}{last}", wrong.repeat(10)).as_bytes()).await.unwrap();
    let mut answers = String::new();
    connection.read_to_string(&mut answers).await.unwrap();
    assert_eq!(answers.matches("HTTP/1.1 200 ").count(), 1, "{answers}");
    assert_eq!(answers.matches("HTTP/1.1 401 ").count(), 10, "{answers}");
    assert_eq!(answers.matches("HTTP/1.1 429 ").count(), 1, "{answers}");
}

#[tokio::test]
async fn every_answer_carries_the_hardening_headers() {
    let server = Running::plain().await;
    for path in ["/open", "/data"] {
        let answer = raw(server.address, &last_request("GET", path, server.address, "")).await;
        for header in
            ["x-content-type-options: nosniff", "cache-control: no-store", "referrer-policy: no-referrer"]
        {
            assert!(answer.contains(header), "{path}: {header} in {answer}");
        }
        assert!(!answer.contains("access-control"), "{answer}");
    }
}

#[tokio::test]
async fn stranger_is_not_kept_alive() {
    let server = Running::plain().await;
    let answer =
        raw(server.address, &format!("GET /open HTTP/1.1\r\nHost: {}\r\n\r\n", server.address)).await;
    assert_eq!(status(&answer), 200);
}

#[tokio::test]
async fn refused_request_is_answered_also_when_it_has_a_body() {
    let server = Running::plain().await;
    let request = last_request("PUT", "/data", server.address, "Content-Length: 50000\r\n");
    assert_eq!(status(&raw(server.address, &(request + &"x".repeat(50_000))).await), 401);
}

#[tokio::test]
async fn oversized_head_answers_431() {
    let server = Running::plain().await;
    let long = format!("X: {}\r\n", "x".repeat(17 * 1024));
    let many: String = (0..65).map(|number| format!("X-{number}: x\r\n")).collect();
    for headers in [long, many] {
        // The server closes with unread bytes, which may reset the connection after its response.
        let mut stream = TcpStream::connect(server.address).await.unwrap();
        let request = last_request("GET", "/open", server.address, &headers);
        stream.write_all(request.as_bytes()).await.unwrap();
        let mut answer = [0; 12];
        stream.read_exact(&mut answer).await.unwrap();
        assert_eq!(&answer, b"HTTP/1.1 431");
    }
}

#[tokio::test]
async fn slow_head_is_cut() {
    let server = with_limits(|limits| limits.stranger = Duration::from_millis(200)).await;
    assert_eq!(raw(server.address, "").await, "");
    let answer = raw(server.address, &format!("GET /open HTTP/1.1\r\nHost: {}\r\n", server.address)).await;
    assert_eq!(answer, "");
}

#[tokio::test]
async fn idle_connection_is_closed_after_its_limit() {
    let idle = Duration::from_millis(200);
    let server = with_limits(|limits| (limits.idle, limits.stranger) = (idle, Duration::MAX)).await;
    let mut stream = TcpStream::connect(server.address).await.unwrap();
    let request =
        format!("GET /data HTTP/1.1\r\nHost: {}\r\n{}\r\n", server.address, authorization(&cluster_secret()));
    stream.write_all(request.as_bytes()).await.unwrap();
    let (start, mut answer) = (std::time::Instant::now(), Vec::new());
    stream.read_to_end(&mut answer).await.unwrap();
    assert!(answer.starts_with(b"HTTP/1.1 200"), "{}", String::from_utf8_lossy(&answer));
    assert!(idle <= start.elapsed(), "{:?}", start.elapsed());
}

#[tokio::test(start_paused = true)]
async fn write_that_nobody_takes_is_given_up() {
    let (client, server) = tokio::io::duplex(16);
    let mut watched = Watched::new(server, Duration::from_secs(30), ());
    let start = tokio::time::Instant::now();
    let error = watched.write_all(&[0; 17]).await.unwrap_err();
    assert_eq!(error.kind(), std::io::ErrorKind::TimedOut);
    assert_eq!(start.elapsed().as_secs(), 30);
    drop(client);
}

#[tokio::test(start_paused = true)]
async fn write_that_is_taken_a_byte_at_a_time_is_given_up() {
    let (mut client, server) = tokio::io::duplex(16);
    let mut watched = Watched::new(server, Duration::from_secs(30), ());
    let taking = async {
        loop {
            tokio::time::sleep(Duration::from_secs(5)).await;
            client.read_u8().await.unwrap();
        }
    };
    let start = tokio::time::Instant::now();
    let error = tokio::select! {
        written = watched.write_all(&[0; 1000]) => written.unwrap_err(),
        () = taking => unreachable!("it takes for ever"),
    };
    assert_eq!(error.kind(), std::io::ErrorKind::TimedOut);
    assert_eq!(start.elapsed().as_secs(), 30);
}

#[tokio::test(start_paused = true)]
async fn body_that_comes_a_byte_at_a_time_is_given_up() {
    let (sender, body) = stream(1);
    let sending = async {
        for _ in 0..1000 {
            tokio::time::sleep(Duration::from_secs(5)).await;
            sender.send(b"x".as_slice().into()).await.unwrap();
        }
    };
    let mut body = Steady::new(body, Duration::from_secs(30));
    let start = tokio::time::Instant::now();
    let slow = tokio::select! {
        slow = async { while body.next().await?.is_some() {} Ok::<_, BodyError<_>>(()) } => slow.unwrap_err(),
        () = sending => unreachable!("it would take more than an hour"),
    };
    assert!(matches!(slow, BodyError::Slow), "{slow}");
    assert!(start.elapsed().as_secs() <= 35, "{:?}", start.elapsed());
}

#[tokio::test]
async fn stranger_makes_room_for_the_next_one() {
    let server = with_limits(|limits| limits.strangers_max = 1).await;
    let mut silent = TcpStream::connect(server.address).await.unwrap();
    let request = last_request("GET", "/open", server.address, "");
    assert_eq!(status(&raw(server.address, &request).await), 200);
    let end = timeout(Duration::from_secs(30), silent.read(&mut [0])).await.unwrap();
    assert!(matches!(end, Ok(0) | Err(_)), "its connection is closed");
}

#[tokio::test]
async fn stranger_is_closed_after_its_time_whatever_it_says_and_whoever_knows_the_secret_is_not() {
    let server = with_limits(|limits| limits.stranger = Duration::from_millis(300)).await;
    let secret = cluster_secret();
    let mut known =
        Connection::open(&server.endpoint, Timeouts::default(), Plaintext::OnLoopback).await.unwrap();
    known.request(Some(&secret), Method::GET, "/data", empty()).await.unwrap();
    let mut stranger = TcpStream::connect(server.address).await.unwrap();
    let talking = async {
        while stranger.write_all(b"G").await.is_ok() {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    timeout(Duration::from_secs(30), talking).await.unwrap();
    let answer = known.request(Some(&secret), Method::GET, "/data", empty()).await.unwrap();
    answer.into_body().collect(100).await.unwrap();
}

#[tokio::test]
async fn slow_connections_from_loopback_do_not_hold_up_who_knows_the_secret() {
    let server = Running::plain().await;
    let mut slow = Vec::new();
    for number in 0..64 {
        let socket = TcpSocket::new_v4().unwrap();
        socket.bind(format!("127.0.0.{}:0", 1 + number % 6).parse().unwrap()).unwrap();
        let mut stream = socket.connect(server.address).await.unwrap();
        stream.write_all(b"GET /da").await.unwrap();
        slow.push(stream);
    }
    let asking = async {
        let mut connection =
            Connection::open(&server.endpoint, Timeouts::default(), Plaintext::OnLoopback).await.unwrap();
        connection.request(Some(&cluster_secret()), Method::GET, "/data", empty()).await.unwrap();
    };
    // A head may take five seconds: no request waits for those of others.
    timeout(Duration::from_secs(4), asking).await.unwrap();
}

#[tokio::test]
async fn connection_that_showed_its_secret_is_no_stranger() {
    let server = with_limits(|limits| limits.strangers_max = 1).await;
    let mut connections = Vec::new();
    for _ in 0..4 {
        let mut connection =
            Connection::open(&server.endpoint, Timeouts::default(), Plaintext::OnLoopback).await.unwrap();
        let secret = cluster_secret();
        connection.request(Some(&secret), Method::GET, "/data", empty()).await.unwrap();
        connections.push(connection);
    }
}

#[tokio::test]
async fn request_on_a_connection_too_many_is_told_so_if_it_shows_the_secret() {
    let server = with_limits(|limits| limits.connections_max = 1).await;
    let secret = cluster_secret();
    let mut first =
        Connection::open(&server.endpoint, Timeouts::default(), Plaintext::OnLoopback).await.unwrap();
    let answer = first.request(Some(&secret), Method::GET, "/data", empty()).await.unwrap();
    answer.into_body().collect(100).await.unwrap();
    let mut second =
        Connection::open(&server.endpoint, Timeouts::default(), Plaintext::OnLoopback).await.unwrap();
    let refused = second.request(Some(&secret), Method::GET, "/data", empty()).await.unwrap_err();
    assert!(
        matches!(&refused, HttpError::Crowded { message, .. } if message.contains("1 are open")),
        "{refused}"
    );
    let stranger = raw(server.address, &last_request("GET", "/data", server.address, "")).await;
    assert_eq!(status(&stranger), 401);
    first.request(Some(&secret), Method::GET, "/data", empty()).await.unwrap();
}

#[tokio::test]
async fn stopping_server_finishes_and_frees_its_port() {
    let server = Running::plain().await;
    let address = server.address;
    let mut idle =
        Connection::open(&server.endpoint, Timeouts::default(), Plaintext::OnLoopback).await.unwrap();
    idle.request(Some(&cluster_secret()), Method::GET, "/data", empty()).await.unwrap();
    server.stop().await;
    Bind { address, ..Bind::loopback() }.listen().await.unwrap();
}

#[tokio::test]
async fn body_within_its_limit_is_read_and_a_longer_one_refused() {
    let server = Running::plain().await;
    let mut connection =
        Connection::open(&server.endpoint, Timeouts::default(), Plaintext::OnLoopback).await.unwrap();
    for (bytes, expected) in [(0, 0), (100, 100), (101, "refused a body of more than 100 bytes".len())] {
        let content = vec![b'x'; bytes];
        let (sender, streamed) = stream(1);
        let produce = async {
            sender.send(content.clone().into()).await.unwrap();
            sender.finish().await.unwrap();
        };
        let secret = cluster_secret();
        let consume = connection.request(Some(&secret), Method::POST, "/body", streamed);
        let (response, ()) = tokio::join!(consume, produce);
        let length = response.unwrap().into_body().collect(1000).await.unwrap().len();
        assert_eq!(length, expected, "{bytes} bytes");
    }
}
