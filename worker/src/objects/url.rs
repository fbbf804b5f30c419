//! URLs of objects and prefixes: `s3://BUCKET/KEY`, `gs://`, `az://CONTAINER/KEY`, `http://`, `https://`.
//!
//! URLs of stores are used as typed, without percent-encoding, as in the tools of the stores. Those of web
//! servers are ordinary URLs. A URL is sent with its job and is visible to users, so one that could contain a
//! secret is refused. That means a user name, and for web servers everything after `?`.

use super::error::{ObjectError, ObjectFailure};
use std::fmt;

/// Scheme of a URL.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
#[allow(missing_docs, reason = "the names say all there is to say")]
pub enum Scheme {
    S3,
    Gs,
    Az,
    Http,
    Https,
}

impl Scheme {
    /// Returns the scheme of a supported URL.
    #[must_use]
    pub fn from_url(text: &str) -> Option<Self> {
        let (scheme, _) = text.split_once("://")?;
        Some(match scheme {
            // Hadoop's name for the same store.
            "s3" | "s3a" => Self::S3,
            "gs" => Self::Gs,
            "az" => Self::Az,
            "http" => Self::Http,
            "https" => Self::Https,
            _ => return None,
        })
    }

    /// True for a web server, which is read-only, one object at a time.
    #[must_use]
    pub fn is_web(self) -> bool {
        matches!(self, Self::Http | Self::Https)
    }

    fn word(self) -> &'static str {
        match self {
            Self::S3 => "s3",
            Self::Gs => "gs",
            Self::Az => "az",
            Self::Http => "http",
            Self::Https => "https",
        }
    }
}

/// True if a text starts with a scheme, as `https://` does.
#[must_use]
pub fn is_url(text: &str) -> bool {
    let scheme = text.split_once("://").map_or("", |(scheme, _)| scheme);
    let word = |byte: u8| byte.is_ascii_alphanumeric() || b"+-.".contains(&byte);
    scheme.bytes().next().is_some_and(|first| first.is_ascii_alphabetic()) && scheme.bytes().all(word)
}

/// Location of an object, or of all objects of a prefix.
///
/// Invariant: the key neither starts nor ends with `/`, and none of its names is empty, `.` or `..`.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct ObjectUrl {
    scheme: Scheme,
    /// Bucket, container, or host and port.
    authority: String,
    key: String,
    /// True if it was written with `/` at its end: a prefix and not an object.
    is_prefix: bool,
}

impl ObjectUrl {
    /// Parses a URL.
    ///
    /// # Errors
    /// [`ObjectFailure::Address`] for an invalid one, or one that may contain a secret.
    pub fn parse(text: &str) -> Result<Self, ObjectError> {
        let wrong = |reason| {
            // A potential secret is not repeated.
            let shown = text.split(['?', '#']).next().unwrap_or_default();
            let (scheme, rest) = shown.split_once("://").unwrap_or(("", shown));
            let rest = rest.rsplit_once('@').map_or(rest, |(_, behind)| behind);
            ObjectError {
                action: "use",
                url: format!("{scheme}://{rest}"),
                may_be_done: false,
                cause: ObjectFailure::Address { reason },
            }
        };
        let scheme = Scheme::from_url(text)
            .ok_or_else(|| wrong("it begins with none of s3://, gs://, az://, http:// and https://"))?;
        let rest = text.split_once("://").map_or("", |(_, rest)| rest);
        let (authority, key) = rest.split_once('/').unwrap_or((rest, ""));
        if authority.contains('@') {
            return Err(wrong(
                "it names a user, and all who see the job would see that; credentials belong into the environment",
            ));
        }
        if scheme.is_web() && rest.contains(['?', '#']) {
            return Err(wrong(
                "what stands behind ? may be a key, and all who see the job would see it; fetch the file first",
            ));
        }
        let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-._".contains(&byte);
        let good = if scheme.is_web() {
            authority.bytes().all(|byte| plain(byte) || b":[]".contains(&byte))
        } else {
            authority.bytes().all(plain)
        };
        if authority.is_empty() || !good {
            return Err(wrong("it names no bucket or host"));
        }
        if key.chars().any(char::is_control) {
            return Err(wrong("its key has a control character"));
        }
        let is_prefix = key.is_empty() || key.ends_with('/');
        let key = key.strip_suffix('/').unwrap_or(key);
        if !key.is_empty() && key.split('/').any(|name| matches!(name, "" | "." | "..")) {
            return Err(wrong("its key has a name that is empty, . or .."));
        }
        Ok(Self { scheme, authority: authority.to_owned(), key: key.to_owned(), is_prefix })
    }

    /// Returns the scheme.
    #[must_use]
    pub fn scheme(&self) -> Scheme {
        self.scheme
    }

    /// Returns the bucket, container, or host and port.
    #[must_use]
    pub fn authority(&self) -> &str {
        &self.authority
    }

    /// Returns the name of the object, or the prefix without `/` at its end; empty for the whole bucket.
    #[must_use]
    pub fn key(&self) -> &str {
        &self.key
    }

    /// True if it can only be a prefix.
    #[must_use]
    pub(crate) fn is_prefix(&self) -> bool {
        self.is_prefix
    }

    /// Returns the URL of another object of its bucket.
    #[must_use]
    pub fn with_key(&self, key: &str) -> Self {
        Self { key: key.to_owned(), is_prefix: key.is_empty(), ..self.clone() }
    }

    /// Returns the URL of an object of this name below it.
    #[must_use]
    pub fn child(&self, name: &str) -> Self {
        self.with_key(&self.child_key(name))
    }

    /// Returns the key of an object of this name below it.
    #[must_use]
    pub fn child_key(&self, name: &str) -> String {
        if self.key.is_empty() { name.to_owned() } else { format!("{}/{name}", self.key) }
    }

    /// Returns the prefix of the keys of all objects below it.
    #[must_use]
    pub fn prefix(&self) -> String {
        if self.key.is_empty() { String::new() } else { format!("{}/", self.key) }
    }
}

impl fmt::Display for ObjectUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}://{}", self.scheme.word(), self.authority)?;
        if !self.key.is_empty() {
            write!(f, "/{}", self.key)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn url_is_taken_apart_and_put_together_as_it_was_typed() {
        for (text, scheme, authority, key, shown) in [
            ("s3://logs/2026/a b%20.gz", Scheme::S3, "logs", "2026/a b%20.gz", "s3://logs/2026/a b%20.gz"),
            ("s3a://logs/x/", Scheme::S3, "logs", "x", "s3://logs/x"),
            ("gs://my_bucket.x", Scheme::Gs, "my_bucket.x", "", "gs://my_bucket.x"),
            ("az://box/k", Scheme::Az, "box", "k", "az://box/k"),
            ("http://[::1]:8080/f.txt", Scheme::Http, "[::1]:8080", "f.txt", "http://[::1]:8080/f.txt"),
        ] {
            let url = ObjectUrl::parse(text).unwrap();
            assert_eq!((url.scheme(), url.authority(), url.key()), (scheme, authority, key), "{text}");
            assert_eq!(url.to_string(), shown);
        }
        let url = ObjectUrl::parse("s3://b/out").unwrap();
        assert_eq!(url.child("part-0").to_string(), "s3://b/out/part-0");
        assert_eq!((url.prefix(), url.with_key("").prefix()), ("out/".to_owned(), String::new()));
        assert!(ObjectUrl::parse("s3://b/out/").unwrap().is_prefix() && !url.is_prefix());
    }

    #[test]
    fn url_that_may_hold_a_secret_is_refused_and_the_secret_not_repeated() {
        for text in ["https://me:hunter2@h/f", "https://h/f?X-Amz-Signature=hunter2", "s3://hunter2@b/k"] {
            let error = ObjectUrl::parse(text).unwrap_err();
            let words = crate::error_text::chain(&error);
            assert!(!words.contains("hunter2") && words.contains("all who see the job"), "{words}");
        }
    }

    #[test]
    fn url_without_a_place_is_refused() {
        for text in
            ["s3://", "s3:///k", "s3://a b/k", "s3://b/a//b", "s3://b/../c", "s3://b/a\nb", "ftp://h/f"]
        {
            let error = ObjectUrl::parse(text).unwrap_err();
            assert!(matches!(error.cause, ObjectFailure::Address { .. }), "{text}: {error}");
        }
        assert!(is_url("ftp://h/f") && !is_url("a:b/c") && !is_url("/s3://x"));
    }
}
