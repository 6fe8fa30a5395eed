//! Argument vectors as text that every login shell reads alike.
//!
//! `ssh` hands one string to the login shell of the other side, and which shell
//! that is nobody knows: sh, bash, zsh, csh (root's on FreeBSD for decades), fish.
//! They agree on little. Between single quotes they all take a character for
//! itself, but for these: the quote, the backslash (fish), `!` and the line's end
//! (csh), and bytes that are no text in the shell's locale. So the vector is first
//! written for sh, by the rules of POSIX; what is dangerous in that text becomes an
//! octal escape; and the login shell is made to exec a sh that undoes the escapes:
//!
//! ```text
//! exec /bin/sh -c 'eval "$(printf %b "$@")"' sh 'exec \0047echo\0047 \0047a b\0047'
//! ```
//!
//! A long text is passed in parts, which `printf %b` joins: a word of BSD's csh (Debian's package
//! `csh`) holds at most 1023 bytes.
//!
//! An escape begins with `\0`, which no shell takes for one of its own.
//! Left out: a NUL (no argument can hold it), and a program whose name begins with
//! `-` (`exec` would take it for an option).

use std::fmt::Write;

/// Why an argument vector can't be a command.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum QuoteError {
    /// No program is named, or its name is empty.
    #[error("no program is named")]
    NoProgram,
    /// Its name is an option to whoever starts it.
    #[error("the program's name `{0}` begins with `-`")]
    Option(String),
    /// An argument holds a NUL.
    #[error("argument {0} holds a NUL, which no argument can")]
    Nul(usize),
}

/// The vector as one line of printable ASCII that runs it, arguments untouched, in
/// any login shell. The shell makes room for the program (`exec`).
///
/// # Errors
/// When there is no program, or what no shell can pass on.
pub fn quote(argv: &[&str]) -> Result<String, QuoteError> {
    let command = words(argv)?;
    let mut line = String::from(r#"exec /bin/sh -c 'eval "$(printf %b "$@")"' sh"#);
    for part in escaped(&command) {
        let _ = write!(line, " '{part}'");
    }
    Ok(line)
}

/// The vector as sh alone reads it, with lines where its arguments have some.
pub(super) fn words(argv: &[&str]) -> Result<String, QuoteError> {
    match argv.first() {
        None | Some(&"") => return Err(QuoteError::NoProgram),
        Some(program) if program.starts_with('-') => {
            return Err(QuoteError::Option(program.to_string()));
        }
        Some(_) => {}
    }
    if let Some(index) = argv.iter().position(|argument| argument.contains('\0')) {
        return Err(QuoteError::Nul(index));
    }
    let mut command = String::from("exec");
    for argument in argv {
        command.push_str(" '");
        command.push_str(&argument.replace('\'', r"'\''"));
        command.push('\'');
    }
    Ok(command)
}

/// Longest part of a text, in bytes.
const PART: usize = 1000;

/// Text as `printf %b` reads it, without what some shell reads differently, in parts. No escape is
/// divided.
fn escaped(text: &str) -> Vec<String> {
    let mut parts = vec![String::new()];
    for byte in text.bytes() {
        let shown = match byte {
            b' '..=b'~' if !matches!(byte, b'\'' | b'\\' | b'!') => char::from(byte).to_string(),
            _ => format!("\\0{byte:03o}"),
        };
        match parts.last_mut() {
            Some(part) if part.len() + shown.len() <= PART => part.push_str(&shown),
            _ => parts.push(shown),
        }
    }
    parts
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use proptest::test_runner::{Config, RngAlgorithm, TestRng, TestRunner};
    use std::process::Command;

    /// Login shells of the systems that a laboratory may hold.
    const SHELLS: [&str; 8] = ["sh", "dash", "bash", "ksh", "zsh", "csh", "tcsh", "fish"];

    /// The installed ones; records the others as left out.
    fn shells() -> Vec<&'static str> {
        let is_here = |shell: &&str| {
            let found = Command::new(shell).args(["-c", "exit 0"]).status().is_ok();
            if !found {
                fwdlab_testdata::skip_part(&format!("{shell} is not installed"));
            }
            found
        };
        SHELLS.into_iter().filter(is_here).collect()
    }

    /// The arguments as a program sees them that this shell starts.
    fn through(shell: &str, arguments: &[String]) -> Result<Vec<u8>, String> {
        let mut argv = vec!["printf", "%s\\0"];
        argv.extend(arguments.iter().map(String::as_str));
        let line = quote(&argv).map_err(|error| error.to_string())?;
        assert!(line.bytes().all(|byte| matches!(byte, b' '..=b'~')), "{line}");
        let output = Command::new(shell).args(["-c", &line]).output();
        let output = output.map_err(|error| error.to_string())?;
        match output.status.success() && output.stderr.is_empty() {
            true => Ok(output.stdout),
            false => Err(format!("{}: {}", output.status, String::from_utf8_lossy(&output.stderr))),
        }
    }

    fn expected(arguments: &[String]) -> Vec<u8> {
        arguments.iter().flat_map(|argument| [argument.as_bytes(), b"\0"].concat()).collect()
    }

    /// Words that some shell has something to say about.
    const HOSTILE: [&str; 40] = [
        "",
        " ",
        "a b",
        "'",
        "''",
        "'\\''",
        "\"",
        "\\",
        "\\\\",
        "\\n",
        "\\0101",
        "a\nb",
        "\n",
        "a\n\n",
        "\r\n",
        "\t",
        "$(reboot)",
        "`reboot`",
        "${HOME}",
        "$0",
        "$$",
        "!",
        "!!",
        "!$",
        "^a^b",
        "~",
        "~root",
        "*",
        "[a-z]?",
        "{a,b}",
        "-n",
        "--",
        "%s%n",
        "a;b&c|d>e<f#g(h)",
        "A=b",
        "\u{7}\u{1b}[0m\u{7f}",
        "\u{81}\u{82}\u{88}",
        "ünïcödé 🦀",
        "\u{2028}\u{feff}",
        "'; exit 7 #",
    ];

    #[test]
    fn hostile_words_pass_every_shell_untouched() {
        let words: Vec<String> = HOSTILE.map(String::from).into();
        for shell in shells() {
            let all = through(shell, &words).unwrap_or_else(|error| panic!("{shell}: {error}"));
            assert_eq!(String::from_utf8_lossy(&all), String::from_utf8_lossy(&expected(&words)));
            for word in &words {
                let one = std::slice::from_ref(word);
                assert_eq!(through(shell, one), Ok(expected(one)), "{shell}: {word:?}");
            }
        }
    }

    #[test]
    fn any_words_pass_every_shell_untouched() {
        let word = prop_oneof![
            prop::collection::vec(prop::sample::select(HOSTILE.as_slice()), 0..4)
                .prop_map(|parts| parts.concat()),
            prop::collection::vec(1u8..128, 0..20)
                .prop_map(|bytes| bytes.into_iter().map(char::from).collect()),
            prop::collection::vec(any::<char>(), 0..8)
                .prop_map(|chars| chars.into_iter().filter(|c| *c != '\0').collect()),
        ];
        let words = prop::collection::vec(word, 1..6);
        for shell in shells() {
            let config = Config { cases: 60, failure_persistence: None, ..Config::default() };
            let rng = TestRng::from_seed(RngAlgorithm::ChaCha, &[7; 32]);
            let outcome = TestRunner::new_with_rng(config, rng).run(&words, |words| {
                prop_assert_eq!(through(shell, &words), Ok(expected(&words)));
                Ok(())
            });
            outcome.unwrap_or_else(|error| panic!("{shell}: {error}"));
        }
    }

    #[test]
    fn long_arguments_pass_and_the_shell_makes_room() {
        let long = "x'!".repeat(1000);
        for shell in shells() {
            let one = std::slice::from_ref(&long);
            assert_eq!(through(shell, one), Ok(expected(one)), "{shell}");
            let line = quote(&["sh", "-c", "echo $$"]).expect("a line");
            let mut command = Command::new(shell);
            command.args(["-c", &line]).stdout(std::process::Stdio::piped());
            let child = command.spawn().expect("a shell");
            let pid = child.id().to_string();
            let said = child.wait_with_output().expect("its output").stdout;
            assert_eq!(String::from_utf8_lossy(&said).trim(), pid, "{shell}");
        }
    }

    #[test]
    fn what_no_shell_can_pass_on_is_refused() {
        assert_eq!(quote(&[]), Err(QuoteError::NoProgram));
        assert_eq!(quote(&["", "a"]), Err(QuoteError::NoProgram));
        assert_eq!(quote(&["-x"]), Err(QuoteError::Option("-x".into())));
        assert_eq!(quote(&["ls", "a\0b"]), Err(QuoteError::Nul(1)));
    }

    #[test]
    fn the_line_is_as_the_header_shows_it() {
        let line = quote(&["echo", "a b"]).expect("a line");
        let shown =
            r#"exec /bin/sh -c 'eval "$(printf %b "$@")"' sh 'exec \0047echo\0047 \0047a b\0047'"#;
        assert_eq!(line, shown);
    }
}
