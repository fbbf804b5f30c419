//! Gate that checks every request, for any method and path.
//!
//! The checks are, in this order: the request must be for this server (421), must not come from a foreign web
//! page (403), and must carry the secret of its route (401). A path without a route gets the same response as
//! one whose secret is missing. The gate decides by the head alone and does no I/O; it is neither a router
//! nor an access list.
//!
//! The Host check stops a web page from reaching a loopback server under a name that its owner resolves to
//! 127.0.0.1. An address literal and `localhost` cannot be resolved elsewhere, and any other name must have
//! been declared.

mod authority;
mod guesses;

use super::census::network;
use super::limits::ServerLimits;
use super::proof::{HELLO_PATH, PROVE_PATH, ServerSessions};
use super::secret::Secret;
use authority::{Authority, is_from_foreign_page};
use guesses::Guesses;
use hyper::header::{AUTHORIZATION, HOST};
use hyper::{HeaderMap, Method, Request, StatusCode, Uri};
use std::net::{IpAddr, SocketAddr};
use std::sync::{Arc, Mutex};
use tokio::time::Instant;

/// Access required for a path and method.
#[derive(Clone, Debug)]
pub enum Access {
    /// Nothing: the response contains no data and the request changes nothing.
    Open,
    /// This secret: proven in a session of the connection (`proof`), as by all Gristmill programs, or sent as a bearer
    /// token, for programs of users.
    Secret(Secret),
    /// This secret is known, but has no permission for this route.
    Forbidden(Secret),
    /// The route or the key does not exist; all requests are rejected.
    Closed,
}

/// Defines the access of each route. Must return [`Access::Closed`] for unknown ones.
pub trait RouteAuth: Send + Sync + 'static {
    /// Returns the access of a method and a path, for a peer that claims the key of this name; the path is as sent,
    /// undecoded, without the query.
    fn access(&self, method: &Method, path: &str, key: &str) -> Access;
}

/// Result of the gate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum GateVerdict {
    /// The request is a hello: the route that it names is to be looked up with [`Gate::secret_of`].
    Greet,
    /// The handler may see the request.
    Pass {
        /// True if it showed a secret; false for an open route.
        authenticated: bool,
    },
    /// The request ends here with this status and an empty body.
    Refuse(StatusCode),
}

/// Addresses of both ends of a request.
#[derive(Clone, Copy, Debug)]
pub(super) struct Arrival {
    /// Address of the sender.
    pub(super) peer: SocketAddr,
    /// Local address to which the peer connected.
    pub(super) local: SocketAddr,
}

/// Checks requests; one per server.
pub(super) struct Gate {
    auth: Arc<dyn RouteAuth>,
    /// Declared host names, lower case.
    host_names: Vec<String>,
    default_port: u16,
    guesses: Guesses,
}

impl Gate {
    /// Creates a gate for a server that is also known by `host_names`. A declared name may have any port, since it may
    /// belong to a proxy or a forwarded port.
    pub(super) fn new(
        auth: Arc<dyn RouteAuth>,
        host_names: &[String],
        is_tls: bool,
        limits: &ServerLimits,
    ) -> Self {
        let normal = |name: &String| name.trim_end_matches('.').to_ascii_lowercase();
        Gate {
            auth,
            host_names: host_names.iter().map(normal).collect(),
            default_port: if is_tls { 443 } else { 80 },
            guesses: Guesses { guesses_max: limits.guesses_max, windows: Mutex::default() },
        }
    }

    /// Returns the secret of a route that a hello names, if the route exists.
    pub(super) fn secret_of(&self, method: &Method, path: &str, key: &str) -> Option<Secret> {
        match self.auth.access(method, path, key) {
            Access::Secret(secret) | Access::Forbidden(secret) => Some(secret),
            Access::Open | Access::Closed => None,
        }
    }

    /// Returns the name of the key of a request.
    pub(super) fn key_of(&self, headers: &HeaderMap, sessions: &ServerSessions) -> Option<String> {
        match bearer(headers) {
            Bearer::Token(token) => token.split_once(':').map(|(key, _)| key.to_owned()),
            Bearer::Absent | Bearer::Unreadable => sessions.key_of(headers),
        }
    }

    /// Checks a request at time `now`, on a connection with these sessions.
    pub(super) fn judge<B>(
        &self,
        request: &Request<B>,
        sessions: &ServerSessions,
        arrival: Arrival,
        now: Instant,
    ) -> GateVerdict {
        let Some(host) = self.host_of(request, arrival.local) else {
            return GateVerdict::Refuse(StatusCode::MISDIRECTED_REQUEST);
        };
        if is_from_foreign_page(request.headers(), &host) {
            return GateVerdict::Refuse(StatusCode::FORBIDDEN);
        }
        if [HELLO_PATH, PROVE_PATH].contains(&request.uri().path()) && request.method() == Method::POST {
            return GateVerdict::Greet;
        }
        let access = |key: &str| self.auth.access(request.method(), request.uri().path(), key);
        if matches!(access(""), Access::Open) {
            return GateVerdict::Pass { authenticated: false };
        }
        let presented = match bearer(request.headers()) {
            Bearer::Absent => return GateVerdict::Refuse(StatusCode::UNAUTHORIZED),
            Bearer::Unreadable => None,
            Bearer::Token(token) => Some(token.split_once(':').unwrap_or(("", token))),
        };
        let (key, shown) = match presented {
            Some((key, token)) => (Some(key.to_owned()), ShownCredential::Token(token)),
            None => (sessions.key_of(request.headers()), ShownCredential::InSession),
        };
        let found = key.as_deref().map_or(Access::Closed, access);
        if let Access::Secret(secret) | Access::Forbidden(secret) = &found {
            let target = request.uri().path_and_query().map_or("/", hyper::http::uri::PathAndQuery::as_str);
            let right = match shown {
                ShownCredential::Token(token) => secret.matches(token),
                ShownCredential::InSession => {
                    sessions.shows(request.headers(), secret, request.method(), target) == Some(true)
                }
            };
            match (right, &found) {
                (true, Access::Secret(_)) => return GateVerdict::Pass { authenticated: true },
                (true, _) => return GateVerdict::Refuse(StatusCode::FORBIDDEN),
                (false, _) => {}
            }
        }
        // The right secret passes regardless of earlier failures: on loopback all processes share one address, and
        // guesses of one must not lock out the others.
        match self.guesses.too_many(network(arrival.peer.ip()), now) {
            true => GateVerdict::Refuse(StatusCode::TOO_MANY_REQUESTS),
            false => GateVerdict::Refuse(StatusCode::UNAUTHORIZED),
        }
    }

    /// Returns the host of a request, if it names exactly one and that is this server.
    fn host_of<B>(&self, request: &Request<B>, local: SocketAddr) -> Option<Authority> {
        let mut values = request.headers().get_all(HOST).iter();
        let (Some(value), None) = (values.next(), values.next()) else { return None };
        let host = Authority::parse(value.to_str().ok()?, self.default_port)?;
        let agrees = self.target_agrees(request.method(), request.uri(), &host);
        (agrees && self.is_ours(&host, local)).then_some(host)
    }

    /// A request target with a host must name the same one as the Host header.
    fn target_agrees(&self, method: &Method, uri: &Uri, host: &Authority) -> bool {
        let Some(authority) = uri.authority() else { return uri.scheme().is_none() };
        let default_port = match uri.scheme_str() {
            Some("http") => 80,
            Some("https") => 443,
            None if method == Method::CONNECT => self.default_port,
            _ => return false,
        };
        Authority::parse(authority.as_str(), default_port).as_ref() == Some(host)
    }

    fn is_ours(&self, host: &Authority, local: SocketAddr) -> bool {
        let literal = match host.name.parse::<IpAddr>() {
            Ok(ip) => ip.to_canonical().is_loopback() || ip.to_canonical() == local.ip().to_canonical(),
            Err(_) => host.name == "localhost",
        };
        (literal && host.port == local.port()) || self.host_names.contains(&host.name)
    }
}

/// Proof in a request that its sender knows a secret.
enum ShownCredential<'a> {
    /// As a bearer token.
    Token(&'a str),
    /// By a signature in a session.
    InSession,
}

enum Bearer<'a> {
    Absent,
    Unreadable,
    Token(&'a str),
}

fn bearer(headers: &HeaderMap) -> Bearer<'_> {
    let mut values = headers.get_all(AUTHORIZATION).iter();
    let value = match (values.next(), values.next()) {
        (None, _) => return Bearer::Absent,
        (Some(value), None) => value,
        (Some(_), Some(_)) => return Bearer::Unreadable,
    };
    match value.to_str().ok().and_then(|text| text.split_once(' ')) {
        Some((scheme, token)) if scheme.eq_ignore_ascii_case("bearer") => Bearer::Token(token.trim()),
        _ => Bearer::Unreadable,
    }
}
