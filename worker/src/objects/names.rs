//! Unique names of the objects of an output, per attempt, job and writer.
//!
//! A store has no rename, so a part gets its name when it is uploaded. Two writers of one prefix must not
//! use the same name, nor two attempts of one task. So `part-00003-NONCE-EPOCH.gz` contains the nonce of
//! the job's claim and the number of the attempt. `_SUCCESS` alone defines which of them are the output.

/// Name of the object that claims a prefix for a job.
pub const CLAIM: &str = "_temporary";

/// Number of letters of a nonce, of which some are `-`.
const NONCE_LETTERS: usize = 16;

/// Returns the name of the object of an attempt's part, from that of the part in a directory.
#[must_use]
pub fn attempt_object_name(part: &str, nonce: &str, epoch: u32) -> String {
    let (stem, end) = part.find('.').map_or((part, ""), |dot| part.split_at(dot));
    format!("{stem}-{nonce}-{epoch}{end}")
}

/// Fields of the name of an attempt's object.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct AttemptObject<'a> {
    /// Nonce of the claim of its job.
    pub nonce: &'a str,
}

impl<'a> AttemptObject<'a> {
    /// Parses a name without directories; `None` if it is not the name of an attempt's object.
    #[must_use]
    pub fn parse(name: &'a str) -> Option<Self> {
        let stem = name.split('.').next()?;
        let (index, rest) = stem.strip_prefix("part-")?.split_once('-')?;
        let (nonce, rest) = rest.split_at_checked(NONCE_LETTERS)?;
        let epoch = rest.strip_prefix('-')?;
        let number = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
        let letter = |byte: u8| byte.is_ascii_alphanumeric() || b"-_".contains(&byte);
        (number(index) && number(epoch) && nonce.bytes().all(letter)).then_some(Self { nonce })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn name_of_an_attempts_object_tells_whose_it_is() {
        for nonce in ["0123456789abcdef", "AwP_2PH8j_hRCAM8", "--l1Ylpi-k8zDq-I"] {
            let name = attempt_object_name("part-00003.gz", nonce, 2);
            assert_eq!(name, format!("part-00003-{nonce}-2.gz"));
            assert_eq!(AttemptObject::parse(&name), Some(AttemptObject { nonce }));
            assert_eq!(attempt_object_name("part-00000", nonce, 10), format!("part-00000-{nonce}-10"));
        }
        for other in [
            "part-00003.gz",
            "part-00003-0123456789abcde-2",
            "part-00003-0123456789abcde.-2",
            "part-00003-0123456789abcdef-2-1",
            "part-x-0123456789abcdef-2",
            "part-00003-0123456789abcdef-",
            "part-00003-0123456789abcdef",
            "part-00003-0123456789abcd\u{e9}-2",
            "_SUCCESS",
        ] {
            assert_eq!(AttemptObject::parse(other), None, "{other}");
        }
    }
}
