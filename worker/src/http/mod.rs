//! Everything Gristmill does with HTTP: one server, one client, one gate, and their limits.
//!
//! hyper is built here and nowhere else, so that no listener can exist without its timers, its
//! size limits and the gate, and no request can leave without its time limits. A server is
//! [`serve`] over a listener from [`Bind::listen`]; in front of its handler stands the gate, which
//! asks [`RouteAuth`] what a path needs and refuses everything else. A client is a
//! [`Connection`], or a [`Pool`] of them where requests to the same peers repeat.
//!
//! It is not: routing, messages, or retry policy. What a path means, what a body holds and whether
//! a failed request is tried again belong to the callers; they get errors they can tell apart.
//!
//! Invariant: a secret leaves this module only in a private file or a binary frame, or through a
//! function that is named for it (`to_text`, `as_bytes`). To a server it is never sent: both ends
//! prove that they know it, the server first (`proof`).

mod bind;
mod body;
mod census;
mod client;
mod endpoint;
mod gate;
pub mod limits;
mod listen_address;
mod lived;
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
pub use body::{Body, BodyError, BodySender, Steady, empty, full, json, pieces, read_limited, stream};
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
