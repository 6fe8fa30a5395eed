//! `fwdlab import-lab`: configurations of another harness.

use crate::support::Lab;

const CONFIG: &str = r#"#!/bin/sh
#+--------------------+    +---------------------------------+
#| Device under test  |    |  Packet generator and receiver  |
#|  em0: 198.18.0.1/24|<===|  ix0: 198.18.0.2/24             |
#|  em1: 198.19.0.1/24|===>|  ix1: 198.19.0.2/24             |
#+--------------------+    +---------------------------------+
SENDER_ADMIN="peer"
RECEIVER_ADMIN=${SENDER_ADMIN}
DUT_ADMIN="dut"
SENDER_LAB_IP="198.18.0.2"
SENDER_LAB_IF="ix0"
RECEIVER_LAB_IF="ix1"
: ${PMC_EVENT:="cycles"}
SENDER_START_CMD="pkt-gen -f tx -i ${SENDER_LAB_IF} -l 60 -s 198.18.2.1-198.18.2.5 -d 198.19.2.1-198.19.2.4"
"#;

#[test]
fn imported_lab_is_plannable_and_never_overwritten() {
    let lab = Lab::new("");
    lab.write("bench-lab.config", CONFIG);
    for name in ["2", "10", "1"] {
        let folder = lab.path(&format!("rack/configs/{name}/etc"));
        std::fs::create_dir_all(folder).expect("a folder");
        lab.write(&format!("rack/configs/{name}/etc/rc.conf"), "sshd_enable=\"YES\"\n");
    }
    let arguments =
        ["import-lab", "bench-lab.config", "--out", "rack", "--configs", "rack/configs"];
    let output = lab.fwdlab(&arguments).expect(0).stdout;
    assert!(output.starts_with("written: rack/lab.toml and rack/experiment.toml\n"), "{output}");
    assert!(output.contains("line 13: PMC_EVENT=\"cycles\""), "{output}");

    let drawn = lab.fwdlab(&["lab", "show", "rack/lab.toml"]).expect(0).stdout;
    assert!(drawn.contains("─ peer ─") && drawn.contains("ssh root@dut"), "{drawn}");
    let plan = lab.fwdlab(&["plan", "rack/experiment.toml", "--json"]).expect(0).json();
    let plan = plan.get("plan").unwrap_or(&plan);
    let label = |at: usize| plan["variants"][at]["label"].as_str().map(str::to_owned);
    assert_eq!([0, 1, 2].map(label), ["1", "2", "10"].map(|label| Some(label.to_owned())));
    let traffic = &plan["base"]["traffic"];
    assert_eq!(
        (&traffic["generator"], &traffic["flows"]["sources"]),
        (&"pkt-gen".into(), &5.into())
    );
    let text = lab.fwdlab(&["plan", "rack/experiment.toml"]).expect(0).stdout;
    for part in ["ssh, laboratory lab.toml", "the FreeBSD kernel", "reboot always", "pkt-gen"] {
        assert!(text.contains(part), "{part}: {text}");
    }

    let again = lab.fwdlab(&arguments).expect(2).stderr;
    assert!(again.contains("rack/lab.toml exists"), "{again}");
}

#[test]
fn executable_configuration_is_refused_with_its_place() {
    let lab = Lab::new("");
    lab.write("bench-lab.config", &format!("{CONFIG}reboot now\nA=$(date)\n"));
    let refused = lab.fwdlab(&["import-lab", "bench-lab.config"]).expect(2).stderr;
    assert!(refused.contains("this line is no assignment"), "{refused}");
    assert!(refused.contains("bench-lab.config:15:1"), "{refused}");
    assert!(refused.contains("2 faults"), "{refused}");
    assert!(!lab.path("lab.toml").exists());
    let absent = lab.fwdlab(&["import-lab", "absent.config"]).expect(2).stderr;
    assert!(absent.contains("can't read absent.config"), "{absent}");
}
