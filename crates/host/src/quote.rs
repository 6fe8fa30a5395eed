//! Argument vectors as text that every login shell interprets alike.
//!
//! `ssh` passes one string to the login shell of the remote host, which may be any of sh, bash,
//! zsh, csh (root's on FreeBSD for decades), fish. They agree on little. Between single quotes all
//! of them take a character literally, except for the quote, the backslash (fish), `!` and the line
//! feed (csh), and bytes that are not text in the shell's locale. So the vector is first written
//! for sh, by the rules of POSIX; then dangerous characters in that text become octal escapes; and
//! the login shell execs a sh that decodes the escapes:
//! ```text
//! exec /bin/sh -c 'eval "$(printf %b "$@")"' sh 'exec \0047echo\0047 \0047a b\0047'
//! ```
//!
//! A long text is passed in parts, which `printf %b` joins: a word of BSD's csh (Debian's package
//! `csh`) has at most 1023 bytes.
//!
//! An escape starts with `\0`, which no shell treats as its own escape. Not supported: a NUL (no
//! argument can contain it), and a program whose name starts with `-` (`exec` would take it for an
//! option).

use std::fmt::Write;

/// Reason why an argument vector cannot be a command.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum QuoteError {
    /// No program is named, or its name is empty.
    #[error("no program is named")]
    NoProgram,
    /// The program's name would be taken for an option.
    #[error("the program's name `{0}` begins with `-`")]
    Option(String),
    /// An argument contains a NUL.
    #[error("argument {0} holds a NUL, which no argument can")]
    Nul(usize),
}

/// Returns one line of printable ASCII that runs the vector, with unchanged arguments, in any login
/// shell. The program replaces the shell (`exec`).
///
/// # Errors
/// Fails if there is no program, or an argument that no shell can pass.
pub fn quote(argv: &[&str]) -> Result<String, QuoteError> {
    let command = words(argv)?;
    let mut line = String::from(r#"exec /bin/sh -c 'eval "$(printf %b "$@")"' sh"#);
    for part in escaped(&command) {
        let _ = write!(line, " '{part}'");
    }
    Ok(line)
}

/// The vector in the syntax of sh alone; arguments may contain line feeds.
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

/// Maximum length of a part, in bytes.
const PART: usize = 1000;

/// Input of `printf %b` without characters that shells interpret differently, in parts. No escape
/// is split.
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

    /// Login shells of systems that a laboratory may contain.
    const SHELLS: [&str; 8] = ["sh", "dash", "bash", "ksh", "zsh", "csh", "tcsh", "fish"];

    /// Installed shells; records the others as skipped.
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

    /// Arguments received by a program that this shell starts.
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

    /// Words with a special meaning in some shell.
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
    fn hostile_words_pass_every_shell_unchanged() {
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
    fn any_words_pass_every_shell_unchanged() {
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
    fn long_arguments_pass_and_the_program_replaces_the_shell() {
        let long = "x'!".repeat(1000);
        for shell in shells() {
            let one = std::slice::from_ref(&long);
            assert_eq!(through(shell, one), Ok(expected(one)), "{shell}");
            let line = quote(&["sh", "-c", "echo $$"]).expect("a line");
            let mut command = Command::new(shell);
            command.args(["-c", &line]).stdout(std::process::Stdio::piped());
            let child = command.spawn().expect("a shell");
            let pid = child.id().to_string();
            let output = child.wait_with_output().expect("its output").stdout;
            assert_eq!(String::from_utf8_lossy(&output).trim(), pid, "{shell}");
        }
    }

    #[test]
    fn invalid_vectors_are_rejected() {
        assert_eq!(quote(&[]), Err(QuoteError::NoProgram));
        assert_eq!(quote(&["", "a"]), Err(QuoteError::NoProgram));
        assert_eq!(quote(&["-x"]), Err(QuoteError::Option("-x".into())));
        assert_eq!(quote(&["ls", "a\0b"]), Err(QuoteError::Nul(1)));
    }

    #[test]
    fn quoted_line_matches_the_module_documentation() {
        let line = quote(&["echo", "a b"]).expect("a line");
        let shown =
            r#"exec /bin/sh -c 'eval "$(printf %b "$@")"' sh 'exec \0047echo\0047 \0047a b\0047'"#;
        assert_eq!(line, shown);
    }
}
