//! Roles required by the master's routes.
//!
//! A route that is not listed here requires the admin role.

use super::page;
use super::routes::{METRICS_PATH, probes, route};
use super::tokens::Tokens;
use crate::role::Role;
use gristmill_worker::http::{Access, RouteAuth};
use gristmill_worker::protocol::CONNECT_PATH;
use hyper::Method;
use std::sync::Arc;

/// Access check of a master's routes.
pub(super) struct MasterAuth(pub(super) Arc<Tokens>);

impl RouteAuth for MasterAuth {
    fn access(&self, method: &Method, path: &str, key: &str) -> Access {
        if page::is_open(method, path) || probes::is_open(method, path) {
            return Access::Open;
        }
        let (Some(needed), Some((role, secret))) = (role_for(method, path), self.0.find(key)) else {
            return Access::Closed;
        };
        if role.may(needed) { Access::Secret(secret) } else { Access::Forbidden(secret) }
    }
}

/// Role for which a route is made; `None` if the master has no such route.
fn role_for(method: &Method, path: &str) -> Option<Role> {
    if path == CONNECT_PATH {
        return Some(Role::Work);
    }
    if (method, path) == (&Method::GET, METRICS_PATH) {
        return Some(Role::View);
    }
    Some(match (method, route(path)?.as_slice()) {
        (&Method::POST, ["workers", "ended"]) => Role::Work,
        (&Method::GET, ["cluster"])
        | (&Method::POST, ["jobs"] | ["attend"] | ["jobs", _, "cancel" | "closed"] | ["page", "submit"]) => {
            Role::Submit
        }
        (&Method::GET, ["status" | "jobs" | "feed" | "turns"] | ["jobs", ..]) | (&Method::POST, ["page"]) => {
            Role::View
        }
        _ => Role::Admin,
    })
}
