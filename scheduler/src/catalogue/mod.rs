//! Entries called by name: `name` or `name:parameter=value,other=value`, with defaults, and errors that list the known
//! names and the nearest one.
//!
//! Policies and placements list their own entries next to their code. A user's program may add entries.

mod arguments;
mod error;
mod spelling;

pub use arguments::{ArgumentError, Arguments};
pub use error::CatalogueError;
pub(crate) use spelling::listed;
pub use spelling::nearest;

/// Parameter of an entry, as shown in help and errors.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[allow(missing_docs, reason = "the names of some fields say all there is to say")]
pub struct Parameter {
    pub name: &'static str,
    /// Default value, as written on the command line.
    pub default: &'static str,
    /// Meaning, with the unit.
    pub meaning: &'static str,
}

/// Constructor of an entry. It takes its parameters out of the arguments; remaining ones are rejected.
pub type Make<T> = fn(&mut Arguments<'_>) -> Result<Box<T>, ArgumentError>;

/// Entry that can be called by name.
#[allow(missing_docs, reason = "the names of some fields say all there is to say")]
pub struct Entry<T: ?Sized + 'static> {
    pub name: &'static str,
    /// Other names of the same entry.
    pub aliases: &'static [&'static str],
    /// Paper and section.
    pub paper: &'static str,
    /// Description in one line.
    pub summary: &'static str,
    pub parameters: &'static [Parameter],
    /// Reason why it cannot run on a live cluster; `None` if it can.
    pub only_simulated: Option<&'static str>,
    /// True if it starts another program.
    pub starts_program: bool,
    pub make: Make<T>,
}

impl<T: ?Sized> Entry<T> {
    /// Creates a custom entry without parameters that can run on a live cluster. Other entries set the fields and take
    /// the rest from here.
    #[must_use]
    pub const fn new(name: &'static str, summary: &'static str, make: Make<T>) -> Self {
        Self {
            name,
            aliases: &[],
            paper: "our own",
            summary,
            parameters: &[],
            only_simulated: None,
            starts_program: false,
            make,
        }
    }
}

/// Returns all callable entries: the standard ones, except those hidden by a custom entry of the same name, then the
/// custom ones. Of custom entries with the same name the last one counts.
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

/// Calls `text` among these entries.
///
/// # Errors
/// An unknown name, or parameters that the entry rejects.
pub fn call<T: ?Sized>(
    entries: &[&'static Entry<T>],
    kind: &'static str,
    text: &str,
) -> Result<Box<T>, CatalogueError> {
    let (entry, arguments) = find(entries, kind, text)?;
    make(entry, kind, arguments)
}

/// Calls as [`call`], for a live cluster.
///
/// # Errors
/// Also an entry that can only be simulated, with the reason.
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

/// Returns the entry that `text` calls, and the text of its parameters.
///
/// # Errors
/// An unknown name.
pub fn find<'a, T: ?Sized>(
    entries: &[&'static Entry<T>],
    kind: &'static str,
    text: &'a str,
) -> Result<(&'static Entry<T>, &'a str), CatalogueError> {
    let name = name_of(text);
    let arguments = text.split_once(':').map_or("", |(_, arguments)| arguments);
    // A name comes before another name of an earlier entry: that of an entry of one's own is not hidden.
    let entry = entries.iter().find(|entry| entry.name == name);
    let entry = entry.or_else(|| entries.iter().find(|entry| entry.aliases.contains(&name)));
    match entry {
        Some(entry) => Ok((entry, arguments)),
        None => Err(CatalogueError::Unknown {
            kind,
            name: name.to_owned(),
            known: entries.iter().map(|entry| entry.name).collect(),
        }),
    }
}

/// Splits a list of calls, `k-lps:k=100,max-srpt`: a piece with `=` and without `:` before it belongs to the previous
/// call.
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
        starts_program: false,
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
        const TWICE: Entry<f64> = Entry::new("twice", "", |_| Ok(Box::new(7.0)));
        let entries_of_twice = with_own(vec![&ENTRY], &[&TWICE]);
        assert_eq!(call(&entries_of_twice, "number", "twice").map(|made| *made), Ok(7.0), "not `double`");
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
