use super::*;
use proptest::prelude::*;

const SMALL: &str = r#"#!/bin/sh
#+--------------------+    +---------------------------------+
#| Device under test  |    |  Packet generator and receiver  |
#|  em0: 198.18.0.1/24|<===|  ix0: 198.18.0.2/24             |
#|  02:00:00:00:00:01 |    |  02:00:00:00:00:03              |
#|  em1: 198.19.0.1/24|===>|  ix1: 198.19.0.2/24             |
#+--------------------+    +---------------------------------+
SENDER_ADMIN="peer.example.org"
RECEIVER_ADMIN=${SENDER_ADMIN}
DUT_ADMIN="192.168.1.9"
SENDER_LAB_IP="198.18.0.2"
SENDER_LAB_IF="ix0"
RECEIVER_LAB_IF="ix1"
DUT_LAB_IF_MAC_SENDER_SIDE="02:00:00:00:00:01"
# A comment between.
: ${AF:="6"}
MYSTERY="42"
SENDER_START_CMD="pkt-gen -f tx -i ${SENDER_LAB_IF} -n 0 -l 124 -${AF} -p 3 -R 1000 -X"
"#;

#[test]
fn small_file_becomes_a_laboratory_and_an_experiment() {
    let imported = import("x/small.config", SMALL, &["configs/1".into(), "configs/2".into()])
        .unwrap_or_else(|faults| panic!("{faults}"));
    let lab = Lab::parse("lab.toml", &imported.lab).unwrap_or_else(|faults| panic!("{faults}"));
    assert_eq!(lab.name, "small");
    let peer = lab.host("peer.example.org").expect("the peer, called by its address");
    assert_eq!(peer.ssh.as_deref(), Some("root@peer.example.org"));
    assert!(lab.host("dut").is_some());
    assert!(imported.lab.contains("# Its comments:\n#+----"));
    assert!(imported.experiment.contains("# A comment between.\n"));
    for expected in ["MYSTERY=\"42\"", "-X: pkt-gen's option has no place", "-n 0"] {
        let is_reported = imported.remarks.iter().any(|remark| remark.contains(expected));
        assert!(is_reported, "{expected}: {:?}", imported.remarks);
        assert!(imported.experiment.contains(expected), "{expected}");
    }
    let loader = |path: &str| match path.ends_with('/') {
        true => Ok("etc/rc.conf\0".into()),
        false => Ok("a=1\n".into()),
    };
    let plan = crate::load("experiment.toml", &imported.experiment, &loader)
        .unwrap_or_else(|faults| panic!("{faults}"));
    let labels: Vec<&str> = plan.variants.iter().map(|v| v.label.as_str()).collect();
    assert_eq!(labels, ["1", "2"]);
    let traffic = &plan.base.traffic;
    assert_eq!(traffic.frame_size.most(), 128);
    assert_eq!(traffic.rate, crate::settings::Rate::Pps(3000.0));
    assert_eq!(traffic.generator_options, ["-p", "3"]);
}

#[test]
fn crlf_line_ends_are_accepted() {
    let read = |text: &str| import("small.config", text, &[]).map_err(|faults| faults.to_string());
    assert_eq!(read(&SMALL.replace('\n', "\r\n")), read(SMALL));
}

#[test]
fn missing_settings_are_reported_together() {
    let faults = import("x.config", "SENDER_ADMIN=1\n", &[]).expect_err("nearly empty");
    let text = faults.to_string();
    for name in ["DUT_ADMIN", "SENDER_LAB_IF", "RECEIVER_ADMIN", "RECEIVER_LAB_IF"] {
        assert!(text.contains(&format!("`{name}` is not set")), "{text}");
    }
    let faults = import("x.config", &format!("{SMALL}reboot\n"), &[]).expect_err("a command");
    assert_eq!(faults.list.len(), 1);
    assert!(faults.to_string().contains("x.config:19:1"), "{faults}");
}

#[test]
fn missing_diagram_leaves_dut_interfaces_to_the_user() {
    let bare: String =
        SMALL.lines().filter(|line| !line.starts_with('#')).map(|l| format!("{l}\n")).collect();
    let imported = import("bare.config", &bare, &[]).unwrap_or_else(|faults| panic!("{faults}"));
    assert!(imported.remarks.iter().any(|remark| remark.contains("replace unknown0")));
    assert!(imported.remarks.iter().any(|remark| remark.contains("/24 is assumed")));
    Lab::parse("lab.toml", &imported.lab).unwrap_or_else(|faults| panic!("{faults}"));
}

proptest! {
    /// For any content of a file, both texts are valid TOML.
    #[test]
    fn values_do_not_break_out_of_their_quotes(value in "\\PC{0,30}", option in "[ -~]{0,30}") {
        let value = value.replace('\'', "");
        let option = option.replace('\'', "");
        let text = format!("{SMALL}MYSTERY='{value}'\nREBOOT_TIMEOUT='{option}'\nSENDER_START_CMD='pkt-gen {option}'\nRECEIVER_LAB_IF='{value}x'\n");
        let imported = import("x.config", &text, &[]).expect("assignments");
        for text in [&imported.lab, &imported.experiment] {
            prop_assert!(toml::de::DeTable::parse(text).is_ok(), "{}", text);
        }
    }
}
