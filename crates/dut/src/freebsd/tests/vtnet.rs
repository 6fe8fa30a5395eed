//! A FreeBSD virtual machine, with the answers of FreeBSD 13.2 in QEMU.

use super::{bring_up, hp, queues};
use crate::freebsd::scripted::ScriptedHost;
use crate::freebsd::*;
use fwdlab_model::settings::{FirewallProgram, Revision};

const INTERFACES: [(&str, &str); 2] =
    [("vtnet1", "00:07:43:2e:e4:70"), ("vtnet2", "00:07:43:2e:e4:78")];

fn machine() -> ScriptedHost {
    ScriptedHost::new(1_302_001, &INTERFACES)
}

fn dut() -> FreebsdDut {
    let mut links = hp();
    links.ingress.interface = "vtnet1".into();
    links.egress.interface = "vtnet2".into();
    FreebsdDut::new(links, PathBuf::new())
}

fn shutdowns(host: &ScriptedHost) -> usize {
    host.ran("shutdown").len()
}

#[test]
fn matching_queue_count_needs_no_reboot() {
    let host = machine();
    let before = host.visible();
    let findings = bring_up(&mut dut(), &host, &queues(1));
    assert_eq!((shutdowns(&host), host.file(LOADER)), (0, None));
    assert_eq!(findings.facts["vtnet1 queues"], "1");
    dut().undo(&host).expect("undone");
    assert_eq!(host.visible(), before);
    bring_up(&mut dut(), &host, &queues(1));
    assert_eq!(shutdowns(&host), 0);
    // Two queues need a reboot, and so does returning to one; from then on the tunable stays,
    // whatever the value read back.
    bring_up(&mut dut(), &host, &queues(2));
    assert_eq!(shutdowns(&host), 1);
    let findings = bring_up(&mut dut(), &host, &queues(1));
    assert_eq!((shutdowns(&host), findings.facts["vtnet2 queues"].as_str()), (2, "1"));
    bring_up(&mut dut(), &host, &queues(1));
    assert_eq!(shutdowns(&host), 2);
    assert!(host.file(LOADER).expect("tunables").contains("hw.vtnet.1.mq_max_pairs=\"1\""));
}

#[test]
fn ipfw_keeps_the_connection_and_needs_no_reboot() {
    let host = machine();
    let mut settings = queues(1);
    settings.dut.firewall = Firewall::Stateless;
    settings.dut.remote.firewall_program = FirewallProgram::Ipfw;
    let findings = bring_up(&mut dut(), &host, &settings);
    assert_eq!((findings.facts["firewall"].as_str(), shutdowns(&host)), ("ipfw, 1 rules", 0));
    let tunables = host.file(LOADER).expect("tunables");
    assert!(tunables.contains("net.inet.ip.fw.default_to_accept=\"1\""), "{tunables}");
    // The rule that flush spares is added first and deleted last.
    let script = host.ran("/bin/sh -c ipfw -q add 65533 set 31 allow");
    assert!(script[0].trim_end().ends_with("exit $status /etc/ipfw.rules"), "{script:?}");
}

#[test]
fn fib_algorithm_module_is_loaded_and_unloaded_and_reset_by_a_reboot() {
    let host = machine();
    let with = |algorithm: &str| {
        let mut settings = queues(1);
        settings.dut.sysctl.insert(fib::CHOICES[0].into(), algorithm.into());
        settings
    };
    let plain = queues(1);
    let findings = bring_up(&mut dut(), &host, &plain);
    assert_eq!(findings.facts["sysctl net.route.algo.inet.algo"], "bsearch4");
    let findings = bring_up(&mut dut(), &host, &with("dxr"));
    assert_eq!(findings.facts["sysctl net.route.algo.inet.algo"], "dxr");
    assert_eq!(host.now().modules, BTreeSet::from(["fib_dxr".to_owned()]));
    bring_up(&mut dut(), &host, &with("radix4"));
    assert!(host.now().modules.is_empty());
    assert_eq!((shutdowns(&host), findings.warnings), (0, vec![]));
    // After an algorithm was set by name the kernel no longer chooses.
    let mut never = plain.clone();
    never.dut.remote.reboot = Reboot::Never;
    let findings = bring_up(&mut dut(), &host, &never);
    let [Warning::NotVerified { wanted, found, .. }] = &findings.warnings[..] else {
        panic!("{:?}", findings.warnings);
    };
    assert!(wanted.contains("own choice") && found.starts_with("bsearch4, set by name"), "{found}");
    let reasons = dut().prepare(&host, &plain).expect("prepared");
    assert!(
        matches!(&reasons, Preparation::Reboot(why) if why[0].contains("only a boot")),
        "{reasons:?}"
    );
    let findings = bring_up(&mut dut(), &host, &plain);
    assert_eq!((shutdowns(&host), findings.warnings), (1, vec![]));
    dut().undo(&host).expect("undone");
}

#[test]
fn undo_unloads_modules_of_a_variant() {
    let host = machine();
    let mut settings = queues(1);
    settings.dut.firewall = Firewall::Stateful;
    bring_up(&mut dut(), &host, &settings);
    assert!(host.now().modules.contains("pf"));
    dut().undo(&host).expect("undone");
    assert!(host.now().modules.is_empty() && host.now().running.is_empty());
    // A module loaded before is not fwdlab's; modules that the kernel keeps are reported.
    host.now().modules.insert("pf".into());
    let findings = bring_up(&mut dut(), &host, &queues(1));
    assert!(host.now().modules.contains("pf"));
    assert_eq!(findings.facts["firewall in the kernel"], "off (pf)");
}

#[test]
fn revision_without_installer_is_only_read_back() {
    let mut host = machine();
    let mut settings = queues(1);
    let (verify, expect) = ("uname -v".into(), "r295802".into());
    settings.dut.remote.revision = Some(Revision { verify, expect, ..Revision::default() });
    assert_eq!(dut().prepare(&host, &settings).expect("nothing to do"), Preparation::Ready);
    let configure = |host: &ScriptedHost, settings: &Settings| {
        let (placement, mut findings) = (Placement::of_dut(vec![0]), Findings::default());
        let done = dut().configure(host, settings, &placement, &mut findings);
        done.map(|()| findings).map_err(|error| error.to_string())
    };
    let error = configure(&host, &settings).expect_err("another runs");
    assert!(error.contains("`uname -v` prints `FreeBSD 14.1-RELEASE"), "{error}");
    // A line of the loader's file may select the revision: it is written, and takes effect, first.
    settings.dut.remote.loader.insert("kernel".into(), "kernel.r2".into());
    let expected = vec![format!("{LOADER}: kernel unset -> kernel.r2")];
    let prepared = dut().prepare(&host, &settings).expect("laid");
    assert_eq!(prepared, Preparation::Reboot(expected));
    host.boot();
    host.kernel = "FreeBSD 10.3-BETA2 #0 r295802: Fri Feb 19 11:19:32 CET 2016".into();
    assert_eq!(dut().prepare(&host, &settings).expect("it runs"), Preparation::Ready);
    let findings = configure(&host, &settings).expect("it runs");
    assert_eq!(findings.facts["revision"], host.kernel);
}

#[test]
fn one_time_boot_is_selected_again_for_the_next_boot() {
    let host = machine();
    let mut settings = queues(1);
    settings.dut.remote.revision = Some(Revision {
        install: vec!["upgrade".into()],
        verify: "sysctl -n kern.bootfile".into(),
        expect: "kernel.other".into(),
        ..Revision::default()
    });
    // Like nextboot(8): only the next boot uses the kernel.
    let boot = |is_selected: bool| {
        host.boot();
        let file = if is_selected { "/boot/kernel.other/kernel" } else { "/boot/kernel/kernel" };
        host.now().sysctls.insert("kern.bootfile".into(), file.into());
    };
    boot(false);
    let installed = || host.ran("upgrade").len();
    let expect_reboot = |settings: &Settings, what: &str| {
        let prepared = dut().prepare(&host, settings).expect("prepared");
        let Preparation::Reboot(reasons) = prepared else { panic!("it is ready") };
        assert!(reasons[0].contains(what), "{reasons:?}");
    };
    expect_reboot(&settings, "the revision was installed");
    boot(true);
    settings.dut.remote.loader.insert("a.b".into(), "1".into());
    expect_reboot(&settings, "a.b unset -> 1");
    boot(false);
    expect_reboot(&settings, "the revision was installed");
    boot(true);
    assert_eq!(dut().prepare(&host, &settings).expect("prepared"), Preparation::Ready);
    assert_eq!(installed(), 2);
    // A revision that never ran is reported immediately.
    boot(false);
    expect_reboot(&settings, "the revision was installed");
    boot(false);
    let error = dut().prepare(&host, &settings).expect_err("it never ran").to_string();
    assert!(error.contains("after the revision was installed"), "{error}");
}

#[test]
fn loader_settings_are_read_back_from_the_kernel() {
    let host = machine();
    let mut settings = queues(1);
    settings.dut.remote.loader.insert("hw.vtnet.lro_disable".into(), "1".into());
    let findings = bring_up(&mut dut(), &host, &settings);
    assert_eq!(
        (shutdowns(&host), findings.facts["loader hw.vtnet.lro_disable"].as_str()),
        (1, "1")
    );
    assert_eq!(findings.warnings, vec![]);
    // A loader that reads another file.
    host.now().kenv.clear();
    let findings = bring_up(&mut dut(), &host, &settings);
    let [Warning::NotVerified { setting, found, .. }] = &findings.warnings[..] else {
        panic!("{:?}", findings.warnings);
    };
    assert_eq!((setting.as_str(), found.as_str()), ("loader hw.vtnet.lro_disable", "unset"));
}
