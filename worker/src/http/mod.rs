//! HTTP layer of Gristmill: one server, one client, one gate, and their limits.
//!
//! hyper is only used here, so that no listener can exist without its timers, its size limits and the gate, and no
//! request can be sent without its time limits. A server is [`serve`] over a listener from [`Bind::listen`]. The gate
//! before its handler asks [`RouteAuth`] for the access of a path and rejects everything else. A client is a
//! [`Connection`], or a [`Pool`] of them for repeated requests to the same peers.
//!
//! Routing, messages and retries are up to the callers, which get errors that they can distinguish.
//!
//! Invariant: a secret leaves this module only in a private file or a binary frame, or through a function named for it
//! (`to_text`, `as_bytes`). It is never sent to a server: both ends prove that they know it, the server first
//! (`proof`).

mod active_time;
mod bind;
mod body;
mod census;
mod client;
mod endpoint;
mod gate;
pub mod limits;
mod listen_address;
mod pool;
mod private_file;
mod proof;
mod rate;
mod secret;
mod serve;
mod tls;
mod token;
mod upgrade;
mod watch;

#[cfg(test)]
mod tests;

pub use bind::{Bind, BindError, Permissions, Transport};
pub use body::{
    Body, BodyError, BodySender, Steady, empty, file_body, full, json, pieces, read_limited, stream,
};
pub use client::{Answer, Connection, HttpError, Phase, Timeouts};
pub use endpoint::{Endpoint, EndpointError, JoinLine, Plaintext};
pub use gate::{Access, RouteAuth};
pub use listen_address::{ListenAddress, ListenAddressError, resolve};
pub use pool::Pool;
pub use private_file::{PrivateFileError, make_private_directory, read_private, replace_private};
#[cfg(test)]
pub(crate) use proof::answer_to_hello;
pub use secret::{SECRET_FILE, Secret, SecretError, TOKENS_FILE};
pub use serve::{PeerAddress, ServerConfig, ShownKey, serve};
pub use tls::{Identity, IdentityError, Pin};
pub use token::{Key, Token, TokenError};
pub use upgrade::{Duplex, ReadWrite, accept_upgrade};
