//! Settings of a laboratory's hosts.

use super::{faults, plan};
use fwdlab_model::settings::*;

const LAB: &str = "version = 1\n[testbed]\nkind = \"ssh\"\nlab = \"lab.toml\"\n";

fn freebsd(rest: &str) -> String {
    format!("{LAB}[dut]\nkind = \"freebsd\"\n{rest}\n")
}

#[test]
fn settings_reach_the_plan() {
    let plan = plan(&freebsd(
        "queues = 4\nfirewall = \"stateless\"\nfirewall_program = \"ipfw\"\nharvest_mask = 0x15f\n\
         bind_interrupts = true\noverlay = \"configs/base/\"\nreboot = \"always\"\n\
         loader = { \"hw.cxgbe.nrxq10g\" = 4, hw.cxgbe.ntxq10g = \"4\" }\n\
         rc = { powerd_enable = \"YES\" }\nsysctl = { \"net.inet.ip.fastforwarding\" = 1 }\n\
         image = \"image.xz\"\nupgrade = \"sh /data/upgrade\"\ninstall = [\"pkg install -y x\"]\n\
         verify = \"uname -v\"\nexpect = \"r287478\"\n[traffic]\ngenerator = \"pkt-gen\"\n\
         generator_options = [\"-w\", \"4\"]",
    ));
    let Settings { testbed, dut, traffic } = &plan.base;
    assert_eq!((testbed.kind, testbed.lab.as_deref()), (TestbedKind::Ssh, Some("lab.toml")));
    assert_eq!((dut.kind, dut.queues), (DutKind::Freebsd, 4));
    let remote = &dut.remote;
    assert_eq!(remote.firewall_program, FirewallProgram::Ipfw);
    assert_eq!((remote.harvest_mask, remote.bind_interrupts), (Some(351), true));
    assert_eq!(remote.loader["hw.cxgbe.nrxq10g"], "4");
    assert_eq!(remote.loader["hw.cxgbe.ntxq10g"], "4");
    assert_eq!(remote.rc["powerd_enable"], "YES");
    assert_eq!(remote.reboot, Reboot::Always);
    let overlay = remote.overlay.as_ref().expect("an overlay");
    assert_eq!(overlay.directory, "configs/base");
    assert_eq!(overlay.files["etc/rc.conf"], "harvest_mask=\"351\"\n");
    assert_eq!(overlay.files.len(), 2);
    let revision = Revision {
        install: vec!["pkg install -y x".into()],
        image: Some("image.xz".into()),
        upgrade: "sh /data/upgrade".into(),
        verify: "uname -v".into(),
        expect: "r287478".into(),
    };
    assert_eq!(remote.revision, Some(revision));
    assert_eq!(traffic.generator, GeneratorKind::PktGen);
    assert_eq!(traffic.generator_options, ["-w", "4"]);
    assert!(plan.is_intact());
}

#[test]
fn revisions_and_firewalls_are_factors() {
    let plan = plan(&freebsd(
        "[[factor]]\nname = \"revision\"\nlevels = [\n\
         { label = \"r287477\", install = [\"install-kernel r287477\"], verify = \"uname -v\", expect = \"r287477\" },\n\
         { label = \"r287478\", install = [\"install-kernel r287478\"], verify = \"uname -v\", expect = \"r287478\" },\n\
         ]\n[[factor]]\nname = \"packet-filter\"\nlevels = [\n{ label = \"none\" },\n\
         { label = \"pf\", firewall = \"stateful\", firewall_program = \"pf\" },\n\
         { label = \"ipfw\", firewall = \"stateful\", firewall_program = \"ipfw\" },\n]",
    ));
    assert_eq!(plan.variants.len(), 6);
    let last = &plan.variants[5];
    assert_eq!(last.label, "r287478, ipfw");
    let remote = &last.settings.dut.remote;
    assert_eq!(remote.firewall_program, FirewallProgram::Ipfw);
    assert_eq!(remote.revision.as_ref().map(|r| r.expect.as_str()), Some("r287478"));
    assert_eq!(plan.compare.baseline, [Some(0), None]);
    assert!(plan.factors[0].levels[0].changes.iter().all(|change| !change.live));
}

#[test]
fn list_of_overlays_is_a_factor() {
    let short = plan(&freebsd("overlay = [\"configs/base\", \"configs/other/\"]"));
    assert_eq!(short.factors[0].name, "overlay");
    let labels: Vec<&str> = short.variants.iter().map(|v| v.label.as_str()).collect();
    assert_eq!(labels, ["base", "other"]);
    let long = plan(&freebsd(
        "[[factor]]\nname = \"overlay\"\nlevels = [\"configs/base\", \"configs/other\"]",
    ));
    assert_eq!(short, long);
    let bundled = plan(&freebsd(
        "[[factor]]\nname = \"config\"\nlevels = [\n{ label = \"a\", overlay = \"configs/base\" },\n\
         { label = \"b\", overlay = \"configs/other\" }]",
    ));
    assert_eq!(bundled.variants[1].settings, short.variants[1].settings);

    let text = |rc: &'static str| {
        let loader = move |path: &str| match path {
            "configs/base/" => Ok("etc/rc.conf\0".into()),
            "configs/base/etc/rc.conf" => Ok(rc.into()),
            _ => Err("no such file".to_owned()),
        };
        let written = freebsd("overlay = \"configs/base\"");
        fwdlab_model::load("x.toml", &written, &loader).expect("a valid file").hash
    };
    assert_ne!(text("a=1\n"), text("a=2\n"), "what is in the files is part of the plan");
}

/// An experiment for a laboratory can be rehearsed without it.
#[test]
fn simulated_device_accepts_settings_of_any_device() {
    plan(
        "version = 1\n[testbed]\nkind = \"sim\"\n[dut]\nkind = \"freebsd\"\nloader = { a = 1 }\noverlay = \"configs/base\"\n[traffic]\ngenerator = \"trex\"\n",
    );
}

/// 62 bytes of headers and 4 of FCS: the shortest frame of UDP over IPv6.
#[test]
fn frames_without_a_stamp_may_be_shorter() {
    let size = |generator: &str, size: u16| {
        plan(&format!(
            "{LAB}[traffic]\nfamily = \"inet6\"\nframe_size = {size}\ngenerator = \"{generator}\"\n"
        ))
    };
    let sizes = |generator: &str| {
        [64, 66, 84].map(|bytes| size(generator, bytes).base.traffic.frame_size.most())
    };
    assert_eq!(sizes("fwdlab"), [84, 84, 84]);
    assert_eq!(sizes("pkt-gen"), [66, 66, 84]);
    assert!(size("trex", 64).notes[0].contains("raised to 66 bytes"));
    assert_eq!(size("trex", 66).notes.len(), 0);
}

#[test]
fn laboratory_faults_are_reported_with_help() {
    for (text, message, hint) in [
        ("version = 1\n[testbed]\nkind = \"netns\"\nlab = \"x\"".to_owned(), "no host", "\"ssh\""),
        ("version = 1\n[dut]\noverlay = \"configs/base\"".to_owned(), "laboratory's DUT", "ssh"),
        ("version = 1\n[dut]\nverify = \"uname -v\"".to_owned(), "laboratory's DUT", "ssh"),
        ("version = 1\n[traffic]\ngenerator = \"trex\"".to_owned(), "fwdlab itself sends", "ssh"),
        (format!("{LAB}[dut]\nloader = {{ a = 1 }}"), "setting of FreeBSD", "freebsd"),
        (format!("{LAB}arrangement = \"closed\""), "share no CPUs", "leave `arrangement` out"),
        (freebsd("\n[design]\nalternate = \"170ms\""), "nothing to alternate", "[[factor]]"),
        (
            format!(
                "{LAB}[dut]\nkind = \"command\"\nstart = [\"x\"]\n[design]\nalternate = \"170ms\""
            ),
            "can't alternate",
            "runs of its own",
        ),
        (
            format!("{LAB}[dut]\nfirewall = \"stateful\"\nfirewall_program = \"pf\""),
            "does not have",
            "FreeBSD \"ipfw\"",
        ),
        (freebsd("firewall_program = \"pf\""), "without a firewall", "stateful"),
        (freebsd("rps = \"3\""), "setting of the Linux kernel", "linux"),
        (freebsd("napi = \"softirq\""), "setting of the Linux kernel", "linux"),
        (freebsd("fib = \"radix\""), "setting of the router", "router"),
        (freebsd("loader = { a = true }"), "must be an integer", "write \"YES\""),
        (freebsd("loader = { a = 'x\"y' }"), "without `\"`", "this is the text"),
        (freebsd("rc = { a.b = 1 }"), "`a.b` is no name in rc.conf", "letters"),
        (freebsd("loader = 1"), "a table such as", "the integer 1"),
        (freebsd("reboot = \"never\"\nloader = { a = 1 }"), "after a reboot only", "needed"),
        (freebsd("harvest_mask = 4294967296"), "from 0 to 4294967295", "more than"),
        (freebsd("install = [\"sh 'x\"]"), "`install` must be", "never closed"),
        (freebsd("install = [\"a | b\"]"), "`install` must be", "sh -c"),
        (freebsd("install = \"make\""), "a list of commands", "the text \"make\""),
        (freebsd("verify = \"\""), "a command with its arguments", "no word"),
        (freebsd("expect = \"r1\""), "without `verify`", "uname -v"),
        (freebsd("image = \"x\""), "without `upgrade`", "upgrade ="),
        (freebsd("upgrade = \"x\""), "without `image`", "image ="),
        (freebsd("overlay = \"configs/none\""), "`configs/none` can't be laid", "no such file"),
        (freebsd("overlay = \"configs/empty\""), "`configs/empty` can't be laid", "no file in it"),
        (freebsd("overlay = \"configs/bare\""), "`README` of", "not below a directory"),
        (freebsd("overlay = \"configs/binary\""), "`boot/kernel/if_em.ko` of", "no text in UTF-8"),
        (freebsd("overlay = \"configs/huge\""), "`etc/huge` of", "larger than 256 KiB"),
        (freebsd("overlay = []"), "at least one value", "empty"),
        (format!("{LAB}engine = \"xdp\"\n[traffic]\ngenerator = \"otg\""), "own sender", "leave"),
        (
            format!("{LAB}[traffic]\ngenerator = \"pkt-gen\"\ngenerator_server = \"x\""),
            "no server",
            "trex",
        ),
        (
            format!("{LAB}[traffic]\ngenerator_options = [\"-x\"]"),
            "no effect on fwdlab's own sender",
            "pkt-gen",
        ),
        (format!("{LAB}[traffic]\ngenerator_options = \"-x\""), "a list of words", "the text"),
    ] {
        let got = faults(&text);
        assert!(
            got.contains(message) && got.contains(hint),
            "{text}\nwants {message}, {hint}\n{got}"
        );
        assert!(got.ends_with("1 fault in test.toml\n"), "{text}\n{got}");
    }
}
