//! Order of a segment received from another worker, checked entry by entry.

use crate::segment::{HEADER_BYTES, SortEntry};

/// Bytes of the checksum after a sent order.
pub(super) const CHECKSUM_BYTES: usize = 4;

/// Order that is being received.
pub(crate) struct ReceivedOrder {
    pub(super) head: [u8; HEADER_BYTES],
    pub(super) entries: Vec<SortEntry>,
    /// Checksum of the received entries.
    pub(super) checksum: u32,
    /// Checksum after the received entries.
    pub(super) found: u32,
}

impl ReceivedOrder {
    /// Returns the pairs of an order of this many bytes; `None` for an invalid length.
    pub fn pairs(length: u64) -> Option<usize> {
        let entries = length.checked_sub((HEADER_BYTES + CHECKSUM_BYTES) as u64)?;
        let whole = entries.is_multiple_of(size_of::<SortEntry>() as u64);
        whole.then(|| usize::try_from(entries / size_of::<SortEntry>() as u64).ok()).flatten()
    }

    /// Receives the order from slices with arbitrary ends.
    pub fn receive(pairs: usize) -> Receiving {
        let order =
            Self { head: [0; HEADER_BYTES], entries: Vec::with_capacity(pairs), checksum: 0, found: 0 };
        Receiving { order, pairs, part: Vec::with_capacity(HEADER_BYTES), begun: false }
    }
}

/// State of [`ReceivedOrder::receive`].
pub(crate) struct Receiving {
    order: ReceivedOrder,
    pairs: usize,
    /// Start of an incomplete item.
    part: Vec<u8>,
    begun: bool,
}

impl Receiving {
    /// Adds the next bytes of the order.
    pub fn push(&mut self, mut bytes: &[u8]) {
        while !bytes.is_empty() {
            if self.begun && self.part.is_empty() {
                bytes = self.take_whole_entries(bytes);
            }
            let size = match (self.begun, self.order.entries.len() < self.pairs) {
                (false, _) => HEADER_BYTES,
                (true, true) => size_of::<SortEntry>(),
                (true, false) => CHECKSUM_BYTES,
            };
            let (now, rest) = bytes.split_at(bytes.len().min(size - self.part.len()));
            self.part.extend_from_slice(now);
            bytes = rest;
            if self.part.len() == size {
                self.take_item();
            }
        }
    }

    fn take_whole_entries<'a>(&mut self, bytes: &'a [u8]) -> &'a [u8] {
        let missing = self.pairs - self.order.entries.len();
        let whole = missing.min(bytes.len() / size_of::<SortEntry>()) * size_of::<SortEntry>();
        let (now, rest) = bytes.split_at(whole);
        let (entries, _) = now.as_chunks();
        self.order.entries.extend(entries.iter().map(|entry| SortEntry::from_bytes(*entry)));
        self.order.checksum = crc32c::crc32c_append(self.order.checksum, now);
        rest
    }

    fn take_item(&mut self) {
        let part = std::mem::take(&mut self.part);
        if let Ok(checksum) = <[u8; CHECKSUM_BYTES]>::try_from(&part[..]) {
            self.order.found = u32::from_le_bytes(checksum);
            return;
        }
        self.order.checksum = crc32c::crc32c_append(self.order.checksum, &part);
        if let Ok(entry) = <[u8; size_of::<SortEntry>()]>::try_from(&part[..]) {
            self.order.entries.push(SortEntry::from_bytes(entry));
        } else if let Ok(head) = <[u8; HEADER_BYTES]>::try_from(&part[..]) {
            self.order.head = head;
            self.begun = true;
        }
    }

    /// Returns the received order.
    pub fn finish(self) -> ReceivedOrder {
        self.order
    }
}
