//! The live page: its files, which hold no data and are public, and the codes that admit a browser.
//!
//! The page requests its data like any client, with a token of the role `view`. A browser gets that token for a code
//! that works once, so a link with a used code can stay in a terminal or a history without opening anything. The token
//! is kept only in the page's script. It is not a cookie: browsers send cookies to every port of a machine, including
//! those of other users, and with requests of other pages.
//!
//! The only change that the page can make is to cancel a job. That requires a code that was requested for a token of
//! the role `submit`, by the holder of a token of that role. The page never requests more than its code grants.
//!
//! Before each request with the token, the page has the server prove that it knows the token (`/prove`), as other
//! clients do. A process that takes over the port of an ended master learns nothing. Browsers give a page the means for
//! the proof on loopback and over TLS. Over plain HTTP between machines, which requires an explicit option, the token
//! is sent without proof.

use super::tokens::{Tokens, TokensError};
use crate::role::Role;
use gristmill_worker::http::{Body, Secret, SecretError};
use gristmill_worker::response;
use hyper::header::{CONTENT_TYPE, HeaderName, HeaderValue};
use hyper::{Method, Response, StatusCode};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;
use tokio::time::Instant;

/// Lifetime of an unused code.
const CODE_TIME: Duration = Duration::from_secs(600);
/// Maximum number of unused codes. Beyond that, the oldest code of the token with the most codes is dropped.
const CODES_MAX: usize = 64;

/// Route to which a page sends its code.
pub(super) const ENTER_PATH: &str = "/page/enter";

/// Allows only scripts, styles and data of this server, forbids frames, and blocks anything injected by the name of a
/// job.
const POLICY: HeaderValue = HeaderValue::from_static(
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self' data:; \
     base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
);
const CONTENT_SECURITY_POLICY: HeaderName = HeaderName::from_static("content-security-policy");

const STYLE: &str = concat!(include_str!("tokens.css"), include_str!("page.css"));

/// Files of the page: path, type, content.
const FILES: [(&str, HeaderValue, &str); 3] = [
    ("/", HeaderValue::from_static("text/html; charset=utf-8"), include_str!("page.html")),
    ("/page.css", HeaderValue::from_static("text/css; charset=utf-8"), STYLE),
    ("/page.js", HeaderValue::from_static("text/javascript; charset=utf-8"), include_str!("page.js")),
];

/// True if the request is public.
pub(super) fn is_open(method: &Method, path: &str) -> bool {
    match *method {
        Method::GET => FILES.iter().any(|(known, ..)| *known == path),
        Method::POST => path == ENTER_PATH,
        _ => false,
    }
}

/// File at this path.
pub(super) fn file(path: &str) -> Option<Response<Body>> {
    let (_, kind, content) = FILES.into_iter().find(|(known, ..)| *known == path)?;
    let mut response = response::bytes(StatusCode::OK, content);
    response.headers_mut().insert(CONTENT_TYPE, kind);
    response.headers_mut().insert(CONTENT_SECURITY_POLICY, POLICY);
    Some(response)
}

/// A code and what it grants.
struct WaitingCode {
    code: Secret,
    /// Name of the token that requested it.
    key: String,
    role: Role,
    until: Instant,
}

/// Unused codes.
#[derive(Default)]
pub(super) struct PageCodes(Mutex<Vec<WaitingCode>>);

impl PageCodes {
    /// Creates a code for the holder of the token `key`, with the rights of `role`. The code, and the token it gives,
    /// end with that token.
    ///
    /// # Errors
    /// A system that provides no random numbers.
    pub(super) fn issue(&self, key: &str, role: Role, now: Instant) -> Result<Secret, SecretError> {
        let code = Secret::generate()?;
        let mut codes = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        codes.retain(|waiting| now < waiting.until);
        if CODES_MAX <= codes.len() {
            // A token that requests many codes must not push out the codes of others.
            let asked = |at: &WaitingCode| codes.iter().filter(|other| other.key == at.key).count();
            let oldest = (0..codes.len()).rev().max_by_key(|&index| asked(&codes[index]));
            codes.remove(oldest.unwrap_or_default());
        }
        codes.push(WaitingCode { code: code.clone(), key: key.to_owned(), role, until: now + CODE_TIME });
        Ok(code)
    }

    /// Returns the token for a code, which is used up; `None` if there is no such code.
    pub(super) fn redeem(
        &self,
        code: &str,
        tokens: &Tokens,
        now: Instant,
    ) -> Option<Result<String, TokensError>> {
        let mut codes = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        codes.retain(|waiting| now < waiting.until);
        let at = codes.iter().position(|waiting| waiting.code.matches(code))?;
        let WaitingCode { key, role, .. } = codes.remove(at);
        drop(codes);
        Some(tokens.page_token(&key, role).map(|token| token.to_text().to_string()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tokens() -> Tokens {
        Tokens::of_secret(Secret::from_bytes([7; 32]))
    }

    #[test]
    fn code_opens_the_page_once_and_not_after_its_time() {
        let (codes, tokens, now) = (PageCodes::default(), tokens(), Instant::now());
        let first = codes.issue("admin@0", Role::View, now).unwrap();
        let token = codes.redeem(&first.to_text(), &tokens, now).unwrap().unwrap();
        assert!(token.starts_with("view@admin@0:"), "{token}");
        assert!(codes.redeem(&first.to_text(), &tokens, now).is_none(), "it was used");
        let late = codes.issue("admin@0", Role::View, now).unwrap();
        assert!(codes.redeem(&late.to_text(), &tokens, now + CODE_TIME).is_none());
        assert!(codes.redeem("", &tokens, now).is_none());
    }

    #[test]
    fn code_and_token_of_a_page_end_with_the_token_that_asked_for_them() {
        for rotates in [false, true] {
            for (key, asker, role, name) in [
                ("view@0", "view@0", Role::View, "view@0"),
                ("view-projector@0", "view-projector@0", Role::View, "view-projector@0"),
                ("submit-x@0", "submit-x@0", Role::View, "view@submit-x@0"),
                ("admin-laptop@0", "admin-laptop@0", Role::Submit, "submit@admin-laptop@0"),
                ("submit@admin-laptop@0", "submit@admin-laptop@0", Role::Submit, "submit@admin-laptop@0"),
            ] {
                let (codes, tokens, now) = (PageCodes::default(), tokens(), Instant::now());
                let used = codes.issue(key, role, now).unwrap();
                let token = codes.redeem(&used.to_text(), &tokens, now).unwrap().unwrap();
                assert_eq!(token.split_once(':').unwrap().0, name);
                assert_eq!(tokens.find(name).unwrap().0, role);
                let unused = codes.issue(key, role, now).unwrap();
                if rotates { tokens.rotate(Duration::ZERO) } else { tokens.revoke(asker) }.unwrap();
                assert!(codes.redeem(&unused.to_text(), &tokens, now).unwrap().is_err(), "{key}");
                assert!(tokens.find(name).is_none(), "{name}");
            }
        }
    }

    #[test]
    fn page_opens_none_of_another_role_and_a_revoked_name_is_not_given_out() {
        let (codes, tokens, now) = (PageCodes::default(), tokens(), Instant::now());
        let given = |key, role| {
            let code = codes.issue(key, role, now).unwrap();
            codes.redeem(&code.to_text(), &tokens, now).unwrap()
        };
        assert!(given("submit@admin@0", Role::View).is_err(), "it would outlive the page that asked");
        assert!(given("admin@0", Role::Submit).is_ok());
        tokens.revoke("submit@admin@0").unwrap();
        assert!(given("admin@0", Role::Submit).is_err(), "it would open nothing");
    }

    #[test]
    fn token_of_a_page_is_of_the_generation_of_the_token_that_asked() {
        let (codes, tokens, now) = (PageCodes::default(), tokens(), Instant::now());
        let code = codes.issue("admin@0", Role::View, now).unwrap();
        tokens.rotate(Duration::from_secs(3600)).unwrap();
        let token = codes.redeem(&code.to_text(), &tokens, now).unwrap().unwrap();
        assert!(token.starts_with("view@admin@0:"), "{token}");
        tokens.rotate(Duration::from_secs(3600)).unwrap();
        assert!(tokens.find("view@admin@0").is_none(), "two generations ago");
    }

    #[test]
    fn page_that_may_cancel_has_the_token_of_whoever_asked_if_that_is_for_submitting_and_never_the_admins() {
        let (codes, tokens, now) = (PageCodes::default(), tokens(), Instant::now());
        for (key, name) in [
            ("submit@0", "submit@0:"),
            ("submit-ada@0", "submit-ada@0:"),
            ("admin@0", "submit@admin@0:"),
            ("admin-laptop@0", "submit@admin-laptop@0:"),
        ] {
            let code = codes.issue(key, Role::Submit, now).unwrap();
            let token = codes.redeem(&code.to_text(), &tokens, now).unwrap().unwrap();
            assert!(token.starts_with(name), "{key}: {token}");
        }
    }

    #[test]
    fn codes_that_wait_are_bounded_and_the_oldest_of_the_token_that_asked_the_most_gives_way() {
        let (codes, tokens, now) = (PageCodes::default(), tokens(), Instant::now());
        let other = codes.issue("admin@0", Role::View, now).unwrap();
        let given: Vec<_> =
            (0..2 * CODES_MAX).map(|_| codes.issue("view-screen@0", Role::View, now).unwrap()).collect();
        let waiting = given.iter().map(|code| codes.redeem(&code.to_text(), &tokens, now).is_some());
        let kept = CODES_MAX + 1..2 * CODES_MAX;
        assert!(waiting.enumerate().all(|(index, waits)| waits == kept.contains(&index)));
        assert!(codes.redeem(&other.to_text(), &tokens, now).is_some());
    }

    #[test]
    fn files_of_the_page_are_open_small_and_ask_no_other_host() {
        let bytes: usize = FILES.iter().map(|(_, _, content)| content.len()).sum();
        assert!(bytes < 150 << 10, "{bytes} bytes");
        for (path, _, content) in FILES {
            assert!(is_open(&Method::GET, path) && !is_open(&Method::POST, path) && file(path).is_some());
            assert!(!content.contains("://"), "{path} names another host");
            assert!(!content.contains("innerHTML"), "{path}: text of others must stay text");
        }
        assert!(!is_open(&Method::GET, "/page") && file("/page").is_none());
    }
}
