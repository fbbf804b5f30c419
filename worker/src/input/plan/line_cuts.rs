//! Cuts of files of lines into splits of a number of lines. Files are read once for that, where the job
//! is submitted.

use crate::input::error::InputError;
use crate::input::private::open_regular;
use crate::input::split::Piece;
use gristmill_scheduler::units::MAPS_MAX;
use std::io::Read;

/// Number of bytes read at once.
const BUFFER_BYTES: usize = 1 << 20;

/// Returns the offset of the first byte of every `lines`th line except the first, ascending.
pub(super) fn line_cuts(file: &Piece, lines: u64) -> Result<Vec<u64>, InputError> {
    let failed = |source| InputError::from_io(&file.path, source);
    let mut reading = open_regular(file.path.to_path()).map_err(failed)?;
    let (mut buffer, mut cuts) = (vec![0; BUFFER_BYTES], Vec::new());
    let (mut offset, mut ended) = (0, 0_u64);
    loop {
        let got = reading.read(&mut buffer).map_err(failed)?;
        if got == 0 {
            // No line starts after the last one.
            cuts.retain(|cut| *cut < offset);
            return Ok(cuts);
        }
        for end in memchr::memchr_iter(b'\n', &buffer[..got]) {
            ended += 1;
            if ended % lines.max(1) == 0 {
                if MAPS_MAX as usize <= cuts.len() {
                    return Err(InputError::too_many_splits(MAPS_MAX));
                }
                cuts.push(offset + end as u64 + 1);
            }
        }
        offset += got as u64;
    }
}
