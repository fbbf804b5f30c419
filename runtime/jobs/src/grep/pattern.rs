//! Patterns that match within lines, and the search of many lines at once.
//!
//! A match is defined line by line: the pattern is searched in the bytes of the line without its line break. A block of
//! lines is searched as a whole, which gives the same lines for two reasons. No match can contain a line break: it is
//! removed from every character class, and rejected if the pattern spells it out. And the end of a line looks the same
//! within the block as the end of the text.
//!
//! The second reason fails for three kinds of assertions. These are anchors of the whole text (`\A`, `\z`), and anchors
//! of lines that end in a carriage return (`(?R)`). The third kind are Unicode assertions that never hold next to a
//! byte that is not UTF-8 (`\B` and the halves of `\b`), because they read such a byte together with the preceding line
//! break. Patterns with any of them are searched line by line.
//!
//! The syntax tree itself is compiled, never its text: printed and parsed again, a tree may have another meaning.

use regex_automata::Input;
use regex_automata::meta::{BuildError, Regex};
use regex_syntax::hir::{
    Class, ClassBytes, ClassBytesRange, ClassUnicode, ClassUnicodeRange, Hir, HirKind, Look, Repetition,
};
use std::ops::Range;

/// Maximum size of a compiled pattern in bytes.
const PATTERN_BYTES_MAX: usize = 64 << 20;

/// Reason for which a pattern cannot be used.
#[derive(Debug, thiserror::Error)]
pub(super) enum PatternError {
    #[error("a pattern is matched within lines and cannot contain a line break")]
    LineBreak,
    #[error("{source}")]
    Syntax { source: Box<regex_syntax::Error> },
    #[error("{}", compile_reason(.source))]
    Compile { source: Box<BuildError> },
}

/// A pattern. Clone it for each thread: the clones do not wait for each other.
#[derive(Clone, Debug)]
pub(super) struct LinePattern {
    regex: Regex,
    line_by_line: bool,
}

impl LinePattern {
    /// Compiles a regular expression, or with `fixed_strings` a plain text.
    pub(super) fn new(pattern: &str, ignore_case: bool, fixed_strings: bool) -> Result<Self, PatternError> {
        let escaped = fixed_strings.then(|| regex_syntax::escape(pattern));
        let hir = regex_syntax::ParserBuilder::new()
            .multi_line(true)
            .utf8(false)
            .case_insensitive(ignore_case)
            .build()
            .parse(escaped.as_deref().unwrap_or(pattern))
            .map_err(|source| PatternError::Syntax { source: Box::new(source) })?;
        let looks = hir.properties().look_set();
        let line_by_line = looks.contains_anchor_haystack()
            || looks.contains_anchor_crlf()
            || [Look::WordUnicodeNegate, Look::WordStartHalfUnicode, Look::WordEndHalfUnicode]
                .into_iter()
                .any(|look| looks.contains(look));
        let hir = without_line_breaks(hir)?;
        let config = Regex::config().utf8_empty(false).nfa_size_limit(Some(PATTERN_BYTES_MAX));
        let regex = Regex::builder()
            .configure(config)
            .build_from_hir(&hir)
            .map_err(|source| PatternError::Compile { source: Box::new(source) })?;
        Ok(Self { regex, line_by_line })
    }

    /// Calls `with_line` for each matching line of `lines` (or each other line if `invert`), in order and without its
    /// line break.
    pub(super) fn for_each_line(&self, lines: &[u8], invert: bool, mut with_line: impl FnMut(&[u8])) {
        let mut at = 0;
        while at < lines.len() {
            let found = self.next_line(lines, at);
            if invert {
                let end = found.as_ref().map_or(lines.len(), |line| line.start);
                while at < end {
                    let line = line_from(lines, at);
                    at = line.end + 1;
                    with_line(&lines[line]);
                }
            }
            let Some(line) = found else { return };
            at = line.end + 1;
            if !invert {
                with_line(&lines[line]);
            }
        }
    }

    /// Calls `with_piece` for each non-empty match in `line`, from left to right without overlap.
    pub(super) fn for_each_match(&self, line: &[u8], with_piece: impl FnMut(&[u8])) {
        let pieces = self.regex.find_iter(line).map(|found| &line[found.range()]);
        pieces.filter(|piece| !piece.is_empty()).for_each(with_piece);
    }

    /// The first matching line that starts at `at`, the start of a line, or after it.
    fn next_line(&self, lines: &[u8], at: usize) -> Option<Range<usize>> {
        if self.line_by_line {
            let mut line = line_from(lines, at);
            while !self.regex.is_match(&lines[line.clone()]) {
                line = line_from(lines, line.end + 1);
                if line.start >= lines.len() {
                    return None;
                }
            }
            return Some(line);
        }
        // Not a slice: the bytes before `at` determine if a line or a word starts there.
        let found = self.regex.search(&Input::new(lines).range(at..))?.start();
        // An empty match behind the last line break is in no line.
        if found == lines.len() && lines.last() == Some(&b'\n') {
            return None;
        }
        let start = memchr::memrchr(b'\n', &lines[at..found]).map_or(at, |line_break| at + line_break + 1);
        Some(start..line_from(lines, found).end)
    }
}

/// From `at` to the next line break or the end.
fn line_from(lines: &[u8], at: usize) -> Range<usize> {
    let at = at.min(lines.len());
    at..memchr::memchr(b'\n', &lines[at..]).map_or(lines.len(), |line_break| at + line_break)
}

/// Advice for a pattern that does not compile.
fn compile_reason(error: &BuildError) -> String {
    match error.size_limit() {
        Some(limit) => format!("compiled, the pattern takes more than {limit} bytes; lower its repetitions"),
        None => error.to_string(),
    }
}

/// The same expression, with line breaks removed from its classes, and without its captures, which are not used.
fn without_line_breaks(hir: Hir) -> Result<Hir, PatternError> {
    let all = |subs: Vec<Hir>| subs.into_iter().map(without_line_breaks).collect::<Result<Vec<Hir>, _>>();
    Ok(match hir.into_kind() {
        HirKind::Empty => Hir::empty(),
        HirKind::Literal(literal) if literal.0.contains(&b'\n') => return Err(PatternError::LineBreak),
        HirKind::Literal(literal) => Hir::literal(literal.0),
        HirKind::Class(Class::Unicode(mut class)) => {
            class.difference(&ClassUnicode::new([ClassUnicodeRange::new('\n', '\n')]));
            Hir::class(Class::Unicode(class))
        }
        HirKind::Class(Class::Bytes(mut class)) => {
            class.difference(&ClassBytes::new([ClassBytesRange::new(b'\n', b'\n')]));
            Hir::class(Class::Bytes(class))
        }
        HirKind::Look(look) => Hir::look(look),
        HirKind::Repetition(repetition) => {
            let Repetition { min, max, greedy, sub } = repetition;
            let sub = Box::new(without_line_breaks(*sub)?);
            Hir::repetition(Repetition { min, max, greedy, sub })
        }
        HirKind::Capture(capture) => without_line_breaks(*capture.sub)?,
        HirKind::Concat(subs) => Hir::concat(all(subs)?),
        HirKind::Alternation(subs) => Hir::alternation(all(subs)?),
    })
}
