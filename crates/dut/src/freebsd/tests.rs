//! A FreeBSD DUT over the variants of an experiment, and its failures.

mod archive;
mod parser;
mod restored_firewall;
mod switch;
mod vtnet;

pub(super) use archive::{bring_up, hp};

use super::scripted::ScriptedHost;
use super::*;
use fwdlab_model::settings::{FirewallProgram, Flows, Napi, Overlay, Revision};
use std::process::Command;

const INTERFACES: [(&str, &str); 2] =
    [("cxl0", "00:07:43:2e:e4:70"), ("cxl1", "00:07:43:2e:e4:78")];
const OWN_RC: &str = "hostname=\"hp\" # mine\nifconfig_igb1=\"inet 192.168.1.10/24\"\nstatic_routes=\"home\"\nroute_home=\"-net 10.0.0.0/8 192.168.1.1\"\npf_enable=\"YES\"\n";

fn machine() -> ScriptedHost {
    let host = ScriptedHost::new(1_400_097, &INTERFACES);
    host.write(RC, OWN_RC);
    host
}

fn dut() -> FreebsdDut {
    FreebsdDut::new(hp(), PathBuf::new())
}

fn queues(queues: u16) -> Settings {
    let mut settings = Settings::default();
    settings.dut.queues = queues;
    settings
}

/// Prepares the settings with at most one reboot.
fn prepare_with_one_reboot(host: &ScriptedHost, settings: &Settings) {
    if dut().prepare(host, settings).expect("prepared") != Preparation::Ready {
        host.boot();
    }
    assert_eq!(dut().prepare(host, settings).expect("prepared"), Preparation::Ready);
}

fn refused(host: &ScriptedHost, settings: &Settings) -> String {
    dut().prepare(host, settings).expect_err("refused").to_string()
}

#[test]
fn settings_in_effect_need_no_reboot_or_write() {
    let host = machine();
    let findings = bring_up(&mut dut(), &host, &queues(4));
    assert_eq!(findings.warnings, []);
    assert_eq!(findings.facts["cxl0 queues"], "4");
    host.forget_commands();
    assert_eq!(dut().prepare(&host, &queues(4)).expect("prepared"), Preparation::Ready);
    for written in ["tee", "mv", "cp", "rm", "mkdir"] {
        assert_eq!(host.ran(written), [""; 0]);
    }
    let again = bring_up(&mut dut(), &host, &queues(4));
    assert_eq!(again.facts, findings.facts);
    let changing = ["xargs", "arp -S", "ndp -s", "sysctl net", "ifconfig cxl0 inet 1"];
    for command in changing {
        assert_eq!(host.ran(command), [""; 0]);
    }
}

#[test]
fn existing_lines_of_rc_conf_are_kept() {
    let host = machine();
    bring_up(&mut dut(), &host, &queues(4));
    let text = host.file(RC).expect("rc.conf");
    assert!(text.starts_with("hostname=\"hp\" # mine\n"), "{text}");
    for line in [
        "static_routes=\"home generator receiver\"\n",
        "route_home=\"-net 10.0.0.0/8 192.168.1.1\"\n",
        "route_generator=\"-net 198.18.0.0/16 198.18.0.108\"\n",
        "ipv6_route_receiver=\"2001:2:0:8000:: -prefixlen 49 2001:2:0:8000::108\"\n",
        "pf_enable=\"NO\"\n",
        "ifconfig_cxl0=\"inet 198.18.0.10/24 -tso4 -tso6 -lro -vlanhwtso\"\n",
    ] {
        assert!(text.contains(line), "{line} in\n{text}");
    }
}

#[test]
fn reboot_is_requested_with_its_reason_until_it_happens() {
    let host = machine();
    let mut dut = dut();
    bring_up(&mut dut, &host, &queues(1));
    let expected =
        Preparation::Reboot(vec![format!("{LOADER}: hw.cxgbe.nrxq 1 -> 4, hw.cxgbe.ntxq 1 -> 4")]);
    assert_eq!(dut.prepare(&host, &queues(4)).expect("prepared"), expected);
    assert_eq!(dut.prepare(&host, &queues(4)).expect("again"), expected);
    // Back to the first settings before the reboot: the running system already has them.
    assert_eq!(dut.prepare(&host, &queues(1)).expect("back"), Preparation::Ready);
    assert_eq!(dut.prepare(&host, &queues(4)).expect("forth"), expected);
    host.boot();
    assert_eq!(dut.prepare(&host, &queues(4)).expect("booted"), Preparation::Ready);
    // Settings that are also applied at run time need no reboot.
    let mut other = queues(4);
    other.dut.firewall = Firewall::Stateful;
    other.dut.icmp_redirect = true;
    other.dut.remote.harvest_mask = Some(351);
    assert_eq!(dut.prepare(&host, &other).expect("prepared"), Preparation::Ready);
    other.dut.remote.rc.insert("powerd_enable".into(), "YES".into());
    let expected = Preparation::Reboot(vec![format!("{RC}: powerd_enable unset -> YES")]);
    assert_eq!(dut.prepare(&host, &other).expect("prepared"), expected);
}

#[test]
fn undo_by_another_process_restores_everything() {
    let host = machine();
    host.write("/etc/pf.conf", "block all\n");
    let before = (host.visible(), host.now().sysctls.clone());
    let mut settings = queues(16);
    settings.dut.firewall = Firewall::Stateless;
    settings.dut.remote.harvest_mask = Some(351);
    bring_up(&mut dut(), &host, &settings);
    assert_ne!(host.visible(), before.0);
    assert_eq!(host.file("/etc/pf.conf").as_deref(), Some("set skip on lo0\npass no state\n"));
    dut().undo(&host).expect("undone");
    assert_eq!((host.visible(), host.now().sysctls.clone()), before);
    host.forget_commands();
    dut().undo(&host).expect("twice");
    assert_eq!(host.ran("tee"), [""; 0]);
    let fresh = machine();
    dut().undo(&fresh).expect("nothing was changed");
    assert_eq!(fresh.visible(), machine().visible());
}

#[test]
fn failed_restore_does_not_block_other_settings_or_variants() {
    let host = machine();
    let mut settings = queues(1);
    prepare_with_one_reboot(&host, &settings);
    for name in ["kern.a", "kern.b", "kern.c"] {
        settings.dut.sysctl.insert(name.into(), "1".into());
        host.now().sysctls.insert(name.into(), "0".into());
    }
    dut()
        .configure(&host, &settings, &Placement::of_dut(vec![0]), &mut Findings::default())
        .expect("configured");
    let stuck = "sysctl kern.b=0";
    host.now().failures.push((stuck.into(), "Operation not permitted".into()));
    for _ in 0..2 {
        let error = dut().undo(&host).expect_err("told");
        assert!(matches!(error, BenchError::NotPutBack { .. }), "{error:?}");
        let error = error.to_string();
        for word in [stuck, "Operation not permitted", "/var/db/fwdlab", "next step"] {
            assert!(error.contains(word), "{error}");
        }
        for other in ["kern.a", "kern.c"] {
            assert_eq!(host.now().sysctls[other], "0", "{other}");
        }
    }
    // A variant that does not set this sysctl is measured with a warning.
    let other = queues(1);
    let mut findings = Findings::default();
    dut().configure(&host, &other, &Placement::of_dut(vec![0]), &mut findings).expect("configured");
    let [Warning::NotVerified { setting, wanted, found }] = &findings.warnings[..] else {
        panic!("{:?}", findings.warnings);
    };
    assert_eq!((&**setting, &**wanted, &**found), ("sysctl kern.b", "0", "1"));
    host.now().failures.clear();
    dut().undo(&host).expect("undone");
    assert_eq!(host.now().sysctls["kern.b"], "0");
}

#[test]
fn route_over_the_controllers_network_is_rejected_before_changes() {
    let host = machine();
    let mut links = hp();
    let network = crate::links::prefix("10.192.0.5/32").expect("an address");
    links.ways = vec![crate::links::ProtectedRoute { network, whose: "the controller".into() }];
    let mut dut = FreebsdDut::new(links, PathBuf::new());
    let mut settings = queues(1);
    settings.dut.routes = 2 + settings.traffic.flows.destinations + 2;
    prepare_with_one_reboot(&host, &settings);
    host.forget_commands();
    let error = dut
        .configure(&host, &settings, &Placement::of_dut(vec![0]), &mut Findings::default())
        .expect_err("refused");
    let error = error.to_string();
    assert!(error.contains("10.192.0.4/30") && error.contains("the controller"), "{error}");
    for changing in ["ifconfig", "xargs", "sysctl net"] {
        assert_eq!(host.ran(changing), [""; 0]);
    }
}

#[test]
fn undo_keeps_files_changed_by_others() {
    let host = machine();
    bring_up(&mut dut(), &host, &queues(4));
    host.write(RC, "hostname=\"new\"\n");
    dut().undo(&host).expect("undone");
    assert_eq!(host.file(RC).as_deref(), Some("hostname=\"new\"\n"));
    bring_up(&mut dut(), &host, &queues(4));
    host.write(RC, "hostname=\"newer\"\n");
    bring_up(&mut dut(), &host, &queues(4));
    dut().undo(&host).expect("undone");
    assert_eq!(host.file(RC).as_deref(), Some("hostname=\"newer\"\n"));
}

#[test]
fn variant_does_not_affect_the_next() {
    let host = machine();
    let mut first = queues(1);
    first.dut.sysctl.insert("net.inet.ip.redirect".into(), "1".into());
    first.dut.sysctl.insert("kern.random.harvest.mask".into(), "7".into());
    first.dut.routes = 20;
    first.dut.firewall = Firewall::Rules(3);
    first.dut.remote.firewall_program = FirewallProgram::Ipfw;
    first.dut.remote.bind_interrupts = true;
    let findings = bring_up(&mut dut(), &host, &first);
    assert_eq!(findings.warnings, []);
    assert_eq!(findings.facts["routes"], "20");
    assert_eq!(findings.facts["firewall"], "ipfw, 4 rules");
    assert_eq!(findings.facts["cxl1 queue 7 (irq 301) CPU"], "7");
    let position = |beginning: &str| {
        let commands = host.now().commands.clone();
        commands.iter().position(|words| words.join(" ").starts_with(beginning))
    };
    assert!(position("kenv net.inet.ip.fw.default_to_accept=1") < position("kldload -n ipfw"));
    let mut second = queues(1);
    second.dut.firewall = Firewall::Stateless;
    second.dut.remote.firewall_program = FirewallProgram::Ipf;
    let findings = bring_up(&mut dut(), &host, &second);
    assert_eq!(findings.warnings, []);
    assert_eq!(findings.facts["routes"], "2");
    assert_eq!(findings.facts["firewall"], "ipf, 2 rules");
    let state = host.now().clone();
    assert_eq!(state.routes.len(), 4);
    assert_eq!(state.sysctls["kern.random.harvest.mask"], "511");
    assert_eq!(state.sysctls["net.inet.ip.redirect"], "0");
    // A module that is no longer needed is unloaded, so the firewall state is that of a fresh boot.
    assert_eq!(state.modules, BTreeSet::from(["ipfilter".to_owned()]));
    assert!(state.masks.values().all(|mask| mask == "0-7"));
    assert!(!state.files.contains_key("/etc/ipfw.rules"));
}

#[test]
fn sysctl_of_an_unloaded_module_needs_no_restore() {
    let host = machine();
    let mut settings = queues(8);
    settings.dut.firewall = Firewall::Stateful;
    settings.dut.remote.firewall_program = FirewallProgram::Ipfw;
    settings.traffic.flows = Flows { sources: 1000, destinations: 100 };
    let findings = bring_up(&mut dut(), &host, &settings);
    assert_eq!(findings.facts["sysctl net.inet.ip.fw.dyn_max"], "126024");
    host.boot();
    bring_up(&mut dut(), &host, &queues(8));
    assert!(host.ran("sysctl net.inet.ip.fw.dyn_max=16384").len() == 1);
    dut().undo(&host).expect("undone");
}

#[test]
fn unparsed_lines_take_effect_at_boot() {
    let host = machine();
    let text = "if true; then\nx=1\nfi\n";
    let mut settings = queues(8);
    let files = |text: &str| BTreeMap::from([("etc/rc.conf".to_owned(), text.to_owned())]);
    let directory = String::from("configs/a");
    let overlay = |text| Some(Overlay { directory: directory.clone(), files: files(text) });
    settings.dut.remote.overlay = overlay(text);
    bring_up(&mut dut(), &host, &settings);
    settings.dut.remote.overlay = overlay("if true; then\nx=2\nfi\n");
    let prepared = dut().prepare(&host, &settings).expect("prepared");
    assert_eq!(prepared, Preparation::Reboot(vec!["/etc/rc.conf: x 1 -> 2".into()]));
    host.boot();
    settings.dut.remote.overlay = overlay("# why\nif true; then\nx=2\nfi\n");
    assert_eq!(dut().prepare(&host, &settings).expect("prepared"), Preparation::Ready);
}

#[test]
fn dut_errors_name_host_command_and_message() {
    let read_only = "tee: /boot/loader.conf.local.fwdlab: Read-only file system";
    let full = "/: write failed, filesystem is full";
    for (command, why) in [
        ("tee /boot/loader.conf.local.fwdlab", read_only),
        ("tee /etc/rc.conf.fwdlab", full),
        ("cp -p /etc/rc.conf", full),
        ("mkdir -p /var/db/fwdlab", "mkdir: /var/db: Read-only file system"),
    ] {
        let host = machine();
        let before = host.visible();
        host.fail(command, why);
        let error = refused(&host, &queues(4));
        assert!(
            error.contains(command) && error.contains("on dut") && error.contains(why),
            "{error}"
        );
        host.now().failures.clear();
        dut().undo(&host).expect("undone");
        assert_eq!(host.visible(), before, "{command}");
    }
    for (command, why, change) in [
        ("kldload -n pf", "kldload: can't load pf: No such file or directory", "firewall"),
        ("pfctl -f /etc/pf.conf", "/etc/pf.conf:1: syntax error", "firewall"),
        ("arp -S", "arp: not found", "none"),
        ("xargs", "route: writing to routing socket: Network is unreachable", "none"),
    ] {
        let host = machine();
        let mut settings = queues(8);
        if change == "firewall" {
            settings.dut.firewall = Firewall::Stateful;
        }
        prepare_with_one_reboot(&host, &settings);
        host.fail(command, why);
        let error = dut().configure(
            &host,
            &settings,
            &Placement::of_dut(vec![0]),
            &mut Findings::default(),
        );
        let error = error.expect_err("refused").to_string();
        assert!(
            error.contains(command) && error.contains("on dut") && error.contains(why),
            "{error}"
        );
    }
}

#[test]
fn missing_sysctl_is_named() {
    let host = machine();
    let mut settings = queues(8);
    settings.dut.sysctl.insert("net.inet.ip.fastforwarding".into(), "1".into());
    prepare_with_one_reboot(&host, &settings);
    let error =
        dut().configure(&host, &settings, &Placement::of_dut(vec![0]), &mut Findings::default());
    let error = error.expect_err("unknown").to_string();
    assert!(error.contains("unknown oid 'net.inet.ip.fastforwarding'"), "{error}");
    assert!(error.contains("on dut"), "{error}");
}

#[test]
fn unsupported_settings_are_rejected_before_writing() {
    type Change = fn(&mut Settings);
    let cases: [(Change, &str); 9] = [
        (|s| s.dut.napi = Napi::Threaded, "napi"),
        (|s| s.dut.rps = "f".into(), "rps"),
        (
            |s| drop(s.dut.remote.rc.insert("gateway_enable".into(), "NO".into())),
            "rc.gateway_enable",
        ),
        (|s| drop(s.dut.remote.rc.insert("a;reboot".into(), "x".into())), "`a;reboot`"),
        (|s| drop(s.dut.remote.loader.insert("a.b".into(), "x\ny".into())), "loader.a.b"),
        (|s| drop(s.dut.sysctl.insert("a b".into(), "1".into())), "`a b`"),
        (|s| drop(s.dut.sysctl.insert("a".into(), "1\n2".into())), "sysctl.a"),
        (|s| s.dut.remote.overlay = overlay("../etc/passwd"), "../etc/passwd"),
        (
            |s| {
                s.dut.remote.overlay = overlay("etc/rc.conf");
                s.dut.remote.rc.insert("sshd_enable".into(), "YES".into());
            },
            "rc.sshd_enable",
        ),
    ];
    for (change, expected) in cases {
        let (host, mut settings) = (machine(), queues(8));
        change(&mut settings);
        let error = refused(&host, &settings);
        assert!(error.contains(expected), "{error}");
        assert_eq!(host.visible(), machine().visible());
    }
    let host = machine();
    host.write(RC_LOCAL, "gateway_enable=\"NO\"\n");
    assert!(
        refused(&host, &queues(8)).contains("/etc/rc.conf.local on the DUT sets gateway_enable")
    );
}

fn overlay(path: &str) -> Option<Overlay> {
    let files = BTreeMap::from([(path.to_owned(), "x=\"1\"\n".to_owned())]);
    Some(Overlay { directory: "configs/a".into(), files })
}

fn revision() -> Revision {
    Revision {
        install: vec!["pkg install -y 'FreeBSD-kernel-r2'".into()],
        verify: "uname -v".into(),
        expect: "r295802".into(),
        ..Revision::default()
    }
}

#[test]
fn revision_is_installed_once_and_files_wait_for_its_boot() {
    let mut host = machine();
    let mut settings = queues(4);
    settings.dut.remote.revision = Some(revision());
    let mut dut = dut();
    let first = dut.prepare(&host, &settings).expect("installed");
    assert_eq!(first, Preparation::Reboot(vec!["the revision was installed".into()]));
    assert_eq!(host.ran("pkg"), ["pkg install -y FreeBSD-kernel-r2"]);
    assert_eq!(host.file(LOADER), None, "it would go to the system that is left");
    assert!(matches!(dut.prepare(&host, &settings).expect("not booted"), Preparation::Reboot(_)));
    host.boot();
    let error = dut.prepare(&host, &settings).expect_err("another runs").to_string();
    assert!(error.contains("r295802") && error.contains("FreeBSD 14.1-RELEASE"), "{error}");
    host.kernel = "FreeBSD 10.3-BETA2 #0 r295802: Fri Feb 19 11:19:32 CET 2016".into();
    let findings = bring_up(&mut dut, &host, &settings);
    assert_eq!(findings.facts["revision"], host.kernel);
    assert_eq!(findings.facts["kernel"], host.kernel);
    assert_eq!(host.ran("pkg").len(), 1);
}

#[test]
fn image_is_unpacked_locally_and_piped_into_the_upgrade_program() {
    let directory = std::env::temp_dir().join(format!("fwdlab-image-test-{}", std::process::id()));
    std::fs::create_dir_all(&directory).expect("a directory");
    let plain = directory.join("r1.img");
    std::fs::write(&plain, "an image\n").expect("written");
    let mut images = vec![plain.clone()];
    for (program, ending) in [("xz", "xz"), ("gzip", "gz"), ("zstd", "zst")] {
        let packed = directory.join(format!("r1.img.{ending}"));
        let output = std::fs::File::create(&packed).expect("a file");
        match Command::new(program).arg("-c").arg(&plain).stdout(output).status() {
            Ok(status) if status.success() => images.push(packed),
            other => fwdlab_testdata::skip_part(&format!("{program}: {other:?}")),
        }
    }
    for image in images {
        let host = machine();
        let mut settings = queues(4);
        let image = Some(image.display().to_string());
        let upgrade = "upgrade".into();
        settings.dut.remote.revision = Some(Revision { image, upgrade, ..Revision::default() });
        assert!(matches!(dut().prepare(&host, &settings).expect("fed"), Preparation::Reboot(_)));
        let state = host.now();
        let at = state.commands.iter().position(|words| words == &["upgrade"]).expect("fed");
        let fed = &state.stdin[at];
        assert_eq!(fed, "an image\n");
    }
    let broken = directory.join("broken.xz");
    std::fs::write(&broken, "no xz").expect("written");
    let (host, mut settings) = (machine(), queues(4));
    let image = Some(broken.display().to_string());
    let with = |upgrade: &str| Revision {
        image: image.clone(),
        upgrade: upgrade.into(),
        ..Revision::default()
    };
    settings.dut.remote.revision = Some(with("upgrade"));
    let error = refused(&host, &settings);
    assert!(error.contains("xz -dc") && error.contains("this machine"), "{error}");
    settings.dut.remote.revision = Some(with("upgrade | tee"));
    assert!(refused(&host, &settings).contains("revision.upgrade"));
    settings.dut.remote.revision = Some(with(""));
    assert!(refused(&host, &settings).contains("no `upgrade`"));
    let _ = std::fs::remove_dir_all(&directory);
}

#[test]
fn nanobsd_data_is_written_to_persistent_storage() {
    let host = machine();
    host.write("/etc/nanobsd.conf", "");
    assert!(refused(&host, &queues(4)).contains("nanobsd without /data"));
    host.now().directories.insert("/data".into());
    assert!(matches!(dut().prepare(&host, &queues(4)).expect("written"), Preparation::Reboot(_)));
    assert_eq!(host.ran("mount"), ["mount -uw /", "mount -ur /"]);
    assert_eq!(host.ran("config"), ["config save"]);
    assert!(host.file("/data/fwdlab/originals/etc/rc.conf").is_some());
}

#[test]
fn setting_that_reads_back_differently_raises_a_warning() {
    let host = machine();
    let mut other = hp();
    other.egress.mac = [0, 7, 0x43, 1, 2, 3];
    let mut dut = FreebsdDut::new(other, PathBuf::new());
    let mut settings = queues(8);
    settings.dut.remote.overlay = overlay("boot/loader.conf.local");
    settings.dut.queues = 2;
    let findings = bring_up(&mut dut, &host, &settings);
    let doubted: Vec<String> = findings
        .warnings
        .iter()
        .filter_map(|warning| match warning {
            Warning::NotVerified { setting, .. } => Some(setting.clone()),
            _ => None,
        })
        .collect();
    assert_eq!(doubted, ["cxl1 mac", "cxl0 queues", "cxl1 queues"]);
}

#[test]
fn counters_are_read_and_unreachable_dut_is_not_rebooted() {
    let host = machine();
    let reading = dut().read(&host).expect("read");
    assert_eq!(reading.machine["cxl0 rx_dropped"], 20);
    assert_eq!(reading.machine["ip ForwDatagrams"], 900);
    assert_eq!(reading.machine["irq t5nex0:0a3"], 608_689);
    host.fail("true", "no answer");
    assert!(dut().reboot(&host).is_err());
    assert_eq!(host.ran("shutdown"), [""; 0]);
}
