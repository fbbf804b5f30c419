//! Tests of the proof of a secret: what a client sends to a server that does not know it, and what can be replayed.

use std::sync::Mutex;

use hyper::StatusCode;
use tokio::net::TcpListener;

use super::*;

/// Listener that accepts all bytes, with what it received.
struct Thief {
    endpoint: Endpoint,
    taken: Arc<Mutex<Vec<u8>>>,
}

impl Thief {
    /// Listens, and sends each connection this response, or forwards it to another server and back.
    async fn start(answer: &'static str, forward: Option<SocketAddr>) -> Thief {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let endpoint = Endpoint::of_address(listener.local_addr().unwrap(), None);
        let taken = Arc::new(Mutex::new(Vec::new()));
        let (kept, port) = (Arc::clone(&taken), endpoint.port);
        tokio::spawn(async move {
            while let Ok((mut stream, _)) = listener.accept().await {
                let kept = Arc::clone(&kept);
                tokio::spawn(async move {
                    let mut bytes = [0; 4096];
                    let mut behind = match forward {
                        Some(address) => Some(TcpStream::connect(address).await.unwrap()),
                        None => None,
                    };
                    while let Ok(count @ 1..) = stream.read(&mut bytes).await {
                        kept.lock().unwrap().extend(&bytes[..count]);
                        match &mut behind {
                            None => stream.write_all(answer.as_bytes()).await.unwrap(),
                            Some(behind) => {
                                // It acts as a client of the server that it forwards to.
                                let (own, other) = (port.to_string(), behind.peer_addr().unwrap().port());
                                let text = String::from_utf8_lossy(&bytes[..count]);
                                let text = text.replace(&format!(":{own}"), &format!(":{other}"));
                                behind.write_all(text.as_bytes()).await.unwrap();
                                let count = behind.read(&mut bytes).await.unwrap();
                                stream.write_all(&bytes[..count]).await.unwrap();
                            }
                        }
                    }
                });
            }
        });
        Thief { endpoint, taken }
    }

    fn taken(&self) -> String {
        String::from_utf8(self.taken.lock().unwrap().clone()).unwrap()
    }
}

async fn request(
    endpoint: &Endpoint,
    plaintext: Plaintext,
    body: &'static str,
) -> Result<StatusCode, HttpError> {
    let mut connection = Connection::open(endpoint, Timeouts::default(), plaintext).await?;
    let secret = cluster_secret();
    Ok(connection.request(Some(&secret), Method::POST, "/body?with=query", full(body)).await?.status())
}

#[tokio::test]
async fn server_that_does_not_know_the_secret_gets_a_random_number_and_nothing_else() {
    let nonce = "A".repeat(43);
    let lies: [&'static str; 4] = [
        "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n",
        "HTTP/1.1 401 Unauthorized\r\nContent-Length: 0\r\n\r\n",
        "HTTP/1.1 200 OK\r\nGristmill-Proof: x y z\r\nContent-Length: 0\r\n\r\n",
        format!(
            "HTTP/1.1 200 OK\r\nGristmill-Proof: {nonce} {nonce} 127.0.0.1:1\r\nContent-Length: 0\r\n\r\n"
        )
        .leak(),
    ];
    for lie in lies {
        let thief = Thief::start(lie, None).await;
        for _ in 0..2 {
            let error = request(&thief.endpoint, Plaintext::Everywhere, "private").await.unwrap_err();
            assert!(matches!(error, HttpError::Unauthorized { .. }), "{error:?}");
        }
        let taken = thief.taken();
        assert_eq!(taken.matches("POST /hello HTTP/1.1\r\n").count(), 2, "{taken}");
        assert!(!taken.to_lowercase().contains("authorization") && !taken.contains("private"), "{taken}");
        assert!(!taken.contains(&*cluster_secret().to_text()), "{taken}");
        let mut nonces: Vec<&str> =
            taken.lines().filter(|line| line.to_ascii_lowercase().starts_with("gristmill-hello: ")).collect();
        assert_eq!(nonces.len(), 2);
        nonces.dedup();
        assert_eq!(nonces.len(), 2, "the same number twice");
    }
}

#[tokio::test]
async fn one_that_forwards_to_the_right_server_is_seen_and_refused() {
    let server = Running::plain().await;
    let thief = Thief::start("", Some(server.address)).await;
    let error = request(&thief.endpoint, Plaintext::OnLoopback, "private").await.unwrap_err();
    assert!(matches!(error, HttpError::Forwarded { .. }), "{error:?}");
    assert!(!thief.taken().contains("private"), "{}", thief.taken());
    // A tunnel that is explicitly allowed is treated like other plain text.
    assert_eq!(request(&thief.endpoint, Plaintext::Everywhere, "private").await.unwrap(), StatusCode::OK);
    assert!(thief.taken().contains("private") && !thief.taken().contains(&*cluster_secret().to_text()));
}

#[tokio::test]
async fn what_was_sent_in_one_session_opens_nothing_in_another() {
    let server = Running::plain().await;
    let tunnel = Thief::start("", Some(server.address)).await;
    let (mut connection, secret) = (
        Connection::open(&tunnel.endpoint, Timeouts::default(), Plaintext::Everywhere).await.unwrap(),
        cluster_secret(),
    );
    connection.request(Some(&secret), Method::GET, "/data", empty()).await.unwrap();
    let taken = tunnel.taken();
    let requests: Vec<&str> = taken.split_inclusive("\r\n\r\n").collect();
    let [hello, request] = requests[..] else { panic!("{taken}") };
    let port = tunnel.endpoint.port.to_string();
    let again = |parts: &[&str]| parts.concat().replace(&port, &server.address.port().to_string());
    let statuses = async |text: String| -> Vec<u16> {
        let text =
            format!("{text}GET /open HTTP/1.1\r\nHost: {}\r\nConnection: close\r\n\r\n", server.address);
        let answers = raw(server.address, &text).await;
        answers.split("HTTP/1.1 ").skip(1).map(|answer| answer[..3].parse().unwrap()).collect()
    };
    // Without a session, and in a session with another number on the server.
    assert_eq!(statuses(again(&[request])).await, [401]);
    assert_eq!(statuses(again(&[hello, request])).await, [200, 401]);
}

#[tokio::test]
async fn request_is_taken_once_and_as_it_was_signed() {
    use crate::http::proof::{Asked, ClientSessions, HELLO, Proven, Reached, ServerSessions};
    let (secret, reached) = (cluster_secret(), Reached::Tls(Pin([1; 32])));
    let (mut client, server) = (ClientSessions::default(), ServerSessions::default());
    let (asked, hello) = Asked::new(&secret, &Method::GET, "/data").unwrap();
    let mut headers = hyper::HeaderMap::new();
    headers.insert(HELLO, hello);
    let proof = server.greet(&headers, &reached, |_, _, _| Some(cluster_secret())).unwrap();
    headers.insert("gristmill-proof", proof);
    assert_eq!(client.check(&asked, &headers, &reached, false), Proven::Yes);
    let signed = |value| hyper::HeaderMap::from_iter([(hyper::header::AUTHORIZATION, value)]);
    let first = signed(client.sign(&secret, &Method::GET, "/data?a=1").unwrap());
    let shows = |headers: &_, secret: &Secret, method: &Method, target: &str| {
        server.shows(headers, secret, method, target).unwrap()
    };
    assert!(!shows(&first, &secret, &Method::POST, "/data?a=1"), "another method");
    assert!(!shows(&first, &secret, &Method::GET, "/data?a=2"), "another query");
    assert!(!shows(&first, &job_secret(), &Method::GET, "/data?a=1"), "another door");
    assert!(shows(&first, &secret, &Method::GET, "/data?a=1"));
    assert!(!shows(&first, &secret, &Method::GET, "/data?a=1"), "a second time");
    let second = signed(client.sign(&secret, &Method::GET, "/data").unwrap());
    assert!(shows(&second, &secret, &Method::GET, "/data"));
    assert!(client.sign(&job_secret(), &Method::GET, "/job").is_none(), "no session for that secret");
}

#[test]
fn proof_of_one_pinned_server_is_none_of_another() {
    use crate::http::proof::{Asked, ClientSessions, HELLO, Proven, Reached, ServerSessions};
    let at = |key: u8| Reached::Tls(Pin([key; 32]));
    for (reached, forwarded, judged) in
        [(at(1), false, Proven::Yes), (at(2), false, Proven::No), (at(2), true, Proven::No)]
    {
        let (asked, hello) = Asked::new(&cluster_secret(), &Method::GET, "/data").unwrap();
        let mut headers = hyper::HeaderMap::from_iter([(HELLO, hello)]);
        let proof = ServerSessions::default().greet(&headers, &at(1), |_, _, _| Some(cluster_secret()));
        headers.insert("gristmill-proof", proof.unwrap());
        assert_eq!(ClientSessions::default().check(&asked, &headers, &reached, forwarded), judged);
    }
}

#[tokio::test]
async fn door_that_is_not_there_looks_like_one_with_another_secret() {
    let server = Running::plain().await;
    let hello = |path: &str| {
        let nonce = Secret::generate().unwrap().to_text().to_string();
        let (address, one) = (server.address, format!("Gristmill-Hello: {nonce} - GET {path}"));
        let last = format!("GET /open HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n\r\n");
        format!("POST /hello HTTP/1.1\r\nHost: {address}\r\n{one}\r\nContent-Length: 0\r\n\r\n{last}")
    };
    // No long data is kept for an unauthenticated peer.
    let long = hello("/data").replace(" - GET ", &format!(" {} GET ", "a".repeat(65)));
    assert_eq!(status(&raw(server.address, &long).await), 400);
    let mut shapes = Vec::new();
    for path in ["/data", "/no/such/door", "/open"] {
        let answer = raw(server.address, &hello(path)).await;
        let head = answer.split_once("\r\n\r\n").unwrap().0.to_owned();
        let of_proof = |line: &&str| line.to_ascii_lowercase().starts_with("gristmill-proof: ");
        let proof = head.lines().find(of_proof).unwrap().len();
        shapes.push((status(&answer), head.lines().count(), proof));
    }
    assert!(shapes[0].0 == 200 && shapes.iter().all(|shape| *shape == shapes[0]), "{shapes:?}");
}

#[tokio::test]
async fn proof_for_a_web_page_opens_no_session_however_often_it_is_asked_for() {
    let server = Running::plain().await;
    let address = server.address;
    let nonce = Secret::generate().unwrap().to_text().to_string();
    let head = format!("Host: {address}\r\nContent-Length: 0\r\nGristmill-Hello: {nonce} - GET /data\r\n");
    let prove = format!("POST /prove HTTP/1.1\r\n{head}\r\n");
    let times = 2 * limits::SESSIONS_PER_CONNECTION_MAX;
    // Session 0 would be that of the first.
    let signed = format!("Authorization: Gristmill 0 {nonce}\r\nConnection: close\r\n");
    let last = format!("GET /data HTTP/1.1\r\nHost: {address}\r\n{signed}\r\n");
    let answers = raw(address, &(prove.repeat(times) + &last)).await;
    let lines =
        |begin: &str| answers.lines().filter(|line| line.to_ascii_lowercase().starts_with(begin)).count();
    assert_eq!((lines("http/1.1 200"), lines("gristmill-proof: "), lines("http/1.1 401")), (times, times, 1));
}

#[tokio::test]
async fn connection_has_few_sessions() {
    let server = Running::plain().await;
    let mut connection =
        Connection::open(&server.endpoint, Timeouts::default(), Plaintext::OnLoopback).await.unwrap();
    let mut hellos = 0;
    let error = loop {
        let secret = Secret::generate().unwrap();
        // Each costs the server a session, although it proves nothing to this client.
        match connection.request(Some(&secret), Method::GET, "/data", empty()).await {
            Err(HttpError::Unauthorized { .. }) if hellos <= limits::SESSIONS_PER_CONNECTION_MAX => {
                hellos += 1;
            }
            other => break other.unwrap_err(),
        }
    };
    // The error response to the last one closes the connection.
    assert!(matches!(error, HttpError::Closed { .. }), "{error:?}");
    assert_eq!(hellos, limits::SESSIONS_PER_CONNECTION_MAX + 1);
}
