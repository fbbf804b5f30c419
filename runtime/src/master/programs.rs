//! Programs that jobs are shipped with, by their checksums, in a subdirectory of the state directory.
//!
//! They come from submitters and are sent to workers, off the event loop; the master never runs one. Their number and
//! total size are limited: programs without a live job are deleted, the least recently used first.
//!
//! Invariant: a file named by a checksum has that checksum, was synced, and belongs to no program in transfer.

use crate::api::JobOwner;
use bytes::Bytes;
use gristmill_scheduler::units::Bytes as ByteCount;
use gristmill_worker::folder::Folder;
use gristmill_worker::http::limits::STALL_TIME;
use gristmill_worker::http::{Body, Steady, file_body};
use gristmill_worker::protocol::{ProgramSum, ProgramSumming, ShippedProgram};
use hyper::body::Incoming;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsString;
use std::fs::DirBuilder;
use std::io::{self, Write};
use std::os::unix::fs::DirBuilderExt;
use std::path::Path;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::SystemTime;
use tokio::sync::mpsc::{Receiver, channel};

/// Number of chunks of a program that wait for the disk.
const CHUNKS_AHEAD: usize = 4;

/// Prefix of drafts; no checksum starts with it.
const DRAFT: &str = "draft-";

/// Limits on the number of programs that a master keeps, and on their total bytes.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct ProgramLimits {
    /// Maximum number of programs.
    pub count_max: u32,
    /// Maximum total bytes.
    pub bytes_max: ByteCount,
}

impl ProgramLimits {
    /// The default: twice as many as a class of thirty students uses.
    pub const USUAL: Self = Self { count_max: 64, bytes_max: ByteCount::gib(4) };
}

/// Reason for which a program is rejected.
#[derive(Debug, thiserror::Error)]
pub(super) enum ProgramError {
    /// It is larger than the total limit, or the programs of live jobs leave no room.
    #[error(
        "there is no room for a program of {bytes} bytes: {kept} are kept, of {kept_bytes} bytes together; at most {count_max} of {bytes_max} bytes are, and those of live jobs do not go"
    )]
    NoRoom { bytes: u64, kept: usize, kept_bytes: u64, count_max: u32, bytes_max: u64 },
    /// The received content differs from the announced one.
    #[error(
        "the program that came has {bytes} bytes and checksum {sum}, and not the {said_bytes} bytes and checksum {said}"
    )]
    Other { bytes: u64, sum: ProgramSum, said_bytes: u64, said: ProgramSum },
    /// Its token is sending as many programs as it may.
    #[error(
        "{most} programs are on their way with the token {token}, and no more may be: wait for one of them"
    )]
    Uploads { token: String, most: usize },
    /// Its token is sending as many bytes as it may.
    #[error(
        "programs of {bytes} bytes would be on their way with the token {token}, and {most} may be: wait for those that are"
    )]
    UploadBytes { token: String, bytes: u64, most: u64 },
    /// The upload broke off.
    #[error("the program did not come to its end: {why}")]
    Broken { why: String },
    /// The disk failed.
    #[error("the program could not be written")]
    Disk {
        #[from]
        source: io::Error,
    },
}

/// The programs of a master.
pub(super) struct Programs {
    folder: Folder,
    limits: ProgramLimits,
    shelf: Mutex<Shelf>,
}

/// Programs kept and in transfer.
#[derive(Default)]
struct Shelf {
    kept: BTreeMap<ProgramSum, KeptProgram>,
    /// Programs in transfer by the number of their draft: the announced bytes, and the token that sends them.
    arriving: BTreeMap<u64, (u64, String)>,
    drafts: u64,
}

#[derive(Clone, Copy)]
struct KeptProgram {
    bytes: u64,
    used: SystemTime,
}

impl Programs {
    /// Opens a directory, or creates it, and deletes half-received programs.
    ///
    /// # Errors
    /// A directory that can be neither created nor read, or that others can change.
    pub(super) fn open(path: &Path, limits: ProgramLimits) -> io::Result<Self> {
        match DirBuilder::new().mode(0o700).create(path) {
            Err(error) if error.kind() != io::ErrorKind::AlreadyExists => return Err(error),
            _ => {}
        }
        let folder = Folder::open(path)?;
        folder.refuse_shared()?;
        let mut kept = BTreeMap::new();
        for name in folder.names()? {
            let sum = name.to_str().and_then(|name| name.parse().ok());
            match sum {
                Some(sum) => {
                    let found = folder.look(&name)?;
                    let used = found.modified().unwrap_or(SystemTime::UNIX_EPOCH);
                    kept.insert(sum, KeptProgram { bytes: found.len(), used });
                }
                None if is_draft(&name) => folder.remove_file(&name)?,
                None => {}
            }
        }
        let shelf = Mutex::new(Shelf { kept, ..Shelf::default() });
        Ok(Self { folder, limits, shelf })
    }

    fn shelf(&self) -> MutexGuard<'_, Shelf> {
        // Every change is one insertion or removal.
        self.shelf.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// All programs.
    pub(super) fn list(&self) -> Vec<ShippedProgram> {
        self.shelf().kept.iter().map(|(sum, kept)| ShippedProgram { sum: *sum, bytes: kept.bytes }).collect()
    }

    /// Notes that a program is used. Returns true if it exists here.
    pub(super) fn touch(&self, program: &ShippedProgram) -> bool {
        let now = SystemTime::now();
        let is_here = {
            let mut shelf = self.shelf();
            let found = shelf.kept.get_mut(&program.sum).filter(|kept| kept.bytes == program.bytes);
            found.map(|kept| kept.used = now).is_some()
        };
        if is_here {
            // For the next master, which can do without it.
            let _ = self.folder.open_own(program.sum.to_string()).and_then(|file| file.set_modified(now));
        }
        is_here
    }

    /// Receives a program. Those in `live` are not deleted to make room.
    pub(super) async fn receive(
        self: &std::sync::Arc<Self>,
        said: ShippedProgram,
        body: Incoming,
        live: &BTreeSet<ProgramSum>,
        owner: &JobOwner,
    ) -> Result<(), ProgramError> {
        let number = self.make_room(said.bytes, live, owner)?;
        let (sender, chunks) = channel(CHUNKS_AHEAD);
        let programs = self.clone();
        let writing = tokio::task::spawn_blocking(move || programs.write((said, number), chunks));
        let mut body = Steady::new(body, STALL_TIME);
        let broken = |why: &dyn std::error::Error| ProgramError::Broken {
            why: gristmill_worker::error_text::chain(why),
        };
        let heard = loop {
            match body.next().await {
                Ok(Some(chunk)) => {
                    // A writer that is gone reports the reason.
                    if sender.send(Ok(chunk)).await.is_err() {
                        break Ok(());
                    }
                }
                Ok(None) => break Ok(()),
                Err(error) => {
                    let _ = sender.send(Err(())).await;
                    break Err(broken(&error));
                }
            }
        };
        drop(sender);
        let written = writing.await.unwrap_or_else(|panic| Err(io::Error::other(panic).into()));
        heard?;
        written
    }

    fn write(
        &self,
        (said, number): (ShippedProgram, u64),
        chunks: Receiver<Result<Bytes, ()>>,
    ) -> Result<(), ProgramError> {
        let draft = format!("{DRAFT}{number}");
        let written = self.write_draft(&draft, said, chunks);
        if written.is_err() {
            let _ = self.folder.remove_file(&draft);
        }
        self.shelf().arriving.remove(&number);
        written
    }

    fn write_draft(
        &self,
        draft: &str,
        said: ShippedProgram,
        mut chunks: Receiver<Result<Bytes, ()>>,
    ) -> Result<(), ProgramError> {
        let mut file = self.folder.create(draft)?;
        file.set_permissions(std::os::unix::fs::PermissionsExt::from_mode(0o600))?;
        let (mut summing, mut bytes) = (ProgramSumming::default(), 0);
        while let Some(chunk) = chunks.blocking_recv() {
            let Ok(chunk) = chunk else { return Err(ProgramError::Broken { why: String::new() }) };
            bytes += chunk.len() as u64;
            if said.bytes < bytes {
                break;
            }
            summing.add(&chunk);
            file.write_all(&chunk)?;
        }
        let sum = summing.finish();
        if (bytes, sum) != (said.bytes, said.sum) {
            return Err(ProgramError::Other { bytes, sum, said_bytes: said.bytes, said: said.sum });
        }
        // After a power failure, an acknowledged job still finds it.
        file.sync_all()?;
        self.folder.rename(draft, &self.folder, sum.to_string())?;
        self.folder.sync()?;
        self.shelf().kept.insert(sum, KeptProgram { bytes, used: SystemTime::now() });
        Ok(())
    }

    /// Bytes of the programs that a token is sending.
    pub(super) fn arriving_of(&self, token: &str) -> u64 {
        let shelf = self.shelf();
        let sent = shelf.arriving.values().filter(|(_, sender)| sender == token).map(|(bytes, _)| *bytes);
        sent.fold(0, u64::saturating_add)
    }

    /// Checks for room before a program is sent, because the sender of a long body receives no response meanwhile.
    pub(super) fn fits(&self, bytes: u64, live: &BTreeSet<ProgramSum>) -> Result<(), ProgramError> {
        let ProgramLimits { count_max, bytes_max } = self.limits;
        let bytes_max = bytes_max.get();
        let shelf = self.shelf();
        let stay = shelf.kept.iter().filter(|(sum, _)| live.contains(sum)).map(|(_, kept)| kept.bytes);
        let stay: Vec<u64> = stay.chain(shelf.arriving.values().map(|(bytes, _)| *bytes)).collect();
        let (kept, kept_bytes) = (stay.len(), stay.into_iter().fold(0, u64::saturating_add));
        match kept < count_max as usize && kept_bytes.saturating_add(bytes) <= bytes_max {
            true => Ok(()),
            false => Err(ProgramError::NoRoom { bytes, kept, kept_bytes, count_max, bytes_max }),
        }
    }

    /// Deletes programs without a live job, the least recently used first, until there is room for one of this many
    /// bytes. Returns the number of its draft.
    fn make_room(
        &self,
        bytes: u64,
        live: &BTreeSet<ProgramSum>,
        owner: &JobOwner,
    ) -> Result<u64, ProgramError> {
        let ProgramLimits { count_max, bytes_max } = self.limits;
        let (bytes_max, JobOwner { token, quota }) = (bytes_max.get(), owner);
        let Shelf { kept, arriving, drafts } = &mut *self.shelf();
        // Half of all places, so that some remain for others, and at most as many as the jobs that the programs are
        // for.
        let most =
            (count_max as usize / 2).max(1).min(quota.jobs_max.map_or(usize::MAX, |jobs| jobs as usize));
        if most <= arriving.values().filter(|(_, sender)| sender == token).count() {
            return Err(ProgramError::Uploads { token: token.clone(), most });
        }
        let sent = arriving.values().filter(|(_, sender)| sender == token).map(|(bytes, _)| *bytes);
        let sent = sent.fold(bytes, u64::saturating_add);
        let most = (bytes_max / 2).min(quota.disk_bytes_max.unwrap_or(u64::MAX));
        if most < sent && bytes <= bytes_max {
            return Err(ProgramError::UploadBytes { token: token.clone(), bytes: sent, most });
        }
        loop {
            let count = kept.len() + arriving.len();
            let said = kept.values().map(|kept| kept.bytes).chain(arriving.values().map(|(bytes, _)| *bytes));
            let kept_bytes = said.fold(0_u64, u64::saturating_add);
            if count < count_max as usize && kept_bytes.saturating_add(bytes) <= bytes_max {
                *drafts += 1;
                arriving.insert(*drafts, (bytes, token.clone()));
                return Ok(*drafts);
            }
            let idle = kept.iter().filter(|(sum, _)| bytes <= bytes_max && !live.contains(sum));
            let Some((sum, _)) = idle.min_by_key(|(sum, kept)| (kept.used, **sum)) else {
                let kept = count;
                return Err(ProgramError::NoRoom { bytes, kept, kept_bytes, count_max, bytes_max });
            };
            let sum = *sum;
            kept.remove(&sum);
            match self.folder.remove_file(sum.to_string()) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error.into()),
                _ => tracing::info!(program = %sum, "a shipped program that was used long ago made room"),
            }
        }
    }

    /// A program as the body of a response; `None` if it does not exist here.
    pub(super) async fn body(self: &std::sync::Arc<Self>, sum: ProgramSum) -> io::Result<Option<Body>> {
        if !self.shelf().kept.contains_key(&sum) {
            return Ok(None);
        }
        let programs = self.clone();
        let opened = tokio::task::spawn_blocking(move || programs.folder.open_file(sum.to_string())).await;
        let file = opened.unwrap_or_else(|panic| Err(io::Error::other(panic)))?;
        Ok(Some(file_body(file).1))
    }
}

fn is_draft(name: &OsString) -> bool {
    name.to_str().is_some_and(|name| name.starts_with(DRAFT))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::os::unix::fs::PermissionsExt;
    use std::time::Duration;

    fn opened(count_max: u32, bytes_max: u64) -> (tempfile::TempDir, Programs) {
        let folder = tempfile::tempdir().unwrap();
        let limits = ProgramLimits { count_max, bytes_max: ByteCount(bytes_max) };
        let programs = Programs::open(&folder.path().join("programs"), limits).unwrap();
        (folder, programs)
    }

    fn owner(token: &str) -> JobOwner {
        JobOwner { token: token.to_owned(), quota: crate::api::Quota::default() }
    }

    fn program(text: &str) -> ShippedProgram {
        let (sum, bytes) = ProgramSum::of_reader(text.as_bytes()).unwrap();
        ShippedProgram { sum, bytes }
    }

    /// Sends bytes like a submitter that announces them as this program.
    fn hand_in(programs: &Programs, said: ShippedProgram, text: &str) -> Result<(), ProgramError> {
        let number = programs.make_room(said.bytes, &BTreeSet::new(), &owner("submit-ada"))?;
        let (sender, chunks) = channel(text.len() + 1);
        for byte in text.bytes() {
            sender.try_send(Ok(Bytes::copy_from_slice(&[byte]))).unwrap();
        }
        drop(sender);
        programs.write((said, number), chunks)
    }

    fn keep(programs: &Programs, text: &str, age: u64) -> ShippedProgram {
        let said = program(text);
        hand_in(programs, said, text).unwrap();
        let used = SystemTime::UNIX_EPOCH + Duration::from_secs(1_000_000 - age);
        programs.shelf().kept.get_mut(&said.sum).unwrap().used = used;
        said
    }

    #[test]
    fn program_is_kept_if_it_is_the_one_that_was_said_to_come_and_nothing_is_left_of_another() {
        let (folder, programs) = opened(9, 1000);
        let said = program("one");
        hand_in(&programs, said, "one").unwrap();
        assert!(programs.touch(&said));
        for (said, came) in [
            (program("two"), "tow"),
            (program("two"), "tw"),
            (program("two"), "two!"),
            (ShippedProgram { bytes: 4, ..program("two") }, "two"),
        ] {
            let error = hand_in(&programs, said, came).unwrap_err();
            assert!(matches!(error, ProgramError::Other { .. }), "{error}");
            assert!(!programs.touch(&said));
        }
        let names: Vec<_> = fs::read_dir(folder.path().join("programs")).unwrap().collect();
        assert_eq!(names.len(), 1);
        let path = names.into_iter().next().unwrap().unwrap().path();
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
        assert_eq!(fs::metadata(path.parent().unwrap()).unwrap().permissions().mode() & 0o777, 0o700);
    }

    #[test]
    fn program_used_longest_ago_makes_room_and_one_of_a_live_job_never() {
        let (_folder, programs) = opened(3, 10);
        let [a, b, c] = [("aaa", 1), ("bbb", 3), ("ccc", 2)].map(|(text, age)| keep(&programs, text, age));
        let here = |program| programs.shelf().kept.contains_key(&program);
        let room = |bytes, live: &BTreeSet<ProgramSum>| {
            let number = programs.make_room(bytes, live, &owner("submit-ada"))?;
            programs.shelf().arriving.remove(&number);
            Ok::<_, ProgramError>(())
        };
        room(1, &BTreeSet::from([b.sum])).unwrap();
        assert_eq!([here(a.sum), here(b.sum), here(c.sum)], [true, true, false], "by number");
        room(5, &BTreeSet::from([b.sum])).unwrap();
        assert_eq!([here(a.sum), here(b.sum)], [false, true], "by bytes");
        assert!(programs.fits(7, &BTreeSet::from([b.sum])).is_ok());
        assert!(
            programs.fits(8, &BTreeSet::from([b.sum])).is_err() && programs.fits(8, &BTreeSet::new()).is_ok()
        );
        let half = room(6, &BTreeSet::new()).unwrap_err();
        assert!(matches!(half, ProgramError::UploadBytes { most: 5, .. }), "{half}");
        let huge = room(11, &BTreeSet::new()).unwrap_err();
        assert!(
            matches!(huge, ProgramError::NoRoom { kept: 1, .. }),
            "nothing goes for one that never fits: {huge}"
        );
    }

    #[test]
    fn programs_on_their_way_count_as_if_they_were_there() {
        let (_folder, programs) = opened(5, 16);
        let kept = keep(&programs, "aaaaaa", 1);
        let number = programs.make_room(5, &BTreeSet::new(), &owner("submit-ada")).unwrap();
        let more = programs.make_room(4, &BTreeSet::new(), &owner("submit-ada")).unwrap_err();
        assert!(matches!(more, ProgramError::UploadBytes { bytes: 9, most: 8, .. }), "half of all: {more}");
        let full = programs.make_room(6, &BTreeSet::from([kept.sum]), &owner("submit-bob"));
        assert!(matches!(full, Err(ProgramError::NoRoom { kept: 2, kept_bytes: 11, .. })), "{full:?}");
        let (_, nothing) = channel(1);
        assert!(programs.write((program("longer"), number), nothing).is_err(), "it has not come");
        programs.make_room(5, &BTreeSet::new(), &owner("submit-ada")).unwrap();
    }

    #[test]
    fn programs_are_found_again_by_the_next_master_and_drafts_are_not() {
        let (folder, programs) = opened(9, 1000);
        let one = keep(&programs, "one", 0);
        drop(programs);
        let path = folder.path().join("programs");
        fs::write(path.join("draft-7"), "half").unwrap();
        fs::write(path.join("other"), "not ours").unwrap();
        let next = Programs::open(&path, ProgramLimits::USUAL).unwrap();
        assert_eq!(next.list(), [one]);
        assert!(!path.join("draft-7").exists() && path.join("other").exists());
        fs::set_permissions(&path, fs::Permissions::from_mode(0o770)).unwrap();
        assert!(Programs::open(&path, ProgramLimits::USUAL).is_err(), "others can put programs there");
    }

    #[test]
    fn token_that_sends_programs_without_end_leaves_places_to_others() {
        let (_folder, programs) = opened(64, 1000);
        for _ in 0..32 {
            programs.make_room(2, &BTreeSet::new(), &owner("submit-ada")).unwrap();
        }
        let refused = programs.make_room(2, &BTreeSet::new(), &owner("submit-ada")).unwrap_err();
        assert!(matches!(refused, ProgramError::Uploads { .. }), "{refused}");
        assert_eq!(programs.arriving_of("submit-ada"), 64);
        let mut bob = owner("submit-bob");
        bob.quota.jobs_max = Some(1);
        programs.make_room(2, &BTreeSet::new(), &bob).unwrap();
        assert!(programs.make_room(2, &BTreeSet::new(), &bob).is_err(), "its quota is one job");
    }
}
