//! Text of an error with its causes, each said once.

use std::error::Error;

/// Returns an error and its causes on one line, joined by `: `, without repetitions at the end.
#[must_use]
pub fn chain(error: &dyn Error) -> String {
    let mut text = error.to_string();
    let mut next = error.source();
    while let Some(cause) = next {
        let words = cause.to_string();
        let words = without_link(&words);
        if !text.ends_with(words) {
            text.push_str(": ");
            text.push_str(words);
        }
        next = cause.source();
    }
    text
}

/// Removes a link to the documentation of a library at the end, which is not useful to users.
fn without_link(words: &str) -> &str {
    let rest =
        words.rsplit_once(": https://docs.rs/").filter(|(_, link)| !link.contains(char::is_whitespace));
    rest.map_or(words, |(before, _)| before)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io;

    #[test]
    fn a_chain_says_nothing_twice_and_sends_nobody_to_a_librarys_documentation() {
        let cause = io::Error::other("it closed early: https://docs.rs/rustls/latest/rustls/manual/#eof");
        let error = io::Error::other(Wrapped(io::Error::other(cause)));
        assert_eq!(chain(&Wrapped(error)), "wrapped: it closed early");
    }

    #[derive(Debug, thiserror::Error)]
    #[error("wrapped")]
    struct Wrapped(#[source] io::Error);
}
