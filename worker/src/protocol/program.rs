//! Shipped programs, identified by their checksums.

use data_encoding::HEXLOWER;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use std::fmt;
use std::io::{self, Read};
use std::str::FromStr;

/// Path prefix on the master from which workers fetch programs by their checksums.
pub const PROGRAMS_PATH: &str = "/worker/programs/";

/// Bytes of a program that are read at once.
const CHUNK_BYTES: usize = 256 << 10;

/// SHA-256 of a program's file, its identity everywhere. Displayed and sent as 64 lower-case hexadecimal digits, so it
/// is a safe file name.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct ProgramSum([u8; 32]);

impl ProgramSum {
    /// Computes the sum of all bytes of a reader, with their number. Blocking.
    ///
    /// # Errors
    /// An error of reading.
    pub fn of_reader(mut reader: impl Read) -> io::Result<(Self, u64)> {
        let (mut summing, mut chunk, mut bytes) = (ProgramSumming::default(), vec![0; CHUNK_BYTES], 0);
        loop {
            match reader.read(&mut chunk) {
                Ok(0) => return Ok((summing.finish(), bytes)),
                Ok(got) => {
                    summing.add(&chunk[..got]);
                    bytes += got as u64;
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
    }
}

/// Incremental computation of a [`ProgramSum`].
#[derive(Default)]
pub struct ProgramSumming(Sha256);

impl ProgramSumming {
    /// Adds the next bytes.
    pub fn add(&mut self, bytes: &[u8]) {
        self.0.update(bytes);
    }

    /// Returns the sum of all bytes.
    #[must_use]
    pub fn finish(self) -> ProgramSum {
        ProgramSum(self.0.finalize().into())
    }
}

impl fmt::Display for ProgramSum {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&HEXLOWER.encode(&self.0))
    }
}

impl fmt::Debug for ProgramSum {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ProgramSum({self})")
    }
}

/// Error of parsing a [`ProgramSum`].
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
#[error("a program's checksum is 64 lower-case hexadecimal digits")]
pub struct NoProgramSum;

impl FromStr for ProgramSum {
    type Err = NoProgramSum;

    fn from_str(text: &str) -> Result<Self, NoProgramSum> {
        let sum = HEXLOWER.decode(text.as_bytes()).map_err(|_| NoProgramSum)?;
        sum.try_into().map(Self).map_err(|_| NoProgramSum)
    }
}

impl TryFrom<String> for ProgramSum {
    type Error = NoProgramSum;

    fn try_from(text: String) -> Result<Self, NoProgramSum> {
        text.parse()
    }
}

impl From<ProgramSum> for String {
    fn from(sum: ProgramSum) -> Self {
        sum.to_string()
    }
}

/// Program with which a job was submitted, if it is not the cluster's own.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct ShippedProgram {
    /// Checksum of the program.
    pub sum: ProgramSum,
    /// Size of its file in bytes.
    pub bytes: u64,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sum_of_a_program_is_its_sha256_and_is_read_as_it_is_written() {
        let (sum, bytes) = ProgramSum::of_reader(&b"abc"[..]).unwrap();
        let text = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
        assert_eq!((sum.to_string().as_str(), bytes), (text, 3));
        assert_eq!(text.parse(), Ok(sum));
        for wrong in ["", "ba", &text.to_uppercase(), &format!("{text}0"), &text.replace('b', "/")] {
            assert_eq!(wrong.parse::<ProgramSum>(), Err(NoProgramSum), "{wrong}");
        }
    }
}
