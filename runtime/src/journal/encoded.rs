//! Values in lines of a journal that have no JSON form, or whose JSON form would be too large.

use data_encoding::HEXLOWER;
use gristmill_worker::codec::{self, CodecError};
use serde::de::{DeserializeOwned, Error};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// A value in the encoding of the wire, which only a program of the same build can read. In a line it is hexadecimal
/// text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Encoded(Vec<u8>);

impl Encoded {
    pub(crate) fn new(value: &impl Serialize) -> Self {
        let mut bytes = Vec::new();
        codec::encode(value, &mut bytes);
        Self(bytes)
    }

    /// The bytes.
    pub(crate) fn bytes(&self) -> &[u8] {
        &self.0
    }

    /// Decodes the value; its lists may take `memory_max` bytes.
    pub(crate) fn decode<T: DeserializeOwned>(&self, memory_max: usize) -> Result<T, CodecError> {
        codec::decode_message(&self.0, memory_max)
    }
}

impl Serialize for Encoded {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&HEXLOWER.encode(&self.0))
    }
}

impl<'de> Deserialize<'de> for Encoded {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        HEXLOWER.decode(text.as_bytes()).map(Self).map_err(D::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use gristmill_scheduler::ids::{JobId, TaskId, WorkerId};
    use gristmill_worker::protocol::{FetchedOutput, WorkerFrame};

    #[test]
    fn message_comes_back_as_it_was_and_text_that_is_none_is_refused() {
        let map = TaskId::map(JobId(7), 3).attempt(1);
        let outputs = vec![FetchedOutput {
            map,
            partitions: (0..200).chain([70_000]).collect(),
            bytes: u64::MAX,
            resent: u32::MAX,
        }];
        let frame = WorkerFrame::Fetched { outputs, from: WorkerId(9), started_ns: 1, ended_ns: 2 };
        let text = serde_json::to_string(&Encoded::new(&frame)).unwrap();
        let again: Encoded = serde_json::from_str(&text).unwrap();
        let again: WorkerFrame = again.decode(1 << 20).unwrap();
        assert_eq!(format!("{again:?}"), format!("{frame:?}"));
        for text in ["\"0\"", "\"0g\"", "7"] {
            assert!(serde_json::from_str::<Encoded>(text).is_err(), "{text}");
        }
        assert!(Encoded(vec![0xff; 9]).decode::<WorkerFrame>(1 << 20).is_err());
    }
}
