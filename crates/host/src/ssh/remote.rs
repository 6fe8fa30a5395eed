//! The guard: a few lines of sh around each remote program.
//!
//! Without a terminal `ssh` forwards no signals, and a program whose connection is lost continues
//! until it happens to write. With a terminal (`-tt`) bytes are changed, input is echoed, and both
//! outputs are merged. So each program gets a guard that reads the session's standard input:
//!
//! - End of input means that the controller is gone: a closed pipe, a killed `ssh`, a lost
//!   connection. The guard then kills (SIGKILL) the process group, which is the whole session:
//!   OpenSSH's server gives each session its own session id and group (servers that don't are not
//!   supported).
//! - `run SIZE`: this number of bytes arrives first and is stored in an unlinked file; the program
//!   starts after all of them have arrived, never with partial input. Input that the program leaves
//!   unread does not block the guard.
//! - `talk 0`: a line `tTEXT` is passed to the program without the `t`; the line `i` is an
//!   interrupt (SIGINT) for the whole group, like Ctrl-C.
//! - When the program has exited, the guard kills the rest of the group. A daemon has its own
//!   session and stays.
//!
//! Both outputs are the program's own, except for a line before its output (earlier output is from
//! the login shell's files) and a line after its errors. The latter contains the exit status: the
//! exit status 255 of `ssh` itself may mean its own failure or the program's.
//!
//! The guard runs in any POSIX shell without job control: a foreground program of a pipeline has
//! the default SIGINT, a background one would ignore it.

/// The guard. `$0` is the mark at the start of the guard's own lines, followed by mode, size of the
/// input, and the program with its arguments.
pub(super) const GUARD: &str = r#"mark=$0 mode=$1 size=$2; shift 2
LC_ALL=C; export LC_ALL
trap : INT
finish() { printf "\n%s %s\n" "$mark" "$1" >&2; kill -KILL 0; }
command -v "$1" >/dev/null 2>&1 || finish missing
exec 3</dev/null
if [ "$size" -gt 0 ]; then
file=$(umask 077; mktemp "${TMPDIR:-/tmp}/fwdlab.XXXXXX") || finish 1
head -c "$size" >"$file"; exec 3<"$file"; got=$(wc -c <"$file"); rm -f "$file"
[ "$got" -eq "$size" ] || finish short
fi
printf "\n%s begins\n" "$mark"
if [ "$mode" = run ]; then
{ trap "" INT; exec 3<&-; cat >/dev/null; kill -KILL 0; } |
{ trap : INT; (exec "$@") <&3 3<&-; finish "$?"; }
else
{ trap "" INT PIPE; exec 3<&-
while IFS= read -r line; do case $line in
t*) printf "%s\n" "${line#t}" 2>/dev/null;;
i) kill -INT 0;;
esac; done; kill -KILL 0; } |
{ trap : INT; (exec "$@") 3<&-; finish "$?"; }
fi"#;

/// Start of the guard's own lines.
pub(super) const MARK: &str = "fwdlab-guard";

/// Exit of a remote program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Verdict {
    /// Exited with this status; 128 plus the signal's number if a signal ended it.
    Status(u32),
    /// The program is not installed.
    Missing,
    /// The input did not arrive completely: no room, or no connection.
    Short,
}

/// Splits standard error into the program's output and the guard's verdict; the verdict is `None`
/// if the guard never wrote it.
pub(super) fn verdict(errors: &[u8]) -> (String, Option<Verdict>) {
    let text = String::from_utf8_lossy(errors);
    let begin = format!("\n{MARK} ");
    let found = text.rfind(&begin).and_then(|at| {
        // A line without a line feed was cut off.
        let (word, _) = text[at + begin.len()..].split_once('\n')?;
        let verdict = match word {
            "missing" => Verdict::Missing,
            "short" => Verdict::Short,
            status => Verdict::Status(status.parse().ok()?),
        };
        Some((text[..at].to_owned(), Some(verdict)))
    });
    found.unwrap_or_else(|| (text.into_owned(), None))
}

/// True for the line before a program's own output, with or without its line feed.
pub(super) fn begins(line: &[u8]) -> bool {
    let line = line.strip_suffix(b"\n").unwrap_or(line);
    line.strip_prefix(MARK.as_bytes()) == Some(b" begins")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn verdict_is_the_last_complete_line_of_the_guard() {
        let of = |text: &str| verdict(text.as_bytes());
        let status = |text: &str, status| (text.to_owned(), Some(Verdict::Status(status)));
        assert_eq!(of("\nfwdlab-guard 0\n"), status("", 0));
        assert_eq!(of("why\n\nfwdlab-guard 255\nKilled\n"), status("why\n", 255));
        assert_eq!(of("cut\nfwdlab-guard 3\n"), status("cut", 3));
        assert_eq!(of("\nfwdlab-guard 1\n\nfwdlab-guard 2\n"), status("\nfwdlab-guard 1\n", 2));
        assert_eq!(of("\nfwdlab-guard missing\n"), (String::new(), Some(Verdict::Missing)));
        for none in ["", "fwdlab-guard 0\n", "\nfwdlab-guard 1", "\nfwdlab-guard x\n"] {
            assert_eq!(of(none), (none.to_owned(), None));
        }
        assert!(begins(b"fwdlab-guard begins\n") && !begins(b"fwdlab-guard begins here\n"));
    }

    /// The remote shell may differ from this machine's sh.
    #[test]
    fn guard_runs_in_every_sh() {
        for shell in ["dash", "bash", "ksh", "zsh", "busybox"] {
            let mut words = vec!["-w", shell];
            words.extend((shell == "busybox").then_some("sh"));
            let script = "cat; echo err >&2; exit 7";
            words.extend(["-c", GUARD, MARK, "run", "5", "sh", "-c", script]);
            let started = std::process::Command::new("setsid")
                .args(words)
                .stdin(std::process::Stdio::piped())
                .stdout(std::process::Stdio::piped())
                .stderr(std::process::Stdio::piped())
                .spawn();
            let mut child = started.expect("setsid");
            let mut input = child.stdin.take().expect("a pipe");
            // A missing shell reads nothing.
            let _ = std::io::Write::write_all(&mut input, b"a\nb\n!");
            let output = child.wait_with_output().expect("output");
            drop(input);
            let (errors, verdict) = verdict(&output.stderr);
            if errors.contains("failed to execute") {
                fwdlab_testdata::skip_part(&format!("{shell} is not installed"));
                continue;
            }
            assert_eq!((errors.as_str(), verdict), ("err\n", Some(Verdict::Status(7))), "{shell}");
            assert_eq!(output.stdout, b"\nfwdlab-guard begins\na\nb\n!", "{shell}");
        }
    }
}
