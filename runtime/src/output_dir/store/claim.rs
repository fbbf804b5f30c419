//! Claim on a prefix of a store: the object `_temporary`, which names its owner and the state of the output.
//!
//! It is created if none exists. Afterwards it is replaced only in the version that was read, so a late writer fails: a
//! second job, a second closer, or a second process that takes over a dead one's claim. A store has no locks. A claim
//! is taken over only if its owner is certainly dead, which a process can determine for its own machine since boot. Any
//! other claim stays. The claim only avoids wasted work: that two outputs never count is ensured by `_SUCCESS` alone.

use super::super::OutputError;
use super::held::held;
use super::output::{StoreOutput, is_condition, is_missing};
use crate::owner::{Owner, claimed_by};
use gristmill_scheduler::ids::JobId;
use gristmill_worker::directory::PlainName;
use gristmill_worker::objects::{CLAIM, ObjectVersion};
use serde::{Deserialize, Serialize};
use std::fmt;
use std::io;

/// Longest claim, bytes.
const CLAIM_BYTES_MAX: u64 = 64 << 10;

/// State of a claimed output.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum StoreClaimState {
    /// Its parts are being built.
    Open,
    /// It is being finished.
    Closing,
    /// It is being removed.
    Abandoning,
}

/// Content of the claim object.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub(super) struct StoreClaim {
    /// Name of the claim, with the nonce that is part of the names of its parts.
    pub(super) probe: PlainName,
    /// `None` if the process cannot identify itself.
    pub(super) owner: Option<Owner>,
    /// The job, once a master has it.
    pub(super) job: Option<JobId>,
    pub(super) state: StoreClaimState,
    /// True if remains of other jobs may be removed when the output is finished.
    pub(super) overwrite: bool,
    /// Version of the `_SUCCESS` that is overwritten.
    pub(super) replaces: Option<ObjectVersion>,
}

impl fmt::Display for StoreClaim {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&claimed_by(self.owner.as_ref(), self.job))
    }
}

impl StoreClaim {
    /// True if its owner is dead, or is this very process.
    pub(super) fn is_left(&self) -> bool {
        let Ok(here) = Owner::current() else { return false };
        self.owner.as_ref().is_some_and(|owner| *owner == here || owner.is_dead_without_lock(&here))
    }

    /// True if a job of this very process holds it.
    pub(super) fn is_held_here(&self) -> bool {
        held().contains(self.probe.as_str())
    }

    fn text(&self, output: &StoreOutput) -> Result<Vec<u8>, OutputError> {
        let path = std::path::PathBuf::from(output.url.child(CLAIM).to_string());
        serde_json::to_vec(self).map_err(|error| OutputError::io("write", &path)(io::Error::other(error)))
    }
}

impl StoreOutput {
    /// The existing claim and its version; `None` if there is none.
    pub(super) fn read_claim(&self) -> Result<Option<(StoreClaim, ObjectVersion)>, OutputError> {
        let (text, version) = match self.bucket.get(&self.url.child_key(CLAIM), CLAIM_BYTES_MAX) {
            Err(error) if is_missing(&error) => return Ok(None),
            got => got.map_err(OutputError::store)?,
        };
        match serde_json::from_slice(&text) {
            Ok(claim) => Ok(Some((claim, version))),
            // Another user's object of this name, or one of another version of this program.
            Err(_) => {
                Err(OutputError::Claimed { url: self.url.to_string(), by: "of an unknown owner".to_owned() })
            }
        }
    }

    /// Creates the claim; `false` if one exists.
    pub(super) fn create_claim(
        &self,
        overwrite: bool,
        replaces: Option<ObjectVersion>,
    ) -> Result<bool, OutputError> {
        let claim = StoreClaim {
            probe: self.probe.clone(),
            owner: Owner::current().ok(),
            job: None,
            state: StoreClaimState::Open,
            overwrite,
            replaces,
        };
        match self.bucket.create(&self.url.child_key(CLAIM), claim.text(self)?) {
            Ok(_) => Ok(true),
            // If the first try succeeded without a response, the second one finds its claim.
            Err(error) if is_condition(&error) || error.may_be_done => {
                let there = self.read_claim()?;
                match there.is_some_and(|(there, _)| there == claim) {
                    true => Ok(true),
                    false if is_condition(&error) => Ok(false),
                    false => Err(OutputError::store(error)),
                }
            }
            Err(error) => Err(OutputError::store(error)),
        }
    }

    /// Checks that the store refuses to create an existing object. Otherwise both of two writers would succeed.
    pub(super) fn check_conditions(&self) -> Result<(), OutputError> {
        let Some((claim, _)) = self.read_claim()? else { return Err(self.lost(None)) };
        match self.bucket.create(&self.url.child_key(CLAIM), claim.text(self)?) {
            Ok(_) => Err(OutputError::NoConditions { url: self.url.to_string() }),
            Err(error) if is_condition(&error) => Ok(()),
            Err(error) => Err(OutputError::store(error)),
        }
    }

    /// Gives the claim back, unless it is another job's by now, such as after a user has deleted it.
    pub(super) fn give_back(&self) {
        match self.is_claimed() {
            Ok(true) => {
                self.delete(&[self.url.child_key(CLAIM)]);
            }
            Ok(false) => {}
            Err(error) => self.warn("given back", &error),
        }
    }

    /// True if the existing claim is this job's.
    pub(super) fn is_claimed(&self) -> Result<bool, OutputError> {
        Ok(self.read_claim()?.is_some_and(|(there, _)| there.probe == self.probe))
    }

    /// Replaces the claim by another one of this process, in the version that was read.
    ///
    /// # Errors
    /// Errors of the store; [`OutputError::ClaimLost`] if another process was faster.
    pub(super) fn replace_claim(
        &self,
        claim: &StoreClaim,
        version: ObjectVersion,
    ) -> Result<(), OutputError> {
        match self.bucket.replace(&self.url.child_key(CLAIM), claim.text(self)?, version) {
            Ok(_) => Ok(()),
            Err(error) if is_condition(&error) || is_missing(&error) || error.may_be_done => {
                match self.read_claim()? {
                    Some((there, _)) if there == *claim => Ok(()),
                    there if is_condition(&error) || is_missing(&error) => {
                        Err(self.lost(there.map(|(claim, _)| claim)))
                    }
                    _ => Err(OutputError::store(error)),
                }
            }
            Err(error) => Err(OutputError::store(error)),
        }
    }

    /// Error for a claim that is not this job's, or not held by this process.
    pub(super) fn lost(&self, there: Option<StoreClaim>) -> OutputError {
        let by = there.map_or_else(|| "there is none any more".to_owned(), |claim| claim.to_string());
        OutputError::ClaimLost { url: self.url.to_string(), by }
    }
}

#[cfg(test)]
mod tests {
    use super::super::held::HeldClaim;
    use super::*;
    use gristmill_worker::commit::PROBE;

    #[test]
    fn claim_of_this_process_is_left_only_once_its_job_has_let_go_of_it() {
        let claim = StoreClaim {
            probe: format!("{PROBE}0123456789abcdef").parse().unwrap(),
            owner: Owner::current().ok(),
            job: None,
            state: StoreClaimState::Open,
            overwrite: false,
            replaces: None,
        };
        let held = HeldClaim::new(&claim.probe);
        assert!(claim.is_left() && claim.is_held_here());
        drop(held);
        assert!(claim.is_left() && !claim.is_held_here());
    }
}
