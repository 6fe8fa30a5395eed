//! Compares the settings of each variant of the archive's experiments with the configuration trees
//! that the archive's own harness copied over the DUT.
//!
//! The DUT starts with the tree's settings for the machine itself (name, management); everything
//! else must come from the variant's settings.

use crate::cpu::Placement;
use crate::freebsd::scripted::ScriptedHost;
use crate::freebsd::*;
use crate::links::{Link, Peer};
use fwdlab_model::settings::{FirewallProgram, Overlay};
use std::path::{Path, PathBuf};

/// One experiment with the facts that a laboratory file and the experiment file would contain.
struct Experiment {
    directory: &'static str,
    release: u32,
    links: Links,
    offloads: bool,
}

fn mac(text: &str) -> [u8; 6] {
    let bytes: Vec<u8> =
        text.split(':').map(|byte| u8::from_str_radix(byte, 16).expect("a byte")).collect();
    bytes.try_into().expect("six bytes")
}

fn link(interface: &str, own_mac: &str, addresses: &[&str], peer: (&str, &[&str])) -> Link {
    let parsed = addresses.iter().map(|text| {
        let (address, length) = text.split_once('/').expect("a prefix");
        (address.parse().expect("an address"), length.parse().expect("a length"))
    });
    Link {
        interface: interface.into(),
        mac: mac(own_mac),
        addresses: parsed.collect(),
        peers: vec![Peer {
            host: "tester".into(),
            interface: "vcxl0".into(),
            mac: mac(peer.0),
            addresses: peer.1.iter().map(|text| text.parse().expect("an address")).collect(),
        }],
    }
}

/// The laboratory of the first two experiments.
pub(in crate::freebsd) fn hp() -> Links {
    Links {
        ingress: link(
            "cxl0",
            "00:07:43:2e:e4:70",
            &["198.18.0.10/24", "2001:2::10/64"],
            ("00:07:43:2e:e5:92", &["198.18.0.108", "2001:2::108"]),
        ),
        egress: link(
            "cxl1",
            "00:07:43:2e:e4:78",
            &["198.19.0.10/24", "2001:2:0:8000::10/64"],
            ("00:07:43:2e:e5:9a", &["198.19.0.108", "2001:2:0:8000::108"]),
        ),
        ways: Vec::new(),
    }
}

fn experiments() -> Vec<Experiment> {
    let pxetest2 = Links {
        ingress: link(
            "cxl0",
            "00:07:43:2c:bc:50",
            &["198.18.0.2/24", "2001:2::2/64"],
            ("00:07:43:30:f5:b1", &["198.18.0.13", "2001:2::13"]),
        ),
        egress: link(
            "mce0",
            "00:07:43:2c:bc:58",
            &["198.19.0.2/24", "2001:2:0:8000::2/64"],
            ("00:07:43:2e:c7:39", &["198.19.0.11", "2001:2:0:8000::11"]),
        ),
        ways: Vec::new(),
    };
    let sm1 = Links {
        ingress: link(
            "cxl0",
            "00:07:43:2e:e5:90",
            &["198.18.0.8/24", "2001:2::8/64"],
            ("00:07:43:2e:e4:71", &["198.18.0.110", "2001:2::110"]),
        ),
        egress: link(
            "cxl1",
            "00:07:43:2e:e5:98",
            &["198.19.0.8/24", "2001:2:0:8000::8/64"],
            ("00:07:43:2e:e4:79", &["198.19.0.110", "2001:2:0:8000::110"]),
        ),
        ways: Vec::new(),
    };
    let hp_ix = Links {
        ingress: link(
            "cxl3",
            "00:07:43:2e:e4:88",
            &["198.18.2.2/24"],
            ("90:e2:ba:84:20:38", &["198.18.2.1"]),
        ),
        egress: link(
            "cxl2",
            "00:07:43:2e:e4:80",
            &["198.19.2.2/24"],
            ("90:e2:ba:84:20:39", &["198.19.2.1"]),
        ),
        ways: Vec::new(),
    };
    let of =
        |directory, release, links, offloads| Experiment { directory, release, links, offloads };
    vec![
        of("000-cxgbe-queues-fbsd10.2", 1_002_000, hp(), false),
        of("001-cxgbe-queues-harvest351-fbsd11-head.r287478", 1_100_080, hp(), false),
        of("002-firewalls-fbsd13.D27401", 1_300_130, pxetest2, false),
        of("003-firewalls-fbsd12-head.r299288.D8526", 1_200_015, sm1, false),
        of("004-fastfwd-pf-ipfw-fbsd10-stable.r295802.D5330", 1_002_512, hp_ix, true),
    ]
}

/// Intended differences: experiment, file, prefix of names, reason.
const INTENDED: &[(&str, &str, &str, &str)] = &[
    ("", RC, "icmp_drop_redirect", "said in any case; the default is the release's own"),
    ("", LOADER, "net.inet.ip.fw.default_to_accept", "without it a flush cuts the connection"),
    ("003", LOADER, "hw.cxgbe.n", "the tree leaves the driver's default, an experiment says it"),
    ("002", LOADER, "dev.mce.0.conf.channels", "queues hold for both interfaces"),
    ("004", RC, "ipv6_gateway_enable", "no addresses of that family: left as the DUT has it"),
];

/// Variants with their files by path from the DUT's root.
fn variants(experiment: &Path) -> Vec<(String, BTreeMap<String, String>)> {
    let entries = std::fs::read_dir(experiment.join("configs")).expect("configs");
    let mut all: Vec<_> = entries
        .map(|entry| {
            let path = entry.expect("an entry").path();
            let name = path.file_name().expect("a name").to_string_lossy().into_owned();
            let mut files = BTreeMap::new();
            for directory in ["boot", "etc"] {
                for entry in std::fs::read_dir(path.join(directory)).expect("files") {
                    let file = entry.expect("an entry").path();
                    let name = file.file_name().expect("a name").to_string_lossy().into_owned();
                    let text = std::fs::read_to_string(&file).expect("text");
                    files.insert(format!("/{directory}/{name}"), text);
                }
            }
            (name, files)
        })
        .collect();
    all.sort();
    all
}

fn map(path: &str, text: &str) -> BTreeMap<String, String> {
    let format = Format::of(path).expect("a format");
    let document = Document::parse(format, text);
    document.assignments().map(|(n, v)| (n.to_owned(), v.to_owned())).collect()
}

/// The settings equivalent to a variant.
fn settings(experiment: &Experiment, name: &str, files: &BTreeMap<String, String>) -> Settings {
    let mut settings = Settings::default();
    let (loader, rc) = (map(LOADER, &files[LOADER]), map(RC, &files[RC]));
    let sysctl = map("/etc/sysctl.conf", &files["/etc/sysctl.conf"]);
    let dut = &mut settings.dut;
    let queues = ["hw.cxgbe.nrxq10g", "hw.cxgbe.nrxq"].iter().find_map(|name| loader.get(*name));
    dut.queues = queues.map_or(8, |queues| queues.parse().expect("a number"));
    dut.offloads = experiment.offloads;
    dut.icmp_redirect = sysctl.get("net.inet.ip.redirect").is_none_or(|value| value != "0");
    dut.remote.harvest_mask = rc.get("harvest_mask").map(|mask| mask.parse().expect("a mask"));
    let is_extra = |name: &str| !name.starts_with("hw.cxgbe.n");
    dut.remote.loader = loader.into_iter().filter(|(name, _)| is_extra(name)).collect();
    dut.sysctl = sysctl.into_iter().filter(|(name, _)| !name.ends_with(".redirect")).collect();
    if let Some((program, state)) = name.split_once('-') {
        dut.firewall = if state == "stateful" { Firewall::Stateful } else { Firewall::Stateless };
        dut.remote.firewall_program = match program {
            "pf" => FirewallProgram::Pf,
            "ipfw" => FirewallProgram::Ipfw,
            _ => FirewallProgram::Ipf,
        };
    }
    settings
}

/// A DUT with the tree's settings for the machine itself.
fn host(experiment: &Experiment, files: &BTreeMap<String, String>) -> ScriptedHost {
    let links = &experiment.links;
    let interfaces =
        links.both().map(|link| (link.interface.as_str(), crate::links::mac::text(link.mac)));
    let interfaces = interfaces.each_ref().map(|(name, mac)| (*name, mac.as_str()));
    let mut host = ScriptedHost::new(experiment.release, &interfaces);
    for name in map("/etc/sysctl.conf", &files["/etc/sysctl.conf"]).into_keys() {
        host.defaults.entry(name).or_insert_with(|| "as it was".into());
    }
    let mut rc = Document::parse(Format::Rc, "# The machine's own.\n");
    for (name, value) in map(RC, &files[RC]) {
        // Names that the tree chose for neighbours.
        let neighbour = ["static_arp_", "static_ndp_"].iter().any(|p| name.starts_with(p));
        if !plan::is_runtime(&name, links) && !neighbour {
            rc.set(&name, &value);
        }
    }
    host.write(RC, &rc.text());
    host.boot();
    host
}

/// Prepares the DUT like a testbed, rebooting until it is ready.
pub(in crate::freebsd) fn bring_up(
    dut: &mut FreebsdDut,
    host: &ScriptedHost,
    settings: &Settings,
) -> Findings {
    for _ in 0..3 {
        if dut.prepare(host, settings).expect("prepared") == Preparation::Ready {
            let mut findings = Findings::default();
            dut.configure(host, settings, &Placement::of_dut(vec![0]), &mut findings)
                .expect("configured");
            return findings;
        }
        dut.reboot(host).expect("rebooted");
        host.boot();
    }
    panic!("it wants to reboot forever");
}

/// Assignments of rc.conf(5) with lists replaced by their entries, and words in a uniform spelling.
fn normalised(rc: &BTreeMap<String, String>) -> BTreeMap<String, String> {
    let lists = [
        ("static_routes", "route_"),
        ("ipv6_static_routes", "ipv6_route_"),
        ("static_arp_pairs", "static_arp_"),
        ("static_ndp_pairs", "static_ndp_"),
    ];
    let of_list = |name: &str| lists.iter().any(|(list, p)| name == *list || name.starts_with(p));
    let mut all = BTreeMap::new();
    for (name, value) in rc.iter().filter(|(name, _)| !of_list(name)) {
        let mut words: Vec<String> = value.split_whitespace().map(str::to_owned).collect();
        if let [_, address] = &words[..]
            && let Some((address, length)) = address.split_once('/')
            && name.ends_with("_ipv6")
        {
            words = ["inet6", address, "prefixlen", length].map(String::from).to_vec();
        }
        // fwdlab always sets this flag, the trees only since FreeBSD 13: TSO in VLANs changes
        // nothing for packets without a tag.
        words.retain(|word| word != "-vlanhwtso");
        all.insert(name.clone(), words.join(" "));
    }
    for (list, prefix) in lists {
        let names = rc.get(list).map(String::as_str).unwrap_or_default();
        let mut values: Vec<&str> =
            names.split_whitespace().map(|name| rc[&format!("{prefix}{name}")].as_str()).collect();
        values.sort_unstable();
        all.insert(list.to_owned(), values.join(", "));
    }
    all
}

fn differences(
    experiment: &str,
    path: &str,
    ours: &BTreeMap<String, String>,
    theirs: &BTreeMap<String, String>,
) -> Vec<String> {
    let names: BTreeSet<&String> = ours.keys().chain(theirs.keys()).collect();
    let intended = |name: &str| {
        let of = |(e, p, n, _): &&(&str, &str, &str, &str)| {
            experiment.starts_with(e) && *p == path && name.starts_with(n)
        };
        INTENDED.iter().any(|entry| of(&entry))
    };
    names
        .into_iter()
        .filter(|name| ours.get(*name) != theirs.get(*name) && !intended(name))
        .map(|name| format!("{path} {name}: {:?} for {:?}", ours.get(name), theirs.get(name)))
        .collect()
}

/// Significant lines of rules, without duplicates.
fn rules(text: &str) -> Vec<String> {
    let mut all: Vec<String> = Vec::new();
    for line in text.lines().filter(|line| !line.trim().is_empty() && !line.starts_with('#')) {
        let line = line.split_whitespace().collect::<Vec<_>>().join(" ");
        if !all.contains(&line) {
            all.push(line);
        }
    }
    all
}

#[test]
fn settings_reproduce_every_archived_variant() {
    for archive in fwdlab_testdata::archives() {
        let (mut compared, mut wrong) = (0, Vec::new());
        for experiment in experiments() {
            for (name, files) in variants(&archive.path().join(experiment.directory)) {
                let (host, settings) =
                    (host(&experiment, &files), settings(&experiment, &name, &files));
                let mut dut = FreebsdDut::new(experiment.links.clone(), PathBuf::new());
                let findings = bring_up(&mut dut, &host, &settings);
                let mut found = Vec::new();
                let ours = map(LOADER, &host.file(LOADER).expect("tunables"));
                let theirs = map(LOADER, &files[LOADER]);
                found.extend(differences(experiment.directory, LOADER, &ours, &theirs));
                compared += theirs.len();
                let ours = normalised(&map(RC, &host.file(RC).expect("variables")));
                let theirs = normalised(&map(RC, &files[RC]));
                found.extend(differences(experiment.directory, RC, &ours, &theirs));
                compared += theirs.len();
                for (sysctl, value) in map("/etc/sysctl.conf", &files["/etc/sysctl.conf"]) {
                    let now = host.now().sysctls.get(&sysctl).cloned();
                    if now.as_deref() != Some(value.as_str()) {
                        found.push(format!("sysctl {sysctl}: {now:?} for {value}"));
                    }
                    compared += 1;
                }
                for path in ["/etc/pf.conf", "/etc/ipfw.rules", "/etc/ipf.rules"] {
                    let ours = host.file(path).map(|text| rules(&text));
                    let theirs = files.get(path).map(|text| rules(text));
                    if ours != theirs {
                        found.push(format!("{path}: {ours:?} for {theirs:?}"));
                    }
                    compared += 1;
                }
                found.extend(findings.warnings.iter().map(|warning| format!("{warning:?}")));
                wrong.extend(
                    found
                        .into_iter()
                        .map(|text| format!("{} {name}: {text}", experiment.directory)),
                );
            }
        }
        println!("{compared} values compared; differences on purpose:");
        for (experiment, path, name, why) in INTENDED {
            println!("  {experiment} {path} {name}: {why}");
        }
        assert!(wrong.is_empty(), "{} differ:\n{}", wrong.len(), wrong.join("\n"));
        assert!(compared > 1000, "only {compared} values were compared");
    }
}

#[test]
fn overlay_is_written_byte_for_byte_and_removed_by_undo() {
    for archive in fwdlab_testdata::archives() {
        for experiment in experiments() {
            let mut trees = variants(&archive.path().join(experiment.directory));
            let host = host(&experiment, &trees[0].1);
            let before = host.visible();
            let mut dut = FreebsdDut::new(experiment.links.clone(), PathBuf::new());
            for (name, files) in &mut trees {
                let mut settings = Settings::default();
                settings.dut.remote.overlay = Some(Overlay {
                    directory: format!("configs/{name}"),
                    files: files.iter().map(|(p, t)| (p[1..].to_owned(), t.clone())).collect(),
                });
                let first = dut.prepare(&host, &settings).expect("prepared");
                assert!(matches!(first, Preparation::Reboot(_)), "{name}");
                assert_eq!(host.visible(), *files, "{name}: nothing else stays of the one before");
                host.boot();
                host.forget_commands();
                assert_eq!(dut.prepare(&host, &settings).expect("prepared"), Preparation::Ready);
                assert!(host.ran("tee").iter().all(|line| line.contains("/fwdlab/")), "{name}");
            }
            dut.undo(&host).expect("undone");
            assert_eq!(host.visible(), before);
        }
    }
}
