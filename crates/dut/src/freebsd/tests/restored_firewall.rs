//! The DUT's own firewall after an experiment.

use super::*;

const OWN_RULES: &str = "block\npass a\npass b\n";

/// A machine whose own pf runs.
fn protected() -> ScriptedHost {
    let host = machine();
    host.write("/etc/pf.conf", OWN_RULES);
    start_pf(&host);
    host
}

fn start_pf(host: &ScriptedHost) {
    let mut state = host.now();
    state.modules.insert("pf".into());
    state.running.extend([("pf", 3), ("pf on", 1)]);
}

fn pf(host: &ScriptedHost) -> (Option<usize>, bool) {
    let state = host.now();
    (state.running.get("pf").copied(), state.running.contains_key("pf on"))
}

fn with_firewall(firewall: Firewall, program: FirewallProgram) -> Settings {
    let mut settings = queues(4);
    settings.dut.firewall = firewall;
    settings.dut.remote.firewall_program = program;
    settings
}

#[test]
fn own_firewall_runs_again_after_undo() {
    for (firewall, program) in [
        (Firewall::None, FirewallProgram::Auto),
        (Firewall::Stateful, FirewallProgram::Pf),
        (Firewall::Stateless, FirewallProgram::Ipfw),
    ] {
        let host = protected();
        let settings = with_firewall(firewall, program);
        // Calibration configures a DUT that was not prepared.
        let _ = dut().configure(
            &host,
            &queues(4),
            &Placement::of_dut(vec![0]),
            &mut Findings::default(),
        );
        assert!(!pf(&host).1);
        // May boot, which ends pf: the experiment's rc.conf applies.
        bring_up(&mut dut(), &host, &settings);
        assert_ne!(pf(&host), (Some(3), true));
        dut().undo(&host).expect("undone");
        assert_eq!(pf(&host), (Some(3), true), "{settings:?}");
        assert!(!host.now().modules.contains("ipfw"));
        // Not touched again.
        host.now().running.clear();
        dut().undo(&host).expect("nothing to undo");
        assert_eq!(pf(&host), (None, false));
    }
}

#[test]
fn own_firewall_that_cannot_start_is_reported_and_tried_again() {
    let host = protected();
    bring_up(&mut dut(), &host, &queues(4));
    host.fail("service pf onereload", "/etc/pf.conf:1: no such table");
    let error = dut().undo(&host).expect_err("reported");
    assert!(matches!(&error, BenchError::NotPutBack { why, .. } if why.contains("no such table")));
    host.now().failures.clear();
    dut().undo(&host).expect("undone");
    assert_eq!(pf(&host), (Some(3), true));
}

#[test]
fn loaded_firewall_that_was_off_is_off_after_undo() {
    let host = machine();
    host.now().modules.insert("pf".into());
    bring_up(&mut dut(), &host, &with_firewall(Firewall::Stateful, FirewallProgram::Pf));
    dut().undo(&host).expect("undone");
    assert!(!pf(&host).1);
}
