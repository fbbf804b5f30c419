//! The output of a job under a prefix of an object store, from its claim to `_SUCCESS`, or to its removal.
//!
//! A store cannot rename objects, so workers upload parts under their final names, each attempt under its own
//! (`objects` of the worker). `_SUCCESS` lists the objects of the output. It is written last, in one request with the
//! condition that none exists, or that it is still the one to be overwritten. A reader that starts with `_SUCCESS` sees
//! the whole output or none. Of two writers, one fails because it is late, and their objects never share a name. Killed
//! processes may leave unlisted parts behind; the next job there removes them.
//!
//! Parts are uploaded by workers, not here.

mod claim;
mod held;
mod output;
mod publish;

use super::success::SUCCESS_BYTES_MAX;
use super::{BAD_RECORDS, OutputError, SUCCESS, Success};
use crate::api::{BuiltPart, Submission};
use claim::{StoreClaim, StoreClaimState};
use gristmill_worker::commit::{PROBE, nonce_of};
use gristmill_worker::directory::PlainName;
use gristmill_worker::fault;
use gristmill_worker::input::{Piece, Place};
use gristmill_worker::objects::{self, AttemptObject, CLAIM, Object, ObjectUrl, ObjectVersion};
use held::HeldClaim;
pub(crate) use output::StoreOutput;
use output::{is_missing, names_of};
use publish::NotFinished;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

/// Maximum number of claims of dead processes taken over in a row.
const TAKE_OVERS_MAX: u32 = 4;

impl StoreOutput {
    /// Claims a prefix. With `overwrite`, the existing output of a job stays until this one replaces it. The remains of
    /// a claim by a dead process of this host are cleaned up first.
    ///
    /// # Errors
    /// Everything that makes the prefix unusable, before any task starts.
    pub(crate) fn claim(url: ObjectUrl, overwrite: bool, nonce: &str) -> Result<Self, OutputError> {
        let bucket = objects::open(&url).map_err(OutputError::store)?;
        let named = format!("{PROBE}{nonce}").parse().map_err(std::io::Error::other);
        let path = PathBuf::from(url.to_string());
        let probe = named.map_err(OutputError::io("name the claim of", &path))?;
        let held = Some(HeldClaim::new(&probe));
        let output = Self { url, bucket, probe, _held: held };
        for _ in 0..TAKE_OVERS_MAX {
            if let Some((claim, _)) = output.read_claim()? {
                if !claim.is_left() || claim.is_held_here() {
                    return Err(OutputError::Claimed { url: output.url.to_string(), by: claim.to_string() });
                }
                let left = output.of_claim(&claim);
                left.take_claim(StoreClaimState::Abandoning)?;
                tracing::info!(url = %left.url, "puts the output of a dead process in order");
                left.undo();
                continue;
            }
            let replaces = output.look_around(overwrite)?;
            if !output.create_claim(overwrite, replaces.clone())? {
                continue;
            }
            fault::place("store.claimed");
            // The previous owner may have finished between the check and the claim.
            let again = output.check_conditions().and_then(|()| output.look_around(overwrite));
            match again {
                Ok(again) if again == replaces => return Ok(output),
                again => {
                    output.give_back();
                    again?;
                }
            }
        }
        let by = "by one job after another".to_owned();
        Err(OutputError::Claimed { url: output.url.to_string(), by })
    }

    /// Output of a submission. Sends no request to the store.
    ///
    /// # Errors
    /// Invalid settings, or an invalid name of a claim.
    pub(crate) fn adopt(url: ObjectUrl, submission: &Submission) -> Result<Self, OutputError> {
        let bucket = objects::open(&url).map_err(OutputError::store)?;
        let probe = submission.output_probe.clone();
        let example = format!("part-0-{}-0", nonce_of(&probe));
        if AttemptObject::parse(&example).is_none() {
            return Err(OutputError::ClaimLost { url: url.to_string(), by: format!("{probe} is none") });
        }
        Ok(Self { url, bucket, probe, _held: None })
    }

    /// Makes this process the owner of a claim that another process made.
    ///
    /// # Errors
    /// Errors of the store, and a claim that is not this job's any more, or is being closed.
    pub(crate) fn take_over(&self) -> Result<(), OutputError> {
        match self.read_claim()? {
            Some((claim, version)) if claim.probe == self.probe && claim.state == StoreClaimState::Open => {
                let owner = crate::owner::Owner::current().ok();
                self.replace_claim(&StoreClaim { owner, ..claim }, version)
            }
            there => Err(self.lost(there.map(|(claim, _)| claim))),
        }
    }

    /// Writes `_SUCCESS`, which lists the parts, and gives the claim back.
    ///
    /// # Errors
    /// Parts that differ from their attempts' reports, another writer that was faster, and errors of the store. The
    /// uploaded objects of the job are then removed, unless it is unknown if `_SUCCESS` was written, or a dead closer
    /// had written it.
    pub(crate) fn finish(self, success: &Success, built: &[BuiltPart]) -> Result<(), OutputError> {
        let (before, claim) = match self.take_claim(StoreClaimState::Closing) {
            // Its claim was given back, perhaps by a closer that died before it could report that.
            Err(error @ OutputError::ClaimLost { .. }) if self.read_claim()?.is_none() => {
                return if self.is_finished_with(success)? { Ok(()) } else { Err(error) };
            }
            taken => taken?,
        };
        if before == StoreClaimState::Abandoning {
            self.undo();
            let by = "it was given up before".to_owned();
            return Err(OutputError::ClaimLost { url: self.url.to_string(), by });
        }
        fault::place("store.closing");
        match self.publish(&claim, success, built) {
            Ok(old) => {
                fault::place("store.complete");
                self.clear(success, &old, claim.overwrite);
                fault::place("store.cleared");
                Ok(())
            }
            Err(NotFinished::Certainly(error)) => match self.undo() {
                true => Ok(()),
                false => Err(error),
            },
            Err(NotFinished::Perhaps(error)) => Err(error),
        }
    }

    /// Removes all uploaded objects of the job, and the claim. An output that a dead closer had finished stays.
    pub(crate) fn abandon(self) {
        match self.take_claim(StoreClaimState::Abandoning) {
            Ok(_) => {
                self.undo();
            }
            // Another process is closing it, or it is gone.
            Err(OutputError::ClaimLost { .. }) => {}
            Err(error) => self.warn("abandoned", &error),
        }
    }

    /// Name of its claim.
    pub(crate) fn probe(&self) -> &PlainName {
        &self.probe
    }

    /// URL of the prefix.
    pub(crate) fn url(&self) -> &ObjectUrl {
        &self.url
    }

    fn nonce(&self) -> &str {
        nonce_of(&self.probe)
    }

    fn of_claim(&self, claim: &StoreClaim) -> Self {
        Self { url: self.url.clone(), bucket: self.bucket.clone(), probe: claim.probe.clone(), _held: None }
    }

    /// Takes the claim for this process, to finish or abandon the output. Both a submitter and a master may decide to
    /// do so; the first one does. Returns the previous state of the claim, and the claim as it is now.
    fn take_claim(&self, state: StoreClaimState) -> Result<(StoreClaimState, StoreClaim), OutputError> {
        match self.read_claim()? {
            Some((claim, version))
                if claim.probe == self.probe && (claim.state == StoreClaimState::Open || claim.is_left()) =>
            {
                let before = claim.state;
                let owner = crate::owner::Owner::current().ok();
                let taken = StoreClaim { owner, state, ..claim };
                self.replace_claim(&taken, version)?;
                Ok((before, taken))
            }
            there => Err(self.lost(there.map(|(claim, _)| claim))),
        }
    }

    /// True if an attempt of this job has uploaded an object of this name.
    fn is_own(&self, name: &str) -> bool {
        attempts_object(name).is_some_and(|object| object.nonce == self.nonce())
    }

    /// All objects below the prefix, with their names relative to it.
    fn objects(&self) -> Result<Vec<(String, Object)>, OutputError> {
        let prefix = self.url.prefix();
        let listed = self.bucket.list(&prefix).map_err(OutputError::store)?;
        let named =
            |object: Object| (object.key.strip_prefix(&prefix).unwrap_or_default().to_owned(), object);
        Ok(listed.into_iter().map(named).collect())
    }

    /// The existing `_SUCCESS` and its version; `None` if it does not exist, or was not written by this program.
    fn read_success(&self) -> Result<Option<(Success, ObjectVersion)>, OutputError> {
        let (text, version) = match self.bucket.get(&self.url.child_key(SUCCESS), SUCCESS_BYTES_MAX) {
            Err(error) if is_missing(&error) => return Ok(None),
            got => got.map_err(OutputError::store)?,
        };
        Ok(serde_json::from_slice(&text).ok().map(|success| (success, version)))
    }

    /// True if the existing output is this one.
    fn is_finished_with(&self, success: &Success) -> Result<bool, OutputError> {
        Ok(self.read_success()?.is_some_and(|(there, _)| there.parts == success.parts))
    }

    /// Examines the objects below the prefix. Returns the version of the `_SUCCESS` that is to be overwritten.
    ///
    /// # Errors
    /// Objects that must not be overwritten, or are not the output of a job.
    fn look_around(&self, overwrite: bool) -> Result<Option<ObjectVersion>, OutputError> {
        let mut there = self.objects()?;
        // Some programs create an object with the prefix's own name to represent a directory.
        there.retain(|(name, _)| name != CLAIM && !name.is_empty());
        if there.is_empty() {
            return Ok(None);
        }
        if !overwrite {
            return Err(OutputError::NotEmpty { path: PathBuf::from(self.url.to_string()) });
        }
        let success = self.read_success()?;
        let parts = success.as_ref().map_or_else(BTreeSet::new, |(success, _)| names_of(success));
        let is_part = |name: &str| parts.contains(name) || is_attempts(name);
        let replaceable =
            |name: &str| (name == SUCCESS && success.is_some()) || name == BAD_RECORDS || is_part(name);
        match there.iter().find(|(name, _)| !replaceable(name)) {
            None => Ok(success.map(|(_, version)| version)),
            Some((name, _)) => {
                Err(OutputError::NotReplaceable { url: self.url.to_string(), object: name.clone() })
            }
        }
    }

    /// Removes the objects that do not belong to the finished output, then the claim.
    fn clear(&self, success: &Success, old: &BTreeSet<String>, overwrite: bool) {
        let written = self.write_bad_records(success);
        match written.and_then(|()| self.replaced(success, old, overwrite)) {
            Ok(gone) => {
                if self.delete(&gone) {
                    self.give_back();
                }
            }
            Err(error) => self.warn("cleared", &error),
        }
    }

    /// Written only after `_SUCCESS`: until then the file belongs to the previous output, and nothing shows its owner.
    fn write_bad_records(&self, success: &Success) -> Result<(), OutputError> {
        if success.bad_records.is_empty() {
            return Ok(());
        }
        let text = success.bad_records_text().into_bytes();
        self.bucket.put(&self.url.child_key(BAD_RECORDS), text).map_err(OutputError::store)
    }

    /// Objects that do not belong to the finished output: of this job, of the previous output, and with `overwrite` of
    /// killed jobs.
    fn replaced(
        &self,
        success: &Success,
        old: &BTreeSet<String>,
        overwrite: bool,
    ) -> Result<Vec<String>, OutputError> {
        let (keep, there) = (names_of(success), self.objects()?);
        // If a user has deleted this job's claim, the next owner of the prefix cleans it up.
        let overwrite = overwrite && self.is_claimed()?;
        let directory = |name: &str| name.rsplit_once('/').map(|(directory, _)| directory.to_owned());
        // So does the owner of another output below this one, even if that has just been started.
        let is_mark = |name: &str| matches!(name.rsplit('/').next(), Some(SUCCESS | CLAIM));
        let marked = there.iter().filter(|(name, _)| is_mark(name));
        let others: BTreeSet<String> = marked.filter_map(|(name, _)| directory(name)).collect();
        let is_left = |name: &str| {
            is_attempts(name) && directory(name).is_none_or(|directory| !others.contains(&directory))
                || name == BAD_RECORDS && success.bad_records.is_empty()
        };
        let is_gone = |name: &str| {
            (old.contains(name) || self.is_own(name) || overwrite && is_left(name)) && !keep.contains(name)
        };
        Ok(there.into_iter().filter(|(name, _)| is_gone(name)).map(|(_, object)| object.key).collect())
    }

    /// Removes the uploaded objects of this job, except for a finished output, then the claim. Returns true if the
    /// output is finished. If the removal fails, the claim stays, and the next job continues.
    fn undo(&self) -> bool {
        match self.remains() {
            Ok((is_finished, gone)) => {
                if self.delete(&gone) {
                    self.give_back();
                }
                is_finished
            }
            Err(error) => {
                self.warn("removed", &error);
                false
            }
        }
    }

    /// True if `_SUCCESS` is that of this job, with the objects of this job that it does not list.
    fn remains(&self) -> Result<(bool, Vec<String>), OutputError> {
        let named = self.read_success()?.map_or_else(BTreeSet::new, |(success, _)| names_of(&success));
        let mut own = self.objects()?;
        own.retain(|(name, _)| self.is_own(name) && !named.contains(name));
        let is_finished = named.iter().any(|name| self.is_own(name));
        Ok((is_finished, own.into_iter().map(|(_, object)| object.key).collect()))
    }

    /// Deletes objects. Returns true if all are gone.
    fn delete(&self, keys: &[String]) -> bool {
        let deleted = self.bucket.delete(keys).map_err(OutputError::store);
        if let Err(error) = &deleted {
            self.warn("removed", error);
        }
        deleted.is_ok()
    }

    fn warn(&self, what: &str, error: &OutputError) {
        tracing::warn!(url = %self.url, error = gristmill_worker::error_text::chain(error), "what a job had put into a store could not be {what}");
    }
}

/// True if an object of this name was uploaded by an attempt.
fn is_attempts(name: &str) -> bool {
    attempts_object(name).is_some()
}

/// Parses the name of an attempt's object. Those of named outputs are one level below.
fn attempts_object(name: &str) -> Option<AttemptObject<'_>> {
    AttemptObject::parse(name.split_once('/').map_or(name, |(_, name)| name))
}

/// Rejects a prefix that contains an object of these pieces of input.
///
/// # Errors
/// The first such object.
pub(super) fn refuse_inputs<'a>(
    url: &ObjectUrl,
    pieces: impl Iterator<Item = &'a Piece>,
) -> Result<(), OutputError> {
    let below = format!("{url}/");
    let mut stored = pieces.filter(|piece| piece.place == Place::Store);
    match stored.find(|piece| piece.path.to_text().starts_with(&below)) {
        None => Ok(()),
        Some(piece) => Err(OutputError::HoldsInput {
            path: PathBuf::from(url.to_string()),
            input: Path::new(&piece.path.to_text()).to_owned(),
        }),
    }
}
