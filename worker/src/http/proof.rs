//! Mutual proof of a secret without sending it: the server proves first, then the client with each request.
//!
//! A client opens with `POST /hello` and a random number, its *nonce*. The server responds with its own nonce
//! and a proof. The proof is a MAC, under the secret of the route that the client names. It covers both
//! nonces and the address at which the server was reached, or its key inside TLS. Only a server that knows
//! the secret can create the proof, and it cannot be reused. A server that forwards to another port or server
//! gets a proof for that other one. A value known only to these two is the key of the connection's *session*.
//! Every request carries a MAC under it over its number, method and target. Between machines all of this runs
//! inside TLS with a pinned key; the proof itself neither hides nor protects bodies.
//!
//! The primitives are HMAC-SHA256 and the system's randomness ([`Secret::derive`], [`Secret::generate`]).

use std::net::SocketAddr;
use std::sync::{Mutex, PoisonError};

use hyper::header::{AUTHORIZATION, HeaderName, HeaderValue};
use hyper::{HeaderMap, Method};

use super::limits::SESSIONS_PER_CONNECTION_MAX;
use super::secret::Secret;
use super::tls::Pin;
use super::token::{Key, NAME_BYTES_MAX};

/// Path of a client's hello.
pub(super) const HELLO_PATH: &str = "/hello";
/// Path where a web page requests the same proof without a session: a browser does not reveal which connection it uses.
pub(super) const PROVE_PATH: &str = "/prove";
/// Client's nonce, the name of its key, and the method and path of the route whose secret is to be proven.
pub(super) const HELLO: HeaderName = HeaderName::from_static("gristmill-hello");
/// Server's nonce, its proof, and the address at which it was reached.
pub(super) const PROOF: HeaderName = HeaderName::from_static("gristmill-proof");
/// Placeholder in a hello for a key without a name.
const NO_NAME: &str = "-";
/// Scheme of the Authorization header of requests in a session.
const SCHEME: &str = "Gristmill";
/// Version of the protocol; part of what is signed.
const VERSION: &str = "gristmill hello 1";

/// Address of a server as both ends see it: it detects forwarding to another port.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Reached {
    /// Unencrypted, at this address.
    At(SocketAddr),
    /// Inside TLS, by a server with this key.
    Tls(Pin),
}

impl Reached {
    fn to_text(&self) -> String {
        match self {
            // The scope of an IPv6 address is only meaningful on one side.
            Reached::At(address) => SocketAddr::new(address.ip().to_canonical(), address.port()).to_string(),
            Reached::Tls(pin) => format!("tls {pin}"),
        }
    }
}

/// State that both ends derive from a hello.
struct ProofSession {
    /// Secret of the route for which it was opened: it is valid for no other.
    secret: Secret,
    /// Name of that secret, if it has one.
    name: String,
    key: Secret,
    /// Number of the next request.
    next: u64,
}

impl ProofSession {
    fn new(secret: &Secret, name: &str, client: &str, server: &str, reached: &str) -> Self {
        let key = secret.derive(&format!("{VERSION} {client} {server} {reached}"));
        ProofSession { secret: secret.clone(), name: name.to_owned(), key, next: 0 }
    }

    fn proof(&self) -> Secret {
        self.key.derive("server")
    }

    fn signature(&self, method: &Method, target: &str) -> Secret {
        self.key.derive(&format!("client {} {method} {target}", self.next))
    }
}

/// Sessions of a client on one connection.
#[derive(Default)]
pub(super) struct ClientSessions(Vec<ProofSession>);

/// Hello that has been sent.
pub(super) struct Asked {
    secret: Secret,
    nonce: String,
}

/// Result of a hello.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Proven {
    /// The server knows the secret.
    Yes,
    /// It knows the secret, but was reached at another address: an intermediary forwards to it.
    Elsewhere,
    /// It does not know the secret, or is not such a server.
    No,
}

impl Asked {
    /// Creates a hello for the route of this method and path, and its header.
    pub(super) fn new(
        key: &dyn Key,
        method: &Method,
        path: &str,
    ) -> Result<(Self, HeaderValue), super::SecretError> {
        let nonce = Secret::generate()?.to_text().to_string();
        // A path that is invalid in a header is also invalid in a request, which then fails.
        let name = if key.name().is_empty() { NO_NAME } else { key.name() };
        let value = HeaderValue::try_from(format!("{nonce} {name} {method} {path}"));
        let value = value.unwrap_or_else(|_| HeaderValue::from_static("unreadable"));
        Ok((Asked { secret: key.secret().clone(), nonce }, value))
    }
}

impl ClientSessions {
    /// True if there is a session for this secret.
    pub(super) fn has(&self, secret: &Secret) -> bool {
        self.0.iter().any(|session| session.secret == *secret)
    }

    /// True if the server accepts no further hello on this connection.
    pub(super) fn is_full(&self) -> bool {
        SESSIONS_PER_CONNECTION_MAX <= self.0.len()
    }

    /// Checks the response to a hello, and opens the session if it is valid. `forwarded` accepts a server that was
    /// reached at another address.
    pub(super) fn check(
        &mut self,
        asked: &Asked,
        answer: &HeaderMap,
        reached: &Reached,
        forwarded: bool,
    ) -> Proven {
        let words = answer.get(PROOF).and_then(|value| value.to_str().ok());
        let mut words = words.unwrap_or_default().splitn(3, ' ');
        let (Some(nonce), Some(proof), Some(place)) = (words.next(), words.next(), words.next()) else {
            return Proven::No;
        };
        let session = ProofSession::new(&asked.secret, "", &asked.nonce, nonce, place);
        // A server that echoes the client's nonce would receive its own proof to repeat.
        if nonce == asked.nonce || !session.proof().matches(proof) {
            return Proven::No;
        }
        if place != reached.to_text() {
            match reached {
                // It passes on what another server has proven.
                Reached::Tls(_) => return Proven::No,
                Reached::At(_) if !forwarded => return Proven::Elsewhere,
                Reached::At(_) => {}
            }
        }
        self.0.push(session);
        Proven::Yes
    }

    /// Returns the Authorization header of the next request in the session of this secret; `None` without a session.
    pub(super) fn sign(&mut self, secret: &Secret, method: &Method, target: &str) -> Option<HeaderValue> {
        let index = self.0.iter().position(|session| session.secret == *secret)?;
        let session = &mut self.0[index];
        let text = format!("{SCHEME} {index} {}", *session.signature(method, target).to_text());
        session.next += 1;
        HeaderValue::try_from(text).ok()
    }
}

/// Sessions of a server on one connection.
#[derive(Default)]
pub(super) struct ServerSessions(Mutex<Vec<ProofSession>>);

impl ServerSessions {
    /// Responds to a hello with the secret of the route it names, or with a random secret if the route does not exist,
    /// so that both look alike. `None` if the hello is invalid, there is no randomness, or there are too many.
    pub(super) fn greet(
        &self,
        headers: &HeaderMap,
        reached: &Reached,
        secret_of: impl FnOnce(&Method, &str, &str) -> Option<Secret>,
    ) -> Option<HeaderValue> {
        let hello = headers.get(HELLO)?.to_str().ok()?;
        let mut words = hello.splitn(4, ' ');
        let (client, name) = (words.next()?, words.next()?);
        let (method, path) = (words.next()?, words.next()?);
        let name = if name == NO_NAME { "" } else { name };
        if NAME_BYTES_MAX < name.len() {
            return None;
        }
        let method = method.parse::<Method>().ok()?;
        // Only its form matters; two servers must not be played against each other with a nonce of arbitrary text.
        client.parse::<Secret>().ok()?;
        let secret = match secret_of(&method, path, name) {
            Some(secret) => secret,
            None => Secret::generate().ok()?,
        };
        let (nonce, place) = (Secret::generate().ok()?.to_text().to_string(), reached.to_text());
        let session = ProofSession::new(&secret, name, client, &nonce, &place);
        let text = format!("{nonce} {} {place}", *session.proof().to_text());
        let mut sessions = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if SESSIONS_PER_CONNECTION_MAX <= sessions.len() {
            return None;
        }
        sessions.push(session);
        HeaderValue::try_from(text).ok()
    }

    /// Returns the name of the secret of the session in which a request's header was signed; `None` if it has another
    /// scheme or names no session.
    pub(super) fn key_of(&self, headers: &HeaderMap) -> Option<String> {
        let (index, _) = signed(headers)?;
        let sessions = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        sessions.get(index).map(|session| session.name.clone())
    }

    /// True if a request's header proves, in one of these sessions, that its sender knows the secret of its route.
    /// `None` if the header has another scheme.
    pub(super) fn shows(
        &self,
        headers: &HeaderMap,
        secret: &Secret,
        method: &Method,
        target: &str,
    ) -> Option<bool> {
        let (index, signature) = signed(headers)?;
        let mut sessions = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(session) = sessions.get_mut(index) else { return Some(false) };
        let right = session.secret == *secret && session.signature(method, target).matches(signature);
        if right {
            session.next += 1;
        }
        Some(right)
    }
}

/// Returns the session and the signature of a request's header, if it has this scheme.
fn signed(headers: &HeaderMap) -> Option<(usize, &str)> {
    let text = headers.get(AUTHORIZATION)?.to_str().ok()?;
    let (index, signature) = text.strip_prefix(SCHEME)?.strip_prefix(' ')?.split_once(' ')?;
    Some((index.parse().ok()?, signature))
}

/// For test peers that know the secret but are otherwise invalid. Returns the response to a request's head if
/// it is a hello, with the proof of a server that was reached at this address.
#[cfg(test)]
pub(crate) fn answer_to_hello(head: &str, reached: SocketAddr, secret: &Secret) -> Option<Vec<u8>> {
    let hello = head.lines().find_map(|line| {
        let (name, value) = line.split_once(": ")?;
        name.eq_ignore_ascii_case(HELLO.as_str()).then_some(value)
    })?;
    let headers = HeaderMap::from_iter([(HELLO, HeaderValue::from_str(hello).ok()?)]);
    let sessions = ServerSessions::default();
    let proof = sessions.greet(&headers, &Reached::At(reached), |_, _, _| Some(secret.clone()))?;
    let proof = proof.to_str().ok()?;
    Some(format!("HTTP/1.1 200 OK\r\n{PROOF}: {proof}\r\nContent-Length: 0\r\n\r\n").into_bytes())
}
