//! Completion of an output in a store: parts are checked, then `_SUCCESS` is written with a condition.

use super::super::publish::check_part_names;
use super::super::{OutputError, SUCCESS, Success};
use super::claim::StoreClaim;
use super::output::{StoreOutput, is_condition, names_of};
use crate::api::BuiltPart;
use gristmill_worker::fault;
use gristmill_worker::objects::{
    ObjectError, ObjectFailure, ObjectStamp, ObjectVersion, attempt_object_name,
};
use gristmill_worker::protocol::Part;
use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::path::PathBuf;

/// Number of times that `_SUCCESS` is written if no response came in time. The library does not retry such a request.
const TRIES_MAX: u32 = 3;

/// Reason why an output is not finished.
pub(super) enum NotFinished {
    /// Its `_SUCCESS` does not exist.
    Certainly(OutputError),
    /// Its `_SUCCESS` may exist, so the uploaded objects of the job must stay.
    Perhaps(OutputError),
}

impl StoreOutput {
    /// Checks the parts and writes `_SUCCESS`. Returns the names of the parts of the replaced output.
    pub(super) fn publish(
        &self,
        claim: &StoreClaim,
        success: &Success,
        built: &[BuiltPart],
    ) -> Result<BTreeSet<String>, NotFinished> {
        let old = self.read_success().map_err(NotFinished::Certainly)?;
        // A dead closer had come this far.
        if old.as_ref().is_some_and(|(old, _)| old.parts == success.parts) {
            return Ok(BTreeSet::new());
        }
        self.check_parts(&success.parts, built).map_err(NotFinished::Certainly)?;
        fault::place("store.checked");
        let text = self.success_text(success).map_err(NotFinished::Certainly)?;
        self.write_success(&text, claim.replaces.as_ref(), success)?;
        Ok(old.map_or_else(BTreeSet::new, |(old, _)| names_of(&old)))
    }

    /// Writes `_SUCCESS` if none exists, or replaces the one that is to be overwritten, and no other.
    fn write_success(
        &self,
        text: &[u8],
        replaces: Option<&ObjectVersion>,
        success: &Success,
    ) -> Result<(), NotFinished> {
        let key = self.url.child_key(SUCCESS);
        let mut tries = 0;
        let mut may_be_done = false;
        loop {
            let written = match replaces {
                None => self.bucket.create(&key, text.to_vec()),
                Some(version) => self.bucket.replace(&key, text.to_vec(), version.clone()),
            };
            let Err(error) = written else { return Ok(()) };
            tries += 1;
            may_be_done |= error.may_be_done;
            if is_condition(&error) {
                // An earlier try may have succeeded without a response.
                return match self.is_finished_with(success) {
                    Ok(true) => Ok(()),
                    Ok(false) => {
                        Err(NotFinished::Certainly(OutputError::OtherWriter { url: self.url.to_string() }))
                    }
                    Err(error) => Err(NotFinished::Perhaps(error)),
                };
            }
            let again = matches!(error.cause, ObjectFailure::Silent | ObjectFailure::Unreachable { .. });
            if again && tries < TRIES_MAX {
                continue;
            }
            return match may_be_done {
                true if matches!(self.is_finished_with(success), Ok(true)) => Ok(()),
                true => Err(self.not_known(error)),
                false => Err(NotFinished::Certainly(OutputError::store(error))),
            };
        }
    }

    fn not_known(&self, source: ObjectError) -> NotFinished {
        let url = self.url.child(SUCCESS).to_string();
        NotFinished::Perhaps(OutputError::NotKnown { url, source: Box::new(source) })
    }

    fn success_text(&self, success: &Success) -> Result<Vec<u8>, OutputError> {
        let path = PathBuf::from(self.url.child(SUCCESS).to_string());
        let mut text = serde_json::to_vec_pretty(success)
            .map_err(|error| OutputError::io("write", &path)(io::Error::other(error)))?;
        text.push(b'\n');
        Ok(text)
    }

    /// Checks that all parts exist, under the names of the attempts that count, as these have reported them.
    fn check_parts(&self, parts: &[Part], built: &[BuiltPart]) -> Result<(), OutputError> {
        let wrong = |name: &str, what: String| {
            let url = if name.is_empty() { self.url.to_string() } else { self.url.child(name).to_string() };
            OutputError::PartObject { url, what }
        };
        let name =
            |name: &str, built: &BuiltPart| attempt_object_name(name, self.nonce(), built.attempt.epoch);
        check_part_names(parts, built, name)
            .and_then(|()| refuse_pieces(parts, built))
            .map_err(|(name, what)| wrong(&name, what))?;
        let there: BTreeMap<String, ObjectStamp> =
            self.objects()?.into_iter().map(|(name, object)| (name, object.stamp)).collect();
        for (part, built) in parts.iter().zip(built) {
            for named in &part.named {
                let name = format!("{}/{}", named.output, part.name);
                check_size(&there, &name, named.bytes).map_err(|what| wrong(&name, what))?;
            }
            let found = check_size(&there, &part.name, part.bytes).map_err(|what| wrong(&part.name, what))?;
            let uploaded = built.stamp.inode;
            if found.tag != 0 && uploaded != 0 && found.tag != uploaded {
                return Err(wrong(&part.name, "its ETag is another".to_owned()));
            }
        }
        Ok(())
    }
}

/// Rejects parts of divided reduces: objects cannot be joined. An `Err` has the part's name and a description.
fn refuse_pieces(parts: &[Part], built: &[BuiltPart]) -> Result<(), (String, String)> {
    match parts.iter().zip(built).find(|(_, built)| !built.pieces.is_empty()) {
        None => Ok(()),
        Some((part, built)) => {
            let what = format!("{} attempts built it, and objects cannot be joined", built.pieces.len());
            Err((part.name.clone(), what))
        }
    }
}

/// Stamp of an object that must have this many bytes; an error if it is missing or has another size.
fn check_size(there: &BTreeMap<String, ObjectStamp>, name: &str, bytes: u64) -> Result<ObjectStamp, String> {
    match there.get(name) {
        None => Err("it is not there".to_owned()),
        Some(stamp) if stamp.size != bytes => Err(format!("it has {} bytes instead of {bytes}", stamp.size)),
        Some(stamp) => Ok(*stamp),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::output_dir::join_parts;
    use gristmill_scheduler::ids::{JobId, TaskId};
    use gristmill_worker::input::FileStamp;

    #[test]
    fn part_of_a_divided_reduce_is_refused_by_its_name() {
        let part =
            |name: &str| Part { name: name.to_owned(), bytes: 1, records: 1, crc32c: 1, named: Vec::new() };
        let built = |index| {
            let stamp = FileStamp { size: 1, modified_ns: 0, inode: 1 };
            BuiltPart::new(TaskId::reduce(JobId(1), index).attempt(0), stamp)
        };
        let (first, second) = ((part("part-00000"), built(0)), (part("part-00001"), built(1)));
        let refuse = |parts: [(Part, BuiltPart); 2]| {
            let (parts, built): (Vec<_>, Vec<_>) = parts.into_iter().unzip();
            refuse_pieces(&parts, &built)
        };
        assert_eq!(refuse([first.clone(), second.clone()]), Ok(()));
        let divided = join_parts(vec![second, (part(""), built(2))]).unwrap();
        let (name, why) = refuse([first, divided]).unwrap_err();
        assert_eq!((&*name, &*why), ("part-00001", "2 attempts built it, and objects cannot be joined"));
    }
}
