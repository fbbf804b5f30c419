//! Addresses of servers and how they are identified: endpoints and join lines.
//!
//! An [`Endpoint`] is public. A [`JoinLine`] contains the secret and is only shown through [`JoinLine::to_text`]. Names
//! are resolved at each connect, not here.

use std::fmt;
use std::net::{IpAddr, SocketAddr};
use std::str::FromStr;

use serde::{Deserialize, Serialize};
use zeroize::Zeroizing;

use super::tls::Pin;
use super::token::Token;

/// Maximum length of a host name, as in DNS, in bytes.
const HOST_BYTES_MAX: usize = 253;
/// Prefix of a join line: the name and version of its format.
const JOIN_PREFIX: &str = "gm1:";

/// Address of a server, and its key if it speaks TLS.
///
/// Displayed and parsed as `host:port`, with an IPv6 address in brackets; the pin is not part of that format.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Endpoint {
    /// Host name or address literal; an IPv6 address without brackets.
    pub host: String,
    /// TCP port.
    pub port: u16,
    /// Key that the server must show over TLS; `None` means plain HTTP.
    pub pin: Option<Pin>,
}

impl Endpoint {
    /// Creates the endpoint of a listener's address.
    #[must_use]
    pub fn of_address(address: SocketAddr, pin: Option<Pin>) -> Self {
        Endpoint { host: address.ip().to_canonical().to_string(), port: address.port(), pin }
    }
}

impl fmt::Display for Endpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Endpoint { host, port, .. } = self;
        if host.contains(':') { write!(f, "[{host}]:{port}") } else { write!(f, "{host}:{port}") }
    }
}

impl FromStr for Endpoint {
    type Err = EndpointError;

    fn from_str(text: &str) -> Result<Self, EndpointError> {
        let form = || EndpointError::Form { text: text.escape_debug().to_string() };
        let (host, port) = text.rsplit_once(':').ok_or_else(form)?;
        let port = port.parse().ok().filter(|port| *port != 0).ok_or_else(form)?;
        let host = match host.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')) {
            Some(inner) => {
                inner.parse::<IpAddr>().ok().filter(IpAddr::is_ipv6).ok_or_else(form)?;
                inner
            }
            None => host,
        };
        let plain = |byte: u8| byte.is_ascii_alphanumeric() || b".-_:".contains(&byte);
        let named = !host.contains(':') || text.starts_with('[');
        if host.is_empty() || HOST_BYTES_MAX < host.len() || !named || !host.bytes().all(plain) {
            return Err(form());
        }
        Ok(Endpoint { host: host.to_owned(), port, pin: None })
    }
}

/// Error of parsing an endpoint or a join line.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum EndpointError {
    /// It is not `host:port`.
    #[error("could not read {text:?} as HOST:PORT")]
    Form {
        /// Given text, escaped.
        text: String,
    },
    /// It is not a join line; the text is omitted because it may contain a secret.
    #[error("could not read the join line: it has the form gm1:HOST:PORT#TOKEN or gm1:HOST:PORT#TOKEN.PIN")]
    JoinLine,
}

/// To whom a client speaks without TLS.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Plaintext {
    /// To this machine alone, with nothing in between.
    #[default]
    OnLoopback,
    /// To any, because a person has typed `--insecure-plaintext`.
    Everywhere,
}

/// All data that a worker needs to join a master, in one line: `gm1:HOST:PORT#TOKEN[.PIN]`.
#[derive(Clone, PartialEq, Eq)]
pub struct JoinLine {
    /// Endpoint of the master, with its key if it speaks TLS.
    pub endpoint: Endpoint,
    /// Access token of its routes.
    pub token: Token,
    /// Permission to connect to a master on another machine without a key in the line. Not part of the text: the user
    /// of the line decides.
    pub plaintext: Plaintext,
}

impl JoinLine {
    /// Returns the line with the secret in it: for the terminal of the person who started the master.
    #[must_use]
    pub fn to_text(&self) -> Zeroizing<String> {
        let JoinLine { endpoint, token, .. } = self;
        let mut text = Zeroizing::new(format!("{JOIN_PREFIX}{endpoint}#{}", *token.to_text()));
        if let Some(pin) = endpoint.pin {
            text.push('.');
            text.push_str(&pin.to_string());
        }
        text
    }
}

impl fmt::Debug for JoinLine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("JoinLine").field("endpoint", &self.endpoint).field("token", &self.token).finish()
    }
}

impl FromStr for JoinLine {
    type Err = EndpointError;

    fn from_str(text: &str) -> Result<Self, EndpointError> {
        let (address, key) = text
            .trim()
            .strip_prefix(JOIN_PREFIX)
            .and_then(|rest| rest.split_once('#'))
            .ok_or(EndpointError::JoinLine)?;
        let (token, pin) = match key.split_once('.') {
            Some((token, pin)) => (token, Some(pin.parse::<Pin>().map_err(|_| EndpointError::JoinLine)?)),
            None => (key, None),
        };
        let endpoint: Endpoint = address.parse().map_err(|_| EndpointError::JoinLine)?;
        let token = token.parse().map_err(|_| EndpointError::JoinLine)?;
        Ok(JoinLine { endpoint: Endpoint { pin, ..endpoint }, token, plaintext: Plaintext::default() })
    }
}
