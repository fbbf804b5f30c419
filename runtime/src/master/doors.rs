//! Which role each of the master's routes needs.
//!
//! A route that is not named here needs the role that may do everything. Not here: what the routes do (`routes`).

use super::tokens::{Role, Tokens};
use crate::api::ROOT;
use gristmill_worker::http::{Door, Doors};
use gristmill_worker::protocol::CONNECT_PATH;
use hyper::Method;
use std::sync::Arc;

/// The doors of a master.
pub(super) struct MasterDoors(pub(super) Arc<Tokens>);

impl Doors for MasterDoors {
    fn door(&self, method: &Method, path: &str, key: &str) -> Door {
        let (Some(needed), Some((role, secret))) = (role_for(method, path), self.0.find(key)) else {
            return Door::Closed;
        };
        if role.may(needed) { Door::Secret(secret) } else { Door::Barred(secret) }
    }
}

/// The role for which a route is made; `None` if the master has no such routes.
fn role_for(method: &Method, path: &str) -> Option<Role> {
    if path == CONNECT_PATH {
        return Some(Role::Work);
    }
    let parts: Vec<&str> = path.strip_prefix(ROOT)?.split('/').skip(1).collect();
    Some(match (method, parts.as_slice()) {
        (&Method::POST, ["workers", "ended"]) => Role::Work,
        (&Method::GET, ["cluster"]) | (&Method::POST, ["jobs"] | ["jobs", _, "cancel" | "closed"]) => {
            Role::Submit
        }
        (&Method::GET, ["status" | "jobs"] | ["jobs", ..]) => Role::View,
        _ => Role::Admin,
    })
}
