//! Batches of pairs between the program and function runners: keys and values as columns, which the other side fills and
//! reads without work for each pair.
//!
//! A batch takes the place of a pair. It starts with [`MARK`] where a pair has the length of its key, then the number of its
//! bytes, the number of pairs, a column of keys and one of values; numbers are big-endian. A column has a letter and its
//! content: `s` the number of bytes of strings with a zero byte between them, `q` and `d` 64-bit integers and floats,
//! little-endian. Pairs outside of batches, and all keys and values here, are typed bytes of Hadoop.

use gristmill_worker::prelude::*;

/// Start of a batch; no key is as long as this says.
pub(super) const MARK: [u8; 4] = [0xff; 4];

/// Bytes of keys and values after which a batch is complete.
const BATCH_BYTES: usize = 64 << 10;

/// Codes of typed bytes.
const INT: u8 = 3;
const LONG: u8 = 4;
const DOUBLE: u8 = 6;
const TEXT: u8 = 7;

/// Passes on the pairs of a batch, whose bytes follow the mark and their number.
///
/// # Errors
/// A batch that breaks the format, and those of `take`.
pub(super) fn each_pair(body: &[u8], take: &mut impl FnMut(&[u8], &[u8]) -> TaskResult) -> TaskResult {
    let broken = || TaskError::new("the command wrote a batch of pairs that breaks their format");
    let mut rest = body;
    let count = number(&mut rest).ok_or_else(broken)?;
    let mut columns = [Column::default(), Column::default()];
    for column in &mut columns {
        *column = Column::read(&mut rest, count as usize).ok_or_else(broken)?;
    }
    let [mut keys, mut values] = columns;
    let (mut key, mut value) = (Vec::new(), Vec::new());
    for _ in 0..count {
        key.clear();
        value.clear();
        keys.next(&mut key).and_then(|()| values.next(&mut value)).ok_or_else(broken)?;
        take(&key, &value)?;
    }
    if rest.is_empty() && keys.is_done() && values.is_done() { Ok(()) } else { Err(broken()) }
}

fn number(rest: &mut &[u8]) -> Option<u32> {
    let (number, after) = rest.split_first_chunk()?;
    *rest = after;
    Some(u32::from_be_bytes(*number))
}

fn bytes<'a>(rest: &mut &'a [u8], count: usize) -> Option<&'a [u8]> {
    let (bytes, after) = rest.split_at_checked(count)?;
    *rest = after;
    Some(bytes)
}

/// Rest of a column.
enum Column<'a> {
    /// `None` after the last.
    Texts(Option<&'a [u8]>),
    Integers(&'a [u8]),
    Floats(&'a [u8]),
}

impl Default for Column<'_> {
    fn default() -> Self {
        Self::Texts(None)
    }
}

impl<'a> Column<'a> {
    fn read(rest: &mut &'a [u8], count: usize) -> Option<Self> {
        let [letter] = *bytes(rest, 1)? else { return None };
        Some(match letter {
            b's' => {
                let length = number(rest)? as usize;
                let texts = bytes(rest, length)?;
                Self::Texts((0 < count).then_some(texts))
            }
            b'q' => Self::Integers(bytes(rest, count.checked_mul(8)?)?),
            b'd' => Self::Floats(bytes(rest, count.checked_mul(8)?)?),
            _ => return None,
        })
    }

    /// Appends the next value.
    fn next(&mut self, out: &mut Vec<u8>) -> Option<()> {
        match self {
            Self::Texts(left) => {
                let texts = left.take()?;
                let end = memchr::memchr(0, texts);
                *left = end.map(|end| &texts[end + 1..]);
                let text = &texts[..end.unwrap_or(texts.len())];
                out.push(TEXT);
                out.extend_from_slice(&u32::try_from(text.len()).ok()?.to_be_bytes());
                out.extend_from_slice(text);
            }
            Self::Integers(left) => {
                let (integer, after) = left.split_first_chunk()?;
                *left = after;
                let integer = i64::from_le_bytes(*integer);
                match i32::try_from(integer) {
                    Ok(short) => {
                        out.push(INT);
                        out.extend_from_slice(&short.to_be_bytes());
                    }
                    Err(_) => {
                        out.push(LONG);
                        out.extend_from_slice(&integer.to_be_bytes());
                    }
                }
            }
            Self::Floats(left) => {
                let (float, after) = left.split_first_chunk::<8>()?;
                *left = after;
                out.push(DOUBLE);
                out.extend(float.iter().rev());
            }
        }
        Some(())
    }

    fn is_done(&self) -> bool {
        match self {
            Self::Texts(left) => left.is_none(),
            Self::Integers(left) | Self::Floats(left) => left.is_empty(),
        }
    }
}

/// Batch that is being filled: keys are strings, values of one kind.
#[derive(Default)]
pub(super) struct Batch {
    count: u32,
    /// With a zero byte between them.
    keys: Vec<u8>,
    /// Letter of the values' column.
    letter: u8,
    values: Vec<u8>,
}

impl Batch {
    /// Adds a pair, and appends the batch to `out` if it is complete. Returns false for a pair that fits into no batch;
    /// then the batch was appended, and the pair follows it.
    pub fn push(&mut self, key: &[u8], value: &[u8], out: &mut Vec<u8>) -> bool {
        let Some((text, (letter, content))) = text_of(key).zip(content_of(value)) else {
            self.flush(out);
            return false;
        };
        if self.letter != letter || BATCH_BYTES <= self.keys.len() + self.values.len() {
            self.flush(out);
        }
        if self.count != 0 {
            self.keys.push(0);
        }
        self.keys.extend_from_slice(text);
        match (letter, content) {
            (b'q', &[a, b, c, d]) => {
                let integer = i64::from(i32::from_be_bytes([a, b, c, d]));
                self.values.extend_from_slice(&integer.to_le_bytes());
            }
            (b's', text) => {
                if self.count != 0 {
                    self.values.push(0);
                }
                self.values.extend_from_slice(text);
            }
            (_, number) => self.values.extend(number.iter().rev()),
        }
        self.letter = letter;
        self.count += 1;
        true
    }

    /// Appends the batch, if it has a pair.
    pub fn flush(&mut self, out: &mut Vec<u8>) {
        if self.count == 0 {
            return;
        }
        let mut body = Vec::with_capacity(self.keys.len() + self.values.len() + 14);
        body.extend_from_slice(&self.count.to_be_bytes());
        text_column(&self.keys, &mut body);
        match self.letter {
            b's' => text_column(&self.values, &mut body),
            letter => {
                body.push(letter);
                body.extend_from_slice(&self.values);
            }
        }
        out.extend_from_slice(&MARK);
        out.extend_from_slice(&(body.len() as u32).to_be_bytes());
        out.append(&mut body);
        self.count = 0;
        self.keys.clear();
        self.values.clear();
    }
}

fn text_column(texts: &[u8], out: &mut Vec<u8>) {
    out.push(b's');
    out.extend_from_slice(&(texts.len() as u32).to_be_bytes());
    out.extend_from_slice(texts);
}

/// Returns the text of typed bytes that are one without a zero byte, and not too long for a batch.
fn text_of(field: &[u8]) -> Option<&[u8]> {
    let text = field.strip_prefix(&[TEXT])?.get(4..)?;
    (text.len() < BATCH_BYTES && memchr::memchr(0, text).is_none()).then_some(text)
}

/// Returns the letter of the column for this value, and its content; `None` if it has none.
fn content_of(field: &[u8]) -> Option<(u8, &[u8])> {
    match (field.first()?, field.len()) {
        (&INT, 5) | (&LONG, 9) => Some((b'q', &field[1..])),
        (&DOUBLE, 9) => Some((b'd', &field[1..])),
        _ => Some((b's', text_of(field)?)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    type KeyValue = (Vec<u8>, Vec<u8>);

    fn text(text: &str) -> Vec<u8> {
        [&[TEXT][..], &(text.len() as u32).to_be_bytes(), text.as_bytes()].concat()
    }

    fn value() -> impl Strategy<Value = Vec<u8>> {
        prop_oneof![
            any::<i32>().prop_map(|int| [&[INT][..], &int.to_be_bytes()].concat()),
            any::<i64>().prop_filter("longer", |long| i32::try_from(*long).is_err()).prop_map(|long| [
                &[LONG][..],
                &long.to_be_bytes()
            ]
            .concat()),
            any::<f64>().prop_map(|float| [&[DOUBLE][..], &float.to_be_bytes()].concat()),
            "[a-c\u{0}]{0,4}".prop_map(|letters| text(&letters)),
            proptest::collection::vec(any::<u8>(), 0..6)
                .prop_map(|bytes| { [&[0][..], &(bytes.len() as u32).to_be_bytes(), &bytes].concat() }),
        ]
    }

    /// Reads batches and single pairs.
    fn read(mut bytes: &[u8]) -> Vec<KeyValue> {
        let mut found = Vec::new();
        let mut take = |key: &[u8], value: &[u8]| {
            found.push((key.to_vec(), value.to_vec()));
            Ok(())
        };
        while !bytes.is_empty() {
            let (mark, rest) = bytes.split_first_chunk::<4>().unwrap();
            assert_eq!(*mark, MARK);
            bytes = rest;
            let length = number(&mut bytes).unwrap() as usize;
            each_pair(super::bytes(&mut bytes, length).unwrap(), &mut take).unwrap();
        }
        found
    }

    proptest! {
        #[test]
        fn pairs_come_out_of_batches_as_they_went_in(pairs in proptest::collection::vec(("[a-c\u{0}]{0,3}", value()), 0..60)) {
            let (mut batch, mut out, mut singles) = (Batch::default(), Vec::new(), Vec::new());
            let mut wanted = Vec::new();
            for (key, value) in pairs {
                let key = text(&key);
                match batch.push(&key, &value, &mut out) {
                    true => wanted.push((key, value)),
                    false => singles.push((key, value)),
                }
            }
            batch.flush(&mut out);
            prop_assert_eq!(read(&out), wanted);
            let single = |(key, value): &KeyValue| text_of(key).is_none() || content_of(value).is_none();
            prop_assert!(singles.iter().all(single));
        }

        #[test]
        fn bytes_that_are_no_batch_are_an_error_and_no_panic(body in proptest::collection::vec(any::<u8>(), 0..40), letters in "[sqd]{0,3}") {
            let mut body = body;
            for (place, letter) in letters.bytes().enumerate() {
                if let Some(byte) = body.get_mut(4 + 5 * place) {
                    *byte = letter;
                }
            }
            let _ = each_pair(&body, &mut |_, _| Ok(()));
        }
    }

    #[test]
    fn batch_is_read_and_wrong_counts_are_refused() {
        // Two pairs: keys a and b, values 0.5 and -1.
        let mut body = vec![0, 0, 0, 2, b's', 0, 0, 0, 3, b'a', 0, b'b', b'd'];
        body.extend([0.5_f64, -1.0].iter().flat_map(|number| number.to_le_bytes()));
        let mut found = Vec::new();
        let mut take = |key: &[u8], value: &[u8]| {
            found.push((key.to_vec(), value.to_vec()));
            Ok(())
        };
        each_pair(&body, &mut take).unwrap();
        let float = |float: f64| [&[DOUBLE][..], &float.to_be_bytes()].concat();
        assert_eq!(found, [(text("a"), float(0.5)), (text("b"), float(-1.0))]);
        for wrong in [1, 3] {
            body[3] = wrong;
            assert!(each_pair(&body, &mut |_, _| Ok(())).is_err(), "{wrong} pairs");
        }
    }
}
