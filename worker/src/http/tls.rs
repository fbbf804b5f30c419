//! TLS 1.3 between machines: servers with their own key, and clients that know its fingerprint.
//!
//! There is no certificate authority and no host name check. A client compares the SHA-256 of the server's
//! public key with the given pin, and verifies the handshake's signature by that key. Validity dates are
//! ignored, so different clocks do no harm. Clients are not authenticated by TLS; they show a secret to the
//! gate.

use crate::exit::ExitsWith;
use std::fmt;
use std::path::Path;
use std::str::FromStr;
use std::sync::Arc;

use rcgen::{CertificateParams, KeyPair};
use rustls::client::Resumption;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{CryptoProvider, ring, verify_tls13_signature};
use rustls::pki_types::{CertificateDer, PrivateKeyDer, PrivatePkcs8KeyDer, ServerName, UnixTime};
use rustls::server::ParsedCertificate;
use rustls::version::TLS13;
use rustls::{CertificateError, DigitallySignedStruct, PeerIncompatible, SignatureScheme};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use sha2::{Digest, Sha256};
use zeroize::Zeroizing;

use super::private_file::{self, PrivateFileError};
use super::secret::{decode_base64, encode_base64};

/// SHA-256 of a server's public key (its SubjectPublicKeyInfo in DER); public, 43 characters.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Pin(pub [u8; 32]);

impl Pin {
    pub(super) fn of_public_key(spki_der: &[u8]) -> Pin {
        Pin(Sha256::digest(spki_der).into())
    }
}

impl fmt::Display for Pin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&encode_base64(&self.0))
    }
}

impl fmt::Debug for Pin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Pin({self})")
    }
}

impl FromStr for Pin {
    type Err = IdentityError;

    fn from_str(text: &str) -> Result<Self, IdentityError> {
        let mut bytes = [0; 32];
        match decode_base64(text.as_bytes(), &mut bytes) {
            Some(()) => Ok(Pin(bytes)),
            None => Err(IdentityError::Pin { text: text.escape_debug().to_string() }),
        }
    }
}

impl Serialize for Pin {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Pin {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer)?.parse().map_err(serde::de::Error::custom)
    }
}

/// Error of creating or reading a server's key.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
#[allow(missing_docs, reason = "the names of some fields say all there is to say")]
pub enum IdentityError {
    /// The key or its certificate could not be created.
    #[error("could not make a key for {names:?}")]
    Certificate {
        /// Names in the certificate.
        names: Vec<String>,
        #[source]
        source: rcgen::Error,
    },
    /// The TLS library rejected the key.
    #[error("could not set up TLS with our own key")]
    Setup {
        #[source]
        source: rustls::Error,
    },
    /// The text is not a pin.
    #[error("could not read {text:?} as a pin: it has 43 characters of base64url")]
    Pin {
        /// Given text, escaped.
        text: String,
    },
    /// The file of the key cannot be used.
    #[error(transparent)]
    File(#[from] PrivateFileError),
}

impl ExitsWith for IdentityError {}

/// Key of a server with its self-signed certificate. Cheap to clone.
#[derive(Clone)]
pub struct Identity {
    pin: Pin,
    server: Arc<rustls::ServerConfig>,
}

impl Identity {
    /// Generates a key, and a certificate for these host names or addresses; clients only check the key.
    ///
    /// # Errors
    /// If a name is invalid in a certificate or no key can be generated.
    pub fn generate(names: &[String]) -> Result<Self, IdentityError> {
        Identity::from_key(&new_key(names)?, names)
    }

    /// Loads the key from a file, so that its pin survives a restart; if the file does not exist, a new key is
    /// generated and stored. The certificate is generated again each time, since clients ignore it.
    ///
    /// # Errors
    /// As [`Identity::generate`], or if the file is not private, belongs to another user or is not a key.
    pub fn load_or_create(path: &Path, names: &[String]) -> Result<Self, IdentityError> {
        let pem = private_file::read_or_create(path, || {
            Ok::<_, IdentityError>(Zeroizing::new(new_key(names)?.serialize_pem()))
        })?;
        let key = KeyPair::from_pem(&pem).map_err(certificate_error(names))?;
        Identity::from_key(&key, names)
    }

    fn from_key(key: &KeyPair, names: &[String]) -> Result<Self, IdentityError> {
        let certificate = CertificateParams::new(names)
            .and_then(|parameters| parameters.self_signed(key))
            .map_err(certificate_error(names))?;
        let setup = |source| IdentityError::Setup { source };
        let parsed = ParsedCertificate::try_from(certificate.der()).map_err(setup)?;
        let pin = Pin::of_public_key(&parsed.subject_public_key_info());
        let private_key = PrivateKeyDer::Pkcs8(PrivatePkcs8KeyDer::from(key.serialize_der()));
        let mut server = rustls::ServerConfig::builder_with_provider(provider())
            .with_protocol_versions(&[&TLS13])
            .map_err(setup)?
            .with_no_client_auth()
            .with_single_cert(vec![certificate.der().clone()], private_key)
            .map_err(setup)?;
        server.send_tls13_tickets = 0; // clients of ours never resume a session
        Ok(Identity { pin, server: Arc::new(server) })
    }

    /// Returns the pin by which clients identify this server.
    #[must_use]
    pub fn pin(&self) -> Pin {
        self.pin
    }

    /// Returns the TLS settings of a listener with this key: version 1.3 only.
    pub(super) fn server_config(&self) -> Arc<rustls::ServerConfig> {
        Arc::clone(&self.server)
    }
}

impl fmt::Debug for Identity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Identity").field("pin", &self.pin).finish_non_exhaustive()
    }
}

fn new_key(names: &[String]) -> Result<KeyPair, IdentityError> {
    KeyPair::generate().map_err(certificate_error(names))
}

fn certificate_error(names: &[String]) -> impl Fn(rcgen::Error) -> IdentityError {
    let names = names.to_vec();
    move |source| IdentityError::Certificate { names: names.clone(), source }
}

/// Returns the provider. It is named explicitly everywhere: rustls panics if two providers are compiled in and none is
/// chosen.
fn provider() -> Arc<CryptoProvider> {
    Arc::new(ring::default_provider())
}

/// Returns the TLS settings of a client that accepts one key only.
///
/// Sessions are never resumed: the key is proven again on each connection.
pub(super) fn client_config(pin: Pin) -> Result<Arc<rustls::ClientConfig>, rustls::Error> {
    let provider = provider();
    let verifier = PinnedKey { pin, provider: Arc::clone(&provider) };
    let mut config = rustls::ClientConfig::builder_with_provider(provider)
        .with_protocol_versions(&[&TLS13])?
        .dangerous()
        .with_custom_certificate_verifier(Arc::new(verifier))
        .with_no_client_auth();
    config.resumption = Resumption::disabled();
    // The name is the same for every server and unused, so it is not sent either.
    config.enable_sni = false;
    Ok(Arc::new(config))
}

/// Returns the name that rustls requires; only the pin counts.
pub(super) fn server_name() -> ServerName<'static> {
    ServerName::try_from("gristmill").expect("a plain word is a valid name")
}

/// True if this handshake failed because the server showed another key than the pinned one.
pub(super) fn is_pin_mismatch(error: &rustls::Error) -> bool {
    matches!(error, rustls::Error::InvalidCertificate(CertificateError::ApplicationVerificationFailure))
}

#[derive(Debug)]
struct PinnedKey {
    pin: Pin,
    provider: Arc<CryptoProvider>,
}

impl ServerCertVerifier for PinnedKey {
    fn verify_server_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        _intermediates: &[CertificateDer<'_>],
        _server_name: &ServerName<'_>,
        _ocsp_response: &[u8],
        _now: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        let certificate = ParsedCertificate::try_from(end_entity)?;
        if Pin::of_public_key(&certificate.subject_public_key_info()) != self.pin {
            return Err(CertificateError::ApplicationVerificationFailure.into());
        }
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        _message: &[u8],
        _certificate: &CertificateDer<'_>,
        _signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        Err(PeerIncompatible::Tls12NotOfferedOrEnabled.into())
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        let algorithms = &self.provider.signature_verification_algorithms;
        verify_tls13_signature(message, certificate, signature, algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.provider.signature_verification_algorithms.supported_schemes()
    }
}
