//! The cluster's secret: 32 bytes that open routes, and what may be done with them.
//!
//! A secret is made by the operating system, written as 43 characters of unpadded base64url, and
//! narrowed by [`Secret::derive`], so that a job's token opens that job's data only. It travels in
//! binary frames between authenticated processes; formats for people refuse to hold one.
//!
//! Invariant: `Debug` and `Display` never show it, comparison takes the same time whatever
//! differs, and its memory is zeroed when the last clone goes.

use data_encoding::{BASE64URL_NOPAD, Encoding, HEXLOWER_PERMISSIVE};
use std::fmt;
use std::io;
use std::path::Path;
use std::str::FromStr;
use std::sync::Arc;
use subtle::ConstantTimeEq;

use hmac::{Hmac, KeyInit, Mac};
use rustix::rand::{GetRandomFlags, getrandom};
use serde::{Deserialize, Deserializer, Serialize, Serializer, de, ser};
use sha2::Sha256;
use zeroize::Zeroizing;

use super::private_file::{self, PrivateFileError};

/// Name of the file with the cluster's secret in a state directory.
pub const SECRET_FILE: &str = "secret";
/// Name of the file next to it with the generation of tokens and those that were revoked.
pub const TOKENS_FILE: &str = "tokens";

/// Length of a secret in bytes.
const SECRET_BYTES: usize = 32;
/// Length of 32 bytes as unpadded base64url.
const BASE64_CHARS: usize = 43;
/// Length of 32 bytes as hexadecimal digits.
const HEX_CHARS: usize = 64;

/// 32 random bytes whose knowledge opens a route. Clones share one allocation.
#[derive(Clone)]
pub struct Secret(Arc<Zeroizing<[u8; SECRET_BYTES]>>);

impl Secret {
    /// A new secret from the operating system's randomness.
    ///
    /// # Errors
    /// [`SecretError::Randomness`] if the system has none to give.
    pub fn generate() -> Result<Self, SecretError> {
        let mut bytes = Zeroizing::new([0; SECRET_BYTES]);
        // By the system call itself, which a static program has where there is no /dev/urandom. So few bytes come at once.
        let count = getrandom(bytes.as_mut_slice(), GetRandomFlags::empty());
        let source = match count {
            Ok(SECRET_BYTES) => return Ok(Secret(Arc::new(bytes))),
            Ok(_) => io::ErrorKind::UnexpectedEof.into(),
            Err(error) => error.into(),
        };
        Err(SecretError::Randomness { source })
    }

    /// A secret received as bytes, for instance over an authenticated connection.
    #[must_use]
    pub fn from_bytes(bytes: [u8; SECRET_BYTES]) -> Self {
        Secret(Arc::new(Zeroizing::new(bytes)))
    }

    /// The bytes themselves, to hand to an authenticated peer; never to a log.
    #[must_use]
    pub fn as_bytes(&self) -> &[u8; SECRET_BYTES] {
        &self.0
    }

    /// The secret as 43 characters of base64url, for a header or a join line; never for a log.
    #[must_use]
    pub fn to_text(&self) -> Zeroizing<String> {
        Zeroizing::new(encode_base64(&self.0))
    }

    /// The secret for one purpose: HMAC-SHA256 of the purpose under this secret.
    ///
    /// Who knows the result learns nothing about this secret or about other purposes.
    #[must_use]
    pub fn derive(&self, purpose: &str) -> Secret {
        let mut mac =
            Hmac::<Sha256>::new_from_slice(self.0.as_slice()).expect("HMAC takes a key of any length");
        mac.update(purpose.as_bytes());
        Secret::from_bytes(mac.finalize().into_bytes().into())
    }

    /// Whether the presented text is this secret, in time independent of where they differ.
    #[must_use]
    pub fn matches(&self, presented: &str) -> bool {
        presented.parse::<Secret>().is_ok_and(|presented| self == &presented)
    }

    /// The secret kept in a file; a new one is made and stored if there is no such file.
    ///
    /// The file has mode 0600 in a directory of mode 0700, both owned by this process's user; of
    /// several processes that create it at once, all get the same secret.
    ///
    /// # Errors
    /// If the file or its directory cannot be used, is not private or not ours, or holds no secret.
    pub fn load_or_create(path: &Path) -> Result<Self, SecretError> {
        let text = private_file::read_or_create(path, || {
            let mut text = Secret::generate()?.to_text();
            text.push('\n');
            Ok::<_, SecretError>(text)
        })?;
        text.trim_end().parse()
    }

    /// The secret kept in a file, if it is there.
    ///
    /// # Errors
    /// As [`Secret::load_or_create`].
    pub fn load(path: &Path) -> Result<Option<Self>, SecretError> {
        let text = private_file::read_private(path, private_file::FILE_BYTES_MAX)?;
        text.map(|text| text.trim_end().parse()).transpose()
    }
}

impl PartialEq for Secret {
    fn eq(&self, other: &Self) -> bool {
        self.0.as_slice().ct_eq(other.0.as_slice()).into()
    }
}

impl Eq for Secret {}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret(redacted)")
    }
}

impl fmt::Display for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("(secret redacted)")
    }
}

impl Serialize for Secret {
    /// Refused by formats that people read, so that no secret gets into a log or an answer in JSON.
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        if serializer.is_human_readable() {
            return Err(ser::Error::custom("a secret is not written in a format for people"));
        }
        self.as_bytes().serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for Secret {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        if deserializer.is_human_readable() {
            return Err(de::Error::custom("a secret is not read from a format for people"));
        }
        <[u8; SECRET_BYTES]>::deserialize(deserializer).map(Secret::from_bytes)
    }
}

impl FromStr for Secret {
    type Err = SecretError;

    /// Reads 43 characters of base64url or 64 hexadecimal digits.
    fn from_str(text: &str) -> Result<Self, SecretError> {
        let mut bytes = Zeroizing::new([0; SECRET_BYTES]);
        let decoded = match text.len() {
            BASE64_CHARS => decode_base64(text.as_bytes(), &mut bytes),
            HEX_CHARS => decode(&HEXLOWER_PERMISSIVE, text.as_bytes(), &mut bytes),
            _ => None,
        };
        // The text itself stays out of the error: it may be a secret with one letter too many.
        decoded.ok_or(SecretError::Text { characters: text.chars().count() })?;
        Ok(Secret(Arc::new(bytes)))
    }
}

/// Why a secret could not be made or read.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
#[allow(missing_docs, reason = "the names of some fields say all there is to say")]
pub enum SecretError {
    /// The operating system gave no randomness.
    #[error("could not get randomness from the operating system")]
    Randomness {
        #[source]
        source: io::Error,
    },
    /// The text is not a secret.
    #[error(
        "could not read a secret of {characters} characters: it has 43 of base64url or 64 hexadecimal digits"
    )]
    Text {
        /// Length of what was given.
        characters: usize,
    },
    /// The file that should hold it cannot be used.
    #[error(transparent)]
    File(#[from] PrivateFileError),
}

/// 32 bytes as 43 characters of unpadded base64url.
pub(super) fn encode_base64(bytes: &[u8; SECRET_BYTES]) -> String {
    BASE64URL_NOPAD.encode(bytes)
}

/// The reverse; `None` for a wrong length, a foreign character or set bits beyond the last byte.
pub(super) fn decode_base64(text: &[u8], bytes: &mut [u8; SECRET_BYTES]) -> Option<()> {
    decode(&BASE64URL_NOPAD, text, bytes)
}

fn decode(encoding: &Encoding, text: &[u8], bytes: &mut [u8; SECRET_BYTES]) -> Option<()> {
    let length = encoding.decode_len(text.len()).ok().filter(|length| *length == SECRET_BYTES);
    length.and_then(|_| encoding.decode_mut(text, bytes).ok()).map(drop)
}
