//! Splits a command into words: by Hadoop's rule, and by POSIX shell quoting where Hadoop has no rule.

/// Splits a command into words.
///
/// Blanks separate words; `'…'` and `"…"` group. As in Hadoop, pipes, redirections and variables have no
/// special meaning. A quote that touches the word before it continues that word, as in a shell. Hadoop
/// starts another word, but programs that call Hadoop quote as for a shell (`'it'\''s'`). For the same
/// reason a backslash escapes a quote or a blank that follows it, and inside `"…"` a `"` or a `\`. Before
/// any other character it is literal, as in Hadoop.
#[must_use]
pub fn split_command(text: &str) -> Vec<String> {
    let mut words = Vec::new();
    let mut word: Option<String> = None;
    let mut characters = text.chars().peekable();
    while let Some(character) = characters.next() {
        match character {
            ' ' | '\t' | '\n' | '\r' => words.extend(word.take()),
            '\'' => {
                let word = word.get_or_insert_default();
                word.extend(characters.by_ref().take_while(|character| *character != '\''));
            }
            '"' => {
                let word = word.get_or_insert_default();
                while let Some(character) = characters.next() {
                    match (character, characters.peek()) {
                        ('"', _) => break,
                        ('\\', Some('"' | '\\')) => word.extend(characters.next()),
                        _ => word.push(character),
                    }
                }
            }
            '\\' => {
                let word = word.get_or_insert_default();
                match characters.peek() {
                    Some('\'' | '"' | ' ' | '\t') => word.extend(characters.next()),
                    _ => word.push('\\'),
                }
            }
            _ => word.get_or_insert_default().push(character),
        }
    }
    words.extend(word);
    words
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_fall_into_words_as_in_hadoop_and_as_programs_quote_them() {
        let check = |text: &str, expected: &[&str]| assert_eq!(split_command(text), expected, "{text}");
        check("cat", &["cat"]);
        check("  python3  job.py --step-num=0 --mapper ", &["python3", "job.py", "--step-num=0", "--mapper"]);
        check(r#"bash -c 'wc -l'"#, &["bash", "-c", "wc -l"]);
        check(r#"awk "{ print $1 }""#, &["awk", "{ print $1 }"]);
        check(
            r#"/bin/dash -ex -c 'grep a | python3 j.py'"#,
            &["/bin/dash", "-ex", "-c", "grep a | python3 j.py"],
        );
        check(r"bash -c 'it'\''s'", &["bash", "-c", "it's"]);
        check("a '' b", &["a", "", "b"]);
        check(r#"a "b\"c\\d\e""#, &["a", r#"b"c\d\e"#]);
        check(r"sed s/a/\t/ x\ y", &["sed", r"s/a/\t/", "x y"]);
        check("cat | wc > x", &["cat", "|", "wc", ">", "x"]);
        check("", &[]);
        check("'not closed", &["not closed"]);
    }
}
