//! Undo list of a Linux DUT's changed settings, kept on the DUT itself.
//!
//! Each line of a file in `/run` undoes one change and is written before the change is made. If
//! this process, its machine or the network fails, the next process restores everything. A reboot
//! reverts the changes and clears `/run`, including the list.

use super::restore::SettingRestorer;
use fwdlab_host::Host;
use fwdlab_host::error::BenchError;

/// Protocol number that marks fwdlab's routes (ip-route(8)). Any number not assigned in
/// /etc/iproute2/rt_protos works.
const PROTOCOL: &str = "198";

/// Script that appends lines to the list. It uses cat, which reports why writing fails; shells
/// don't.
const NOTE: &str = r#"mkdir -p /run/fwdlab-dut || exit 1
for line; do printf '%s\n' "$line"; done | cat >>/run/fwdlab-dut/undo"#;

/// Script that writes settings (pairs of path and value), recording each old value first. The record
/// of a refused value is removed if nothing changed: of several numbers the first may be accepted.
const SET: &str = r#"mkdir -p /run/fwdlab-dut || exit 1
while [ $# -gt 1 ]; do
path=$1 value=$2; shift 2
[ -e "$path" ] || { echo "$path: No such file or directory" >&2; exit 1; }
old=$(cat "$path") || exit 1
[ "$old" = "$value" ] && continue
printf 'set %s %s\n' "$path" "$old" | cat >>/run/fwdlab-dut/undo || exit 1
printf '%s\n' "$value" >"$path" && continue
echo "$path: it refuses '$value'" >&2
[ "$(cat "$path")" != "$old" ] || sed -i '$d' /run/fwdlab-dut/undo
exit 1
done"#;

/// Script that runs the undo lines in reverse order and reports failures: failed lines stay in the
/// list, the others are removed.
const UNDO: &str = r#"list=/run/fwdlab-dut/undo; [ -e "$list" ] || exit 0
rm -f "$list.kept"
sed -n '1!G;h;$p' "$list" | while IFS= read -r line; do rest=${line#* }
case $line in
set*) path=${rest%% *} value=${rest#* }
[ -e "$path" ] || continue
printf '%s\n' "$value" >"$path" && continue
echo "$path is not '$value' again" >&2;;
run*) /bin/sh -c "$rest" </dev/null && continue
echo "failed: $rest" >&2;;
*) continue;;
esac; printf '%s\n' "$line" >>"$list.kept"; done
[ -e "$list.kept" ] || { rm -rf /run/fwdlab-dut; exit 0; }
sed -n '1!G;h;$p' "$list.kept" >"$list.new" && mv "$list.new" "$list" && rm "$list.kept"
exit 1"#;

/// Undo list on the DUT.
#[derive(Clone, Copy, Debug, Default)]
pub struct Undo;

impl SettingRestorer for Undo {
    fn is_namespace(&self) -> bool {
        false
    }

    fn note(&self, host: &dyn Host, commands: &[String]) -> Result<(), BenchError> {
        if commands.is_empty() {
            return Ok(());
        }
        let lines: Vec<String> = commands.iter().map(|command| format!("run {command}")).collect();
        script(host, NOTE, lines.iter().map(String::as_str))
    }

    fn put(&self, host: &dyn Host, settings: &[(String, String)]) -> Result<(), BenchError> {
        if settings.is_empty() {
            return Ok(());
        }
        script(host, SET, settings.iter().flat_map(|(path, value)| [path.as_str(), value]))
    }

    fn change(&self, host: &dyn Host, path: &str, value: &str) -> Result<(), BenchError> {
        self.put(host, &[(path.to_owned(), value.to_owned())])
    }

    fn get(&self, host: &dyn Host, path: &str) -> Result<String, BenchError> {
        host.get(path)
    }

    fn mark_routes(&self, host: &dyn Host) -> Result<&'static str, BenchError> {
        let flush = |family| format!("ip {family} route flush proto {PROTOCOL} 2>/dev/null || :");
        self.note(host, &[flush("-4"), flush("-6")])?;
        Ok(" proto 198")
    }

    fn undo(&self, host: &dyn Host) -> Result<(), BenchError> {
        script(host, UNDO, [].into_iter()).map_err(restore_error)
    }
}

/// Records the reasons for a reboot, and returns all reasons since the last boot: a reboot that
/// failed or was interrupted is still due.
///
/// # Errors
/// Fails if the reasons cannot be written or read.
pub(super) fn reboot_for(host: &dyn Host, reasons: &[String]) -> Result<Vec<String>, BenchError> {
    const ADD: &str = r#"file=/run/fwdlab-reboot
[ $# -eq 0 ] || for line; do printf '%s\n' "$line"; done | cat >>"$file" || exit 1
[ ! -e "$file" ] || cat "$file""#;
    let lines = reasons.iter().map(|reason| reason.replace('\n', " "));
    let lines: Vec<String> = lines.collect();
    let argv = ["/bin/sh", "-c", ADD, "fwdlab"].into_iter();
    let argv: Vec<&str> = argv.chain(lines.iter().map(String::as_str)).collect();
    Ok(host.run(&argv, "")?.lines().map(str::to_owned).collect())
}

/// Error for settings that a host refused to restore, with the path of the undo list.
fn restore_error(error: BenchError) -> BenchError {
    match error {
        BenchError::Program { host, why, .. } => BenchError::NotPutBack {
            host,
            why: why.trim().replace('\n', "; "),
            instead: ", or boot the machine, or remove the line",
            journal: "/run/fwdlab-dut/undo".into(),
        },
        other => other,
    }
}

/// Runs a short sh script with arguments.
pub(super) fn script<'a>(
    host: &dyn Host,
    text: &'a str,
    arguments: impl Iterator<Item = &'a str>,
) -> Result<(), BenchError> {
    let argv: Vec<&str> = ["/bin/sh", "-c", text, "fwdlab"].into_iter().chain(arguments).collect();
    host.run(&argv, "").map(drop)
}

#[cfg(test)]
mod tests {
    use super::*;
    use fwdlab_host::LocalHost;
    use std::fs;

    /// Runs a script with another directory than `/run/fwdlab-dut`.
    fn run(folder: &str, text: &str, arguments: &[&str]) -> Result<(), BenchError> {
        script(&LocalHost, &text.replace("/run/fwdlab-dut", folder), arguments.iter().copied())
    }

    #[test]
    fn changes_are_undone_in_reverse_order() {
        let base = std::env::temp_dir().join(format!("fwdlab-undo-{}", std::process::id()));
        fs::create_dir_all(&base).expect("a directory");
        let path = |name: &str| base.join(name).display().to_string();
        let (folder, a, b) = (path("list"), path("a"), path("b"));
        fs::write(&a, "1 2\t3\n").expect("a");
        fs::write(&b, "same\n").expect("b");
        // Nothing to undo.
        run(&folder, UNDO, &[]).expect("nothing");
        run(&folder, SET, &[&a, "new", &b, "same", &a, "newer"]).expect("set");
        assert_eq!(fs::read_to_string(&a).expect("a"), "newer\n");
        let list = fs::read_to_string(path("list/undo")).expect("the list");
        assert_eq!(list, format!("set {a} 1 2\t3\nset {a} new\n"), "what is as wanted is left");
        let note = format!("run cp {a} {b}");
        run(&folder, NOTE, &[&note]).expect("noted");
        run(&folder, UNDO, &[]).expect("undone");
        assert_eq!(fs::read_to_string(&a).expect("a"), "1 2\t3\n");
        assert_eq!(fs::read_to_string(&b).expect("b"), "newer\n", "noted last, undone first");
        assert!(!base.join("list").exists());
        // A failing line does not prevent the others.
        run(&folder, SET, &[&a, "x"]).expect("set");
        run(&folder, NOTE, &["run false"]).expect("noted");
        fs::create_dir(path("stuck")).expect("a directory, which can't be written");
        let stuck = format!("set {} old", path("stuck"));
        run(&folder, NOTE, &["run true", &stuck, &format!("set {} x", path("gone"))]).expect("ok");
        for _ in 0..2 {
            let error = restore_error(run(&folder, UNDO, &[]).expect_err("told")).to_string();
            for word in ["failed: false", "/stuck", "'old'", "/run/fwdlab-dut/undo", "next step"] {
                assert!(error.contains(word), "{error}");
            }
            assert_eq!(fs::read_to_string(&a).expect("a"), "1 2\t3\n");
            let list = fs::read_to_string(path("list/undo")).expect("the list");
            assert_eq!(list, format!("run false\n{stuck}\n"), "what was refused, in its order");
        }
        // New changes follow the remaining lines and are undone independently.
        run(&folder, SET, &[&a, "y"]).expect("set");
        run(&folder, UNDO, &[]).expect_err("told");
        assert_eq!(fs::read_to_string(&a).expect("a"), "1 2\t3\n");
        fs::remove_dir(path("stuck")).expect("removed");
        fs::remove_dir_all(path("list")).expect("removed by hand");
        let missing = path("missing");
        let error = run(&folder, SET, &[&missing, "x"]).expect_err("told").to_string();
        assert!(error.contains("No such file"), "{error}");
        // What is refused was not changed: there is nothing to undo.
        let read_only = "/proc/sys/kernel/ostype";
        let error =
            run(&folder, SET, &[&a, "z", read_only, "x"]).expect_err("reported").to_string();
        assert!(error.contains("it refuses 'x'"), "{error}");
        let list = fs::read_to_string(path("list/undo")).expect("the list");
        assert_eq!(list, format!("set {a} 1 2\t3\n"));
        run(&folder, UNDO, &[]).expect("undone");
        assert_eq!(fs::read_to_string(&a).expect("a"), "1 2\t3\n");
        fs::remove_dir_all(&base).expect("clean");
    }
}
