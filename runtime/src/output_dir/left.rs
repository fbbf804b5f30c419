//! Closing of an output whose closer died while closing it: the started operation is completed, whether it was
//! finishing or abandoning.
//!
//! The caller is the process that closes this output now: the master of a job, in place of one that died or of a client
//! that died.

use super::claimed_directory::{OutputDirectory, Published, RETIRED};
use super::part_file::files_of;
use super::undo::RetiredClaim;
use super::{OutputError, SUCCESS, Success, claim};
use crate::api::{BuiltPart, Submission};
use gristmill_worker::commit::{TEMPORARY, nonce_of};
use gristmill_worker::directory::Directory;
use gristmill_worker::fault;
use gristmill_worker::protocol::Part;
use std::collections::BTreeMap;
use std::io;

/// The claim of an output that was being closed.
enum UnclosedOutput {
    /// Parts were being published.
    Closing(OutputDirectory),
    /// It was being abandoned.
    Abandoning(OutputDirectory),
}

impl OutputDirectory {
    /// Closes the output of a submission whose claim cannot be adopted any more. Without `success`, abandons it.
    ///
    /// # Errors
    /// An output that cannot be completed, or that another process is closing.
    pub(crate) fn close_left(
        submission: &Submission,
        success: Option<&Success>,
        built: &[BuiltPart],
    ) -> Result<Option<RetiredClaim>, OutputError> {
        match (Self::unclosed(submission), success) {
            (Some(UnclosedOutput::Closing(left)), Some(success)) => {
                left.complete(success, built, submission.sync).map(Some)
            }
            (Some(UnclosedOutput::Closing(left)), None) => {
                left.undo(&Published::Unknown);
                Ok(None)
            }
            (Some(UnclosedOutput::Abandoning(left)), success) => {
                let path = left.path();
                left.undo(&Published::Nothing);
                let error = io::Error::other("it was given up before");
                success.map_or(Ok(None), |_| Err(OutputError::io("complete the output in", &path)(error)))
            }
            (None, success) => {
                // The claim was given back, but its directory perhaps not removed.
                if let Ok(directory) = Directory::open(submission.output.to_path()) {
                    let retired = format!("{RETIRED}{}", nonce_of(&submission.output_probe));
                    let _ = directory.refuse_foreign(true).and_then(|()| directory.remove_tree(retired));
                }
                let finished = |success| Self::left_finished(submission.output.to_path(), success);
                success.map_or(Ok(()), finished).map(|()| None)
            }
        }
    }

    /// The claim of this submission, if a dead process was closing it.
    fn unclosed(submission: &Submission) -> Option<UnclosedOutput> {
        let probe = &submission.output_probe;
        let directory = Directory::open(submission.output.to_path()).ok()?;
        directory.refuse_foreign(true).ok()?;
        let temporary = directory.directory(TEMPORARY).ok()?;
        temporary.refuse_shared().ok()?;
        for how in [claim::CLOSING, claim::ABANDONING] {
            let Ok(file) = temporary.open_own(format!("{how}{}", nonce_of(probe))) else { continue };
            // A live process that closes the output holds the lock.
            file.try_lock().ok()?;
            let made = submission.output_made;
            let left = Self { directory, temporary, probe: probe.clone(), made, lock: Some(file) };
            return Some(if how == claim::CLOSING {
                UnclosedOutput::Closing(left)
            } else {
                UnclosedOutput::Abandoning(left)
            });
        }
        None
    }

    /// Publishes the remaining parts, and `_SUCCESS` if it does not exist.
    pub(super) fn complete(
        self,
        success: &Success,
        built: &[BuiltPart],
        sync: bool,
    ) -> Result<RetiredClaim, OutputError> {
        let completed = self.publish_rest(&success.parts, built, sync).and_then(|()| {
            match self.directory.entry_metadata(SUCCESS) {
                Ok(_) => Self::is_complete(&self.directory, success),
                Err(_) => self.write_success(success, sync, &mut Vec::new()),
            }
        });
        if let Err(error) = completed {
            self.undo(&Published::Unknown);
            return Err(error);
        }
        Ok(self.clear_away())
    }

    /// Publishes the parts that are not in their final place.
    pub(super) fn publish_rest(
        &self,
        parts: &[Part],
        built: &[BuiltPart],
        sync: bool,
    ) -> Result<(), OutputError> {
        self.check_names(parts, built)?;
        let mut directories = BTreeMap::new();
        for file in parts.iter().zip(built).flat_map(|(part, built)| files_of(&self.probe, part, built)) {
            let directory = self.directory_of(file.output, &mut directories)?;
            if file.check_published(directory).is_ok() {
                // On a file system without a rename that fails on existing names, the file may have two names.
                file.names().for_each(|name| drop(self.temporary.remove_file(name)));
                continue;
            }
            file.cut_back(&self.temporary)?;
            file.check_built(&self.temporary)?;
            self.publish_file(&file, sync, &mut directories)?;
        }
        fault::place("output.all-renamed");
        Ok(())
    }
}
