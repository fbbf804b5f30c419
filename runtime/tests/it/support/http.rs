//! HTTP requests as a stranger would send them: bytes over a socket.
//!
//! Deliberately not here: the product's client, whose politeness would hide what the server does.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

/// Longest wait for an answer.
const ANSWER_PATIENCE: Duration = Duration::from_secs(20);

/// An answer.
#[derive(Debug)]
pub struct Answer {
    /// The status code.
    pub status: u16,
    /// Everything after the empty line.
    pub body: Vec<u8>,
}

/// Sends one request with these headers and reads the answer until the connection ends.
pub fn request(to: SocketAddr, method: &str, path: &str, headers: &[(&str, &str)]) -> Answer {
    let mut stream = TcpStream::connect(to).unwrap();
    stream.set_read_timeout(Some(ANSWER_PATIENCE)).unwrap();
    let mut text = format!("{method} {path} HTTP/1.1\r\nConnection: close\r\n");
    for (name, value) in headers {
        text.push_str(&format!("{name}: {value}\r\n"));
    }
    text.push_str("\r\n");
    stream.write_all(text.as_bytes()).unwrap();
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer).unwrap();
    let head_end = answer.windows(4).position(|four| four == b"\r\n\r\n");
    let head_end = head_end.unwrap_or_else(|| panic!("{method} {path}: no head in {answer:?}"));
    let head = String::from_utf8_lossy(&answer[..head_end]).into_owned();
    let status = head.split_whitespace().nth(1).unwrap().parse().unwrap();
    Answer { status, body: answer[head_end + 4..].to_vec() }
}
