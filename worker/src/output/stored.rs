//! Bytes of a file, counted and checksummed as they are written.

use std::io::{self, Write};

/// Counted bytes of the file.
pub struct Stored {
    writer: Box<dyn Write + Send>,
    bytes: u64,
    crc32c: u32,
}

impl Stored {
    /// Counts what is written to `writer`.
    #[must_use]
    pub fn new(writer: Box<dyn Write + Send>) -> Self {
        Self { writer, bytes: 0, crc32c: 0 }
    }

    /// Returns the size and CRC-32C of the bytes written to the file.
    #[must_use]
    pub fn sum(&self) -> (u64, u32) {
        (self.bytes, self.crc32c)
    }
}

impl Write for Stored {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let written = self.writer.write(bytes)?;
        self.crc32c = crc32c::crc32c_append(self.crc32c, &bytes[..written]);
        self.bytes += written as u64;
        Ok(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.writer.flush()
    }
}
