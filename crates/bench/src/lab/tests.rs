use super::*;
use crate::host::FakeHost;

fn described(text: &str) -> LabHost {
    let file = format!(
        "version = 1\nname = \"t\"\n[[host]]\nname = \"dut\"\nroles = [\"dut\"]\nssh = \"dut\"\n{text}\n\
         [[host.interface]]\nname = \"cxl0\"\nside = \"sender\"\nmac = \"00:07:43:2e:e4:70\"\n\
         [[host.interface]]\nname = \"cxl1\"\nside = \"receiver\"\n\
         [[host]]\nname = \"far\"\nroles = [\"sender\", \"receiver\"]\nssh = \"far\"\n\
         [[host.interface]]\nname = \"a\"\nside = \"sender\"\n\
         [[host.interface]]\nname = \"b\"\nside = \"receiver\"\n\
         [[cable]]\na = \"far:a\"\nb = \"dut:cxl0\"\n[[cable]]\na = \"far:b\"\nb = \"dut:cxl1\"\n"
    );
    let lab = Lab::parse("lab.toml", &file).unwrap_or_else(|faults| panic!("{faults}"));
    lab.hosts[0].clone()
}

/// A FreeBSD host with all programs, whose second interface has no signal.
fn freebsd() -> FakeHost {
    let mut host = FakeHost::default();
    let mut set = |command: &str, text: &str| host.outputs.insert(command.into(), text.into());
    set("uname -s", "FreeBSD\n");
    set("uname -r", "15.0-CURRENT\n");
    set("uname -m", "amd64\n");
    set("getconf _NPROCESSORS_ONLN", "8\n");
    set("/bin/sh -c", "ifconfig\nnetstat\nsysctl\n");
    set(
        "ifconfig cxl0",
        "cxl0: flags=8843<UP,RUNNING> metric 0 mtu 1500\n\tether 00:07:43:2e:e4:70\n\tstatus: active\n",
    );
    set(
        "ifconfig cxl1",
        "cxl1: flags=8843<UP,RUNNING> metric 0 mtu 1280\n\tether 00:07:43:2e:e4:78\n\tstatus: no carrier\n",
    );
    host
}

fn failing(probes: &[Probe]) -> Vec<&str> {
    assert!(probes.iter().all(|probe| probe.works == probe.next.is_empty()), "{probes:?}");
    probes.iter().filter(|probe| !probe.works).map(|probe| probe.name.as_str()).collect()
}

#[test]
fn probes_name_the_faults_of_a_host() {
    let probes = probe_host(&freebsd(), &described("system = \"freebsd\"\ncpus = [0, 7]"));
    assert_eq!(failing(&probes), ["link cxl1", "MTU cxl1"], "{probes:#?}");
    assert_eq!(probes[0].detail, "FreeBSD 15.0-CURRENT, amd64, 8 CPUs");

    let mut host = freebsd();
    host.outputs.insert("/bin/sh -c".into(), "ifconfig\nsysctl\n".into());
    host.failures.insert("ifconfig cxl1".into(), "interface cxl1 does not exist".into());
    let other =
        "cxl0: flags=8843<UP,RUNNING> mtu 1500\n\tether 00:07:43:2e:e4:71\n\tstatus: active\n";
    host.outputs.insert("ifconfig cxl0".into(), other.into());
    let probes = probe_host(&host, &described("system = \"linux\"\ncpus = [8]"));
    let expected = ["system", "cpus", "program netstat", "interface cxl0", "interface cxl1"];
    assert_eq!(failing(&probes), expected, "{probes:#?}");
    let mac = probes.iter().find(|probe| probe.name == "interface cxl0").expect("the probe");
    assert_eq!(mac.detail, "its MAC is 00:07:43:2e:e4:71, in the file 00:07:43:2e:e4:70");
    assert!(probes.last().is_some_and(|probe| probe.next.contains("ifconfig -l")), "{probes:#?}");
}

#[test]
fn unknown_system_ends_the_probes() {
    let mut host = freebsd();
    host.outputs.insert("uname -s".into(), "Darwin\n".into());
    assert_eq!(failing(&probe_host(&host, &described(""))), ["system"]);
    host.failures.insert("uname -s".into(), "no".into());
    assert_eq!(failing(&probe_host(&host, &described(""))), ["system"]);
}

#[test]
fn online_cpus_may_have_gaps() {
    let mut host = freebsd();
    host.outputs.insert("uname -s".into(), "Linux\n".into());
    let path = "/sys/devices/system/cpu/online".to_owned();
    host.files.lock().expect("files").insert(path, "0-3,8-11,15".into());
    let wrong = |cpus: &str| {
        let probes = probe_host(&host, &described(&format!("cpus = {cpus}")));
        failing(&probes).contains(&"cpus")
    };
    assert!(!wrong("[0, 3, 8, 11, 15]"));
    assert!(wrong("[0, 4]") && wrong("[16]"));
}

#[test]
fn ssh_settings_of_the_file_override_the_defaults() {
    let mut lab = Lab {
        name: "t".into(),
        ssh: Default::default(),
        notify: Default::default(),
        lease_ns: 1,
        labgrid: Default::default(),
        hosts: vec![],
        cables: vec![],
    };
    let default = SshSettings::default();
    let same = ssh_settings(&lab, Path::new("x"));
    assert_eq!((same.config, same.connect, same.one_shell), (None, default.connect, false));
    lab.ssh.config = Some("ssh_config".into());
    lab.ssh.deadline_ns = Some(1_500_000_000);
    lab.ssh.one_shell = true;
    let settings = ssh_settings(&lab, Path::new("labs"));
    assert_eq!(settings.config.as_deref(), Some(Path::new("labs/ssh_config")));
    assert_eq!((settings.deadline, settings.alive), (Duration::from_millis(1500), default.alive));
    assert!(settings.one_shell);
}

#[test]
fn controller_commands_are_looked_up_locally() {
    let argv = |word: &str| vec![word.to_owned(), "x".to_owned()];
    assert!(own_command("console", &argv("sh")).is_some_and(|probe| probe.works));
    let missing = own_command("power_cycle", &argv("no-such-program")).expect("a probe");
    assert!(!missing.works && missing.detail.contains("no-such-program"));
}
