//! Devices that translate addresses, in network namespaces: the declared path is checked, in both
//! families and directions.

use crate::support::{Lab, is_root, machine, values_per_variant};

const SOURCE: &str = include_str!("../../../../experiments/rulesets/masquerade.nft");
const DESTINATION: &str = include_str!("../../../../experiments/rulesets/dnat.nft");
const BOTH: &str = include_str!("../../../../experiments/rulesets/dnat-masquerade.nft");

/// Both families through a device that translates, by this level.
fn lab(level: &str, traffic: &str) -> Lab {
    let lab = Lab::new(&format!(
        "version = 1\n[testbed]\nkind = \"netns\"\n\
         [[factor]]\nname = \"family\"\nlevels = [\"inet\", \"inet6\"]\n\
         [dut]\n{level}\n\
         [traffic]\nflows = {{ sources = 40, destinations = 1 }}\nchecks = \"all\"\n{traffic}\n\
         [trial]\nwarmup = \"100ms\"\nduration = \"300ms\"\n[design]\nblocks = 1\n"
    ));
    for (name, text) in [("source", SOURCE), ("destination", DESTINATION), ("both", BOTH)] {
        lab.write(&format!("{name}.nft"), text);
    }
    lab
}

fn level(nat: &str) -> String {
    let port = if nat == "source" { "" } else { "nat_port = 8080" };
    format!("firewall = \"{nat}.nft\"\nnat = \"{nat}\"\n{port}")
}

#[test]
fn translated_packets_arrive_undamaged_in_both_families_and_directions() {
    if !is_root("translation is measured in namespaces as root") {
        return;
    }
    let _alone = machine();
    for (nat, traffic) in [
        ("source", ""),
        ("destination", ""),
        ("both", ""),
        ("destination", "directions = \"both\"\nrate = 20000"),
    ] {
        let lab = lab(&level(nat), traffic);
        let run = ["run", "x.toml", "--no-calibration", "--no-report", "--json"];
        let result = lab.fwdlab(&run).carried_out().json();
        assert_eq!(values_per_variant(&result), [1, 1], "{nat} {traffic}: {result:#}");
        for variant in result["variants"].as_array().expect("variants") {
            let rate = variant["values"][0].as_f64().expect("a rate");
            assert!(rate > 500.0, "{nat} {traffic}: {variant:#}");
        }
        assert!(!result.to_string().contains("damaged\""), "{nat} {traffic}: {result:#}");
    }
}

#[test]
fn wrong_translation_is_named_by_its_fault() {
    if !is_root("translation is measured in namespaces as root") {
        return;
    }
    let _alone = machine();
    let to = ("198.19.1.0:7", "[2001:2:0:8001::1:0]:7");
    for (other, fault) in [
        (("198.19.1.9:7", "[2001:2:0:8001::1:9]:7"), "destination-address"),
        (("198.19.1.0:9", "[2001:2:0:8001::1:0]:9"), "udp-header"),
    ] {
        let lab = lab(&level("destination"), "");
        let wrong = DESTINATION.replace(to.0, other.0).replace(to.1, other.1);
        lab.write("destination.nft", &wrong);
        let output = lab.fwdlab(&["run", "x.toml", "--no-calibration"]).expect(4).stdout;
        assert!(output.contains(&format!("x {fault})")), "{fault}: {output}");
    }
}
