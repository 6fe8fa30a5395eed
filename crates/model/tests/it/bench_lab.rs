//! Configurations of the netbenches archive as laboratories and experiments.

use fwdlab_model::bench_lab::{Imported, import};
use fwdlab_model::lab::{Lab, LabInterface, Role, Side};
use fwdlab_model::settings::*;
use fwdlab_model::{Plan, load};
use fwdlab_testdata::{archives, larger};
use std::fs;
use std::path::Path;

fn imported(path: &Path) -> (Imported, Lab, Plan) {
    let text = fs::read_to_string(path).expect("the file can be read");
    let imported =
        import(&path.display().to_string(), &text, &[]).unwrap_or_else(|faults| panic!("{faults}"));
    let lab = Lab::parse("lab.toml", &imported.lab)
        .unwrap_or_else(|faults| panic!("{}\n{faults}\n{}", path.display(), imported.lab));
    let plan = load("experiment.toml", &imported.experiment, &|_| Err("no files".into()))
        .unwrap_or_else(|faults| panic!("{}\n{faults}", path.display()));
    (imported, lab, plan)
}

fn of(name: &str) -> Option<(Imported, Lab, Plan)> {
    larger("archive").map(|archive| imported(&archive.join(name)))
}

fn ends(lab: &Lab) -> Vec<String> {
    let switch = |cable: &fwdlab_model::lab::Cable| cable.switch.clone().unwrap_or_default();
    lab.cables.iter().map(|c| format!("{} {} {}", c.far, c.dut, switch(c))).collect()
}

fn interface<'a>(lab: &'a Lab, host: &str, name: &str) -> &'a LabInterface {
    let host = lab.host(host).expect("the host");
    host.interfaces.iter().find(|interface| interface.name == name).expect("the interface")
}

/// Formats MAC and addresses.
fn described(interface: &LabInterface) -> String {
    let addresses: Vec<String> = interface.addresses.iter().map(ToString::to_string).collect();
    let mac = interface.mac.map_or_else(|| "?".to_owned(), |mac| mac.to_string());
    format!("{mac} {}", addresses.join(" "))
}

fn has(imported: &Imported, part: &str) {
    let found = imported.remarks.iter().any(|remark| remark.contains(part));
    assert!(found, "{part}: {:#?}", imported.remarks);
    assert!(imported.experiment.contains(part), "{part} is no comment of the experiment");
    assert!(imported.lab.contains(part), "{part} is no comment of the laboratory");
}

#[test]
fn every_configuration_of_the_archive_is_imported() {
    for archive in archives() {
        let mut count = 0;
        for entry in fs::read_dir(archive.path()).expect("a folder") {
            let machine = entry.expect("an entry").path().join("machine");
            for file in fs::read_dir(machine).into_iter().flatten() {
                let path = file.expect("an entry").path();
                if path.extension().is_none_or(|extension| extension != "config") {
                    continue;
                }
                let (imported, lab, plan) = imported(&path);
                assert!((2..=3).contains(&lab.hosts.len()), "{}", path.display());
                assert_eq!(lab.hosts.iter().filter(|host| host.is(Role::Dut)).count(), 1);
                // The fixtures have no diagrams, which would supply the values missing from the
                // settings.
                let is_known = !imported.lab.contains("unknown");
                assert_eq!(is_known, archive.is_larger(), "{}", path.display());
                assert_eq!(plan.base.traffic.generator, GeneratorKind::PktGen);
                assert_eq!(plan.base.testbed.lab.as_deref(), Some("lab.toml"));
                count += 1;
            }
        }
        assert!(count >= 11, "{count} files");
    }
}

/// Two machines: a combined sender and receiver behind a switch.
#[test]
fn two_nodes() {
    let Some((imported, lab, plan)) =
        of("000-cxgbe-queues-fbsd10.2/machine/bench-lab-2nodes.config")
    else {
        return;
    };
    assert_eq!(lab.name, "bench-lab-2nodes");
    let [peer, dut] = [&lab.hosts[0], &lab.hosts[1]];
    assert_eq!((peer.name.as_str(), dut.name.as_str(), lab.hosts.len()), ("r630", "dut", 2));
    assert_eq!(peer.roles, [Role::Sender, Role::Receiver]);
    assert_eq!(peer.ssh.as_deref(), Some("root@192.168.1.2"));
    assert_eq!(dut.ssh.as_deref(), Some("root@192.168.1.10"));
    assert_eq!(dut.reboot_timeout_ns, Some(600_000_000_000));
    assert_eq!(dut.online, ["ping -c 2 198.19.0.2", "ping -c 2 198.18.0.2"]);
    assert_eq!(
        described(interface(&lab, "r630", "vcxl0")),
        "00:07:43:2f:fe:b2 198.18.0.2/24 2001:2::2/64"
    );
    assert_eq!(
        described(interface(&lab, "r630", "vcxl1")),
        "00:07:43:2f:fe:b9 198.19.0.2/24 2001:2:0:8000::2/64"
    );
    assert_eq!(
        described(interface(&lab, "dut", "cxl0")),
        "00:07:43:2e:e4:70 198.18.0.10/24 2001:2::10/64"
    );
    assert_eq!(
        described(interface(&lab, "dut", "cxl1")),
        "00:07:43:2e:e4:78 198.19.0.10/24 2001:2:0:8000::10/64"
    );
    assert_eq!(interface(&lab, "dut", "cxl1").side, Side::Receiver);
    assert_eq!(ends(&lab), ["r630:vcxl0 dut:cxl0 Juniper-QFX", "r630:vcxl1 dut:cxl1 Juniper-QFX"]);
    let traffic = &plan.base.traffic;
    assert_eq!((traffic.family, traffic.frame_size.most()), (Family::Inet, 64));
    assert_eq!(traffic.flows, Flows { sources: 71, destinations: 70 });
    assert_eq!(traffic.rate, Rate::Max);
    assert_eq!(traffic.generator_options, ["-w", "2", "-p", "2"]);
    for part in [
        "PKTGEN_IF_MAC_SENDER is 00:07:43:2f:fe:b2, the diagram has 00:07:43:2f:fe:b1",
        "-l 43 is less than a frame has: 64 bytes",
        "-n 1000000000: fwdlab sends for a time",
        "PMC_EVENT=\"cpu_clk_unhalted.thread_p\"",
        "RECEIVER_STOP_CMD=\"pkill pkt-gen\"",
        "hw.cxgbe.num_vis=2",
        "192.18.0.0/16      => 198.18.0.2",
    ] {
        has(&imported, part);
    }
    assert!(imported.experiment.contains("\n# SENDER_START_CMD: pkt-gen -N -f tx -w 2 -i vcxl0"));
    assert!(imported.experiment.contains("\n# Here generating almost 5000 flows"));
}

/// Three machines, one of them a tunnel's endpoint, which has no role in a laboratory.
#[test]
fn three_nodes_with_an_endpoint() {
    let Some((imported, lab, plan)) =
        of("003-firewalls-fbsd12-head.r299288.D8526/machine/bench-lab-3nodes.config")
    else {
        return;
    };
    let names: Vec<&str> = lab.hosts.iter().map(|host| host.name.as_str()).collect();
    assert_eq!(names, ["r630", "dut"]);
    assert_eq!(lab.hosts[1].ssh.as_deref(), Some("root@192.168.1.8"));
    assert_eq!(lab.hosts[1].reboot_timeout_ns, Some(250_000_000_000));
    assert_eq!(lab.hosts[1].online, ["ping -c 2 198.19.0.2"]);
    assert_eq!(
        described(interface(&lab, "r630", "vcxl0")),
        "00:07:43:2f:fe:b2 198.18.0.2/24 2001:2::2/64"
    );
    // Its addresses belong to the link behind the endpoint.
    assert_eq!(described(interface(&lab, "r630", "vcxl1")), "00:07:43:2f:fe:ba ");
    assert_eq!(
        described(interface(&lab, "dut", "cxl1")),
        "00:07:43:2e:e5:98 198.18.1.208/24 2001:2:0:1::208/64"
    );
    assert_eq!(ends(&lab), ["r630:vcxl0 dut:cxl0 ", "r630:vcxl1 dut:cxl1 HP"]);
    let traffic = &plan.base.traffic;
    assert_eq!(traffic.frame_size.most(), 64);
    assert_eq!(traffic.flows, Flows { sources: 20, destinations: 100 });
    assert_eq!(traffic.generator_options, ["-U", "-w", "4"]);
    has(&imported, "HP (192.168.1.10), cxl0 198.18.1.210/24");
    has(&imported, "198.19.0.2/24 of r630's vcxl1 is in another network");
}

/// Three machines with two senders, one of which is also the receiver.
#[test]
fn two_senders() {
    let Some((imported, lab, plan)) =
        of("002-firewalls-fbsd13.D27401/machine/ddos-lab-3nodes.config")
    else {
        return;
    };
    let roles: Vec<(&str, &[Role])> =
        lab.hosts.iter().map(|host| (host.name.as_str(), &host.roles[..])).collect();
    assert_eq!(
        roles,
        [
            ("pxetest3", &[Role::Sender][..]),
            ("pxetest1", &[Role::Sender, Role::Receiver]),
            ("pxetest2", &[Role::Dut]),
        ]
    );
    assert_eq!(lab.hosts[1].ssh.as_deref(), Some("root@pxetest1"));
    assert_eq!(
        lab.hosts[2].online,
        ["ping -c 2 198.19.0.11", "ping -c 2 198.18.0.13", "ping -c 2 198.18.0.11"]
    );
    assert_eq!(
        described(interface(&lab, "pxetest3", "vcxl0")),
        "00:07:43:30:f5:b1 198.18.0.13/24 2001:2::13/64"
    );
    assert_eq!(described(interface(&lab, "pxetest1", "vcxl1")), "00:07:43:2e:c7:39 198.18.0.11/24");
    assert_eq!(
        described(interface(&lab, "pxetest1", "vcxl0")),
        "00:07:43:2e:c7:31 198.19.0.11/24 2001:2:0:8000::11/64"
    );
    assert_eq!(interface(&lab, "pxetest1", "vcxl1").side, Side::Sender);
    assert_eq!(
        described(interface(&lab, "pxetest2", "cxl1")),
        "00:07:43:2c:bc:58 198.19.0.2/24 2001:2:0:8000::2/64"
    );
    assert_eq!(
        ends(&lab),
        [
            "pxetest3:vcxl0 pxetest2:cxl0 switch",
            "pxetest1:vcxl1 pxetest2:cxl0 switch",
            "pxetest1:vcxl0 pxetest2:cxl1 ",
        ]
    );
    let traffic = &plan.base.traffic;
    // 255 addresses with 201 ports each; 4 threads of 10 Mpps and 2 of 10 Mpps.
    assert_eq!(traffic.flows, Flows { sources: 51_255, destinations: 1 });
    assert_eq!(traffic.rate, Rate::Pps(60e6));
    assert_eq!(traffic.generator_options, ["-w", "2", "-p", "4", "-c", "4"]);
    for part in [
        "255 addresses with 201 ports each are written as 51255",
        "-s 198.18.1.1:2000-198.18.1.255:2200",
        "SENDER_STOP_CMD=\"pkill pkt-gen\"",
    ] {
        has(&imported, part);
    }
    assert!(imported.experiment.contains("#DURING_IF=\"cxl0\""));
}

#[test]
fn equilibrium_searches_are_not_imported() {
    let Some((imported, lab, plan)) =
        of("000-cxgbe-queues-fbsd10.2/machine/bench-lab-3nodes.equilibrium.config")
    else {
        return;
    };
    assert_eq!(lab.hosts[0].name, "sm1");
    assert_eq!(lab.hosts[1].name, "HP");
    assert_eq!(ends(&lab), ["sm1:vcxl0 HP:cxl0 ", "sm1:vcxl1 HP:cxl1 R630"]);
    assert_eq!(described(interface(&lab, "sm1", "vcxl1")), "00:07:43:2e:e5:99 ");
    assert_eq!(plan.base.traffic.flows, Flows { sources: 20, destinations: 100 });
    has(&imported, "the sender's command is equilibrium-noref, not pkt-gen");
    has(&imported, "198.18.1.2 belongs to R630's cxl0");
    assert!(imported.experiment.contains("# SENDER_START_CMD: equilibrium-noref -4 -d"));
}
