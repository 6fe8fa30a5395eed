//! A command's text divided into words as sh(1) divides it, without running it.
//!
//! Left out on purpose: expansion. A `$`, a `*` or a `~` is itself; what would make more
//! than one command of it (`;`, `|`, `&`, `<`, `>`, brackets, a line's end) is refused
//! outside quotes, since nobody would carry it out.

/// The words of a command: quotes and backslashes as in POSIX.1-2017, Shell Command
/// Language, 2.2.
///
/// # Errors
/// What is wrong with it, in words.
pub fn split(command: &str) -> Result<Vec<String>, String> {
    let (mut words, mut word, mut quote) = (Vec::new(), None::<String>, None);
    let mut characters = command.chars();
    while let Some(character) = characters.next() {
        match (character, quote) {
            (' ' | '\t', None) => words.extend(word.take()),
            ('"' | '\'', None) => {
                quote = Some(character);
                word.get_or_insert_default();
            }
            (_, Some(closing)) if character == closing => quote = None,
            ('\\', None | Some('"')) => {
                let escaped = characters
                    .next()
                    .ok_or_else(|| format!("`{command}` ends with a backslash"))?;
                let word = word.get_or_insert_default();
                if quote.is_some() && !matches!(escaped, '$' | '`' | '"' | '\\') {
                    word.push('\\');
                }
                word.push(escaped);
            }
            (';' | '|' | '&' | '<' | '>' | '(' | ')' | '\n', None) => {
                return Err(format!(
                    "`{command}`: {character:?} outside quotes needs a shell, which does not read \
                     it; write `/bin/sh -c '...'`"
                ));
            }
            _ => word.get_or_insert_default().push(character),
        }
    }
    if let Some(quote) = quote {
        return Err(format!("`{command}`: a {quote} is not closed"));
    }
    words.extend(word);
    if words.is_empty() {
        return Err("the command is empty".into());
    }
    Ok(words)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use proptest::test_runner::{Config, RngAlgorithm, TestRng, TestRunner};

    #[test]
    fn words_as_a_shell_divides_them() {
        let words = |text| split(text).expect("words");
        assert_eq!(words("a  b\tc"), ["a", "b", "c"]);
        assert_eq!(words(r#"sh -c 'a; b' "c d"e \ f"#), ["sh", "-c", "a; b", "c de", " f"]);
        assert_eq!(words(r#"a '' "\x\"" $HOME *"#), ["a", "", "\\x\"", "$HOME", "*"]);
        for wrong in ["", "  ", "a 'b", "a \\", "a; b", "a | b", "a > b", "a\nb"] {
            assert!(split(wrong).is_err(), "{wrong}");
        }
    }

    /// The oracle is this machine's sh(1), told not to expand names of files; the texts
    /// hold nothing else that it would expand.
    #[test]
    fn a_shell_divides_them_alike() {
        let rng = TestRng::from_seed(RngAlgorithm::ChaCha, &[11; 32]);
        let config = Config { cases: 300, ..Config::default() };
        TestRunner::new_with_rng(config, rng)
            .run(&"[ab \"'\\\\x]{1,10}", |text| {
                let script = format!("set -f; set -- {text}\nprintf '%s\\001' \"$@\"");
                let output = std::process::Command::new("sh").args(["-c", &script]).output();
                let output = output.expect("sh");
                let said = String::from_utf8(output.stdout).expect("text");
                match split(&text) {
                    Ok(words) => {
                        let expected: String = words.iter().map(|w| format!("{w}\u{1}")).collect();
                        prop_assert_eq!(said, expected, "{}", text);
                    }
                    // A backslash at the end joins the next line.
                    Err(_) => prop_assert!(
                        !output.status.success() || text.trim().is_empty() || text.ends_with('\\')
                    ),
                }
                Ok(())
            })
            .expect("sh agrees");
    }
}
