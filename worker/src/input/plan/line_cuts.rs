//! Where files of lines are cut so that each split has so many of them: read once where the job is submitted.

use crate::input::error::InputError;
use crate::input::private::open_regular;
use crate::input::split::Piece;
use gristmill_scheduler::units::MAPS_MAX;
use std::io::Read;

/// Bytes read at once.
const BUFFER_BYTES: usize = 1 << 20;

/// The first byte of every `lines`th line but the first, ascending.
pub(super) fn line_cuts(file: &Piece, lines: u64) -> Result<Vec<u64>, InputError> {
    let failed = |source| InputError::from_io(&file.path, source);
    let mut reading = open_regular(file.path.to_path()).map_err(failed)?;
    let (mut buffer, mut cuts) = (vec![0; BUFFER_BYTES], Vec::new());
    let (mut offset, mut ended) = (0, 0_u64);
    loop {
        let got = reading.read(&mut buffer).map_err(failed)?;
        if got == 0 {
            // Nothing begins behind the last line.
            cuts.retain(|cut| *cut < offset);
            return Ok(cuts);
        }
        for end in memchr::memchr_iter(b'\n', &buffer[..got]) {
            ended += 1;
            if ended % lines.max(1) == 0 {
                if MAPS_MAX as usize <= cuts.len() {
                    return Err(InputError::TooManySplits { limit: MAPS_MAX as usize });
                }
                cuts.push(offset + end as u64 + 1);
            }
        }
        offset += got as u64;
    }
}
