//! A FreeBSD DUT from boot to boot, compared with the archive's own harness.

use crate::freebsd_host::{install, received};
use crate::rack::Rack;
use crate::whole::recorded;
use fwdlab_model::warning::Warning;
use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;

/// The machine's own settings, which the archive's trees contain next to the experiment's.
const RC: &str = "hostname=\"hp\"\ndefaultroute_delay=\"5\"\nifconfig_igb1=\"inet 192.168.1.10/24\"\nsshd_enable=\"yes\"\n";

const EXPERIMENT: &str = r#"
version = 1
title = "Queues of a FreeBSD router"
[testbed]
kind = "ssh"
lab = "lab.toml"
[dut]
kind = "freebsd"
icmp_redirect = true
LINES
[[factor]]
name = "queues"
levels = LEVELS
[traffic]
rate = "5kpps"
flows = { sources = 2, destinations = 2 }
[trial]
warmup = "100ms"
duration = "300ms"
drain = "300ms"
[design]
blocks = 1
"#;

fn read(path: PathBuf) -> String {
    fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// Assignments `name="value"` of a file.
fn assignments(text: &str) -> BTreeMap<String, String> {
    let lines = text.lines().filter(|line| !line.starts_with('#'));
    let pairs = lines.filter_map(|line| line.split('#').next()?.trim().split_once('='));
    pairs.map(|(name, value)| (name.to_owned(), value.trim_matches('"').to_owned())).collect()
}

/// One boot of the DUT: its queues, the variables it read, and the result: addresses, routes,
/// neighbours, sysctls.
struct Boot {
    queues: String,
    loader: BTreeMap<String, String>,
    state: String,
}

/// The boots so far; the first one uses the machine's own settings.
fn boots(rack: &Rack) -> Vec<Boot> {
    let count = rack.boots().lines().count();
    let boot = |number: usize| {
        let file = |name: &str| read(rack.path(&format!("boot.{number}/{name}")));
        let loader = assignments(&file("loader.conf.local"));
        let queues = loader.get("hw.cxgbe.nrxq10g").cloned().unwrap_or_default();
        Boot { queues, loader, state: file("state") }
    };
    (2..=count + 1).map(boot).collect()
}

#[test]
fn settings_and_archive_trees_make_the_same_router() {
    let Some(rack) = Rack::build() else { return };
    let archive = fwdlab_testdata::archives().swap_remove(0);
    let trees = archive.path().join("000-cxgbe-queues-fbsd10.2/configs");
    let of_tree = |queues: u32| read(trees.join(format!("{queues}/boot/loader.conf.local")));
    let variables: Vec<(String, String)> = assignments(&of_tree(1))
        .into_iter()
        .filter(|(name, _)| !name.starts_with("hw.cxgbe.n"))
        .collect();
    let files = BTreeMap::from([
        ("dut.etc/rc.conf", RC.to_owned()),
        ("dut.etc/sysctl.conf", String::new()),
        ("dut.boot.d/loader.conf.local", "# The machine's own.\n".to_owned()),
    ]);
    install(&rack, &files);

    let loader: Vec<String> = variables.iter().map(|(n, v)| format!("\"{n}\" = \"{v}\"")).collect();
    let lines = format!(
        "loader = {{ {} }}\nsysctl = {{ \"hw.pci.do_power_nodriver\" = 3, \
         \"dev.cxl.0.pause_settings\" = 0 }}",
        loader.join(", ")
    );
    rack.write("x.toml", &EXPERIMENT.replace("LINES", &lines).replace("LEVELS", "[1, 2]"));
    let ended = rack.fwdlab(&["run", "x.toml", "--json", "--no-calibration"]).carried_out();
    assert_eq!(recorded(&rack), [1, 1], "{}", ended.stderr);
    for run in rack.runs() {
        assert!(run.trial.total.forwarded > 100, "{:?}", run.trial.total);
        let of_settings = |warning: &&Warning| matches!(warning, Warning::NotVerified { .. });
        let doubts: Vec<&Warning> = run.warnings.iter().filter(of_settings).collect();
        assert!(doubts.is_empty(), "{doubts:?}");
        assert_eq!(run.facts["cxl0 queues"], (run.variants[0] + 1).to_string());
        assert!(run.facts["kernel"].contains("r287260M"), "{:?}", run.facts);
    }
    let by_settings = boots(&rack);
    assert_eq!(by_settings.len(), 2, "one for each variant");
    assert_eq!(received(&rack, "shutdown"), ["shutdown -r now"; 2]);
    for boot in &by_settings {
        let tree = of_tree(boot.queues.parse().expect("a number"));
        assert_eq!(boot.loader, assignments(&tree));
    }
    // The files made each boot complete: nothing had to be set manually afterwards.
    for beginning in ["route", "arp -S", "ndp -s"] {
        assert_eq!(received(&rack, beginning), [""; 0]);
    }
    assert!(received(&rack, "ifconfig").iter().all(|line| !line.contains("alias")));
    // A boot is repeated if a connection is lost.
    assert!(received(&rack, "sysctl hw.pci.do_power_nodriver=3").len() >= 2);
    expect_own_files(&rack, &files);
    let put_back = rack.inside("dut", "cat /run/freebsd/hw.pci.do_power_nodriver");
    assert_eq!(put_back, "0\n");

    let level = |queues: u32| {
        let tree = trees.join(queues.to_string());
        let tree = fs::canonicalize(tree).expect("a tree").display().to_string();
        format!("{{ label = \"{queues}\", overlay = \"{tree}\", queues = {queues} }}")
    };
    let levels = format!("[{}, {}]", level(1), level(2));
    rack.write("x.toml", &EXPERIMENT.replace("LINES", "").replace("LEVELS", &levels));
    let ended =
        rack.fwdlab(&["run", "x.toml", "--json", "--no-calibration", "--fresh"]).carried_out();
    assert_eq!(recorded(&rack), [1, 1], "{}", ended.stderr);
    let by_trees = boots(&rack).split_off(2);
    assert_eq!(by_trees.len(), 2);
    for boot in &by_trees {
        let twin = by_settings.iter().find(|twin| twin.queues == boot.queues);
        let twin = twin.expect("as many queues");
        assert!(boot.state.contains("198.19.0.0/16 via 198.19.0.108 dev cxl1"), "{}", boot.state);
        assert_eq!(boot.state, twin.state);
    }
    expect_own_files(&rack, &files);
}

fn expect_own_files(rack: &Rack, files: &BTreeMap<&str, String>) {
    for (name, text) in files {
        assert_eq!(read(rack.path(name)), *text, "{name} is as before");
    }
    assert!(!rack.path("dut.etc/rc.conf.misc").exists());
    let left = rack.inside("dut", "ls -A /run /var/db/fwdlab/originals 2>/dev/null || :");
    assert!(!left.contains("rc.conf"), "{left}");
}
