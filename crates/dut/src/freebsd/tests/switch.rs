//! Levels that are switched while traffic flows.

use super::{bring_up, dut, machine, queues};
use crate::Dut;
use crate::findings::Findings;
use fwdlab_model::settings::Firewall;

#[test]
fn levels_switch_without_file_changes_or_reboots() {
    let mut host = machine();
    host.defaults.insert("net.inet.ip.maxfragpackets".into(), "1000".into());
    host.boot();
    let before = host.visible();
    let plain = queues(1);
    let mut other = plain.clone();
    other.dut.firewall = Firewall::Stateful;
    other.dut.sysctl.insert("net.inet.ip.maxfragpackets".into(), "0".into());
    let mut dut = dut();
    bring_up(&mut dut, &host, &plain);
    let files = host.visible();
    host.forget_commands();
    let value = || host.now().sysctls["net.inet.ip.maxfragpackets"].clone();
    for _ in 0..2 {
        let mut findings = Findings::default();
        dut.switch(&host, &plain, &other).expect("switched");
        dut.verify(&host, &plain, &other, &mut findings).expect("read back");
        assert_eq!((findings.facts["firewall"].as_str(), value().as_str()), ("pf, 1 rules", "0"));
        dut.switch(&host, &other, &plain).expect("switched back");
        dut.verify(&host, &other, &plain, &mut findings).expect("read back");
        assert_eq!((findings.facts["firewall"].as_str(), value().as_str()), ("none", "1000"));
        assert!(findings.warnings.is_empty(), "{:?}", findings.warnings);
    }
    assert_eq!(host.visible(), files, "no file is written while traffic flows");
    assert_eq!(host.ran("shutdown"), [""; 0]);
    // A loaded kernel module stays loaded.
    dut.undo(&host).expect("undone");
    assert_eq!(host.visible(), before);
    assert_eq!(value(), "1000");
}
