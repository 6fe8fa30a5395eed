//! What can't be done is said with its next step, and with its exit code.

use crate::support::{Ended, INSTANT, Lab, plan, simulated, store};
use std::process::Command;

#[test]
fn another_plan_is_refused_until_the_old_store_is_set_aside() {
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
fn all_faults_of_a_file_are_shown_with_carets() {
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
fn what_is_not_there_is_the_users_mistake() {
    let lab = Lab::new(INSTANT);
    let said = lab.fwdlab(&["run", "y.toml"]).expect(2).stderr;
    assert!(said.contains("y.toml") && said.contains("next step"), "{said}");
    let said = lab.fwdlab(&["show", "nowhere"]).expect(2).stderr;
    assert!(said.contains("`fwdlab run` makes one"), "{said}");
    lab.fwdlab(&["report", "."]).expect(2);
    lab.fwdlab(&["show", "x.toml"]).expect(2);
    lab.fwdlab(&["rum"]).expect(2);
    lab.fwdlab(&["run", "x.toml", "--blocks", "0"]).expect(2);
}

#[test]
fn a_place_that_cannot_be_written_is_the_environments_fault() {
    let lab = Lab::new(INSTANT);
    lab.write("file", "not a directory");
    let said = lab.fwdlab(&["run", "x.toml", "--out", "file"]).expect(3).stderr;
    assert!(said.contains("file is not a directory") && said.contains("--out"), "{said}");
    // Nobody can make directories there, not even root.
    let said = lab.fwdlab(&["run", "x.toml", "--out", "/proc/fwdlab"]).expect(3).stderr;
    assert!(said.contains("/proc/fwdlab") && said.contains("permissions"), "{said}");
    lab.fwdlab(&["run", "x.toml"]).expect(0);
    lab.fwdlab(&["report", "results/x", "--out", "file"]).expect(3);
}

/// The same command, which obeys the modes of directories for root as well: root may write
/// everywhere by a capability only, see capabilities(7).
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
fn a_read_only_directory_can_be_shown_and_not_run_in() {
    use std::os::unix::fs::PermissionsExt;
    let lab = Lab::new(INSTANT);
    lab.fwdlab(&["run", "x.toml", "--blocks", "2"]).expect(0);
    let directory = lab.path("results/x");
    let set = |mode| std::fs::set_permissions(&directory, PermissionsExt::from_mode(mode));
    set(0o555).expect("read-only");
    lab.fwdlab(&["show", "results/x"]).expect(0);
    let mut run = without_override(lab.command(&["run", "x.toml", "--blocks", "2"]));
    let said = Ended::from(run.output().expect("setpriv runs")).expect(3).stderr;
    set(0o755).expect("writable again");
    assert!(said.contains("permissions"), "{said}");
}

#[test]
fn runs_of_two_kinds_of_testbed_are_not_mixed() {
    let lab = Lab::new(INSTANT);
    let plan = plan(INSTANT);
    let mut store = store(&lab.path("results/x/run.sqlite"), &plan, "netns");
    store.insert_run(&simulated(&plan, &plan.runs[0])).expect("stored");
    drop(store);
    let refused = lab.fwdlab(&["run", "x.toml"]).expect(2);
    assert!(refused.stderr.contains("can't be compared"), "{}", refused.stderr);
}
