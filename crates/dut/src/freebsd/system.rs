//! Properties of a FreeBSD machine, read before anything is changed on it.

use fwdlab_host::Host;
use fwdlab_host::error::BenchError;

/// Directory for persistent data on stock FreeBSD.
const HOME: &str = "/var/db/fwdlab";
/// The same on nanobsd, whose `/var` is a memory file system.
const NANOBSD_HOME: &str = "/data/fwdlab";

/// A FreeBSD machine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct System {
    /// `kern.osreldate`: 1002000 is 10.2-RELEASE.
    pub release: u32,
    /// Identity of the current boot.
    pub boot: Boot,
    /// True for nanobsd(8): `/` is read-only, `/etc` is a memory file system that is saved on
    /// demand.
    pub nanobsd: bool,
    /// Directory for persistent data.
    pub home: &'static str,
}

/// Script that prints the properties of a machine, one per line: over ssh each command takes a
/// round trip.
pub(super) const ASK: &str = "uname -s; id -u; sysctl -n kern.osreldate 2>/dev/null || echo none
test -e /etc/nanobsd.conf && echo yes || echo no
test -d /data && echo yes || echo no";

/// Script that identifies the boot of a FreeBSD host. `kern.boot_id` exists since FreeBSD 13 and is
/// opaque: without `-x` nothing is printed, nor before the random device is seeded, without an
/// error.
pub const BOOT: &str = "if sysctl -N kern.boot_id >/dev/null 2>&1; then \
                        sysctl -nx kern.boot_id; else sysctl -n kern.boottime; fi";

/// Identity of a boot.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Boot(pub String);

impl Boot {
    /// Current boot of a FreeBSD host.
    ///
    /// # Errors
    /// Fails if the host does not report it.
    pub fn of(host: &dyn Host) -> Result<Boot, BenchError> {
        Boot::by_script(host, BOOT)
    }

    /// Boot that a script of sh(1) prints.
    ///
    /// # Errors
    /// Fails if the script fails or prints nothing: an empty identity would match every boot.
    pub fn by_script(host: &dyn Host, script: &str) -> Result<Boot, BenchError> {
        let text = host.run(&["/bin/sh", "-c", script], "")?;
        match boot_of(&text) {
            boot if boot.is_empty() => Err(BenchError::Program {
                command: script.into(),
                host: host.name().into(),
                why: "it says nothing: is the random device seeded?".into(),
            }),
            boot => Ok(Boot(boot)),
        }
    }

    /// True if both are the same boot. Setting the clock moves the boot time a little: the
    /// tolerance of ten seconds is less than any machine takes to boot.
    pub fn is(&self, other: &str) -> bool {
        let seconds = |text: &str| text.parse::<i64>().ok();
        match (seconds(&self.0), seconds(other)) {
            (Some(one), Some(other)) => one.abs_diff(other) <= 10,
            _ => self.0 == other,
        }
    }
}

impl System {
    /// Queries the host.
    ///
    /// # Errors
    /// Fails if the host does not run FreeBSD, or if the user is not root.
    pub fn ask(host: &dyn Host) -> Result<System, BenchError> {
        let text = host.run(&["/bin/sh", "-c", ASK], "")?;
        let mut lines = text.lines().map(str::trim);
        let [system, user, release, nanobsd, data] =
            std::array::from_fn(|_| lines.next().unwrap_or_default());
        let name = host.name();
        if system != "FreeBSD" {
            return Err(BenchError::environment(
                format!("{name} runs {system}, but dut.kind is \"freebsd\""),
                "write dut.kind = \"linux\", or name the right host in the laboratory's file",
            ));
        }
        if user != "0" {
            return Err(BenchError::environment(
                format!("{name} lets us in as user {user}; a DUT is configured by root only"),
                "write ssh = \"root@...\" in the laboratory's file, with PermitRootLogin \
                 prohibit-password in the DUT's /etc/ssh/sshd_config; sudo and doas are not used",
            ));
        }
        let number = release.parse().map_err(|_| BenchError::Program {
            command: "sysctl -n kern.osreldate".into(),
            host: name.into(),
            why: format!("`{release}` is no release"),
        })?;
        let boot = Boot::of(host)?;
        let nanobsd = nanobsd == "yes";
        if nanobsd && data != "yes" {
            return Err(BenchError::environment(
                format!("{name} is a nanobsd without /data: nothing on it survives a reboot"),
                "give its image a partition that is mounted on /data",
            ));
        }
        Ok(System {
            release: number,
            boot,
            nanobsd,
            home: if nanobsd { NANOBSD_HOME } else { HOME },
        })
    }
}

/// Options of a kernel's configuration that affect how, or how fast, it forwards.
const OPTIONS: [&str; 17] = [
    "DEBUG",
    "FIB_ALGO",
    "INET",
    "INET6",
    "INVARIANTS",
    "IPFIREWALL",
    "IPSEC",
    "IPSEC_SUPPORT",
    "KASAN",
    "KMSAN",
    "MAC",
    "NUMA",
    "ROUTE_MPATH",
    "RSS",
    "SMP",
    "VIMAGE",
    "WITNESS",
];

/// Script that prints the kernel's file, and its configuration if compiled in.
const KERNEL: &str = "sysctl -n kern.bootfile; sysctl -n kern.conftxt 2>/dev/null; true";

/// The running kernel's file, name and relevant options (config(5)), from `kern.bootfile` and
/// `kern.conftxt`, so that a kernel with a wrong label is noticed. Empty if they are unavailable.
pub fn kernel_facts(host: &dyn Host) -> Vec<(String, String)> {
    let text = host.run(&["/bin/sh", "-c", KERNEL], "").unwrap_or_default();
    let (file, text) = text.split_once('\n').unwrap_or_default();
    let mut facts = vec![("kernel file".to_owned(), file.trim().to_owned())];
    facts.extend(configuration(text));
    facts.retain(|(_, value)| !value.is_empty());
    facts
}

/// Name and options from the text of a kernel's configuration.
fn configuration(text: &str) -> [(String, String); 2] {
    let words = |expected_kind: &'static str| {
        let lines = text.lines().filter_map(|line| line.split_once(char::is_whitespace));
        lines.filter(move |(kind, _)| *kind == expected_kind).map(|(_, value)| value.trim())
    };
    let mut options: Vec<&str> = words("options")
        .filter(|option| OPTIONS.contains(&option.split('=').next().unwrap_or(option)))
        .collect();
    options.sort_unstable();
    let ident = words("ident").next().unwrap_or_default().to_owned();
    [("kernel ident".into(), ident), ("kernel options".into(), options.join(" "))]
}

/// Identity of a boot from the output of [`BOOT`]: the bytes of `Format: Length:16 Dump:0x4d2d...`,
/// or the second of `{ sec = 1789900651, usec = 837885 } Sun Sep 20 ...`; otherwise the whole text.
pub fn boot_of(text: &str) -> String {
    let text = text.trim();
    let dump = text.split_once("Dump:").map(|(_, bytes)| bytes);
    let second = text.split_once("sec = ").and_then(|(_, rest)| rest.split([',', ' ']).next());
    dump.or(second).unwrap_or(text).trim().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use fwdlab_host::FakeHost;

    /// The fake host distinguishes commands by their first two words only: both queries get the
    /// same output.
    fn host(system: &str, user: &str) -> FakeHost {
        let mut host = FakeHost::default();
        let boot = "Format: Length:16 Dump:0x4d2d1cb8e37736eafa887c18f6581ad0";
        let text = format!("{system}\n{user}\n1400097\nno\nno\n{boot}\n");
        host.outputs.insert("/bin/sh -c".into(), text);
        host
    }

    #[test]
    fn ask_requires_root_on_freebsd() {
        let system = System::ask(&host("FreeBSD", "0")).expect("a system");
        assert_eq!((system.release, system.home), (1_400_097, HOME));
        assert_eq!(system.boot.0, "0x4d2d1cb8e37736eafa887c18f6581ad0");
        let error = System::ask(&host("Linux", "0")).expect_err("Linux").to_string();
        assert!(error.contains("fake runs Linux"), "{error}");
        let error = System::ask(&host("FreeBSD", "1001")).expect_err("no root").to_string();
        assert!(
            error.contains("fake lets us in as user 1001") && error.contains("PermitRootLogin")
        );
    }

    #[test]
    fn boots_differ_by_id_or_by_second() {
        let text = "{ sec = 1789900651, usec = 837885 } Sun Sep 20 10:37:31 2026\n";
        let boot = Boot(boot_of(text));
        assert_eq!(boot.0, "1789900651");
        assert!(boot.is("1789900652") && !boot.is("1789900690") && !boot.is(""));
        // Output of `sysctl -nx kern.boot_id` on FreeBSD 13.2.
        let id = |bytes: &str| Boot(boot_of(&format!("Format: Length:16 Dump:{bytes}\n")));
        let one = id("0x4d2d1cb8e37736eafa887c18f6581ad0");
        assert!(one.is(&one.0) && !one.is(&id("0x4d2d1cb8e37736eafa887c18f6581ad1").0));
    }

    #[test]
    fn kernel_configuration_is_parsed() {
        // Some lines of `kern.conftxt` on FreeBSD 13.2.
        let text = "options\tCONFIG_AUTOGENERATED\nident\tFWDLAB\nmachine\tamd64\noptions\tSMP\noptions\tPRINTF_BUFR_SIZE=128\noptions\tFIB_ALGO\noptions\tINET6\noptions\tINET\ndevice\tvtnet\n\n";
        let [ident, options] = configuration(text);
        assert_eq!((ident.1.as_str(), options.1.as_str()), ("FWDLAB", "FIB_ALGO INET INET6 SMP"));
        assert_eq!(
            configuration(""),
            [("kernel ident".into(), String::new()), ("kernel options".into(), String::new())]
        );
    }

    #[test]
    fn empty_boot_identity_is_an_error() {
        let mut host = host("FreeBSD", "0");
        host.outputs.insert("/bin/sh -c".into(), "\n".into());
        let error = Boot::of(&host).expect_err("nobody's boot").to_string();
        assert!(error.contains("kern.boot_id") && error.contains("says nothing"), "{error}");
    }
}
