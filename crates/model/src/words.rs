//! Command lines as words, split as by a shell before any expansion.
//!
//! Quotes and backslashes have their meaning in sh (POSIX.1-2024, XCU 2.2). Out of scope:
//! variables, globs, pipes, redirections and everything else that a shell executes. A command is a
//! program with its arguments; for a shell write `sh -c '...'`.

/// Returns the words of a command line.
///
/// # Errors
/// A sentence about the fault: an unclosed quote, a backslash at the end, a character that only a
/// shell could execute, or no word at all.
pub fn split(line: &str) -> Result<Vec<String>, String> {
    let mut words = Vec::new();
    let mut word: Option<String> = None;
    let mut chars = line.chars();
    while let Some(c) = chars.next() {
        match c {
            ' ' | '\t' | '\n' => words.extend(word.take()),
            '\\' => match chars.next() {
                // A line that continues in the next one.
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

/// Returns a line that [`split`] splits into these words.
pub fn join<S: AsRef<str>>(words: &[S]) -> String {
    let words: Vec<String> = words.iter().map(|word| quote(word.as_ref())).collect();
    words.join(" ")
}

/// Returns a word in a form that sh reads back unchanged.
pub fn quote(word: &str) -> String {
    let plain = |c: char| c.is_alphanumeric() || "-_./=:,+@%".contains(c);
    if !word.is_empty() && word.chars().all(plain) {
        return word.to_owned();
    }
    format!("'{}'", word.replace('\'', r"'\''"))
}

/// Reads everything up to the next quote, unchanged.
fn quoted(chars: &mut std::str::Chars, word: &mut String) -> Result<(), String> {
    for c in chars {
        match c {
            '\'' => return Ok(()),
            c => word.push(c),
        }
    }
    Err("a ' that is never closed".to_owned())
}

/// Like `quoted`, with backslashes that escape the four special characters.
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
    fn words_match_a_shell() {
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
    fn shell_features_are_refused() {
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
        fn joined_words_survive_a_round_trip(words in proptest::collection::vec(".*", 1..6)) {
            prop_assert_eq!(split(&join(&words)), Ok(words));
        }
    }
}
