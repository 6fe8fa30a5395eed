//! Provoked failures of a laboratory: repetitions, variants that are given up, reports, and no loss
//! of finished runs. Each program must end in time.

use crate::program::{Started, signal, until};
use crate::rack::{PATIENCE, Rack};
use crate::whole::{FIREWALL, recorded};
use std::time::Duration;

/// An experiment with one variant in this number of short runs.
pub(crate) fn plain(blocks: u32) -> String {
    format!(
        r#"
version = 1
title = "Nothing but runs"
[testbed]
kind = "ssh"
lab = "lab.toml"
[[factor]]
name = "firewall"
levels = ["none"]
[traffic]
rate = "5kpps"
flows = {{ sources = 2, destinations = 2 }}
[trial]
warmup = "100ms"
duration = "400ms"
drain = "300ms"
[design]
blocks = {blocks}
"#
    )
}

pub(crate) const RUN: [&str; 3] = ["run", "x.toml", "--no-calibration"];

/// Number of stored runs that the program has reported.
pub(crate) fn stored(program: &Started) -> usize {
    program.stderr().lines().filter(|line| line.contains("pps")).count()
}

#[track_caller]
fn expect_runs(rack: &Rack, expected: &[usize]) {
    assert_eq!(recorded(rack), expected);
}

#[test]
fn lost_connection_in_any_phase_costs_a_repetition_and_no_run() {
    let Some(rack) = Rack::build() else { return };
    rack.write("x.toml", &plain(6));
    let before = rack.state_of_the_dut();
    let program = rack.start(&RUN);
    // Ever later in a run, and each host in turn: while the DUT is prepared and configured, while
    // the first packets flow, while agents start, in the window.
    let mut cuts = 0;
    for run in 0..6 {
        let begun =
            || program.stderr().contains("testbed: ssh") && stored(&program) >= run as usize;
        assert!(until(PATIENCE, begun), "{}", program.stderr());
        std::thread::sleep(Duration::from_millis(200 + 500 * run));
        cuts += usize::from(rack.cut(["dut", "sender", "receiver"][run as usize % 3]) > 0);
    }
    program.end().carried_out();
    assert!(cuts >= 4, "only {cuts} connections were there to be cut");
    expect_runs(&rack, &[6]);
    rack.expect_state_of_the_dut(&before);
}

#[test]
fn dut_reboot_during_a_run_costs_a_repetition() {
    let Some(rack) = Rack::build() else { return };
    rack.write("x.toml", &plain(3));
    let program = rack.start(&RUN);
    assert!(until(PATIENCE, || stored(&program) >= 1), "{}", program.stderr());
    rack.reboot();
    program.end().carried_out();
    assert_eq!(rack.boots(), "down\n");
    expect_runs(&rack, &[3]);
}

#[test]
fn unreachable_dut_is_power_cycled() {
    let Some(rack) = Rack::build() else { return };
    let power = format!("power_cycle = [\"{}\"]\nreboot_timeout = \"8s\"", rack.at("power_cycle"));
    rack.write("lab.toml", &rack.lab(&power));
    rack.write("x.toml", &plain(3));
    let program = rack.start(&RUN);
    assert!(until(PATIENCE, || stored(&program) >= 1), "{}", program.stderr());
    rack.write("stays-down", "");
    rack.reboot();
    program.end().carried_out();
    assert_eq!(rack.boots(), "down\npower\ndown\n");
    expect_runs(&rack, &[3]);
}

#[test]
fn lost_dut_ends_the_session_and_the_next_one_continues() {
    let Some(rack) = Rack::build() else { return };
    rack.write("lab.toml", &rack.lab("reboot_timeout = \"3s\""));
    rack.write("x.toml", &plain(3));
    let program = rack.start(&RUN);
    assert!(until(PATIENCE, || stored(&program) >= 1), "{}", program.stderr());
    rack.write("stays-down", "");
    rack.reboot();
    let ended = program.end().expect(3);
    assert!(ended.stderr.contains("dut did not come back within 3 s"), "{}", ended.stderr);
    assert!(ended.stderr.contains("power_cycle"), "{}", ended.stderr);
    std::fs::remove_file(rack.path("stays-down")).expect("a file");
    rack.boot("dut");
    rack.fwdlab(&RUN).carried_out();
    expect_runs(&rack, &[3]);
}

#[test]
fn variant_that_fails_twice_is_given_up_and_others_continue() {
    let Some(rack) = Rack::build() else { return };
    let text = FIREWALL.replace("\"stateful\"]", "\"wrong.nft\"]");
    rack.write("x.toml", &text);
    rack.write("wrong.nft", "table inet x {\n  chain f {\n    nonsense\n  }\n}\n");
    let before = rack.state_of_the_dut();
    let ended = rack.fwdlab(&RUN).expect(3);
    for word in ["nft -f - on dut failed", "exit status 1", "nonsense", "given up", "fwdlab run"] {
        assert!(ended.stderr.contains(word), "no `{word}` in {}", ended.stderr);
    }
    assert!(rack.path("results/x/README.md").exists());
    expect_runs(&rack, &[2, 0]);
    rack.expect_state_of_the_dut(&before);
    // Only the failed variant is tried again.
    let again = rack.fwdlab(&RUN).expect(3);
    assert!(again.stderr.contains("2 of 4 runs are stored already"), "{}", again.stderr);
}

#[test]
fn hanging_command_is_killed_and_named() {
    let Some(rack) = Rack::build() else { return };
    rack.write("x.toml", FIREWALL);
    let hanging = "#!/bin/sh\ncase $1 in -f) sleep 86431; esac\nexec /usr/sbin/nft \"$@\"\n";
    rack.write_program("dut.bin/nft", hanging);
    let ended = rack.fwdlab(&RUN).expect(3);
    assert!(ended.stderr.contains("nft -f - on dut failed: killed after 10 s"), "{}", ended.stderr);
    expect_runs(&rack, &[2, 0]);
    let sleeps = || rack.processes("dut").iter().any(|(_, line)| line.contains("86431"));
    assert!(until(PATIENCE, || !sleeps()), "it goes on");
}

#[test]
fn password_prompt_and_wrong_host_key_are_refused() {
    let Some(rack) = Rack::build() else { return };
    rack.write("x.toml", &plain(1));
    rack.knows("other");
    let ended = rack.fwdlab(&RUN).expect(3);
    assert!(ended.stderr.contains("host key is not the one that is known"), "{}", ended.stderr);
    rack.knows("host");
    let more = "PubkeyAuthentication no\nPasswordAuthentication yes";
    rack.write("dut.conf", &rack.sshd("dut", more));
    rack.switch_off("dut");
    rack.boot("dut");
    let ended = rack.fwdlab(&RUN).expect(3);
    for word in
        ["dut: it does not let us in without a password", "Permission denied", "ssh-copy-id"]
    {
        assert!(ended.stderr.contains(word), "no `{word}` in {}", ended.stderr);
    }
}

#[test]
fn full_disk_of_the_dut_is_reported_and_nothing_changed() {
    let Some(rack) = Rack::build() else { return };
    rack.write("x.toml", &plain(1));
    let before = rack.state_of_the_dut();
    rack.inside("dut", "dd if=/dev/zero of=/run/full bs=4096 count=1024 2>/dev/null || :");
    let ended = rack.fwdlab(&RUN).expect(3);
    assert!(ended.stderr.contains(" on dut failed"), "{}", ended.stderr);
    assert!(ended.stderr.contains("No space left on device"), "{}", ended.stderr);
    rack.expect_state_of_the_dut(&before);
    rack.inside("dut", "rm /run/full");
    rack.fwdlab(&RUN).carried_out();
    expect_runs(&rack, &[1]);
}

/// A sed that kills its own connection just before it restores settings, as many times as a file
/// specifies.
fn cutting(rack: &Rack) -> String {
    let cuts = rack.at("cuts");
    format!(
        r#"#!/bin/sh
left=$(cat {cuts}); case "$*" in *G\;h*) ;; *) left=0;; esac
[ "$left" -gt 0 ] || exec /usr/bin/sed "$@"
echo $((left - 1)) >{cuts}
pid=$PPID
while [ "$pid" -gt 1 ]; do set -- $(cat "/proc/$pid/stat")
grep -q listener "/proc/$pid/cmdline" && break
pid=$4; case $2 in *sshd*) kill -KILL "$1";; esac; done
exec sleep 60
"#
    )
}

/// Kills the program while the DUT holds settings that have to be restored.
fn kill_amid_a_run(rack: &Rack, program: Started) {
    let holds = "[ ! -e /run/fwdlab-dut/undo ] || echo yes";
    let is_amid = || {
        signal("STOP", program.pid());
        let is_amid = rack.inside("dut", holds).contains("yes");
        signal(if is_amid { "KILL" } else { "CONT" }, program.pid());
        is_amid
    };
    assert!(until(PATIENCE, is_amid), "{}", program.stderr());
    assert_eq!(program.end().code, None);
}

#[test]
fn session_after_a_killed_controller_restores_the_dut() {
    let Some(rack) = Rack::build() else { return };
    rack.write("x.toml", &plain(4));
    let before = rack.state_of_the_dut();
    let program = rack.start(&RUN);
    assert!(until(PATIENCE, || stored(&program) >= 1), "{}", program.stderr());
    // During that time no one else gets the hosts.
    let other = rack.command(&["run", "x.toml", "--no-calibration", "--out", "elsewhere"]).output();
    let other = String::from_utf8_lossy(&other.expect("the program").stderr).into_owned();
    assert!(other.contains("another fwdlab") && other.contains("measures with dut"), "{other}");
    kill_amid_a_run(&rack, program);
    // A connection that dies once during the restoration does not make the DUT sick.
    rack.write_program("dut.bin/sed", &cutting(&rack));
    rack.write("cuts", "1");
    rack.fwdlab(&RUN).carried_out();
    assert_eq!(std::fs::read_to_string(rack.path("cuts")).expect("a file"), "0\n");
    expect_runs(&rack, &[4]);
    // One that dies each time does, and that is reported.
    let fresh = [&RUN[..], &["--fresh"]].concat();
    let program = rack.start(&fresh);
    assert!(until(PATIENCE, || stored(&program) >= 1), "{}", program.stderr());
    kill_amid_a_run(&rack, program);
    rack.write("cuts", "2");
    let ended = rack.fwdlab(&RUN).expect(3);
    let words = ended.stderr.split_whitespace().collect::<Vec<_>>().join(" ");
    for word in ["settings of dut can't be restored", "dut is marked sick, on dut", "mark LAB dut"]
    {
        assert!(words.contains(word), "no `{word}` in {words}");
    }
    rack.fwdlab(&["lab", "mark", "lab.toml", "dut", "well"]).expect(0);
    rack.fwdlab(&RUN).carried_out();
    rack.expect_state_of_the_dut(&before);
    for host in crate::rack::HOSTS {
        let gone = || !rack.processes(host).iter().any(|(_, line)| line.contains("--control"));
        assert!(until(PATIENCE, gone), "agents live on {host}");
    }
}
