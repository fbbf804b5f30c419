//! HTTP requests as an unknown client would send them: bytes over a socket.
//!
//! The product's client is not used here, since its correctness would hide faults of the server.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::{Duration, Instant};

/// Timeout for a response.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(20);

/// A response.
#[derive(Debug)]
pub struct Answer {
    /// The status code.
    pub status: u16,
    /// Everything before the empty line.
    pub head: String,
    /// Everything after it.
    pub body: Vec<u8>,
}

impl Answer {
    /// The body as text.
    pub fn text(&self) -> String {
        String::from_utf8(self.body.clone()).unwrap()
    }
}

/// Sends one request with these headers and reads the response until the connection ends.
pub fn request(to: SocketAddr, method: &str, path: &str, headers: &[(&str, &str)]) -> Answer {
    request_with(to, method, path, headers, b"")
}

/// As [`request`], with a body.
pub fn request_with(
    to: SocketAddr,
    method: &str,
    path: &str,
    headers: &[(&str, &str)],
    body: &[u8],
) -> Answer {
    let mut stream = TcpStream::connect(to).unwrap();
    stream.set_read_timeout(Some(ANSWER_TIMEOUT)).unwrap();
    let mut text = format!("{method} {path} HTTP/1.1\r\nConnection: close\r\n");
    if !body.is_empty() {
        text.push_str(&format!("Content-Length: {}\r\n", body.len()));
    }
    for (name, value) in headers {
        text.push_str(&format!("{name}: {value}\r\n"));
    }
    text.push_str("\r\n");
    stream.write_all(text.as_bytes()).unwrap();
    stream.write_all(body).unwrap();
    let mut answer = Vec::new();
    let start = Instant::now();
    let mut chunk = [0; 16 << 10];
    loop {
        match stream.read(&mut chunk).unwrap() {
            0 => break,
            got => answer.extend_from_slice(&chunk[..got]),
        }
        // A response without end is an error.
        assert!(start.elapsed() < ANSWER_TIMEOUT, "{method} {path} was answered without end");
    }
    let head_end = answer.windows(4).position(|four| four == b"\r\n\r\n");
    let head_end = head_end.unwrap_or_else(|| panic!("{method} {path}: no head in {answer:?}"));
    let head = String::from_utf8_lossy(&answer[..head_end]).into_owned();
    let status = head.split_whitespace().nth(1).unwrap().parse().unwrap();
    Answer { status, head, body: answer[head_end + 4..].to_vec() }
}
