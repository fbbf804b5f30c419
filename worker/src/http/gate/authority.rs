//! Host and port of a request, and detection of requests from foreign web pages.

use hyper::HeaderMap;
use hyper::header::{HeaderName, ORIGIN};

const SEC_FETCH_SITE: HeaderName = HeaderName::from_static("sec-fetch-site");

/// Host and port as in the Host header, normalised: lower case, no brackets, no final dot.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Authority {
    pub(super) name: String,
    pub(super) port: u16,
}

impl Authority {
    pub(super) fn parse(text: &str, default_port: u16) -> Option<Authority> {
        let (name, port) = match text.strip_prefix('[') {
            Some(rest) => {
                let (inner, port) = rest.split_once(']')?;
                inner.parse::<std::net::Ipv6Addr>().ok()?;
                (inner, port)
            }
            None => {
                let (name, port) = text.split_at(text.find(':').unwrap_or(text.len()));
                let name = name.strip_suffix('.').unwrap_or(name);
                let plain = |byte: u8| byte.is_ascii_alphanumeric() || b".-_".contains(&byte);
                if name.is_empty() || !name.bytes().all(plain) {
                    return None;
                }
                (name, port)
            }
        };
        let port = match port.strip_prefix(':') {
            Some(digits) if digits.bytes().all(|byte| byte.is_ascii_digit()) => digits.parse().ok()?,
            None if port.is_empty() => default_port,
            _ => return None,
        };
        Some(Authority { name: name.to_ascii_lowercase(), port })
    }
}

/// True if a browser reports that another site's page caused this request.
///
/// Another port of the same machine counts as foreign, as for browsers' own origins.
pub(super) fn is_from_foreign_page(headers: &HeaderMap, host: &Authority) -> bool {
    let ours = |origin: &str| {
        let (authority, default_port) = match origin.split_once("://") {
            Some(("http", authority)) => (authority, 80),
            Some(("https", authority)) => (authority, 443),
            _ => return false,
        };
        Authority::parse(authority, default_port).as_ref() == Some(host)
    };
    let foreign_site = headers
        .get_all(SEC_FETCH_SITE)
        .iter()
        .any(|site| !matches!(site.as_bytes(), b"same-origin" | b"none"));
    let foreign_origin = headers.get_all(ORIGIN).iter().any(|origin| !origin.to_str().is_ok_and(ours));
    foreign_site || foreign_origin
}
