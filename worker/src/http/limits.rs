//! All limits of the HTTP layer, with units and reasons.
//!
//! They are not user configuration: the two structs exist so that tests can reach a limit, and every process runs with
//! their `Default`.

use std::time::Duration;

use crate::descriptors;

/// Maximum time from the end of a request to the end of the next one's head, on a connection with a shown secret.
pub(crate) const IDLE_TIME: Duration = Duration::from_secs(60);
/// Maximum time of a TLS handshake, on either side.
pub(crate) const HANDSHAKE_TIME: Duration = Duration::from_secs(5);
/// Maximum time for a small request body to arrive; see [`super::read_limited`].
pub(crate) const BODY_TIME: Duration = Duration::from_secs(30);
/// Maximum time without progress of a write before its connection is closed.
pub const STALL_TIME: Duration = Duration::from_secs(30);
/// Minimum bytes per second that a peer sends or receives of a body, over [`STALL_TIME`].
pub(crate) const RATE_BYTES_MIN: u64 = 1024;
/// Time that a stopping server waits for responses in progress.
pub(crate) const SHUTDOWN_TIME: Duration = Duration::from_secs(5);
/// Pause after the process ran out of file descriptors or memory for another connection.
pub(crate) const ACCEPT_PAUSE: Duration = Duration::from_millis(100);
/// Minimum time between two warnings about rejected connections.
pub(crate) const WARNING_INTERVAL: Duration = Duration::from_secs(1);

/// Maximum size of a request or response head, in bytes.
pub(crate) const HEAD_BYTES_MAX: usize = 16 * 1024;
/// Maximum number of header fields in a head.
pub(crate) const HEAD_FIELDS_MAX: usize = 64;
/// Maximum open connections of one server that have shown a secret, if the descriptors suffice.
pub const CONNECTIONS_MAX: usize = 4096;
/// Maximum open connections of one server that have shown no secret, if the descriptors suffice; see [`strangers_max`].
pub(crate) const STRANGERS_MAX: usize = 256;
/// Divisor of the descriptors that gives the maximum of connections without a secret.
const STRANGERS_SHARE: usize = 8;
/// Maximum time of a connection without a shown secret: handshake and two heads.
pub(crate) const STRANGER_TIME: Duration = Duration::from_secs(15);
/// Maximum number of secrets on one connection.
pub(crate) const SESSIONS_PER_CONNECTION_MAX: usize = 64;
/// Maximum wrong secrets from one address, or one machine's network, in one [`GUESS_WINDOW`] before the response
/// becomes 429.
pub(crate) const GUESSES_MAX: u32 = 10;
/// Time over which wrong secrets are counted.
pub(crate) const GUESS_WINDOW: Duration = Duration::from_secs(1);
/// Maximum addresses whose wrong secrets are counted separately; all others share one count.
pub(crate) const GUESSING_PEERS_MAX: usize = 1024;
/// Maximum bytes read of a rejected request's body, so that the rejection is not lost in a reset.
pub(crate) const REFUSED_BODY_BYTES_MAX: usize = 64 * 1024;
/// Maximum time of reading a rejected request's body.
pub(crate) const REFUSED_BODY_TIME: Duration = Duration::from_secs(1);
/// Bytes of an error response's body that are kept for the error message.
pub(crate) const ERROR_BODY_BYTES_MAX: usize = 4 * 1024;

/// Maximum time to connect, including TLS.
pub(crate) const CONNECT_TIME: Duration = Duration::from_secs(5);
/// Maximum wait for a response head after the last piece of the request was sent.
pub(crate) const RESPONSE_TIME: Duration = Duration::from_secs(30);
/// Maximum consecutive new connections that a peer may close before a request was sent on one: a server overloaded with
/// unauthenticated connections closes those that have shown no secret.
pub(crate) const CLOSED_EARLY_MAX: u32 = 20;
/// Pause after the first of them; it doubles with each, up to [`CLOSED_EARLY_PAUSE_MAX`].
pub(crate) const CLOSED_EARLY_PAUSE: Duration = Duration::from_millis(1);
/// Maximum pause between two of them.
pub(crate) const CLOSED_EARLY_PAUSE_MAX: Duration = Duration::from_millis(200);
/// Age at which a client drops an idle connection: half the server's limit, so that it never sends a request on a
/// connection that the server is just closing.
pub(crate) const POOL_IDLE_TIME: Duration = Duration::from_secs(30);
/// Maximum idle connections kept per peer.
pub(crate) const POOL_IDLE_PER_PEER_MAX: usize = 4;

/// Returns the maximum of connections without a shown secret for a server of this process, by its descriptors.
#[must_use]
pub fn strangers_max() -> usize {
    STRANGERS_MAX.min(descriptors::allowed() / STRANGERS_SHARE).max(1)
}

/// Limits of one server.
#[derive(Clone, Debug)]
pub struct ServerLimits {
    /// See `IDLE_TIME`.
    pub idle: Duration,
    /// See `HANDSHAKE_TIME`.
    pub handshake: Duration,
    /// See [`STALL_TIME`].
    pub stall: Duration,
    /// See `SHUTDOWN_TIME`.
    pub shutdown: Duration,
    /// See `HEAD_BYTES_MAX`.
    pub head_bytes_max: usize,
    /// See `HEAD_FIELDS_MAX`.
    pub head_fields_max: usize,
    /// See [`CONNECTIONS_MAX`].
    pub connections_max: usize,
    /// See `STRANGERS_MAX`.
    pub strangers_max: usize,
    /// See `STRANGER_TIME`.
    pub stranger: Duration,
    /// See `GUESSES_MAX`.
    pub guesses_max: u32,
}

impl Default for ServerLimits {
    fn default() -> Self {
        ServerLimits {
            idle: IDLE_TIME,
            handshake: HANDSHAKE_TIME,
            stall: STALL_TIME,
            shutdown: SHUTDOWN_TIME,
            head_bytes_max: HEAD_BYTES_MAX,
            head_fields_max: HEAD_FIELDS_MAX,
            // The other half is for files, and connections to other processes.
            connections_max: CONNECTIONS_MAX.min(descriptors::allowed() / 2),
            strangers_max: strangers_max(),
            stranger: STRANGER_TIME,
            guesses_max: GUESSES_MAX,
        }
    }
}
