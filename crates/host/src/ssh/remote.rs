//! The guard: a few lines of sh around each remote program.
//!
//! Without a terminal `ssh` passes no signals on, and a program whose connection
//! has gone lives on until it happens to write. With one (`-tt`) bytes are changed,
//! input is echoed, and both outputs are one. So each program gets a guard that
//! reads the session's standard input:
//!
//! - End of input means that the controller is gone: a closed pipe, a killed `ssh`, a
//!   lost connection. The guard then kills (SIGKILL) the process group, which is the
//!   whole session: OpenSSH's server gives each one its own session and group (servers
//!   that don't are not supported).
//! - `run SIZE`: that many bytes come first and are kept in a file that has no
//!   name any more; the program begins when all of them are there, never with half
//!   its input. Nothing that it leaves unread stands in the guard's way.
//! - `talk 0`: a line `tTEXT` is passed on to the program without its `t`, the line
//!   `i` is an interrupt (SIGINT) for the whole group, as Ctrl-C is.
//! - What is left of the group when the program has ended is killed. A daemon has
//!   a session of its own and stays.
//!
//! Both outputs are the program's own, but for a line before its output (whatever
//! the login shell's files said before is not the program's) and one after its
//! errors. That line says how it ended: the exit status of `ssh` itself may be 255
//! for its own failures as well as for the program's.
//!
//! Written for any POSIX shell without job control: a program in the foreground of
//! a pipeline has SIGINT as it should be, one in the background had it ignored.

/// The guard. `$0` is the mark that begins its own lines, then come mode, size of
/// the input, and the program with its arguments.
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

/// Begins the guard's own lines.
pub(super) const MARK: &str = "fwdlab-guard";

/// How a program on the other side ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Verdict {
    /// With this status; 128 and a signal's number when one ended it.
    Status(u32),
    /// It is not there.
    Missing,
    /// Its input did not arrive as a whole: no room, or no connection.
    Short,
}

/// What a program wrote to standard error, and the guard's verdict after it;
/// none when the guard never came to that.
pub(super) fn verdict(errors: &[u8]) -> (String, Option<Verdict>) {
    let text = String::from_utf8_lossy(errors);
    let begin = format!("\n{MARK} ");
    let found = text.rfind(&begin).and_then(|at| {
        // A line without its end was cut off.
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

/// True for the line before a program's own output, with its end or without.
pub(super) fn begins(line: &[u8]) -> bool {
    let line = line.strip_suffix(b"\n").unwrap_or(line);
    line.strip_prefix(MARK.as_bytes()) == Some(b" begins")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_verdict_is_the_last_whole_line_of_the_guard() {
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

    /// What runs the guard elsewhere is not the sh of this machine.
    #[test]
    fn the_guard_is_understood_by_every_sh() {
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
            // A shell that is missing reads nothing.
            let _ = std::io::Write::write_all(&mut input, b"a\nb\n!");
            let output = child.wait_with_output().expect("output");
            drop(input);
            let (said, verdict) = verdict(&output.stderr);
            if said.contains("failed to execute") {
                fwdlab_testdata::skip_part(&format!("{shell} is not installed"));
                continue;
            }
            assert_eq!((said.as_str(), verdict), ("err\n", Some(Verdict::Status(7))), "{shell}");
            assert_eq!(output.stdout, b"\nfwdlab-guard begins\na\nb\n!", "{shell}");
        }
    }
}
