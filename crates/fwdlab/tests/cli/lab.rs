//! `fwdlab lab`: laboratories of several machines, all of which are this machine.

use crate::support::Lab;
use fwdlab_bench::host::{Host, LocalHost};

/// Two hosts that are both this machine, on its loopback.
const LOOPBACK: &str = r#"
version = 1
name = "loopback"

[[host]]
name = "generator"
roles = ["sender", "receiver"]
[[host.interface]]
name = "lo"
side = "sender"
addresses = ["198.18.0.2/24"]
[[host.interface]]
name = "lo1"
side = "receiver"

[[host]]
name = "router"
roles = ["dut"]
[[host.interface]]
name = "lo"
side = "sender"
addresses = ["198.18.0.1/24"]
[[host.interface]]
name = "lo1"
side = "receiver"

[[cable]]
a = "generator:lo"
b = "router:lo"
[[cable]]
a = "generator:lo1"
b = "router:lo1"
"#;

fn lab(text: &str) -> Lab {
    let lab = Lab::new("");
    lab.write("lab.toml", text);
    lab
}

#[test]
fn lab_show_draws_the_lab_or_prints_json() {
    let lab = lab(LOOPBACK);
    let drawn = lab.fwdlab(&["lab", "show", "lab.toml"]).expect(0).stdout;
    for line in [
        "┌─ generator ─────────────────────┐          ┌─ router ────────────────────────┐",
        "│ lo                              │═════════▶│ lo                              │",
        "│   198.18.0.2/24                 │          │   198.18.0.1/24                 │",
        "│ lo1                             │◀═════════│ lo1                             │",
    ] {
        assert!(drawn.contains(line), "{line} in\n{drawn}");
    }
    let json = lab.fwdlab(&["lab", "show", "lab.toml", "--json"]).expect(0).json();
    assert_eq!(json["name"], "loopback");
    assert_eq!(json["hosts"][0]["roles"][1], "receiver");
    assert_eq!(json["hosts"][1]["interfaces"][0]["addresses"][0], "198.18.0.1/24");
    assert_eq!(json["cables"][1]["dut"]["interface"], "lo1");
}

#[test]
fn lab_check_reports_missing_requirements_with_a_next_step() {
    let lab = lab(LOOPBACK);
    // There is no second loopback.
    let ended = lab.fwdlab(&["lab", "check", "lab.toml"]).expect(3);
    for line in [
        "generator\nok  reach: this machine\nok  system: Linux ",
        "ok  interface lo: 00:00:00:00:00:00",
        "ok  link lo: up",
        "ok  generator: fwdlab",
        "no  interface lo1: ",
        "next step: check its name: `ip -br link` lists them",
        "Not checked without --traffic: where the",
    ] {
        assert!(ended.stdout.contains(line), "{line} in\n{}", ended.stdout);
    }
    let json = lab.fwdlab(&["lab", "check", "lab.toml", "--json"]).expect(3).json();
    assert_eq!((&json["fine"], &json["hosts"][1]["host"]), (&false.into(), &"router".into()));
    let probes = json["hosts"][1]["probes"].as_array().expect("probes");
    let wrong: Vec<_> = probes
        .iter()
        .filter(|probe| probe["works"] == false)
        .filter_map(|probe| probe["name"].as_str())
        .filter(|name| !name.starts_with("program "))
        .collect();
    assert_eq!(wrong, ["interface lo1"], "{json:#}");
}

#[test]
fn lab_check_reports_another_operating_system() {
    let lab =
        lab(&LOOPBACK.replace("name = \"router\"\n", "name = \"router\"\nsystem = \"freebsd\"\n"));
    let ended = lab.fwdlab(&["lab", "check", "lab.toml"]).expect(3);
    assert!(ended.stdout.contains("no  system: Linux "), "{}", ended.stdout);
    assert!(ended.stdout.contains("or boot FreeBSD"), "{}", ended.stdout);
}

#[test]
fn lab_file_faults_are_reported_together() {
    let wrong = LOOPBACK.replace("router:lo\"", "roter:lo\"").replace("198.18.0.1", "8.8.8.8");
    let lab = lab(&wrong);
    for command in ["show", "check"] {
        let ended = lab.fwdlab(&["lab", command, "lab.toml"]).expect(2);
        for expected in
            ["did you mean `router`?", "8.8.8.8/24 is not for benchmarks", "2 faults in lab.toml"]
        {
            assert!(ended.stderr.contains(expected), "{expected} in\n{}", ended.stderr);
        }
    }
    let missing = lab.fwdlab(&["lab", "show", "nothing.toml"]).expect(2);
    assert!(missing.stderr.contains("nothing.toml"), "{}", missing.stderr);
    lab.fwdlab(&["lab"]).expect(2);
    let help = lab.fwdlab(&["lab", "check", "--help"]).expect(0);
    assert!(help.stdout.contains("Not checked: the cables' direction"), "{}", help.stdout);
}

/// Both ends of two cables in one namespace: `g0` to `d0`, `r0` to `d1`.
const WIRED: &str = r#"
version = 1
name = "wired"

[[host]]
name = "generator"
roles = ["sender", "receiver"]
[[host.interface]]
name = "g0"
side = "sender"
[[host.interface]]
name = "r0"
side = "receiver"

[[host]]
name = "router"
roles = ["dut"]
[[host.interface]]
name = "d0"
side = "sender"
[[host.interface]]
name = "d1"
side = "receiver"

[[cable]]
a = "generator:g0"
b = "router:d0"
[[cable]]
a = "generator:r0"
b = "router:d1"
"#;

#[test]
fn lab_check_traffic_finds_cables_and_ceilings() {
    let namespace = format!("lab-{}", std::process::id());
    let ip = |text: &str| LocalHost.run(&["ip", "-batch", "-"], text);
    let mut made = format!("netns add {namespace}\n");
    for (a, b) in [("g0", "d0"), ("r0", "d1")] {
        made +=
            &format!("link add {a} netns {namespace} type veth peer name {b} netns {namespace}\n");
    }
    if let Err(error) = ip(&made) {
        return fwdlab_testdata::skip(&format!("no network namespaces here: {error}"));
    }
    for name in ["g0", "d0", "r0", "d1"] {
        let up = format!("link set {name} addrgenmode none\nlink set {name} up\n");
        LocalHost.run(&["ip", "-n", &namespace, "-batch", "-"], &up).expect("a link");
    }
    let lab = lab(WIRED);
    let swapped = WIRED.replace("d0", "dX").replace("d1", "d0").replace("dX", "d1");
    lab.write("swapped.toml", &swapped);
    let checked = |arguments: &str| {
        let mut command = std::process::Command::new("ip");
        command.args(["netns", "exec", &namespace, env!("CARGO_BIN_EXE_fwdlab")]);
        command.args(arguments.split(' ')).current_dir(lab.path(""));
        command.output().expect("fwdlab")
    };
    let right = checked("lab check lab.toml --traffic --json");
    let wrong = checked("lab check swapped.toml --traffic");
    let _ = ip(&format!("netns delete {namespace}\n"));

    let json: serde_json::Value = serde_json::from_slice(&right.stdout).expect("JSON");
    let traffic = &json["traffic"];
    assert_eq!(traffic["obstacles"], serde_json::json!([]), "{traffic:#}");
    for (cable, interface, other) in [(0, "d0", "d1"), (1, "d1", "d0")] {
        let cable = &traffic["cables"][cable];
        assert_eq!(cable["works"], true, "{cable:#}");
        assert!(cable["sent"].as_u64() >= Some(10), "{cable:#}");
        assert!(cable["arrived"][interface].as_u64() >= cable["sent"].as_u64(), "{cable:#}");
        assert!(cable["arrived"][other].as_u64() < Some(100), "{cable:#}");
    }
    let ceilings = traffic["ceilings"].as_array().expect("a list");
    assert_eq!(ceilings.len(), 1, "receivers don't send: {traffic:#}");
    let rate = |name: &str| ceilings[0][name].as_f64().expect("a rate");
    assert!(rate("arrived_pps") > 10.0 && rate("sent_pps") > 10.0, "{traffic:#}");
    assert!(rate("seconds") >= 1.9 && ceilings[0]["to"] == "router:d0", "{traffic:#}");

    let output = String::from_utf8_lossy(&wrong.stdout);
    assert_eq!(wrong.status.code(), Some(3), "{output}");
    let output = output.split_whitespace().collect::<Vec<_>>().join(" ");
    for part in [
        "no cable generator:g0 to router:d1: 0 of ",
        "at d0 instead",
        "correct the cables",
        " ceiling of generator:g0: ",
    ] {
        assert!(output.contains(part), "{part} in {output}");
    }
}

#[test]
fn lab_schema_matches_the_reader() {
    let schema = lab("").fwdlab(&["lab", "schema"]).expect(0).json();
    assert_eq!(schema["title"], "fwdlab laboratory");
    assert!(schema["properties"]["host"]["items"]["properties"]["reboot_timeout"].is_object());
}
