//! The flags of commands. One that a command does not know is refused: what it was to change would be done otherwise.

/// The flags that each command takes; those that end in `=` have a value. Also those that are true of this machine
/// anyway, such as `-skipTrash`.
const FLAGS: [(&[&str], &[&str]); 17] = [
    (&["ls", "lsr"], &["C", "d", "h", "R", "S", "t", "r"]),
    (&["cat", "text"], &["ignoreCrc"]),
    (&["mkdir"], &["p"]),
    (&["touch"], &["a", "c", "m", "t="]),
    (&["rm", "rmr"], &["f", "r", "R", "skipTrash"]),
    (&["rmdir"], &["-ignore-fail-on-non-empty"]),
    (&["du", "dus"], &["s", "h", "x"]),
    (&["count", "df"], &["h"]),
    (&["chmod", "chown", "chgrp"], &["R"]),
    (&["setrep"], &["R", "w"]),
    (&["test"], &["e", "d", "f", "z", "s", "r", "w"]),
    (&["put", "copyFromLocal", "moveFromLocal"], &["f", "p", "l", "d", "t=", "q="]),
    (&["get", "copyToLocal"], &["f", "p", "ignoreCrc", "t=", "q="]),
    (&["cp"], &["f", "p", "d"]),
    (&["mv"], &["f"]),
    (&["expunge"], &["immediate"]),
    (&["getmerge"], &["nl", "skip-empty-file"]),
];

/// Commands without any flag.
const PLAIN: [&str; 5] = ["touchz", "tail", "head", "stat", "appendToFile"];

/// The flags of a call, with the values that they have.
pub(super) type Flags<'a> = Vec<(&'a str, &'a str)>;

/// Takes flags off the words behind a command.
///
/// # Errors
/// The one that the command does not know, or that lacks its value.
pub(super) fn take_flags<'a>(
    command: &str,
    words: &'a [String],
) -> Result<(Flags<'a>, &'a [String]), &'a str> {
    let known = FLAGS.iter().find(|(commands, _)| commands.contains(&command)).map(|(_, flags)| *flags);
    let Some(known) = known.or(PLAIN.contains(&command).then_some(&[])) else {
        // Its words mean what they mean there.
        return Ok((Vec::new(), words));
    };
    let (mut flags, mut words) = (Vec::new(), words);
    while let [word, rest @ ..] = words {
        let Some(flag) = word.strip_prefix('-').filter(|flag| !flag.is_empty()) else { break };
        if flag == "-" {
            return Ok((flags, rest));
        }
        let has_value = known.iter().any(|known| known.strip_suffix('=') == Some(flag));
        (flags, words) = match rest {
            [value, rest @ ..] if has_value => ([flags, vec![(flag, value.as_str())]].concat(), rest),
            _ if known.contains(&flag) => ([flags, vec![(flag, "")]].concat(), rest),
            // `-cp -ptopax`: of times, owner, permission and more the times are asked for.
            _ if command == "cp" && is_choice(flag) => {
                let times = flag.contains('t').then_some(("p", ""));
                ([flags, Vec::from_iter(times)].concat(), rest)
            }
            // `-chmod -w FILE`: a mode.
            _ if command == "chmod" => break,
            _ => return Err(word),
        };
    }
    Ok((flags, words))
}

/// Whether a flag says which of a file's properties are kept, `-p` and letters.
fn is_choice(flag: &str) -> bool {
    flag.strip_prefix('p').is_some_and(|letters| letters.chars().all(|letter| "topax".contains(letter)))
}
