//! Refusals: message, next step and exit code.

use crate::support::{Ended, INSTANT, Lab, plan, simulated, store};
use std::process::Command;

#[test]
fn another_plan_needs_fresh_to_use_the_directory() {
    let lab = Lab::new(INSTANT);
    lab.fwdlab(&["run", "x.toml"]).expect(0);
    lab.write("x.toml", &INSTANT.replace("blocks = 4", "blocks = 2"));
    let refused = lab.fwdlab(&["run", "x.toml"]).expect(2);
    assert!(refused.stderr.contains("holds another plan"), "{}", refused.stderr);
    assert!(refused.stderr.contains("Stored and asked: blocks: 4 and 2."), "{}", refused.stderr);
    assert!(refused.stderr.contains("--fresh"), "{}", refused.stderr);
    lab.write("x.toml", &INSTANT.replace("blocks = 4", "blocks = 9"));
    let more = lab.fwdlab(&["run", "x.toml"]).expect(2).stderr;
    assert!(more.contains("blocks: 4 and 9. Blocks added after a look"), "{more}");
    lab.write("x.toml", &INSTANT.replace("blocks = 4", "blocks = 2"));
    let fresh = lab.fwdlab(&["run", "x.toml", "--fresh"]).expect(0);
    assert!(fresh.stdout.contains("4 of 4 runs"), "{}", fresh.stdout);
    let old = lab.fwdlab(&["show", "results/x/run.sqlite.1"]).expect(0);
    assert!(old.stdout.contains("8 of 8 runs"), "{}", old.stdout);
}

#[test]
fn file_faults_are_all_shown_with_carets() {
    let text = INSTANT.replace("noise = ", "nois = ").replace("blocks = 4", "blocks = \"four\"");
    let lab = Lab::new(&text);
    for command in ["run", "plan"] {
        let refused = lab.fwdlab(&[command, "x.toml"]).expect(2);
        assert!(refused.stderr.contains("x.toml:6:1"), "{}", refused.stderr);
        assert!(refused.stderr.contains("^^^^"), "{}", refused.stderr);
        assert!(refused.stderr.contains("did you mean `noise`?"), "{}", refused.stderr);
        assert!(refused.stderr.contains("2 faults in x.toml"), "{}", refused.stderr);
        assert!(!lab.path("results").exists());
    }
}

#[test]
fn missing_file_is_a_user_error() {
    let lab = Lab::new(INSTANT);
    let message = lab.fwdlab(&["run", "y.toml"]).expect(2).stderr;
    assert!(message.contains("y.toml") && message.contains("next step"), "{message}");
    let message = lab.fwdlab(&["show", "nowhere"]).expect(2).stderr;
    assert!(message.contains("`fwdlab run` makes one"), "{message}");
    lab.fwdlab(&["report", "."]).expect(2);
    lab.fwdlab(&["show", "x.toml"]).expect(2);
    lab.fwdlab(&["rum"]).expect(2);
    lab.fwdlab(&["run", "x.toml", "--blocks", "0"]).expect(2);
}

#[test]
fn unwritable_directory_is_an_environment_error() {
    let lab = Lab::new(INSTANT);
    lab.write("file", "not a directory");
    let message = lab.fwdlab(&["run", "x.toml", "--out", "file"]).expect(3).stderr;
    assert!(message.contains("file is not a directory") && message.contains("--out"), "{message}");
    // No one can create directories there, not even root.
    let message = lab.fwdlab(&["run", "x.toml", "--out", "/proc/fwdlab"]).expect(3).stderr;
    assert!(message.contains("/proc/fwdlab") && message.contains("permissions"), "{message}");
    lab.fwdlab(&["run", "x.toml"]).expect(0);
    lab.fwdlab(&["report", "results/x", "--out", "file"]).expect(3);
}

/// The same command, subject to the modes of directories even for root: root may write everywhere
/// only by a capability, see capabilities(7).
fn without_override(command: Command) -> Command {
    if !rustix::process::geteuid().is_root() {
        return command;
    }
    let mut setpriv = Command::new("setpriv");
    setpriv.args(["--bounding-set", "-dac_override", "--inh-caps", "-dac_override"]);
    setpriv.arg(command.get_program()).args(command.get_args());
    if let Some(directory) = command.get_current_dir() {
        setpriv.current_dir(directory);
    }
    setpriv
}

#[test]
fn read_only_directory_can_be_shown_but_not_used_for_runs() {
    use std::os::unix::fs::PermissionsExt;
    let lab = Lab::new(INSTANT);
    lab.fwdlab(&["run", "x.toml", "--blocks", "2"]).expect(0);
    let directory = lab.path("results/x");
    let set = |mode| std::fs::set_permissions(&directory, PermissionsExt::from_mode(mode));
    set(0o555).expect("read-only");
    lab.fwdlab(&["show", "results/x"]).expect(0);
    let mut run = without_override(lab.command(&["run", "x.toml", "--blocks", "2"]));
    let message = Ended::from(run.output().expect("setpriv runs")).expect(3).stderr;
    set(0o755).expect("writable again");
    assert!(message.contains("permissions"), "{message}");
}

#[test]
fn runs_of_different_testbeds_are_not_mixed() {
    let lab = Lab::new(INSTANT);
    let plan = plan(INSTANT);
    let mut store = store(&lab.path("results/x/run.sqlite"), &plan, "netns");
    store.insert_run(&simulated(&plan, &plan.runs[0])).expect("stored");
    drop(store);
    let refused = lab.fwdlab(&["run", "x.toml"]).expect(2);
    assert!(refused.stderr.contains("can't be compared"), "{}", refused.stderr);
}
