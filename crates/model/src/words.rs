//! Command lines as words: what a shell would make of them before any expansion.
//!
//! Quotes and backslashes mean what they mean to sh (POSIX.1-2024, XCU 2.2). Left out on
//! purpose: variables, globs, pipes, redirections and all else that a shell carries out.
//! A command is a program with its arguments; who wants a shell names it: `sh -c '...'`.

/// The words of a command line.
///
/// # Errors
/// A sentence that says what is wrong: a quote that is never closed, a backslash at the
/// end, a character that only a shell could carry out, or no word at all.
pub fn split(line: &str) -> Result<Vec<String>, String> {
    let mut words = Vec::new();
    let mut word: Option<String> = None;
    let mut chars = line.chars();
    while let Some(c) = chars.next() {
        match c {
            ' ' | '\t' | '\n' => words.extend(word.take()),
            '\\' => match chars.next() {
                // A line that goes on in the next one.
                Some('\n') => {}
                Some(next) => word.get_or_insert_default().push(next),
                None => return Err("a backslash at the end".to_owned()),
            },
            '\'' => quoted(&mut chars, word.get_or_insert_default())?,
            '"' => double_quoted(&mut chars, word.get_or_insert_default())?,
            '|' | '&' | ';' | '<' | '>' | '$' | '`' | '(' | ')' => {
                return Err(format!("`{c}` needs a shell: quote it, or write sh -c '...'"));
            }
            c => word.get_or_insert_default().push(c),
        }
    }
    words.extend(word);
    if words.is_empty() { Err("there is no word".to_owned()) } else { Ok(words) }
}

/// A line that [`split`] takes apart into these words again.
pub fn join<S: AsRef<str>>(words: &[S]) -> String {
    let words: Vec<String> = words.iter().map(|word| quote(word.as_ref())).collect();
    words.join(" ")
}

/// A word as sh reads it back.
pub fn quote(word: &str) -> String {
    let plain = |c: char| c.is_alphanumeric() || "-_./=:,+@%".contains(c);
    if !word.is_empty() && word.chars().all(plain) {
        return word.to_owned();
    }
    format!("'{}'", word.replace('\'', r"'\''"))
}

/// Everything up to the next quote, as it stands.
fn quoted(chars: &mut std::str::Chars, word: &mut String) -> Result<(), String> {
    for c in chars {
        match c {
            '\'' => return Ok(()),
            c => word.push(c),
        }
    }
    Err("a ' that is never closed".to_owned())
}

/// The same, where a backslash takes the meaning of the four characters that have one.
fn double_quoted(chars: &mut std::str::Chars, word: &mut String) -> Result<(), String> {
    while let Some(c) = chars.next() {
        match c {
            '"' => return Ok(()),
            '$' | '`' => {
                return Err(format!("`{c}` needs a shell: put it between ' and ', or after \\"));
            }
            '\\' => match chars.next() {
                Some('\n') => {}
                Some(next @ ('"' | '\\' | '$' | '`')) => word.push(next),
                Some(next) => word.extend(['\\', next]),
                None => break,
            },
            c => word.push(c),
        }
    }
    Err("a \" that is never closed".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn words_are_those_of_a_shell() {
        for (line, expected) in [
            ("uname -v", vec!["uname", "-v"]),
            ("  a\t b \n", vec!["a", "b"]),
            ("a'b c'd", vec!["ab cd"]),
            (r#"a "b 'c' \" \\ \$ \n""#, vec!["a", r#"b 'c' " \ $ \n"#]),
            (r"a\ b \'", vec!["a b", "'"]),
            ("'' \"\"", vec!["", ""]),
            ("a \\\n b", vec!["a", "b"]),
            ("sh -c 'a | b > c; d $e'", vec!["sh", "-c", "a | b > c; d $e"]),
        ] {
            assert_eq!(
                split(line),
                Ok(expected.into_iter().map(str::to_owned).collect()),
                "{line}"
            );
        }
    }

    #[test]
    fn what_only_a_shell_can_do_is_refused() {
        for (line, why) in [
            ("", "no word"),
            ("  ", "no word"),
            ("a 'b", "' that is never closed"),
            ("a \"b", "\" that is never closed"),
            ("a \"b\\", "\" that is never closed"),
            ("a \\", "backslash at the end"),
            ("a | b", "`|` needs a shell"),
            ("a && b", "`&` needs a shell"),
            ("a > b", "`>` needs a shell"),
            ("echo $HOME", "`$` needs a shell"),
            ("echo \"$HOME\"", "`$` needs a shell"),
            ("echo `date`", "`"),
        ] {
            let got = split(line).expect_err(line);
            assert!(got.contains(why), "{line}: {got}");
        }
    }

    proptest! {
        #[test]
        fn joined_words_are_split_again(words in proptest::collection::vec(".*", 1..6)) {
            prop_assert_eq!(split(&join(&words)), Ok(words));
        }
    }
}
