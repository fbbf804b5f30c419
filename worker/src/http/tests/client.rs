//! Tests of the client: successful requests, and the type of each failure.

use std::time::Duration;

use bytes::Bytes;
use hyper::StatusCode;
use rustls::pki_types::PrivatePkcs8KeyDer;
use tokio::net::TcpListener;

use super::*;

async fn open(server: &Running) -> Connection {
    Connection::open(&server.endpoint, Timeouts::default(), Plaintext::OnLoopback).await.unwrap()
}

async fn get(connection: &mut Connection, path: &str) -> Result<Response<Answer>, HttpError> {
    connection.request(Some(&cluster_secret()), Method::GET, path, empty()).await
}

async fn tls_server() -> Running {
    let identity = Identity::generate(&["localhost".to_owned()]).unwrap();
    Running::start(ServerConfig::new(Transport::Tls(identity))).await
}

#[tokio::test]
async fn connection_carries_many_requests() {
    let server = Running::plain().await;
    let mut connection = open(&server).await;
    let mut peers = std::collections::BTreeSet::new();
    for _ in 0..3 {
        let mut answer = get(&mut connection, "/data").await.unwrap().into_body();
        peers.insert(answer.collect(100).await.unwrap());
    }
    assert_eq!(peers.len(), 1, "the server saw {peers:?}");
}

#[tokio::test]
async fn body_of_pieces_arrives_whole() {
    let server = Running::plain().await;
    let mut connection = open(&server).await;
    let parts = ["a", "", "bc", "def"].map(|part| Bytes::from_static(part.as_bytes()));
    let secret = cluster_secret();
    let response =
        connection.request(Some(&secret), Method::POST, "/body", pieces(parts.to_vec())).await.unwrap();
    assert_eq!(response.into_body().collect(6).await.unwrap(), "abcdef");
}

#[tokio::test]
async fn pinned_tls_carries_requests() {
    let server = tls_server().await;
    let mut connection = open(&server).await;
    assert_eq!(get(&mut connection, "/data").await.unwrap().status(), StatusCode::OK);
}

#[tokio::test]
async fn tls_server_with_another_key_is_refused() {
    let server = tls_server().await;
    let endpoint = Endpoint { pin: Some(Pin([1; 32])), ..server.endpoint.clone() };
    let error = Connection::open(&endpoint, Timeouts::default(), Plaintext::OnLoopback).await.unwrap_err();
    assert!(matches!(error, HttpError::PinMismatch { .. }), "{error:?}");
}

/// A copy of a server's certificate, which is public, lacks its key.
#[derive(Debug)]
struct Impostor(Arc<rustls::sign::CertifiedKey>);

impl rustls::server::ResolvesServerCert for Impostor {
    fn resolve(&self, _: rustls::server::ClientHello<'_>) -> Option<Arc<rustls::sign::CertifiedKey>> {
        Some(Arc::clone(&self.0))
    }
}

#[tokio::test]
async fn tls_server_with_the_right_certificate_but_another_key_is_refused() {
    let (owner, thief) = (rcgen::KeyPair::generate().unwrap(), rcgen::KeyPair::generate().unwrap());
    let certificate = rcgen::CertificateParams::new([]).unwrap().self_signed(&owner).unwrap();
    let parsed = rustls::server::ParsedCertificate::try_from(certificate.der()).unwrap();
    let pin = Pin::of_public_key(&parsed.subject_public_key_info());
    let key = PrivatePkcs8KeyDer::from(thief.serialize_der()).into();
    let key = rustls::crypto::ring::sign::any_supported_type(&key).unwrap();
    let shown = rustls::sign::CertifiedKey::new(vec![certificate.der().clone()], key);
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = rustls::ServerConfig::builder_with_provider(provider)
        .with_protocol_versions(&[&rustls::version::TLS13])
        .unwrap()
        .with_no_client_auth()
        .with_cert_resolver(Arc::new(Impostor(Arc::new(shown))));
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let endpoint = Endpoint::of_address(listener.local_addr().unwrap(), Some(pin));
    let impostor = async {
        let (stream, _) = listener.accept().await.unwrap();
        tokio_rustls::TlsAcceptor::from(Arc::new(config)).accept(stream).await.unwrap_err()
    };
    let (error, _) =
        tokio::join!(Connection::open(&endpoint, Timeouts::default(), Plaintext::OnLoopback), impostor);
    let error = error.unwrap_err();
    assert!(matches!(error, HttpError::Tls { .. }), "{error:?}");
}

#[tokio::test]
async fn plain_client_of_a_tls_server_fails_as_not_http() {
    let server = tls_server().await;
    let endpoint = Endpoint { pin: None, ..server.endpoint.clone() };
    let mut connection =
        Connection::open(&endpoint, Timeouts::default(), Plaintext::OnLoopback).await.unwrap();
    let error = get(&mut connection, "/data").await.unwrap_err();
    assert!(matches!(error, HttpError::NotHttp { .. }), "{error:?}");
}

#[tokio::test]
async fn tls_client_of_a_plain_server_fails_as_tls() {
    let server = Running::plain().await;
    let endpoint = Endpoint { pin: Some(Pin([1; 32])), ..server.endpoint.clone() };
    let error = Connection::open(&endpoint, Timeouts::default(), Plaintext::OnLoopback).await.unwrap_err();
    assert!(matches!(error, HttpError::Tls { .. }), "{error:?}");
}

#[tokio::test]
async fn old_tls_version_is_refused() {
    // The first bytes of a handshake that offers nothing newer than TLS 1.2.
    let server = tls_server().await;
    let mut hello = vec![0x16, 3, 1, 0, 45, 1, 0, 0, 41, 3, 3];
    hello.extend([0; 32]);
    hello.extend([0, 0, 2, 0xc0, 0x2f, 1, 0]);
    let mut stream = TcpStream::connect(server.address).await.unwrap();
    stream.write_all(&hello).await.unwrap();
    let mut answer = [0; 2];
    stream.read_exact(&mut answer).await.unwrap();
    assert_eq!(answer[0], 21, "an alert, not a handshake");
}

#[tokio::test]
async fn absent_server_is_a_connect_error() {
    let address = TcpListener::bind("127.0.0.1:0").await.unwrap().local_addr().unwrap();
    let endpoint = Endpoint::of_address(address, None);
    let error = Connection::open(&endpoint, Timeouts::default(), Plaintext::OnLoopback).await.unwrap_err();
    assert!(matches!(error, HttpError::Connect { .. }), "{error:?}");
}

#[tokio::test]
async fn wrong_secret_is_an_error_that_does_not_show_it() {
    let server = Running::plain().await;
    let wrong = job_secret();
    let result = open(&server).await.request(Some(&wrong), Method::GET, "/data", empty()).await;
    let error = result.unwrap_err();
    assert!(matches!(error, HttpError::Unauthorized { .. }), "{error:?}");
    assert!(!format!("{error:?} {error}").contains(&wrong.to_text()[..8]));
}

#[tokio::test]
async fn other_status_is_an_error_with_the_peers_words_made_printable() {
    let server = Running::plain().await;
    match get(&mut open(&server).await, "/missing").await.unwrap_err() {
        HttpError::Status { status, message, .. } => {
            assert_eq!((status, message.as_str()), (StatusCode::NOT_FOUND, "no such \\u{1b} job"));
        }
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn body_that_breaks_off_is_truncated() {
    let server = Running::plain().await;
    let mut answer = get(&mut open(&server).await, "/broken").await.unwrap().into_body();
    let error = answer.collect(1000).await.unwrap_err();
    assert!(matches!(error, HttpError::Truncated { .. }), "{error:?}");
}

#[tokio::test]
async fn answer_longer_than_allowed_is_refused() {
    let server = Running::plain().await;
    let mut answer = get(&mut open(&server).await, "/data").await.unwrap().into_body();
    let error = answer.collect(3).await.unwrap_err();
    assert!(matches!(error, HttpError::TooLarge { bytes_max: 3, .. }), "{error:?}");
}

#[tokio::test]
async fn server_that_never_answers_is_given_up() {
    let server = Running::plain().await;
    let timeouts = Timeouts { head: Duration::from_millis(20), ..Timeouts::default() };
    let mut connection = Connection::open(&server.endpoint, timeouts, Plaintext::OnLoopback).await.unwrap();
    let error = get(&mut connection, "/stuck").await.unwrap_err();
    assert!(matches!(error, HttpError::Timeout { phase: Phase::Head, .. }), "{error:?}");
}

#[tokio::test]
async fn peer_that_takes_connections_and_says_nothing_is_given_up_and_told_from_one_out_of_reach() {
    // Without `accept`, the system accepts connections, as for a stopped process.
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let endpoint = |pin| Endpoint::of_address(listener.local_addr().unwrap(), pin);
    let short = Duration::from_millis(20);
    let timeouts = Timeouts { connect: short, head: short, ..Timeouts::default() };
    let mut connection = Connection::open(&endpoint(None), timeouts, Plaintext::OnLoopback).await.unwrap();
    let error = connection.await_any_answer().await.unwrap_err();
    assert!(matches!(error, HttpError::Timeout { phase: Phase::Head, .. }), "{error:?}");
    let pinned = endpoint(Some(Pin([1; 32])));
    let error = Connection::open(&pinned, timeouts, Plaintext::OnLoopback).await.unwrap_err();
    assert!(matches!(error, HttpError::Timeout { phase: Phase::Handshake, .. }), "{error:?}");
}

#[tokio::test]
async fn server_answers_a_greeting_without_a_secret() {
    for server in [Running::plain().await, tls_server().await] {
        open(&server).await.await_any_answer().await.unwrap();
    }
}

#[tokio::test]
async fn server_that_hangs_up_has_closed() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let endpoint = Endpoint::of_address(listener.local_addr().unwrap(), None);
    let hang_up = async {
        let (mut stream, _) = listener.accept().await.unwrap();
        let mut request = [0; 16];
        stream.read_exact(&mut request).await.unwrap();
    };
    let ask = async {
        let mut connection =
            Connection::open(&endpoint, Timeouts::default(), Plaintext::OnLoopback).await.unwrap();
        get(&mut connection, "/data").await.unwrap_err()
    };
    let (error, ()) = tokio::join!(ask, hang_up);
    assert!(matches!(error, HttpError::Closed { .. }), "{error:?}");
}

async fn upgrade_echoes(server: Running) {
    let connection = open(&server).await;
    let mut stream = connection.upgrade(Some(&cluster_secret()), "/upgrade", "test-echo").await.unwrap();
    let message = vec![42; 100_000];
    let (mut reader, mut writer) = tokio::io::split(&mut stream);
    let write = async {
        writer.write_all(&message).await.unwrap();
        writer.shutdown().await.unwrap();
    };
    let mut echoed = Vec::new();
    let (read, ()) = tokio::join!(reader.read_to_end(&mut echoed), write);
    read.unwrap();
    assert!(echoed == message, "{} of {} bytes came back", echoed.len(), message.len());
}

#[tokio::test]
async fn upgrade_carries_bytes_both_ways() {
    upgrade_echoes(Running::plain().await).await;
}

#[tokio::test]
async fn upgrade_carries_bytes_both_ways_over_tls() {
    upgrade_echoes(tls_server().await).await;
}

#[tokio::test]
async fn upgrade_needs_the_secret_and_the_protocol() {
    let server = Running::plain().await;
    let refused = |result: Result<Duplex, HttpError>| match result {
        Ok(_) => panic!("upgraded"),
        Err(error) => error,
    };
    let error = refused(open(&server).await.upgrade(None, "/upgrade", "test-echo").await);
    assert!(matches!(error, HttpError::Unauthorized { .. }), "{error:?}");
    let secret = cluster_secret();
    let error = refused(open(&server).await.upgrade(Some(&secret), "/upgrade", "other").await);
    assert!(matches!(error, HttpError::NotUpgraded { protocol: "other", .. }), "{error:?}");
}

#[tokio::test]
async fn pool_uses_a_connection_again_once_its_answer_was_read() {
    let server = Running::plain().await;
    let pool = Pool::new(Timeouts::default(), Plaintext::OnLoopback);
    let secret = cluster_secret();
    let ask = || pool.request(&server.endpoint, Some(&secret), Method::GET, "/data", empty());
    let mut first = ask().await.unwrap().into_body();
    let mut second = ask().await.unwrap().into_body();
    let first_port = first.collect(100).await.unwrap();
    let second_port = second.collect(100).await.unwrap();
    assert_ne!(first_port, second_port, "two at once need two connections");
    assert_eq!(pool.idle_count(), 2);
    let mut third = ask().await.unwrap().into_body();
    assert_eq!(third.collect(100).await.unwrap(), second_port, "the last one back is used first");
}

#[tokio::test]
async fn pool_drops_a_connection_whose_answer_was_not_read() {
    let server = Running::plain().await;
    let pool = Pool::new(Timeouts::default(), Plaintext::OnLoopback);
    let secret = cluster_secret();
    let answer = pool.request(&server.endpoint, Some(&secret), Method::GET, "/data", empty()).await.unwrap();
    drop(answer);
    assert_eq!(pool.idle_count(), 0);
}

#[tokio::test]
async fn pool_replaces_connections_of_a_server_that_was_restarted() {
    let server = Running::plain().await;
    let (address, endpoint) = (server.address, server.endpoint.clone());
    let pool = Pool::new(Timeouts::default(), Plaintext::OnLoopback);
    let secret = cluster_secret();
    let ask = async || {
        let response = pool.request(&endpoint, Some(&secret), Method::GET, "/data", empty()).await?;
        response.into_body().collect(100).await
    };
    ask().await.unwrap();
    assert_eq!(pool.idle_count(), 1);
    server.stop().await;
    let listener = Bind { address, ..Bind::loopback() }.listen().await.unwrap();
    let config = Arc::new(ServerConfig::new(Transport::Plain));
    let restarted = serve(listener, config, Arc::new(TestAuth), handle, std::future::pending());
    let restarted = tokio::spawn(restarted);
    ask().await.unwrap();
    restarted.abort();
}

#[tokio::test]
async fn pool_goes_on_with_another_connection_when_one_has_been_used_with_many_secrets() {
    let server = Running::plain().await;
    let pool = Pool::new(Timeouts::default(), Plaintext::OnLoopback);
    let mut ports = std::collections::BTreeSet::new();
    for number in 0..=2 * limits::SESSIONS_PER_CONNECTION_MAX {
        let path = format!("/key/{number}");
        let secret = cluster_secret().derive(&path);
        let answer = pool.request(&server.endpoint, Some(&secret), Method::GET, &path, empty()).await;
        ports.insert(answer.unwrap().into_body().collect(100).await.unwrap());
    }
    assert_eq!(ports.len(), 3);
}

/// Server that closes this many connections before it has received a request on them, alternately before and after
/// proving that it knows the secret, and then responds.
fn overloaded(closed: usize) -> (Endpoint, Arc<std::sync::atomic::AtomicUsize>) {
    use std::io::{Read, Write};
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let endpoint = Endpoint::of_address(listener.local_addr().unwrap(), None);
    let came = Arc::new(std::sync::atomic::AtomicUsize::new(0));
    let counted = Arc::clone(&came);
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = stream.unwrap();
            let number = counted.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
            let head = |stream: &mut std::net::TcpStream| {
                let mut bytes = [0; 4096];
                let got = stream.read(&mut bytes).unwrap_or(0);
                String::from_utf8_lossy(&bytes[..got]).into_owned()
            };
            let hello = head(&mut stream);
            if number < closed && number.is_multiple_of(2) {
                continue;
            }
            let reached = stream.local_addr().unwrap();
            let proof = answer_to_hello(&hello, reached, &cluster_secret()).unwrap();
            let mut proof = String::from_utf8(proof).unwrap();
            if number < closed {
                // So that the client knows before it has sent more.
                proof = proof.replacen("\r\n", "\r\nConnection: close\r\n", 1);
            }
            stream.write_all(proof.as_bytes()).unwrap();
            if closed <= number {
                head(&mut stream);
                stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok").unwrap();
            }
        }
    });
    (endpoint, came)
}

#[tokio::test]
async fn request_gets_through_where_connections_are_sent_away_before_it_has_left() {
    let (endpoint, came) = overloaded(2);
    let pool = Pool::new(Timeouts::default(), Plaintext::OnLoopback);
    let response =
        pool.request(&endpoint, Some(&cluster_secret()), Method::GET, "/data", empty()).await.unwrap();
    assert_eq!(response.into_body().collect(10).await.unwrap(), "ok");
    assert!(3 <= came.load(std::sync::atomic::Ordering::Relaxed));
}

#[tokio::test]
async fn peer_that_closes_every_connection_is_given_up() {
    let (endpoint, came) = overloaded(usize::MAX);
    let pool = Pool::new(Timeouts::default(), Plaintext::OnLoopback);
    let refused = pool.request(&endpoint, Some(&cluster_secret()), Method::GET, "/data", empty()).await;
    assert!(matches!(refused, Err(HttpError::Closed { .. })), "{refused:?}");
    let came = came.load(std::sync::atomic::Ordering::Relaxed);
    assert!(came <= limits::CLOSED_EARLY_MAX as usize + 1, "{came} connections");
}

#[tokio::test]
async fn handshake_that_is_cut_is_tried_again_and_refuses_nobody() {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let pin = Identity::generate(&["localhost".to_owned()]).unwrap().pin();
    let pinned = Endpoint::of_address(listener.local_addr().unwrap(), Some(pin));
    let came = Arc::new(std::sync::atomic::AtomicUsize::new(0));
    let counted = Arc::clone(&came);
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            counted.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
            let _ = std::io::Read::read(&mut stream.unwrap(), &mut [0; 4096]);
        }
    });
    let pool = Pool::new(Timeouts::default(), Plaintext::OnLoopback);
    let refused = pool.request(&pinned, Some(&cluster_secret()), Method::GET, "/data", empty()).await;
    // An error of a connection, for which a worker waits, and not of TLS, after which it gives up.
    assert!(matches!(refused, Err(HttpError::Connect { .. })), "{refused:?}");
    let came = came.load(std::sync::atomic::Ordering::Relaxed);
    assert_eq!(came, limits::CLOSED_EARLY_MAX as usize + 1);
}
