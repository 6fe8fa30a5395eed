//! Reads configuration trees and harness settings of published experiments, and arbitrary contents
//! of these files.

use fwdlab_archive::config::{Configuration, SettingChange, changes, facts, one_line, varied};
use fwdlab_archive::lab_config::LabConfig;
use fwdlab_testdata::{Collection, archives};
use proptest::prelude::*;
use std::fs;
use std::path::{Path, PathBuf};

/// The folder of the experiment with this name prefix.
fn experiment(archive: &Collection, prefix: &str) -> PathBuf {
    let folders = fs::read_dir(archive.path()).unwrap().map(|entry| entry.unwrap().path());
    let named =
        |folder: &PathBuf| folder.file_name().unwrap().to_string_lossy().starts_with(prefix);
    folders.into_iter().find(named).expect("an experiment of that name")
}

/// A variant's configuration tree.
fn tree(experiment: &Path, variant: &str) -> Configuration {
    let root = experiment.join("configs").join(variant);
    let mut files = Vec::new();
    collect(&root, &root, &mut files);
    assert!(!files.is_empty(), "no files in {}", root.display());
    let files: Vec<(String, &[u8])> =
        files.iter().map(|(path, content)| (path.clone(), content.as_slice())).collect();
    Configuration::read(&files)
}

fn collect(root: &Path, folder: &Path, files: &mut Vec<(String, Vec<u8>)>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            collect(root, &path, files);
        } else {
            let name = path.strip_prefix(root).unwrap().to_string_lossy().into_owned();
            files.push((name, fs::read(&path).unwrap()));
        }
    }
}

/// Returns the changes from `base` to `other`, in one line.
fn line(experiment: &Path, base: &str, other: &str) -> String {
    one_line(&changes(&tree(experiment, base), &tree(experiment, other)))
}

#[test]
fn varied_finds_queues_in_the_first_two_experiments() {
    for archive in archives() {
        for prefix in ["000", "001"] {
            let experiment = experiment(&archive, prefix);
            let expected = "hw.cxgbe.nrxq10g 1 -> 4, hw.cxgbe.ntxq10g 1 -> 4";
            assert_eq!(line(&experiment, "1", "4"), expected);
            let labels = ["1", "2", "3", "4", "5", "6", "7", "8"];
            let trees: Vec<_> = labels.map(|label| (label, tree(&experiment, label))).into();
            let named: Vec<_> = trees.iter().map(|(label, tree)| (*label, tree)).collect();
            assert_eq!(varied(&named).as_deref(), Some("queues"));
            assert_eq!(varied(&named[..1]), None);
        }
    }
}

#[test]
fn one_line_names_firewalls_and_rules() {
    for archive in archives() {
        let d27401 = experiment(&archive, "002");
        assert_eq!(
            line(&d27401, "forwarding", "pf-stateful"),
            "pf_enable YES (was unset), pf_rules /etc/pf.conf, etc/pf.conf: 1 rule (pass)"
        );
        assert_eq!(
            line(&d27401, "pf-stateful", "pf-stateless"),
            "etc/pf.conf: 1 rule added, 1 removed (pass no state)"
        );
        assert_eq!(
            line(&d27401, "forwarding", "ipf-stateful"),
            "ipfilter_enable YES (was unset), ipfilter_rules /etc/ipf.rules, \
         etc/ipf.rules: 8 rules (pass in quick on lo0)"
        );
        let d8526 = experiment(&archive, "003");
        assert_eq!(
            line(&d8526, "forwarding", "pf-stateless"),
            "pf_enable YES (was unset), pf_rules /etc/pf.conf, dumpdev igb0 -> NO, \
         etc/pf.conf: 1 rule (pass no state), dumpon_flags unset (was -s 192.168.1.24 -c 192.168.1.8)"
        );
        let d5330 = experiment(&archive, "004");
        assert_eq!(
            line(&d5330, "fastforwarding", "ipfw-stateful"),
            "firewall_enable YES (was unset), firewall_script /etc/ipfw.rules, \
         etc/ipfw.rules: 1 rule (add 3000 allow ip from any to any keep-state)"
        );
    }
}

#[test]
fn facts_describe_published_set_ups() {
    for archive in archives() {
        let d8526 = experiment(&archive, "003");
        assert_eq!(
            facts(&tree(&d8526, "ipf-stateless")),
            [
                "2 static routes (inet), 2 (inet6)",
                "LRO and TSO off on cxl0, cxl1",
                "harvest_mask 351",
                "ICMP redirects not sent (inet, inet6)",
                "hyper-threading off",
                "ipf enabled, stateless, 2 rules",
                "interfaces igb0, cxl0, cxl1",
            ]
        );
        let d5330 = experiment(&archive, "004");
        assert_eq!(
            facts(&tree(&d5330, "pf-stateful")),
            [
                "2 static routes (inet)",
                "ICMP redirects not sent (inet)",
                "fast forwarding on",
                "pf enabled, stateful, 1 rule",
                "interfaces igb1, cxl3, cxl2",
            ]
        );
    }
}

#[test]
fn lab_config_reads_published_harness_settings() {
    for archive in archives() {
        let queues = experiment(&archive, "000");
        let read = |experiment: &Path, name: &str| {
            LabConfig::read(&fs::read_to_string(experiment.join("machine").join(name)).unwrap())
        };
        let config = read(&queues, "bench-lab-2nodes.config");
        assert_eq!((config.sender(), config.dut()), (Some("192.168.1.2"), Some("192.168.1.10")));
        assert_eq!((config.flows(), config.skipped), (Some(4970), 0));
        assert_eq!(config.receiver_command(), Some("pkt-gen -N -f rx -i vcxl1 -w 2 -W"));
        let d8526 = experiment(&archive, "003");
        let config = read(&d8526, "bench-lab-3nodes.config");
        assert_eq!(config.receiver(), config.sender(), "by reference");
        assert_eq!((config.flows(), config.packet_bytes()), (Some(2000), Some(60)));
        assert_eq!(
            config.sender_command(),
            Some(
                "pkt-gen -N -U -f tx -i vcxl0 -n 1000000000 -4 \
             -d 198.19.10.1:2001-198.19.10.100 -D 00:07:43:2e:e5:90 \
             -s 198.18.10.1:2001-198.18.10.20 -S 00:07:43:2f:fe:b2 -w 4 -l 60"
            )
        );
        let d27401 = experiment(&archive, "002");
        let config = read(&d27401, "bench-lab-3nodes.config");
        assert_eq!(config.flows(), Some(2 * 255 * 201), "two generators");
        assert_eq!(config.skipped, 0);
    }
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(300) })]

    #[test]
    fn read_accepts_arbitrary_contents(
        one in proptest::collection::vec(any::<u8>(), 0..200),
        other in "[a-z_.=\"'#\\\\\n ${}:`;0-9]{0,200}",
        path in "(etc/(rc.conf|sysctl.conf|pf.conf|x)|boot/loader.conf)(.local)?",
    ) {
        let read = |content: &[u8]| Configuration::read(&[(path.clone(), content)]);
        let (base, changed) = (read(&one), read(other.as_bytes()));
        let difference = changes(&base, &changed);
        prop_assert_eq!(one_line(&difference).is_empty(), difference.is_empty());
        prop_assert!(changes(&base, &base).is_empty());
        // The reverse comparison has the same number of changes, each inverted.
        let back = changes(&changed, &base);
        prop_assert_eq!(back.len(), difference.len());
        for change in &difference {
            let inverted = |other: &SettingChange| {
                (&other.from, &other.to, &other.name) == (&change.to, &change.from, &change.name)
            };
            prop_assert!(back.iter().any(inverted));
        }
        let _ = (facts(&changed), varied(&[("1", &base), ("2", &changed)]), LabConfig::read(&other));
    }

    #[test]
    fn lab_config_reads_back_quoted_values(values in proptest::collection::vec("[ -~&&[^\"\\\\$`]]{0,20}", 1..6)) {
        let text: String =
            values.iter().enumerate().map(|(i, v)| format!("NAME_{i}=\"{v}\" # {v}\n")).collect();
        let config = LabConfig::read(&text);
        for (index, value) in values.iter().enumerate() {
            prop_assert_eq!(config.get(&format!("NAME_{index}")), Some(value.as_str()));
        }
        prop_assert_eq!(config.skipped, 0);
    }
}
