//! Leases of a laboratory's hosts: killed holders, waiting controllers, manual release, and sick
//! hosts.

use crate::faults::{RUN, plain, stored};
use crate::program::{Started, signal, until};
use crate::rack::{HOSTS, PATIENCE, Rack};
use serde_json::Value;
use std::fs::{self, File};
use std::process::Command;
use std::time::{Duration, Instant};

/// A lease short enough that a test can wait for its end, and long enough that its holder renews it
/// in time on a busy machine.
fn short(rack: &Rack, of_dut: &str, of_ssh: &str) {
    let lab = rack.lab(of_dut).replace("\"namespaces\"\n", "\"namespaces\"\nlease = \"10s\"\n");
    rack.write("lab.toml", &lab.replace("[ssh]\n", &format!("[ssh]\n{of_ssh}")));
}

pub(crate) fn leases(rack: &Rack) -> Vec<Value> {
    let output = rack.command(&["lab", "leases", "lab.toml", "--json"]).output().expect("fwdlab");
    let json: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    json["hosts"].as_array().expect("hosts").clone()
}

/// Starts a controller in another PID namespace, as if on another machine.
fn elsewhere(rack: &Rack, arguments: &[&str]) -> Started {
    let (out, err) = (rack.path("their.stdout"), rack.path("their.stderr"));
    let mut command = Command::new("unshare");
    command.args(["--pid", "--fork", "--kill-child", "--mount-proc"]);
    command.arg(env!("CARGO_BIN_EXE_fwdlab")).args(arguments).current_dir(rack.path(""));
    command.stdin(std::process::Stdio::null());
    command.stdout(File::create(&out).expect("a file"));
    command.stderr(File::create(&err).expect("a file"));
    Started { child: command.spawn().expect("unshare"), out, err }
}

#[test]
fn hosts_of_a_killed_controller_are_free_after_the_lease() {
    let Some(rack) = Rack::build() else { return };
    short(&rack, "", "");
    rack.write("x.toml", &plain(30));
    let before = rack.state_of_the_dut();
    let theirs = elsewhere(&rack, &[&RUN[..], &["--out", "theirs"]].concat());
    assert!(until(PATIENCE, || stored(&theirs) >= 1), "{}", theirs.stderr());
    let held = leases(&rack);
    assert_eq!(held.len(), HOSTS.len());
    for host in &held {
        assert_eq!(host["state"], "held", "{host:#}");
        assert_eq!(host["holder"]["owner"], held[0]["holder"]["owner"], "one has all");
        assert!(host["holder"]["left_s"].as_f64() <= Some(10.1), "{host:#}");
    }
    let shown = rack.fwdlab(&["lab", "leases", "lab.toml"]).expect(0);
    assert!(shown.stdout.contains("dut       held by "), "{}", shown.stdout);
    // No one else gets them while it lives and renews its lease.
    let until_s = |lease: &Value| lease["until_s"].as_i64();
    let is_renewed = || until_s(&leases(&rack)[0]) > until_s(&held[0]).map(|until_s| until_s + 2);
    assert!(until(PATIENCE, is_renewed), "{:#?}", leases(&rack));
    let refused = rack.fwdlab(&[&RUN[..], &["--wait", "2s"]].concat()).expect(3);
    for word in ["waiting for 2", "another fwdlab (", "measures with dut", "renews its lease"] {
        assert!(refused.stderr.contains(word), "no `{word}` in {}", refused.stderr);
    }
    // The check with traffic is also refused.
    let refused = rack.fwdlab(&["lab", "check", "lab.toml", "--traffic"]).expect(3);
    assert!(refused.stderr.contains("measures with dut"), "{}", refused.stderr);
    let freed = rack.fwdlab(&["lab", "free", "lab.toml"]).expect(3);
    assert!(freed.stdout.contains("may be measuring"), "{}", freed.stdout);
    signal("KILL", theirs.pid());
    assert_eq!(theirs.end().code, None);
    let killed = Instant::now();
    rack.write("x.toml", &plain(1));
    rack.fwdlab(&[&RUN[..], &["--fresh", "--wait", "60s"]].concat()).carried_out();
    assert!(killed.elapsed() < Duration::from_secs(60), "{:?}", killed.elapsed());
    rack.expect_state_of_the_dut(&before);
    for host in leases(&rack) {
        assert_eq!((&host["state"], &host["holder"]), (&"free".into(), &Value::Null));
    }
}

#[test]
fn freed_lease_ends_its_run_and_sick_hosts_are_refused() {
    let Some(rack) = Rack::build() else { return };
    let power = format!("power_cycle = [\"{}\"]\nreboot_timeout = \"1s\"", rack.at("cycle"));
    // One shell for all commands is equivalent here to one for each.
    short(&rack, &power, "one_shell = true\n");
    // More than three programs measure before they are ended.
    rack.write("x.toml", &plain(300));
    let program = rack.start(&RUN);
    assert!(until(PATIENCE, || stored(&program) >= 1), "{}", program.stderr());
    let freed = rack.command(&["lab", "free", "lab.toml", "dut", "--force"]).output();
    let freed = String::from_utf8_lossy(&freed.expect("fwdlab").stdout).into_owned();
    assert!(freed.contains("dut: ended the lease of ") && freed.contains(" s left"), "{freed}");
    let ended = program.end().expect(3);
    assert!(ended.stderr.contains("the lease of dut is lost: it was ended"), "{}", ended.stderr);
    // The next session restores the DUT, which then stays away permanently. Ctrl-C, which also ends
    // the power cycle, does not make the DUT sick.
    let without_dut = |cycle: &str, code| {
        rack.write_program("cycle", cycle);
        let program = rack.start(&RUN);
        assert!(until(PATIENCE, || stored(&program) >= 1), "{}", program.stderr());
        rack.write("stays-down", "");
        rack.reboot();
        let ended = program.end().expect(code);
        // The shutdown may still be killing processes.
        assert!(until(PATIENCE, || rack.processes("dut").is_empty()), "{}", rack.log("dut"));
        fs::remove_file(rack.path("stays-down")).expect("a file");
        rack.boot("dut");
        ended.stderr.split_whitespace().collect::<Vec<_>>().join(" ")
    };
    let words = without_dut("#!/bin/sh\nkill -INT $PPID; exit 130\n", 130);
    assert!(words.contains("interrupted") && !words.contains("sick"), "{words}");
    let words = without_dut("#!/bin/sh\nexit 1\n", 3);
    for word in ["cycle on this machine failed", "dut is marked sick, on sender and receiver"] {
        assert!(words.contains(word), "no `{word}` in {words}");
    }
    let refused = rack.fwdlab(&RUN).expect(3);
    for word in ["dut is marked sick, by ", "did not come back", "lab mark LAB dut well"] {
        assert!(refused.stderr.contains(word), "no `{word}` in {}", refused.stderr);
    }
    assert!(leases(&rack).iter().all(|host| host["state"] == "free"), "given back");
    rack.fwdlab(&["lab", "mark", "lab.toml", "dut", "well"]).expect(0);
    let mark = |why| ["lab", "mark", "lab.toml", "sender", "sick", why];
    let blank = rack.fwdlab(&mark(" ")).expect(2);
    assert!(blank.stderr.contains("why sender is sick"), "{}", blank.stderr);
    let marked = rack.fwdlab(&[&mark("1\\n2\\c3")[..], &["--json"]].concat()).expect(0);
    let marked: Value = serde_json::from_str(&marked.stdout).expect("JSON");
    assert_eq!((&marked["health"], &marked["kept_on"][0]), (&"sick".into(), &"sender".into()));
    assert_eq!(leases(&rack)[0]["sick"]["why"], "1\\n2\\c3", "letter by letter");
    let marked = rack.fwdlab(&mark("it's loud")).expect(0);
    assert!(marked.stdout.contains("sender is marked sick, on sender: "), "{}", marked.stdout);
    let shown = rack.fwdlab(&["lab", "leases", "lab.toml"]).expect(0);
    assert!(shown.stdout.contains(": it's loud"), "{}", shown.stdout);
    rack.write("x.toml", &plain(1));
    let refused = rack.fwdlab(&[&RUN[..], &["--fresh"]].concat()).expect(3);
    assert!(refused.stderr.contains("sender is marked sick, by "), "{}", refused.stderr);
    rack.fwdlab(&["lab", "mark", "lab.toml", "sender", "well"]).expect(0);
    rack.fwdlab(&[&RUN[..], &["--fresh"]].concat()).carried_out();
    rack.fwdlab(&["lab", "mark", "lab.toml", "sender", "sick"]).expect(2);
    let unknown = rack.fwdlab(&["lab", "mark", "lab.toml", "nobody", "well"]).expect(2);
    assert!(unknown.stderr.contains("sender, dut, receiver"), "{}", unknown.stderr);
}
