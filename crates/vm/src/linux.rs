//! A Linux guest: its small system, its boot, and the ways to reach it.
//!
//! The system consists of busybox, the modules of the data interfaces, `ip`, `nft` and an ssh
//! server with its own key: the same commands configure it as any other machine. Its first process
//! loads the modules and then waits for a command before it brings any interface up. At that point
//! fwdlab sets the gate of the counts: the address of its function is known only then, and code is
//! translated when it first runs. Its modprobe(8) loads further modules when they are needed.

use crate::console::Console;
use crate::counts::CountFile;
use crate::error::VmError;
use crate::guest::{self, Common, System};
use crate::initrd::Initrd;
use crate::kernel::{Kernel, Module};
use crate::machine::{self, Accel, Boot, Model};
use crate::modprobe;
use crate::tool;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

pub use crate::guest::{NAME, RunningGuest};

/// Programs of this machine that the guest gets, and their packages.
const PROGRAMS: [(&str, &str); 5] = [
    ("dash", "dash"),
    ("ip", "iproute2"),
    ("nft", "nftables"),
    ("ethtool", "ethtool"),
    ("sshd", "openssh-server"),
];
/// Further programs of features, which the guest gets if this machine has them, and their packages.
const OPTIONAL: [(&str, &str); 5] = [
    ("bridge", "iproute2"),
    ("tc", "iproute2"),
    ("wg", "wireguard-tools"),
    ("ovs-dpctl", "openvswitch-switch"),
    ("xtables-legacy-multi", "iptables"),
];
/// The part of iptables that decides on plain targets (Debian, Fedora, Arch).
const XTABLES_PART: &str = "libxt_standard.so";
const XTABLES_PARTS: [&str; 3] =
    ["/usr/lib/x86_64-linux-gnu/xtables", "/usr/lib64/xtables", "/usr/lib/xtables"];
/// Directories of the programs that sshd executes: `sshd-session` since OpenSSH 9.8 and
/// `sshd-auth` since 10.0 (Debian, Fedora, Arch, OpenSSH's own default).
const SSHD_PARTS: [&str; 4] =
    ["/usr/lib/openssh", "/usr/libexec/openssh", "/usr/lib/ssh", "/usr/libexec"];
/// Modules of firewalls, loaded at boot.
const FIREWALL: [&str; 5] = ["nf_tables", "nft_ct", "nft_limit", "nft_log", "nft_reject_inet"];
/// Beginnings of the names of modules that are loaded when a command or a ruleset needs them: chains
/// and expressions of nftables, address translation, flow tables, loggers and connection tracking
/// helpers; iptables; virtual interfaces and tunnels; Open vSwitch; queueing disciplines, filters and
/// actions; IPsec with AES-GCM.
const REQUESTED: [&str; 44] = [
    "nft_",
    "nf_",
    "ip_tables",
    "ip6_tables",
    "iptable_",
    "ip6table_",
    "8021q",
    "bonding",
    "bridge",
    "geneve",
    "gre",
    "ip6_gre",
    "ip6_tunnel",
    "ip_gre",
    "ip_tunnel",
    "ip_vs",
    "ipip",
    "macsec",
    "macvlan",
    "mpls_",
    "openvswitch",
    "sit",
    "tunnel4",
    "udp_tunnel",
    "veth",
    "vrf",
    "vxlan",
    "wireguard",
    "act_",
    "cls_",
    "em_",
    "sch_",
    "aesni_intel",
    "ctr",
    "esp4",
    "esp6",
    "gcm",
    "drbg",
    "hmac",
    "jitterentropy",
    "sha512",
    "ghash_generic",
    "seqiv",
    "xfrm_",
];
/// Time for a boot; emulated on a busy machine it takes half a minute.
const BOOT: Duration = Duration::from_secs(240);
/// Printed after the modules are loaded, and when ssh answers.
const LOADED: &str = "fwdlab: modules are loaded";
const UP: &str = "fwdlab: up";

/// Configuration of a guest.
#[derive(Clone, Debug)]
pub struct Guest<'a> {
    /// Kernel of the guest.
    pub kernel: &'a Kernel,
    /// True if the guest may need more than plain forwarding: firewalls, virtual interfaces,
    /// tunnels, queueing disciplines.
    pub features: bool,
    /// Properties common to all systems.
    pub common: Common<'a>,
}

impl Guest<'_> {
    /// Boots the guest with its files in `directory`, until it answers by ssh.
    ///
    /// # Errors
    /// If a program is missing, or the guest does not come up.
    pub fn boot(&self, directory: &Path) -> Result<RunningGuest, VmError> {
        let model = self.common.model();
        let port = machine::free_port()?;
        let ssh_config = self.keys(directory, port)?;
        let initrd = directory.join("initrd");
        fs::write(&initrd, self.initrd(directory, model)?)
            .map_err(|source| VmError::file(&initrd, source))?;
        // Counted: locks stay as on several CPUs, and the clock also ticks while the guest idles,
        // so that ticks are background. Emulated on a busy machine, ticks are too late for Linux's
        // check of the timer, which ends in a panic; under KVM Linux skips the check.
        let options = match self.common.accel {
            Accel::Counted => "no_timer_check nokaslr noreplace-smp nohz=off",
            Accel::Tcg => "no_timer_check",
            Accel::Kvm => "",
        };
        let kernel = Boot::Linux {
            image: self.kernel.image.clone(),
            initrd,
            append: format!("console=ttyS0 quiet panic=-1 {options}"),
        };
        let (boot, interfaces) = ((System::Linux, kernel), ["eth1", "eth2"]);
        self.common.boot(boot, directory, port, interfaces, |machine, counts| {
            up(machine.console(), counts, model)?;
            Ok(ssh_config)
        })
    }

    /// Builds the guest's system.
    fn initrd(&self, directory: &Path, model: Model) -> Result<Vec<u8>, VmError> {
        let [modules, requested] = modules(self.kernel, self.features, model)?;
        let mut initrd = Initrd::new();
        let read = |name: &str| {
            let path = directory.join(name);
            fs::read(&path).map_err(|source| VmError::file(&path, source))
        };
        initrd.program("/bin/busybox", "busybox-static")?;
        for (program, package) in PROGRAMS {
            initrd.program(program, package)?;
        }
        if self.features {
            // Only a few features need them; a feature without its program has no price.
            let part = XTABLES_PARTS.map(|directory| format!("{directory}/{XTABLES_PART}"));
            let parts = part.iter().map(|part| (part.as_str(), "iptables"));
            let all = OPTIONAL.into_iter().chain(parts);
            for (program, package) in all.filter(|(name, _)| tool::find(name).is_some()) {
                initrd.program(program, package)?;
            }
        }
        for part in parts_of_sshd(&SSHD_PARTS) {
            initrd.program(&part.to_string_lossy(), "openssh-server")?;
        }
        // Busybox's own shell runs its applets instead of programs of the same name.
        initrd.link("bin/sh", "/usr/bin/dash");
        initrd.file(
            "init",
            0o755,
            script(&modules.iter().map(|(name, _)| name.as_str()).collect::<Vec<_>>(), model)
                .as_bytes(),
        );
        for (name, content) in modules.iter().chain(&requested) {
            initrd.file(&modprobe::place(name), 0o644, content);
        }
        initrd.file(modprobe::PATH, 0o755, modprobe::script(&requested).as_bytes());
        initrd.file("etc/passwd", 0o644, PASSWD.as_bytes());
        initrd.file("etc/group", 0o644, b"root:x:0:\nnogroup:x:65534:\n");
        initrd.file("etc/ssh/sshd_config", 0o600, SSHD.as_bytes());
        initrd.file("etc/ssh/host_key", 0o600, &read("host_key")?);
        initrd.file("root/.ssh/authorized_keys", 0o600, &read("key.pub")?);
        ["run/sshd", "var/empty", "var/tmp", "dev/pts"]
            .iter()
            .for_each(|name| initrd.directory(name));
        Ok(initrd.into_bytes())
    }

    /// Generates keys for both sides, and an ssh configuration that reaches the guest with them.
    fn keys(&self, directory: &Path, port: u16) -> Result<PathBuf, VmError> {
        ["key", "host_key"].iter().try_for_each(|name| guest::key(directory, name))?;
        let public = directory.join("host_key.pub");
        let public =
            fs::read_to_string(&public).map_err(|source| VmError::file(&public, source))?;
        guest::ssh_config(directory, port, public.trim_end())
    }
}

/// Reads the modules of a guest: those that it loads at boot, in this order, and those that it loads
/// when they are needed.
///
/// # Errors
/// If a file can't be read or decompressed.
pub fn modules(kernel: &Kernel, features: bool, model: Model) -> Result<[Vec<Module>; 2], VmError> {
    let mut names = vec!["virtio_pci", "virtio_rng", "virtio-rng", "virtio_net", model.module()];
    if features {
        names.extend(FIREWALL);
    }
    let requested = match features {
        true => kernel.modules_named(&REQUESTED)?,
        false => Vec::new(),
    };
    Ok([kernel.modules(&names)?, requested])
}

/// Waits until the guest is up, and sets the gate during the boot.
fn up(console: &Console, counts: Option<&CountFile>, model: Model) -> Result<(), VmError> {
    let output = console.wait_for(LOADED, BOOT)?;
    if let Some(counts) = counts {
        counts.set_gate(gate(&output, model)?)?;
    }
    console.send("go")?;
    console.wait_for(UP, BOOT).map(drop)
}

/// Returns the programs that the installed sshd executes.
fn parts_of_sshd(directories: &[&str]) -> Vec<PathBuf> {
    let entries = directories.iter().filter_map(|directory| fs::read_dir(directory).ok()).flatten();
    let files = entries.filter_map(|entry| Some(entry.ok()?.path()));
    let is_part = |path: &PathBuf| {
        path.file_name().is_some_and(|name| name.to_string_lossy().starts_with("sshd-"))
    };
    let mut parts: Vec<PathBuf> = files.filter(is_part).collect();
    parts.sort();
    parts
}

const PASSWD: &str = "root:x:0:0:root:/root:/bin/sh\n\
                      sshd:x:100:65534::/run/sshd:/bin/false\n";

/// Configuration of the ssh server: only this process reaches the guest.
const SSHD: &str = "HostKey /etc/ssh/host_key\n\
                    PermitRootLogin prohibit-password\n\
                    PasswordAuthentication no\n\
                    UsePAM no\n\
                    StrictModes no\n\
                    UseDNS no\n\
                    MaxSessions 64\n\
                    PidFile none\n";

/// Returns the script of the guest's first process. The ssh server forks before it listens, so the
/// script waits for that.
fn script(modules: &[&str], model: Model) -> String {
    let insmod = |name: &&str| format!("insmod /{}\n", modprobe::place(name));
    let load: String = modules.iter().map(insmod).collect();
    let (poll, mac, modprobe) = (model.poll(), machine::ADMIN_MAC, modprobe::PATH);
    let guest = machine::ADMIN.1;
    format!(
        "#!/bin/busybox sh\n\
         /bin/busybox --install -s /bin\n\
         rm -f /bin/ip\n\
         export PATH=/usr/sbin:/usr/bin:/sbin:/bin\n\
         mount -t proc proc /proc\n\
         mount -t sysfs sysfs /sys\n\
         mount -t devtmpfs dev /dev\n\
         mkdir -p /dev/pts && mount -t devpts pts /dev/pts\n\
         echo 0 > /proc/sys/kernel/printk_devkmsg 2>/dev/null\n\
         echo /{modprobe} > /proc/sys/kernel/modprobe 2>/dev/null\n\
         {load}\
         grep -E ' {poll}([[:space:]]|$)' /proc/kallsyms | sed 's/^/fwdlab: gate /'\n\
         echo '{LOADED}'\n\
         read go\n\
         ip link set lo up\n\
         for i in /sys/class/net/*; do\n\
           if [ \"$(cat $i/address)\" = {mac} ]; then\n\
             ip addr add {guest}/24 dev ${{i##*/}}; ip link set ${{i##*/}} up\n\
           fi\n\
         done\n\
         sshd=$(ls /usr/sbin/sshd /usr/bin/sshd /sbin/sshd 2>/dev/null | head -n 1)\n\
         $sshd -f /etc/ssh/sshd_config -E /run/sshd.log\n\
         n=0\n\
         until grep -q ':0016 00000000:0000 0A' /proc/net/tcp; do\n\
           sleep 0.2; n=$((n + 1))\n\
           [ $n -lt 300 ] || {{ cat /run/sshd.log; echo 'panic: no ssh server'; break; }}\n\
         done\n\
         echo '{UP}'\n\
         while :; do sleep 100000; done\n"
    )
}

/// Returns the address of the function at which batches are gathered, from the guest's output.
fn gate(output: &str, model: Model) -> Result<u64, VmError> {
    output.lines()
        .filter_map(|line| line.trim().strip_prefix("fwdlab: gate "))
        .find_map(|line| u64::from_str_radix(line.split(' ').next()?, 16).ok())
        .ok_or_else(|| {
            VmError::Counts(format!(
                "the guest's kernel has no function {}\n  next step: see that it has {} built in, or \
                 its modules where they are looked for (INSTALL_MOD_PATH=modules make \
                 modules_install)",
                model.poll(),
                model.module()
            ))
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_of_sshd_finds_programs_by_name() {
        let directory = tempfile::tempdir().unwrap();
        for name in ["sshd-session", "sshd-auth", "sftp-server"] {
            fs::write(directory.path().join(name), "").unwrap();
        }
        let parts = parts_of_sshd(&["/nonexistent", &directory.path().to_string_lossy()]);
        let names: Vec<_> = parts.iter().map(|path| path.file_name().unwrap()).collect();
        assert_eq!(names, ["sshd-auth", "sshd-session"]);
    }

    #[test]
    fn gate_is_read_from_console_output() {
        let output = "[ 1.2] x\r\nfwdlab: gate ffffffffc0003f50 t virtnet_poll\t[virtio_net]\r\n";
        assert_eq!(gate(output, Model::Virtio).unwrap(), 0xffff_ffff_c000_3f50);
        let error = gate("", Model::E1000e).unwrap_err().to_string();
        assert!(error.contains("e1000e_poll"), "{error}");
    }
}
