//! State of an interface: from sysfs on Linux, from ifconfig(8) on FreeBSD.

use crate::dut::freebsd::apply::Interface;
use crate::error::BenchError;
use crate::host::Host;
use fwdlab_model::lab::System;

/// Command that lists a system's interfaces.
pub(super) fn listing(system: System) -> &'static str {
    match system {
        System::Linux => "ip -br link",
        System::FreeBsd => "ifconfig -l",
    }
}

/// Current state of an interface.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct InterfaceState {
    /// MAC in lower case.
    pub(super) mac: Option<String>,
    /// True if up with carrier.
    pub(super) up: bool,
    /// Description of the state.
    pub(super) state: String,
    /// Largest packet, bytes.
    pub(super) mtu: Option<u32>,
}

/// State of a Linux or FreeBSD interface that is not up.
const OFF: &str = "switched off";

impl InterfaceState {
    /// Next step for an interface that is not up.
    pub(super) fn next(&self, system: System, name: &str) -> String {
        let command = match system {
            System::Linux => format!("ip link set {name} up"),
            System::FreeBsd => format!("ifconfig {name} up"),
        };
        match self.state == OFF {
            true => format!("switch the interface on there: `{command}`"),
            false => "check the cable and its far end".into(),
        }
    }
}

/// Queries an interface.
///
/// # Errors
/// Fails if there is no interface of this name.
pub(super) fn interface_state(
    host: &dyn Host,
    system: System,
    name: &str,
) -> Result<InterfaceState, BenchError> {
    match system {
        System::Linux => linux(host, name),
        System::FreeBsd => host.run(&["ifconfig", name], "").map(|text| freebsd(&text)),
    }
}

/// Negotiated line rate of an interface, bits per second; `None` without a medium, or if a virtual
/// machine's card reports a rate that limits nothing.
pub(crate) fn line_rate_bps(host: &dyn Host, system: System, name: &str) -> Option<u64> {
    match system {
        System::Linux => {
            let cpus = host.get("/proc/cpuinfo").ok()?;
            let is_virtual = cpus.split_whitespace().any(|flag| flag == "hypervisor");
            // Mbit/s; -1 if unknown.
            let speed = host.get(&format!("/sys/class/net/{name}/speed")).ok()?;
            let speed = speed.trim().parse::<i64>().ok().filter(|speed| *speed > 0)?;
            (!is_virtual).then_some(speed as u64 * 1_000_000)
        }
        System::FreeBsd => {
            let guest = host.run(&["sysctl", "-n", "kern.vm_guest"], "").ok()?;
            let text = host.run(&["ifconfig", name], "").ok()?;
            (guest.trim() == "none").then(|| medium_bps(&text)).flatten()
        }
    }
}

/// Speed from `media: Ethernet autoselect (40Gbase-CR4 <full-duplex>)` (ifmedia(4)).
fn medium_bps(text: &str) -> Option<u64> {
    let media = text.lines().find_map(|line| line.trim().strip_prefix("media:"))?;
    let active = media.split_once('(').map_or(media, |(_, active)| active);
    let word = active.split_whitespace().find(|word| word.to_lowercase().contains("base"))?;
    let digits = word.find(|c: char| !c.is_ascii_digit()).unwrap_or(0);
    let scale = if word[digits..].starts_with('G') { 1_000_000_000 } else { 1_000_000 };
    word[..digits].parse::<u64>().ok()?.checked_mul(scale)
}

fn linux(host: &dyn Host, name: &str) -> Result<InterfaceState, BenchError> {
    let get = |file: &str| host.get(&format!("/sys/class/net/{name}/{file}"));
    let mac = get("address")?;
    // The file is unreadable while the interface is down.
    let (up, state) = match get("carrier").as_deref() {
        Ok("1") => (true, "up"),
        Ok(_) => (false, "no signal"),
        Err(_) => (false, OFF),
    };
    let mtu = get("mtu")?.parse().ok();
    Ok(InterfaceState { mac: Some(mac.to_lowercase()), up, state: state.into(), mtu })
}

/// Parses the output of `ifconfig NAME`. Interfaces without a medium (lo0) have no status.
fn freebsd(text: &str) -> InterfaceState {
    let Interface { flags, ether, status, mtu, .. } = Interface::parse(text);
    let (up, state) = match (flags.contains("UP") && flags.contains("RUNNING"), status.as_str()) {
        (false, _) => (false, OFF),
        (true, "" | "active") => (true, "up"),
        (true, status) => (false, status),
    };
    let mac = (!ether.is_empty()).then(|| ether.to_lowercase());
    InterfaceState { mac, up, state: state.into(), mtu }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::host::{FakeHost, LocalHost};

    const CXL0: &str = "\
cxl0: flags=1008843<UP,BROADCAST,RUNNING,SIMPLEX,MULTICAST,LOWER_UP> metric 0 mtu 1500
\toptions=6ec07bb<RXCSUM,TXCSUM,VLAN_MTU,VLAN_HWTAGGING,JUMBO_MTU,VLAN_HWCSUM,TSO4>
\tether 00:07:43:2E:e4:70
\tinet 198.18.0.10 netmask 0xffffff00 broadcast 198.18.0.255
\tmedia: Ethernet autoselect (40Gbase-CR4 <full-duplex,rxpause,txpause>)
\tstatus: active
\tnd6 options=29<PERFORMNUD,IFDISABLED,AUTO_LINKLOCAL>
";

    #[test]
    fn ifconfig_output_is_parsed() {
        let mac = Some("00:07:43:2e:e4:70".to_owned());
        let link = InterfaceState { mac, up: true, state: "up".into(), mtu: Some(1500) };
        assert_eq!(freebsd(CXL0), link);
        let unplugged = freebsd(&CXL0.replace("status: active", "status: no carrier"));
        assert_eq!((unplugged.up, unplugged.state.as_str()), (false, "no carrier"));
        let off = freebsd(&CXL0.replace("<UP,", "<"));
        assert_eq!((off.up, off.state.as_str()), (false, "switched off"));
        // Output of FreeBSD 13.2 for an unconfigured interface.
        let fresh = freebsd(
            "vtnet1: flags=8822<BROADCAST,SIMPLEX,MULTICAST> metric 0 mtu 1500\n\toptions=80028<VLAN_MTU,JUMBO_MTU,LINKSTATE>\n\tether 02:00:c6:12:00:01\n\tmedia: Ethernet autoselect (10Gbase-T <full-duplex>)\n\tstatus: active\n\tnd6 options=29<PERFORMNUD,IFDISABLED,AUTO_LINKLOCAL>\n",
        );
        assert!(
            !fresh.up && fresh.next(System::FreeBsd, "vtnet1").contains("`ifconfig vtnet1 up`")
        );
        assert!(unplugged.next(System::FreeBsd, "cxl0").contains("cable"));
        let lo0 = freebsd("lo0: flags=8049<UP,LOOPBACK,RUNNING,MULTICAST> metric 0 mtu 16384\n");
        assert_eq!((lo0.up, lo0.mac, lo0.mtu), (true, None, Some(16384)));
        assert!(!freebsd("").up);
    }

    #[test]
    fn sysfs_state_is_parsed() {
        let host = FakeHost::default();
        let set = |file: &str, text: &str| {
            let path = format!("/sys/class/net/eth1/{file}");
            host.files.lock().expect("files").insert(path, text.into());
        };
        assert!(interface_state(&host, System::Linux, "eth1").is_err());
        set("address", "02:00:00:00:00:0A");
        set("mtu", "9000");
        let state_now = || interface_state(&host, System::Linux, "eth1").expect("a link");
        assert_eq!((state_now().up, state_now().state.as_str()), (false, "switched off"));
        set("carrier", "0");
        assert_eq!((state_now().up, state_now().state.as_str()), (false, "no signal"));
        set("carrier", "1");
        let (mac, state) = (Some("02:00:00:00:00:0a".into()), "up".into());
        assert_eq!(state_now(), InterfaceState { mac, up: true, state, mtu: Some(9000) });
    }

    #[test]
    fn line_rate_is_the_rate_negotiated_by_hardware() {
        let host = FakeHost::default();
        let set = |path: &str, text: &str| {
            host.files.lock().expect("files").insert(path.to_owned(), text.to_owned());
        };
        let of = |host: &FakeHost| line_rate_bps(host, System::Linux, "eth1");
        set("/proc/cpuinfo", "processor : 0\nflags : fpu sse2");
        assert_eq!(of(&host), None);
        for (speed, expected) in [("25000", Some(25_000_000_000)), ("-1", None), ("0", None)] {
            set("/sys/class/net/eth1/speed", speed);
            assert_eq!(of(&host), expected, "{speed}");
        }
        set("/sys/class/net/eth1/speed", "10000");
        set("/proc/cpuinfo", "processor : 0\nflags : fpu hypervisor sse2");
        assert_eq!(of(&host), None, "a virtual machine's card");
        assert_eq!(medium_bps(CXL0), Some(40_000_000_000));
        for (media, expected) in [
            ("media: Ethernet autoselect (1000baseT <full-duplex>)", Some(1_000_000_000)),
            ("media: Ethernet 10Gbase-SR <full-duplex,rxpause>", Some(10_000_000_000)),
            ("media: Ethernet autoselect (none)", None),
            ("status: active", None),
        ] {
            assert_eq!(medium_bps(media), expected, "{media}");
        }
        let mut freebsd = FakeHost::default();
        freebsd.outputs.insert("ifconfig cxl0".into(), CXL0.into());
        for (guest, expected) in [("none\n", Some(40_000_000_000)), ("bhyve\n", None)] {
            freebsd.outputs.insert("sysctl -n".into(), guest.into());
            assert_eq!(line_rate_bps(&freebsd, System::FreeBsd, "cxl0"), expected, "{guest}");
        }
    }

    #[test]
    fn loopback_of_this_machine_is_found() {
        let lo = interface_state(&LocalHost, System::Linux, "lo").expect("lo");
        assert_eq!(lo.mac.as_deref(), Some("00:00:00:00:00:00"));
        assert!(interface_state(&LocalHost, System::Linux, "no-such-one").is_err());
    }
}
