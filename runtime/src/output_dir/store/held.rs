//! Claims on outputs in object stores that running jobs of this process hold. A claim names its process, so only this
//! list distinguishes it from one that an earlier job of the process left.

use gristmill_worker::directory::PlainName;
use std::collections::BTreeSet;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Names of the claims that jobs of this process have made and still hold.
static HELD: Mutex<BTreeSet<String>> = Mutex::new(BTreeSet::new());

pub(super) fn held() -> MutexGuard<'static, BTreeSet<String>> {
    HELD.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A claim that this process has made and holds while this value lives. Any other claim in this process's name is left
/// from an earlier job.
#[derive(Debug)]
pub(super) struct HeldClaim(String);

impl HeldClaim {
    pub(super) fn new(probe: &PlainName) -> Self {
        held().insert(probe.as_str().to_owned());
        Self(probe.as_str().to_owned())
    }
}

impl Drop for HeldClaim {
    fn drop(&mut self) {
        held().remove(&self.0);
    }
}
