//! Every limit of the HTTP layer, with its unit and its reason, in one place.
//!
//! It is not configuration for users: the two structs exist so that a test can make a limit small
//! enough to meet, and their `Default` is what every process runs with.

use std::time::Duration;

use crate::descriptors;

/// Longest time from accepting a connection, or from the first byte of a later request, to the end
/// of that request's head.
pub const HEAD_TIME: Duration = Duration::from_secs(5);
/// Longest silence between two requests of one connection.
pub const IDLE_TIME: Duration = Duration::from_secs(60);
/// Longest TLS handshake, on either side.
pub const HANDSHAKE_TIME: Duration = Duration::from_secs(5);
/// Longest time for a small request body to arrive; see [`super::read_limited`].
pub const BODY_TIME: Duration = Duration::from_secs(30);
/// Longest time a write may make no progress before its connection is given up.
pub const STALL_TIME: Duration = Duration::from_secs(30);
/// Least bytes in a second that a peer sends of a body, or takes of one, over [`STALL_TIME`].
pub const RATE_BYTES_MIN: u64 = 1024;
/// How long a server that stops waits for answers under way.
pub const SHUTDOWN_TIME: Duration = Duration::from_secs(5);
/// Pause after the process ran out of file descriptors or memory for another connection.
pub(crate) const ACCEPT_PAUSE: Duration = Duration::from_millis(100);
/// Least time between two warnings about refused connections.
pub(crate) const WARNING_INTERVAL: Duration = Duration::from_secs(1);

/// Largest request or response head, in bytes.
pub const HEAD_BYTES_MAX: usize = 16 * 1024;
/// Most header fields in a head.
pub const HEAD_FIELDS_MAX: usize = 64;
/// Open connections of one server that have shown a secret, if there are descriptors for so many.
pub const CONNECTIONS_MAX: usize = 4096;
/// Open connections of one server that have shown no secret, if there are descriptors for so many; see
/// [`strangers_max`].
pub const STRANGERS_MAX: usize = 256;
/// One part in so many of the descriptors, at most, is for connections that have shown no secret.
const STRANGERS_SHARE: usize = 8;
/// Longest time for which a connection may be open without having shown a secret: handshake and two heads.
pub const STRANGER_TIME: Duration = Duration::from_secs(15);
/// Secrets that one connection may be used with.
pub(crate) const SESSIONS_PER_CONNECTION_MAX: usize = 64;
/// Wrong secrets from one address, or one machine's network, in one [`GUESS_WINDOW`] before the answer becomes 429.
pub const GUESSES_MAX: u32 = 10;
/// The time over which wrong secrets are counted.
pub const GUESS_WINDOW: Duration = Duration::from_secs(1);
/// Addresses whose wrong secrets are counted separately; beyond them all others share one count.
pub const GUESSING_PEERS_MAX: usize = 1024;
/// Bytes of a refused request's body that are read, so that the refusal is not lost in a reset.
pub(crate) const REFUSED_BODY_BYTES_MAX: usize = 64 * 1024;
/// Longest time for which a refused request's body is read.
pub(crate) const REFUSED_BODY_TIME: Duration = Duration::from_secs(1);
/// Bytes of an unsuccessful answer's body that are kept for the error message.
pub(crate) const ERROR_BODY_BYTES_MAX: usize = 4 * 1024;

/// Longest time to connect, TLS included.
pub(crate) const CONNECT_TIME: Duration = Duration::from_secs(5);
/// Longest wait for a response head after the last piece of the request was taken.
pub(crate) const RESPONSE_TIME: Duration = Duration::from_secs(30);
/// New connections that a peer may close, one after another, before a request has left on one: a server that strangers
/// overload closes connections that have shown no secret.
pub(crate) const CLOSED_EARLY_MAX: u32 = 20;
/// Pause after the first of them; it doubles with each, up to [`CLOSED_EARLY_PAUSE_MAX`].
pub(crate) const CLOSED_EARLY_PAUSE: Duration = Duration::from_millis(1);
/// Longest pause between two of them.
pub(crate) const CLOSED_EARLY_PAUSE_MAX: Duration = Duration::from_millis(200);
/// Age at which a client drops an idle connection: half the server's, so that it never sends a
/// request on a connection the server is just closing.
pub(crate) const POOL_IDLE_TIME: Duration = Duration::from_secs(30);
/// Idle connections kept to one peer.
pub const POOL_IDLE_PER_PEER_MAX: usize = 4;

/// Connections that have shown no secret which a server of this process may have, as its descriptors go.
#[must_use]
pub fn strangers_max() -> usize {
    STRANGERS_MAX.min(descriptors::allowed() / STRANGERS_SHARE).max(1)
}

/// Limits of one server.
#[derive(Clone, Debug)]
pub struct ServerLimits {
    /// See [`HEAD_TIME`].
    pub head: Duration,
    /// See [`IDLE_TIME`].
    pub idle: Duration,
    /// See [`HANDSHAKE_TIME`].
    pub handshake: Duration,
    /// See [`STALL_TIME`].
    pub stall: Duration,
    /// See [`SHUTDOWN_TIME`].
    pub shutdown: Duration,
    /// See [`HEAD_BYTES_MAX`].
    pub head_bytes_max: usize,
    /// See [`HEAD_FIELDS_MAX`].
    pub head_fields_max: usize,
    /// See [`CONNECTIONS_MAX`].
    pub connections_max: usize,
    /// See [`STRANGERS_MAX`].
    pub strangers_max: usize,
    /// See [`STRANGER_TIME`].
    pub stranger: Duration,
    /// See [`GUESSES_MAX`].
    pub guesses_max: u32,
}

impl Default for ServerLimits {
    fn default() -> Self {
        ServerLimits {
            head: HEAD_TIME,
            idle: IDLE_TIME,
            handshake: HANDSHAKE_TIME,
            stall: STALL_TIME,
            shutdown: SHUTDOWN_TIME,
            head_bytes_max: HEAD_BYTES_MAX,
            head_fields_max: HEAD_FIELDS_MAX,
            // The other half is for files, and connections to others.
            connections_max: CONNECTIONS_MAX.min(descriptors::allowed() / 2),
            strangers_max: strangers_max(),
            stranger: STRANGER_TIME,
            guesses_max: GUESSES_MAX,
        }
    }
}
