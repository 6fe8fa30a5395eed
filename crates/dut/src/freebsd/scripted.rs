//! A FreeBSD machine in memory, for tests: files, sysctls, interfaces, a routing table, neighbours
//! and firewalls that commands change and print.
//!
//! Its answers are composed from the manual pages ifconfig(8), netstat(1), arp(8), ndp(8),
//! pfctl(8), ipfw(8), ipf(8), vmstat(8) and the programs' sources, and corrected by answers of
//! FreeBSD 13.2; the output of `uname -v` is from the archive.

use super::rc::{Document, Format};
use super::{counters, firewall, own_firewall, system};
use fwdlab_host::error::BenchError;
use fwdlab_host::{Host, Running};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;
use std::sync::{Mutex, MutexGuard};

/// Mutable state of the machine.
#[derive(Clone, Debug, Default)]
pub(super) struct State {
    pub(super) files: BTreeMap<String, String>,
    pub(super) directories: BTreeSet<String>,
    pub(super) sysctls: BTreeMap<String, String>,
    pub(super) options: BTreeMap<String, BTreeSet<String>>,
    pub(super) addresses: BTreeMap<String, Vec<String>>,
    pub(super) routes: BTreeMap<String, String>,
    pub(super) neighbours: BTreeMap<String, String>,
    pub(super) modules: BTreeSet<String>,
    pub(super) running: BTreeMap<&'static str, usize>,
    pub(super) masks: BTreeMap<String, String>,
    /// Kernel environment: the loader's variables and later additions.
    pub(super) kenv: BTreeMap<String, String>,
    pub(super) commands: Vec<Vec<String>>,
    pub(super) stdin: Vec<String>,
    pub(super) booted: u64,
    /// Failures: prefix of the command line, and the error message.
    pub(super) failures: Vec<(String, String)>,
}

#[derive(Debug, Default)]
pub(super) struct ScriptedHost {
    pub(super) state: Mutex<State>,
    /// Sysctls after a boot.
    pub(super) defaults: BTreeMap<String, String>,
    /// MACs by interface.
    pub(super) interfaces: BTreeMap<String, String>,
    /// Output of `uname -v`.
    pub(super) kernel: String,
}

impl ScriptedHost {
    pub(super) fn new(release: u32, interfaces: &[(&str, &str)]) -> ScriptedHost {
        let mut host = ScriptedHost { kernel: "FreeBSD 14.1-RELEASE".into(), ..Default::default() };
        for (name, value) in [
            ("kern.osreldate", release.to_string().as_str()),
            ("hw.ncpu", "8"),
            ("net.inet.ip.forwarding", "0"),
            ("net.inet6.ip6.forwarding", "0"),
            ("net.inet.ip.redirect", "1"),
            ("net.inet6.ip6.redirect", "1"),
            ("net.inet.icmp.drop_redirect", "0"),
            ("kern.random.harvest.mask", "511"),
            ("net.route.algo.inet.algo", "bsearch4"),
            ("net.route.algo.inet.algo_list", "bsearch4, radix4_lockless, radix4"),
        ] {
            host.defaults.insert(name.into(), value.into());
        }
        for (name, mac) in interfaces {
            host.interfaces.insert(name.to_string(), mac.to_string());
        }
        host.boot();
        host
    }

    pub(super) fn now(&self) -> MutexGuard<'_, State> {
        self.state.lock().expect("no test panics with it")
    }

    /// Resets everything but files to the state after a boot.
    pub(super) fn boot(&self) {
        let mut state = self.now();
        let (files, booted) = (std::mem::take(&mut state.files), state.booted.max(1_700_000_000));
        let commands = std::mem::take(&mut state.commands);
        *state = State { files, commands, booted: booted + 300, ..State::default() };
        state.sysctls = self.defaults.clone();
        let loader = state.files.get("/boot/loader.conf.local").cloned().unwrap_or_default();
        let loader = Document::parse(Format::Loader, &loader);
        let given = loader.assignments().map(|(name, value)| (name.to_owned(), value.to_owned()));
        state.kenv = given.collect();
        let queues = |names: [&str; 2]| {
            names.iter().find_map(|name| loader.get(&format!("hw.cxgbe.{name}"))).unwrap_or("16")
        };
        for name in self.interfaces.keys() {
            let on = ["RXCSUM", "TXCSUM", "TSO4", "TSO6", "LRO", "VLAN_HWTSO"];
            state.options.insert(name.clone(), on.map(String::from).into());
            let unit = &name[3..];
            if name.starts_with("cxl") {
                let parts = [
                    ("nrxq", queues(["nrxq10g", "nrxq"])),
                    ("ntxq", queues(["ntxq10g", "ntxq"])),
                    ("%parent", "t5nex0"),
                    ("%location", &format!("port={unit}")),
                ];
                for (last, value) in parts {
                    state.sysctls.insert(format!("dev.cxl.{unit}.{last}"), value.to_owned());
                }
            }
            if let Some(unit) = name.strip_prefix("vtnet") {
                let pairs = loader.get(&format!("hw.vtnet.{unit}.mq_max_pairs")).unwrap_or("1");
                for (last, value) in [("act_vq_pairs", "0"), ("req_vq_pairs", pairs)] {
                    state.sysctls.insert(format!("dev.vtnet.{unit}.{last}"), value.to_owned());
                }
            }
            if name.starts_with("mce") {
                let oid = format!("dev.mce.{unit}.conf.channels");
                let value = loader.get(&oid).unwrap_or("16").to_owned();
                state.sysctls.insert(oid, value);
            }
        }
    }

    pub(super) fn file(&self, path: &str) -> Option<String> {
        self.now().files.get(path).cloned()
    }

    pub(super) fn write(&self, path: &str, text: &str) {
        self.now().files.insert(path.into(), text.into());
    }

    /// Files outside fwdlab's backup directory.
    pub(super) fn visible(&self) -> BTreeMap<String, String> {
        let files = self.now().files.clone();
        files.into_iter().filter(|(path, _)| !path.starts_with("/var/db/fwdlab/")).collect()
    }

    pub(super) fn fail(&self, command: &str, why: &str) {
        self.now().failures.push((command.into(), why.into()));
    }

    pub(super) fn forget_commands(&self) {
        self.now().commands.clear();
    }

    /// Executed command lines with this prefix.
    pub(super) fn ran(&self, beginning: &str) -> Vec<String> {
        let lines: Vec<String> = self.now().commands.iter().map(|words| words.join(" ")).collect();
        lines.into_iter().filter(|line| line.starts_with(beginning)).collect()
    }
}

pub(super) type Answer = Result<String, String>;

fn no_file(program: &str, path: &str) -> Answer {
    Err(format!("{program}: {path}: No such file or directory"))
}

impl State {
    fn answer(&mut self, host: &ScriptedHost, argv: &[&str], stdin: &str) -> Answer {
        match argv {
            ["true"] | ["upgrade"] | ["pkg", ..] | ["mount" | "config", ..] => Ok(String::new()),
            ["uname", "-s"] => Ok("FreeBSD\n".into()),
            ["uname", "-v"] => Ok(format!("{}\n", host.kernel)),
            ["id", "-u"] => Ok("0\n".into()),
            ["test", _, path] => {
                let exists = self.files.contains_key(*path) || self.directories.contains(*path);
                if exists { Ok(String::new()) } else { Err("exit status: 1".into()) }
            }
            ["cat" | "mkdir" | "cp" | "tee" | "mv" | "rm", ..] => self.files(argv, stdin),
            ["sysctl", rest @ ..] => self.sysctl(rest),
            ["ifconfig", rest @ ..] => self.ifconfig(host, rest),
            ["netstat", rest @ ..] => self.netstat(rest),
            ["xargs", "-L", "1", "route", ..] => self.route(stdin),
            ["arp" | "ndp", "-an"] => Ok(self.neighbours(argv[0] == "ndp")),
            ["arp", "-S", address, mac] | ["ndp", "-s", address, mac] => {
                self.neighbours.insert(address.to_string(), mac.to_string());
                Ok(String::new())
            }
            ["vmstat", "-ai"] => Ok(vmstat()),
            ["cpuset", "-l", cpu, "-x", irq] => {
                self.masks.insert(irq.to_string(), cpu.to_string());
                Ok(String::new())
            }
            ["cpuset", "-g", "-x", irq] => {
                let mask = self.masks.get(*irq).map_or("0, 1, 2, 3, 4, 5, 6, 7", String::as_str);
                Ok(format!("irq {irq} mask: {mask}\n"))
            }
            ["shutdown", "-r", "now"] => Ok(String::new()),
            ["kenv", pair @ ..] => {
                let pair = pair.iter().find_map(|pair| pair.split_once('='));
                let line = |(name, value): (&str, &str)| format!("{name}=\"{value}\"\n");
                let Some((name, value)) = pair else {
                    let all = self.kenv.iter();
                    return Ok(all.map(|(name, value)| line((name, value))).collect());
                };
                self.kenv.insert(name.to_owned(), value.to_owned());
                Ok(line((name, value)))
            }
            ["/bin/sh", "-c", script, rest @ ..] => self.script(script, rest, stdin),
            ["kldload" | "kldunload", ..] => self.module(argv),
            ["pfctl" | "ipfw" | "ipf" | "ipfstat" | "service", ..] => self.firewall(argv, stdin),
            _ => Err(format!("{}: not found", argv[0])),
        }
    }

    fn files(&mut self, argv: &[&str], stdin: &str) -> Answer {
        match argv {
            ["cat", path] => match self.files.get(*path) {
                Some(text) => Ok(text.clone()),
                None => no_file("cat", path),
            },
            ["mkdir", "-p", path] => {
                self.directories.insert(path.to_string());
                Ok(String::new())
            }
            ["cp", "-p", from, to] => match self.files.get(*from).cloned() {
                Some(text) => {
                    self.files.insert(to.to_string(), text);
                    Ok(String::new())
                }
                None => no_file("cp", from),
            },
            ["tee", path] => {
                self.files.insert(path.to_string(), stdin.to_owned());
                Ok(stdin.to_owned())
            }
            ["mv", "-f", from, to] => match self.files.remove(*from) {
                Some(text) => {
                    self.files.insert(to.to_string(), text);
                    Ok(String::new())
                }
                None => Err(format!("mv: rename {from} to {to}: No such file or directory")),
            },
            ["rm", _, path] => {
                let below = format!("{path}/");
                self.files.retain(|known, _| known != path && !known.starts_with(&below));
                Ok(String::new())
            }
            _ => Err(format!("usage: {}", argv[0])),
        }
    }

    /// Runs the scripts that are passed as arguments.
    fn script(&mut self, script: &str, arguments: &[&str], stdin: &str) -> Answer {
        match script {
            system::ASK => {
                let release = self.sysctls["kern.osreldate"].as_str();
                let yes = |exists: bool| if exists { "yes" } else { "no" };
                let nanobsd = yes(self.files.contains_key("/etc/nanobsd.conf"));
                let data = yes(self.directories.contains("/data"));
                Ok(format!("FreeBSD\n0\n{release}\n{nanobsd}\n{data}\n"))
            }
            system::BOOT => Ok(format!("Format: Length:16 Dump:{:#034x}\n", self.booted)),
            firewall::LOADED => {
                let loaded = arguments[1..].iter().filter(|name| self.modules.contains(**name));
                Ok(loaded.map(|name| format!("{name}\n")).collect())
            }
            own_firewall::START_IPFW => self.firewall(&["/bin/sh", "/etc/ipfw.rules"], stdin),
            firewall::UNCUT => self.firewall(&["/bin/sh", arguments[0]], stdin),
            counters::READ => {
                let mut text = String::new();
                for name in &arguments[1..] {
                    text += &format!("== {name}\n{}", self.netstat(&["-I", name, "-bdnW"])?);
                }
                for name in ["ip", "ip6"] {
                    // Like the script READ without libxo.
                    let json = self.netstat(&["--libxo", "json", "-s", "-p", name]);
                    let statistics = json.or_else(|_| self.netstat(&["-s", "-p", name]))?;
                    text += &format!("== {name}\n{statistics}\n");
                }
                Ok(text + "== netisr\n" + NETISR + "== irq\n" + &vmstat())
            }
            other => Err(format!("/bin/sh: {other}: not scripted")),
        }
    }

    fn sysctl(&mut self, argv: &[&str]) -> Answer {
        let unknown = |name: &str| Err(format!("sysctl: unknown oid '{name}'"));
        match argv {
            ["-n", name] => match self.sysctls.get(*name) {
                Some(value) => Ok(format!("{value}\n")),
                None => unknown(name),
            },
            ["-N", prefix] => {
                let names = self.sysctls.keys().filter(|name| name.starts_with(prefix));
                Ok(names.map(|name| format!("{name}\n")).collect())
            }
            pairs => {
                let mut output = String::new();
                for (name, value) in pairs.iter().filter_map(|pair| pair.split_once('=')) {
                    let list = self.sysctls.get(&format!("{name}_list"));
                    if list.is_some_and(|list| !list.split(", ").any(|known| known == value)) {
                        return Err(format!("sysctl: {name}={value}: No such process"));
                    }
                    match self.sysctls.get_mut(name) {
                        Some(old) => {
                            let _ = writeln!(output, "{name}: {old} -> {value}");
                            *old = value.to_owned();
                        }
                        None => return unknown(name),
                    }
                }
                Ok(output)
            }
        }
    }

    fn ifconfig(&mut self, host: &ScriptedHost, argv: &[&str]) -> Answer {
        let name = argv.last().filter(|_| argv[0] == "-m").unwrap_or(&argv[0]).to_string();
        let Some(mac) = host.interfaces.get(&name) else {
            return Err(format!("ifconfig: interface {name} does not exist"));
        };
        let options = self.options.entry(name.clone()).or_default();
        match argv {
            ["-m", _] => {
                let all: Vec<&str> = options.iter().map(String::as_str).collect();
                let mut text = format!(
                    "{name}: flags=8863<UP,BROADCAST,RUNNING,SIMPLEX,MULTICAST> metric 0 mtu 1500\n\toptions=1<{}>\n\
                     \tcapabilities=1<RXCSUM,TXCSUM,TSO4,TSO6,LRO,VLAN_HWTSO>\n\tether {mac}\n",
                    all.join(",")
                );
                for line in self.addresses.get(&name).into_iter().flatten() {
                    let _ = writeln!(text, "\t{line}");
                }
                text.push_str(
                    "\tmedia: Ethernet autoselect (10Gbase-T <full-duplex>)\n\tstatus: active\n\
                     \tsupported media:\n\t\tmedia autoselect\n\
                     \tnd6 options=21<PERFORMNUD,AUTO_LINKLOCAL>\n",
                );
                Ok(text)
            }
            [_, "inet", address, "alias"] => {
                let (address, length) = address.split_once('/').ok_or("no prefix")?;
                let length: u32 = length.parse().map_err(|_| "no length")?;
                let mask = u32::MAX << (32 - length);
                let line = format!("inet {address} netmask {mask:#x} broadcast 0.0.0.0");
                self.addresses.entry(name).or_default().push(line);
                Ok(String::new())
            }
            [_, "inet6", address, "prefixlen", length, "alias"] => {
                let line = format!("inet6 {address} prefixlen {length}");
                self.addresses.entry(name).or_default().push(line);
                Ok(String::new())
            }
            [_, "inet6", "-ifdisabled"] => Ok(String::new()),
            [_, switches @ ..] => {
                for switch in switches.iter().filter(|switch| **switch != "up") {
                    let flag = switch.trim_start_matches('-').to_uppercase();
                    let flag = flag.replace("VLANHWTSO", "VLAN_HWTSO");
                    if switch.starts_with('-') {
                        options.remove(&flag);
                    } else {
                        options.insert(flag);
                    }
                }
                Ok(String::new())
            }
            [] => Err("usage: ifconfig".into()),
        }
    }

    fn release(&self) -> u32 {
        self.sysctls["kern.osreldate"].parse().expect("a number")
    }

    fn netstat(&self, argv: &[&str]) -> Answer {
        match argv {
            ["-rnW"] => {
                let row = |(to, by): (&String, &String)| {
                    format!("{to:<18} {by:<18} UGS         6   1500     cxl0\n")
                };
                let rows: String = self.routes.iter().map(row).collect();
                Ok(format!(
                    "Routing tables\n\nInternet:\nDestination        Gateway            Flags   Nhop#    \
                     Mtu      Netif Expire\n127.0.0.1          link#4             UH          1  16384\
                     \x20       lo0\n{rows}"
                ))
            }
            ["-I", name, "-bdnW"] => Ok(format!(
                "Name    Mtu Network       Address              Ipkts Ierrs Idrop     Ibytes    Opkts Oerrs     Obytes  Coll  Drop\n\
                 {name}   1500 <Link#1>      00:07:43:2e:e4:70     1000     1    20      60000      900     2      54000     0     3\n"
            )),
            ["--libxo", ..] if self.release() < LIBXO => Err("netstat: illegal option -- -".into()),
            ["--libxo", "json", "-s", "-p", name] => Ok(format!(
                "{{\"statistics\": {{\"{name}\": {{\"received-packets\":1000,\
                 \"dropped-bad-checksum\":0,\"forwarded-packets\":900,\
                 \"fast-forwarded-packets\":900}}}}}}"
            )),
            ["-s", "-p", name] => Ok(format!(
                "{name}:\n\t1000 total packets received\n\t900 packets forwarded (900 packets fast forwarded)\n"
            )),
            _ => Err("usage: netstat".into()),
        }
    }

    fn route(&mut self, lines: &str) -> Answer {
        for line in lines.lines() {
            let words: Vec<&str> = line.split_whitespace().collect();
            let (verb, prefix, gateway) = match words[..] {
                [verb, "-net", prefix] => (verb, prefix.to_owned(), None),
                [verb, "-net", prefix, gateway] => (verb, prefix.to_owned(), Some(gateway)),
                [verb, "-inet6", net, "-prefixlen", length] => {
                    (verb, format!("{net}/{length}"), None)
                }
                [verb, "-inet6", net, "-prefixlen", length, gateway] => {
                    (verb, format!("{net}/{length}"), Some(gateway))
                }
                _ => return Err(format!("route: bad keyword: {line}")),
            };
            match (verb, gateway) {
                ("add", Some(gateway)) if !self.routes.contains_key(&prefix) => {
                    self.routes.insert(prefix, gateway.to_owned());
                }
                // With -q nothing is printed for an existing route.
                ("add", Some(_)) => return Err(String::new()),
                ("delete", None) if self.routes.remove(&prefix).is_some() => {}
                _ => return Err("route: route has not been found".into()),
            }
        }
        Ok(String::new())
    }

    fn neighbours(&self, inet6: bool) -> String {
        let of_family =
            self.neighbours.iter().filter(|(address, _)| address.contains(':') == inet6);
        let line = |(address, mac): (&String, &String)| match inet6 {
            true => format!("{address}  {mac}  cxl0 permanent R\n"),
            false => format!("? ({address}) at {mac} on cxl0 permanent [ethernet]\n"),
        };
        of_family.map(line).collect()
    }
}

/// First release whose netstat(1) prints JSON.
const LIBXO: u32 = 1_100_000;

/// Output of `netstat -Q` on a machine with direct dispatch.
const NETISR: &str = "Configuration:\nSetting                        Current        Limit\n\
Thread count                         1            1\n\nProtocols:\n\
Name   Proto QLimit Policy Dispatch Flags\nip         1    256   flow  default   ---\n\nWorkstreams:\n\
WSID CPU   Name     Len WMark   Disp'd  HDisp'd   QDrops   Queued  Handled\n   \
0   0   ip         0     0      304        0        0        0      304\n";

/// Output of `vmstat -ai`: two ports with eight queues each.
fn vmstat() -> String {
    let mut text = String::from("interrupt                          total       rate\n");
    for (index, port) in [0, 1].into_iter().enumerate() {
        for queue in 0..8 {
            let irq = 284 + index * 10 + queue;
            let _ = writeln!(text, "irq{irq}: t5nex0:{port}a{queue:x}        608689        474");
        }
    }
    text
}

impl Host for ScriptedHost {
    fn send_file(&self, _: &std::path::Path, to: &str) -> Result<(), BenchError> {
        Err(BenchError::Refused(format!("{to} is not sent by this test")))
    }

    fn name(&self) -> &str {
        "dut"
    }

    fn run(&self, argv: &[&str], stdin: &str) -> Result<String, BenchError> {
        let mut state = self.now();
        let command = argv.join(" ");
        state.commands.push(argv.iter().map(|word| word.to_string()).collect());
        state.stdin.push(stdin.to_owned());
        let failure = state.failures.iter().find(|(beginning, _)| command.starts_with(beginning));
        let answer = match failure {
            Some((_, why)) => Err(why.clone()),
            None => state.answer(self, argv, stdin),
        };
        answer.map_err(|why| BenchError::Program { command, host: "dut".into(), why })
    }

    fn spawn(&self, argv: &[&str]) -> Result<Box<dyn Running>, BenchError> {
        Err(BenchError::Refused(format!("nothing is spawned: {argv:?}")))
    }

    fn put(&self, path: &str, _text: &str) -> Result<(), BenchError> {
        Err(BenchError::Refused(format!("nothing is put: {path}")))
    }

    fn get(&self, path: &str) -> Result<String, BenchError> {
        Err(BenchError::Refused(format!("nothing is got: {path}")))
    }
}
