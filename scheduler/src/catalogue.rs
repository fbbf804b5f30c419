//! What people call by name: `name` or `name:parameter=value,other=value`, with defaults, and errors that name what
//! there is and what is nearest.
//!
//! Not here: the policies and placements themselves (each lists its own entries beside its code), and what a user's
//! program adds to them.

use std::fmt;
use std::str::FromStr;

/// A parameter of an entry, as help and errors show it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[allow(missing_docs, reason = "the names of some fields say all there is to say")]
pub struct Parameter {
    pub name: &'static str,
    /// What stands there if nobody says otherwise, as one would write it.
    pub default: &'static str,
    /// What it means, with its unit.
    pub meaning: &'static str,
}

/// Something that can be called by name.
#[allow(missing_docs, reason = "the names of some fields say all there is to say")]
pub struct Entry<T: ?Sized + 'static> {
    pub name: &'static str,
    /// Other names of the same thing.
    pub aliases: &'static [&'static str],
    /// Paper and section.
    pub paper: &'static str,
    /// What it does, in one line.
    pub summary: &'static str,
    pub parameters: &'static [Parameter],
    /// Why a live cluster cannot run it; `None` if it can.
    pub only_simulated: Option<&'static str>,
    /// Makes it. Takes its parameters out; what it leaves is refused.
    pub make: fn(&mut Arguments<'_>) -> Result<Box<T>, ArgumentError>,
}

impl<T: ?Sized> Entry<T> {
    /// An entry of one's own, without parameters, that a live cluster can run. Whoever has more to say names the fields
    /// and takes the rest from here.
    #[must_use]
    pub const fn new(
        name: &'static str,
        summary: &'static str,
        make: fn(&mut Arguments<'_>) -> Result<Box<T>, ArgumentError>,
    ) -> Self {
        Self { name, aliases: &[], paper: "our own", summary, parameters: &[], only_simulated: None, make }
    }
}

/// All entries that can be called: the standard ones, but for those that one of one's own hides by its name, then one's
/// own. Of one's own the last of a name counts.
#[must_use]
pub fn with_own<T: ?Sized>(
    mut entries: Vec<&'static Entry<T>>,
    own: &[&'static Entry<T>],
) -> Vec<&'static Entry<T>> {
    for &entry in own {
        entries.retain(|other| other.name != entry.name);
        entries.push(entry);
    }
    entries
}

/// The parameters of one call, taken out one by one.
#[derive(Debug)]
pub struct Arguments<'a> {
    given: Vec<(&'a str, &'a str)>,
}

impl<'a> Arguments<'a> {
    /// Reads `name=value,other=value`; empty text is no parameter.
    ///
    /// # Errors
    /// A piece without `=`, and a name given twice.
    pub fn read(text: &'a str) -> Result<Self, ArgumentError> {
        let mut given: Vec<(&str, &str)> = Vec::new();
        for piece in text.split(',').filter(|piece| !piece.is_empty()) {
            let Some((name, value)) = piece.split_once('=') else {
                return Err(ArgumentError::NoValue { piece: piece.to_owned() });
            };
            if given.iter().any(|&(other, _)| other == name) {
                return Err(ArgumentError::Twice { name: name.to_owned() });
            }
            given.push((name, value));
        }
        Ok(Self { given })
    }

    /// The value of this parameter as text.
    pub fn text(&mut self, name: &str) -> Option<&'a str> {
        let place = self.given.iter().position(|&(other, _)| other == name)?;
        Some(self.given.remove(place).1)
    }

    /// The value of this parameter, which must satisfy `fits`; `default` if it was not given.
    ///
    /// # Errors
    /// The value cannot be read, or does not fit; `wanted` says in words what does.
    pub fn value<V: FromStr + Copy>(
        &mut self,
        name: &'static str,
        default: V,
        wanted: &'static str,
        fits: impl Fn(V) -> bool,
    ) -> Result<V, ArgumentError> {
        let Some(text) = self.text(name) else { return Ok(default) };
        let value = text.parse().ok().filter(|&value| fits(value));
        value.ok_or_else(|| ArgumentError::Value { name, value: text.to_owned(), wanted: wanted.to_owned() })
    }

    /// One of these words; the first if the parameter was not given. Answers its place among them.
    ///
    /// # Errors
    /// Another word.
    pub fn choice(&mut self, name: &'static str, words: &[&str]) -> Result<usize, ArgumentError> {
        let Some(text) = self.text(name) else { return Ok(0) };
        let place = words.iter().position(|&word| word == text);
        place.ok_or_else(|| ArgumentError::Value {
            name,
            value: text.to_owned(),
            wanted: format!("one of {}", words.join(", ")),
        })
    }

    /// Whether a parameter is set: `yes` or `no`, no by default.
    ///
    /// # Errors
    /// Another word.
    pub fn flag(&mut self, name: &'static str) -> Result<bool, ArgumentError> {
        self.choice(name, &["no", "yes"]).map(|place| place == 1)
    }

    /// Names of parameters that nobody took.
    #[must_use]
    pub fn rest(&self) -> Vec<&'a str> {
        self.given.iter().map(|&(name, _)| name).collect()
    }
}

/// Parameters that cannot be taken.
#[derive(Clone, PartialEq, Debug)]
#[non_exhaustive]
#[allow(missing_docs, reason = "the names of some fields say all there is to say")]
pub enum ArgumentError {
    /// A piece is not `name=value`.
    NoValue {
        /// As given.
        piece: String,
    },
    /// A parameter stands twice.
    Twice { name: String },
    /// A value that the parameter cannot have.
    Value {
        name: &'static str,
        /// As given.
        value: String,
        /// What it could be, in words.
        wanted: String,
    },
    /// What they say together cannot be.
    Refused {
        /// Why, in words.
        reason: String,
    },
    /// There is no such parameter.
    Unknown {
        /// As given.
        name: String,
        /// Those that there are.
        known: Vec<&'static str>,
    },
}

impl fmt::Display for ArgumentError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ArgumentError::NoValue { piece } => write!(f, "`{piece}` is not `parameter=value`"),
            ArgumentError::Twice { name } => write!(f, "parameter `{name}` is given twice"),
            ArgumentError::Value { name, value, wanted } => {
                write!(f, "parameter `{name}` is {wanted}, not `{value}`")
            }
            ArgumentError::Refused { reason } => f.write_str(reason),
            ArgumentError::Unknown { name, known } if known.is_empty() => {
                write!(f, "it takes no parameters, but was given `{name}`")
            }
            ArgumentError::Unknown { name, known } => {
                write!(f, "it has no parameter `{name}`")?;
                list(f, "; ", name, known)
            }
        }
    }
}

impl std::error::Error for ArgumentError {}

/// A name that cannot be called.
#[derive(Clone, PartialEq, Debug)]
#[non_exhaustive]
#[allow(missing_docs, reason = "the names of some fields say all there is to say")]
pub enum CatalogueError {
    /// Nothing is called so.
    Unknown {
        /// What was looked for: `policy`, `placement`.
        kind: &'static str,
        /// As given.
        name: String,
        /// Everything that could be called.
        known: Vec<&'static str>,
    },
    /// A live cluster cannot run it.
    OnlySimulated {
        /// What was called: `policy`, `placement`.
        kind: &'static str,
        /// As called.
        name: String,
        /// Why.
        reason: &'static str,
    },
    /// Its parameters cannot be taken.
    Arguments {
        /// What was called: `policy`, `placement`.
        kind: &'static str,
        name: &'static str,
        source: ArgumentError,
    },
}

impl fmt::Display for CatalogueError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            CatalogueError::Unknown { kind, name, known } => {
                write!(f, "there is no {kind} `{name}`")?;
                list(f, "; ", name, known)
            }
            CatalogueError::Arguments { kind, name, source } => write!(f, "{kind} `{name}`: {source}"),
            CatalogueError::OnlySimulated { kind, name, reason } => {
                write!(f, "{kind} `{name}` can only be simulated: {reason}")
            }
        }
    }
}

impl std::error::Error for CatalogueError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            CatalogueError::Unknown { .. } | CatalogueError::OnlySimulated { .. } => None,
            CatalogueError::Arguments { source, .. } => Some(source),
        }
    }
}

fn list(f: &mut fmt::Formatter<'_>, before: &str, name: &str, known: &[&'static str]) -> fmt::Result {
    match nearest(name, known.iter().copied()) {
        Some(near) => write!(f, "{before}did you mean `{near}`? There is {}", known.join(", ")),
        None => write!(f, "{before}there is {}", known.join(", ")),
    }
}

/// Calls `text` among these entries.
///
/// # Errors
/// No such name, or parameters that the entry refuses.
pub fn call<T: ?Sized>(
    entries: &[&'static Entry<T>],
    kind: &'static str,
    text: &str,
) -> Result<Box<T>, CatalogueError> {
    let (entry, arguments) = find(entries, kind, text)?;
    make(entry, kind, arguments)
}

/// As [`call`], for a live cluster.
///
/// # Errors
/// Also what can only be simulated, with its reason.
pub fn call_live<T: ?Sized>(
    entries: &[&'static Entry<T>],
    kind: &'static str,
    text: &str,
) -> Result<Box<T>, CatalogueError> {
    let (entry, arguments) = find(entries, kind, text)?;
    match entry.only_simulated {
        Some(reason) => Err(CatalogueError::OnlySimulated { kind, name: name_of(text).to_owned(), reason }),
        None => make(entry, kind, arguments),
    }
}

fn make<T: ?Sized>(
    entry: &'static Entry<T>,
    kind: &'static str,
    arguments: &str,
) -> Result<Box<T>, CatalogueError> {
    let refuse = |source| CatalogueError::Arguments { kind, name: entry.name, source };
    let mut arguments = Arguments::read(arguments).map_err(refuse)?;
    let made = (entry.make)(&mut arguments).map_err(refuse)?;
    match arguments.rest().first() {
        None => Ok(made),
        Some(&name) => {
            let known = entry.parameters.iter().map(|parameter| parameter.name).collect();
            Err(refuse(ArgumentError::Unknown { name: name.to_owned(), known }))
        }
    }
}

fn name_of(text: &str) -> &str {
    text.split_once(':').map_or(text, |(name, _)| name)
}

/// The entry that `text` calls, and the text of its parameters.
///
/// # Errors
/// No such name.
pub fn find<'a, T: ?Sized>(
    entries: &[&'static Entry<T>],
    kind: &'static str,
    text: &'a str,
) -> Result<(&'static Entry<T>, &'a str), CatalogueError> {
    let name = name_of(text);
    let arguments = text.split_once(':').map_or("", |(_, arguments)| arguments);
    let entry = entries.iter().find(|entry| entry.name == name || entry.aliases.contains(&name));
    match entry {
        Some(entry) => Ok((entry, arguments)),
        None => Err(CatalogueError::Unknown {
            kind,
            name: name.to_owned(),
            known: entries.iter().map(|entry| entry.name).collect(),
        }),
    }
}

/// Splits a list of calls, `k-lps:k=100,max-srpt`: a piece with `=` and no `:` before it belongs to the call before.
#[must_use]
pub fn split_list(text: &str) -> Vec<String> {
    let mut calls: Vec<String> = Vec::new();
    for piece in text.split(',').map(str::trim).filter(|piece| !piece.is_empty()) {
        let continues = piece.split(':').next().is_some_and(|before| before.contains('='));
        match calls.last_mut() {
            Some(call) if continues => {
                call.push(if call.contains(':') { ',' } else { ':' });
                call.push_str(piece);
            }
            _ => calls.push(piece.to_owned()),
        }
    }
    calls
}

/// The word that takes the fewest edits to become `name`, if they are few enough for a slip of the finger.
#[must_use]
pub fn nearest<'a>(name: &str, words: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    let best = words.map(|word| (edits(name, word), word)).min_by_key(|&(distance, _)| distance)?;
    (best.0 * 3 <= name.chars().count().max(3)).then_some(best.1)
}

/// Insertions, deletions, replacements and swaps of neighbours that turn one word into another.
fn edits(from: &str, to: &str) -> usize {
    let (from, to): (Vec<char>, Vec<char>) = (from.chars().collect(), to.chars().collect());
    let mut rows = vec![vec![0; to.len() + 1]; from.len() + 1];
    for i in 0..=from.len() {
        for j in 0..=to.len() {
            rows[i][j] = match (i, j) {
                (0, _) => j,
                (_, 0) => i,
                _ => {
                    let replaced = rows[i - 1][j - 1] + usize::from(from[i - 1] != to[j - 1]);
                    let mut least = replaced.min(rows[i - 1][j] + 1).min(rows[i][j - 1] + 1);
                    if 1 < i && 1 < j && from[i - 1] == to[j - 2] && from[i - 2] == to[j - 1] {
                        least = least.min(rows[i - 2][j - 2] + 1);
                    }
                    least
                }
            };
        }
    }
    rows[from.len()][to.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    const ENTRY: Entry<f64> = Entry {
        name: "double",
        aliases: &["twice"],
        paper: "",
        summary: "",
        parameters: &[Parameter { name: "of", default: "1", meaning: "what is doubled" }],
        only_simulated: None,
        make: |arguments| {
            let of = arguments.value("of", 1.0, "a finite number", f64::is_finite)?;
            Ok(Box::new(2.0 * of))
        },
    };

    fn called(text: &str) -> Result<f64, String> {
        call(&[&ENTRY], "number", text).map(|made| *made).map_err(|error| error.to_string())
    }

    #[test]
    fn a_call_takes_defaults_values_and_other_names() {
        assert_eq!(called("double"), Ok(2.0));
        assert_eq!(called("twice:of=3"), Ok(6.0));
    }

    #[test]
    fn a_call_that_cannot_be_made_says_why_and_what_there_is() {
        let error = |text: &str| called(text).unwrap_err();
        assert_eq!(error("duoble"), "there is no number `duoble`; did you mean `double`? There is double");
        assert_eq!(error("fair"), "there is no number `fair`; there is double");
        assert_eq!(
            error("double:off=1"),
            "number `double`: it has no parameter `off`; did you mean `of`? There is of"
        );
        assert_eq!(error("double:of=x"), "number `double`: parameter `of` is a finite number, not `x`");
        assert_eq!(error("double:of=inf"), "number `double`: parameter `of` is a finite number, not `inf`");
        assert_eq!(error("double:of=1,of=2"), "number `double`: parameter `of` is given twice");
        assert_eq!(error("double:of"), "number `double`: `of` is not `parameter=value`");
    }

    #[test]
    fn an_entry_of_ones_own_hides_the_standard_one_and_comes_last() {
        const OWN: Entry<f64> = Entry::new("double", "", |_| Ok(Box::new(0.0)));
        const OTHER: Entry<f64> =
            Entry { only_simulated: Some("it is slow"), ..Entry::new("half", "", |_| Ok(Box::new(0.5))) };
        let entries = with_own(vec![&ENTRY], &[&OTHER, &OWN]);
        assert_eq!(entries.iter().map(|entry| entry.name).collect::<Vec<_>>(), ["half", "double"]);
        assert_eq!(call(&entries, "number", "double").map(|made| *made), Ok(0.0));
        assert_eq!(call(&entries, "number", "half").map(|made| *made), Ok(0.5));
        let refused = call_live(&entries, "number", "half").unwrap_err().to_string();
        assert_eq!(refused, "number `half` can only be simulated: it is slow");
        assert_eq!(call_live(&entries, "number", "double").map(|made| *made), Ok(0.0));
    }

    #[test]
    fn a_list_keeps_parameters_with_their_call() {
        assert_eq!(split_list("k-lps:k=100,max-srpt"), ["k-lps:k=100", "max-srpt"]);
        assert_eq!(split_list("pair:delta=1,alpha=0.5,match"), ["pair:delta=1,alpha=0.5", "match"]);
        assert_eq!(split_list("a,b:c=1"), ["a", "b:c=1"]);
    }
}
