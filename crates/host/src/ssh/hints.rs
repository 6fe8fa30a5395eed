//! Error messages of `ssh`, and the next step for each.
//!
//! `ssh` has one exit status (255) for all failures, and a message for each cause; the messages are
//! from OpenSSH 7 to 10, which has no translations.

use crate::error::BenchError;

/// Number of lines of output that an error quotes.
const LAST_LINES: usize = 5;

/// A cause: substrings of its messages, its description, and the next step, in which `HOST` is
/// replaced by the destination.
type Cause = (&'static [&'static str], &'static str, &'static str);

/// Known causes; the first match is used.
const CAUSES: &[Cause] = &[
    (
        &["REMOTE HOST IDENTIFICATION HAS CHANGED"],
        "its host key is not the one that is known",
        "find out why: if the machine was set up anew, remove the old key \
         (`ssh-keygen -R HOST`), compare the new one and accept it (`ssh HOST`)",
    ),
    (
        &["Host key verification failed", "host key is known for"],
        "its host key is unknown",
        "compare and accept it once (`ssh HOST`), or add the output of `ssh-keyscan HOST` to \
         ~/.ssh/known_hosts",
    ),
    (
        &["Permission denied (", "Too many authentication failures", "not allowed at this time"],
        "it does not let us in without a password",
        "put a public key into its ~/.ssh/authorized_keys (`ssh-copy-id HOST`), or load the \
         key into an agent (`ssh-add`)",
    ),
    (
        &["Could not resolve hostname"],
        "its name is unknown",
        "check the name, or give it a HostName in ~/.ssh/config",
    ),
    (
        &["Connection refused"],
        "it refuses connections",
        "start sshd there, or check the port (`ssh HOST`)",
    ),
    (
        &["No route to host", "Network is unreachable", "Host is down"],
        "it can't be reached",
        "check cable, address and routes",
    ),
    (
        &["not responding", "timed out", "Timeout,"],
        "it does not answer",
        "check that it is up (`ssh HOST`) and not too busy to answer",
    ),
    (
        &["Bad owner or permissions", "Bad configuration option", "Can't open user config file"],
        "ssh does not accept its configuration",
        "correct the file that ssh names (`ssh HOST true`)",
    ),
    (
        &["Connection reset", "Connection closed", "closed by remote host", "Broken pipe"],
        "it closed the connection",
        "look into the log of its sshd",
    ),
];

/// Use of the connection when it failed.
#[derive(Clone, Copy, Debug)]
pub(super) enum ConnectionUse<'a> {
    /// Opening the connection.
    Opening,
    /// This command; `ssh` reported the failure.
    Command(&'a str),
    /// This command; `ssh` exited as if it had run another one.
    Other(&'a str),
}

/// Error for a connection that could not be opened or was lost. `log` is the output of `ssh` about
/// the connection; `output` may also contain output of the program, so it is used only if `log`
/// contains no known cause.
pub(super) fn connection(
    host: &str,
    during: ConnectionUse<'_>,
    log: &str,
    output: &str,
) -> BenchError {
    let cause_in =
        |text: &str| CAUSES.iter().find(|(texts, ..)| texts.iter().any(|t| text.contains(t)));
    let cause = cause_in(log).or_else(|| cause_in(output));
    let (cause, next) = match (cause, during) {
        (Some((_, cause, next)), _) => (*cause, *next),
        (None, ConnectionUse::Opening) => ("no connection", "try it by hand: `ssh HOST true`"),
        (None, ConnectionUse::Command(_)) => {
            ("the connection broke", "check that it is up (`ssh HOST`)")
        }
        (None, ConnectionUse::Other(_)) => (
            "it did not carry the command out",
            "let the account have a login shell and no forced command (`ssh HOST true`)",
        ),
    };
    let mut what = format!("{host}: {cause}");
    if let ConnectionUse::Command(command) | ConnectionUse::Other(command) = during {
        what.push_str(&format!(" (during `{command}`)"));
    }
    let lines = last_lines(&format!("{output}\n{log}"));
    if !lines.is_empty() {
        what.push_str(&format!(": {lines}"));
    }
    BenchError::environment(what, next.replace("HOST", host))
}

/// Joins the last lines of a text into one.
pub(super) fn last_lines(text: &str) -> String {
    let lines = text.lines().map(str::trim).filter(|line| !line.is_empty() && !is_frame(line));
    let lines: Vec<&str> = lines.collect();
    lines[lines.len().saturating_sub(LAST_LINES)..].join("; ")
}

/// Matches the rows of `@` around a warning.
fn is_frame(line: &str) -> bool {
    line.bytes().all(|byte| byte == b'@')
}

/// A command in the form used by messages.
pub(super) fn shortened(argv: &[&str]) -> String {
    const LONGEST: usize = 160;
    let command = argv.join(" ").replace(|c: char| c.is_control(), " ");
    match command.char_indices().nth(LONGEST) {
        Some((cut, _)) => format!("{}...", &command[..cut]),
        None => command,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_cause_has_a_description_and_a_next_step() {
        for (text, cause, next) in [
            ("ssh: connect to host b port 22: Connection refused", "refuses", "start sshd there"),
            ("ssh: connect to host b port 22: No route to host", "can't be reached", "cable"),
            ("ssh: connect to host b port 22: Connection timed out", "does not answer", "is up"),
            ("Timeout, server b not responding.", "does not answer", "`ssh bsd7`"),
            ("ssh: Could not resolve hostname b: Unknown", "name is unknown", "HostName"),
            ("root@b: Permission denied (publickey).", "without a password", "ssh-copy-id bsd7"),
            (
                "No ED25519 host key is known for b\nHost key verification failed.",
                "unknown",
                "ssh-keyscan bsd7",
            ),
            (
                "@@@\nREMOTE HOST IDENTIFICATION HAS CHANGED!\nHost key verification failed.",
                "not the one",
                "ssh-keygen -R bsd7",
            ),
            ("Connection closed by 10.0.0.1 port 22", "closed the connection", "log"),
            ("This account is not available.", "no connection", "ssh bsd7 true"),
        ] {
            let BenchError::Environment { what, next: step } =
                connection("bsd7", ConnectionUse::Opening, text, "")
            else {
                panic!("{text}");
            };
            assert!(what.starts_with("bsd7: ") && what.contains(cause), "{what}");
            assert!(step.contains(next), "{step}");
        }
        let error = connection("bsd7", ConnectionUse::Other("uname -s"), "", "gone").to_string();
        assert!(error.contains("during `uname -s`") && error.contains(": gone\n"), "{error}");
        // A program's message about its own connections is not the cause of ours.
        let log = "Timeout, server bsd7 not responding.";
        let error =
            connection("bsd7", ConnectionUse::Command("curl x"), log, "curl: Connection refused")
                .to_string();
        assert!(error.starts_with("bsd7: it does not answer (during `curl x`)"), "{error}");
    }

    #[test]
    fn texts_and_commands_are_shortened() {
        assert_eq!(last_lines("1\n\n@@@@\n2\r\n3\n4\n5\n6\n"), "2; 3; 4; 5; 6");
        assert_eq!(last_lines(" \n"), "");
        assert_eq!(shortened(&["a", "b\nc"]), "a b c");
        let long = "é".repeat(400);
        assert_eq!(shortened(&["x", &long]).chars().count(), 163);
    }
}
