//! Writes archives in the layout of the netbenches harness: logs in both forms of pkt-gen's lines,
//! `.info` files, published lists, configurations. Seeded, and identical on every machine.

#![allow(dead_code, reason = "each test binary uses a part")]

use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};

/// Configurations of a bench, in the order of `ls`.
pub(crate) const CONFIGURATIONS: [&str; 8] =
    ["altq", "forwarding", "ipf", "ipf-stateful", "ipfw", "ipfw-stateful", "pf", "pf-stateful"];

/// Format of pkt-gen's lines per second: until 2017 and since.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Form {
    Old,
    New,
}

/// A result set to write.
#[derive(Clone, Copy)]
pub(crate) struct Set<'a> {
    /// `MACHINE/INTERFACE/BENCH`, or any other path.
    pub(crate) bench: &'a str,
    pub(crate) label: &'a str,
    /// Folder of the logs below the label, e.g. `RAW`; empty for the label itself.
    pub(crate) raw: &'a str,
    pub(crate) configurations: usize,
    pub(crate) runs: usize,
    pub(crate) seconds: usize,
    pub(crate) form: Form,
    pub(crate) seed: u64,
}

impl Default for Set<'_> {
    fn default() -> Self {
        Set {
            bench: "Xeon_E5_8Cores/Chelsio_T5/firewalls",
            label: "fbsd13",
            raw: "RAW",
            configurations: 2,
            runs: 5,
            seconds: 60,
            form: Form::New,
            seed: 1,
        }
    }
}

/// A tree to write into.
pub(crate) struct Writer {
    pub(crate) root: PathBuf,
}

impl Writer {
    pub(crate) fn new(root: &Path) -> Writer {
        Writer { root: root.to_path_buf() }
    }

    /// Writes a file below the root, with its folders.
    pub(crate) fn file(&self, name: &str, content: impl AsRef<[u8]>) -> PathBuf {
        let path = self.root.join(name);
        fs::create_dir_all(path.parent().expect("a folder")).expect("folders");
        fs::write(&path, content).expect("a file");
        path
    }

    /// Writes logs, published results and configurations; returns the folder of the logs below the
    /// root.
    pub(crate) fn set(&self, set: &Set<'_>) -> String {
        let result = format!("{}/results/{}", set.bench, set.label);
        let raw = if set.raw.is_empty() { result.clone() } else { format!("{result}/{}", set.raw) };
        let mut random = Random(set.seed);
        for (i, name) in CONFIGURATIONS.iter().take(set.configurations).enumerate() {
            let mut list = String::new();
            for run in 1..=set.runs {
                let rate = 1_000_000 + 37_123 * i as u64 + random.below(9_000);
                let log = receiver(set.form, rate, set.seconds, &mut random);
                if let Some(median) = published(&log) {
                    let _ = writeln!(list, "{median}");
                }
                self.file(&format!("{raw}/bench.{name}.{run}.receiver"), log);
                let log = sender(set.form, rate, set.seconds, &mut random);
                self.file(&format!("{raw}/bench.{name}.{run}.sender"), log);
            }
            self.file(&format!("{raw}/bench.{name}.info"), info(name));
            self.file(&format!("{result}/{name}.pps"), list);
            let tree = format!("{}/configs/{name}/etc/rc.conf", set.bench);
            self.file(&tree, format!("gateway_enable=\"YES\"\n{name}_enable=\"YES\"\n"));
        }
        let machine = set.bench.split('/').next().unwrap_or_default();
        self.file(&format!("{machine}/bench-lab-2nodes.config"), "SENDER_LAB_IF=cxl0\n");
        self.file(&format!("{result}/README.md"), format!("# {}\n\nA test.\n", set.label));
        raw
    }
}

/// Splitmix64 (Steele, Lea, Flood, 2014).
pub(crate) struct Random(pub(crate) u64);

impl Random {
    fn below(&mut self, limit: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (z ^ (z >> 31)) % limit
    }
}

/// Returns a receiver's log.
pub(crate) fn receiver(form: Form, rate: u64, seconds: usize, random: &mut Random) -> String {
    let mut log = String::from("CMD: pkt-gen -N -f rx -i cxl1 -w 4\n");
    log_header(&mut log, "cxl1");
    log += "437.945894 receiver_body [1282] reading from netmap:cxl1 fd 4 main_fd 3\n";
    log_lines(&mut log, form, rate, seconds, random);
    log + "Terminated\n"
}

/// Returns the log of its sender.
pub(crate) fn sender(form: Form, rate: u64, seconds: usize, random: &mut Random) -> String {
    let mut log = String::from(
        "CMD: pkt-gen -N -f tx -i cxl0 -n 80000000 -l 60 -d 198.19.10.1:2000-198.19.10.100 \
         -D 00:07:43:2e:e4:88 -s 198.18.10.1:2000-198.18.10.20 -w 4\n",
    );
    log_header(&mut log, "cxl0");
    log += "Sending on netmap:cxl0: 1 queues, 1 threads and 1 cpus.\n";
    log_lines(&mut log, form, 2 * rate, seconds, random);
    log += match form {
        Form::Old => {
            "Sent 80000000 packets, 60 bytes each, in 40.12 seconds.\n\
             Speed: 1.99 Mpps Bandwidth: 957.13 Mbps (raw 1.34 Gbps)\n"
        }
        Form::New => {
            "Sent 80000000 packets 4800000000 bytes 30768110 events 60 bytes each in 40.12 seconds.\n\
             Speed: 1994017 pps Bandwidth: 957128614 bps (raw 1339980059 bps). \
             Average batch: 2.60 pkts\n"
        }
    };
    log
}

/// Returns an `.info` file in shell syntax.
pub(crate) fn info(configuration: &str) -> String {
    format!(
        "IMAGE=\"\"\nCFG=\"{configuration}\"\nPKTGEN=\"\"\n\
         UNAME=\"FreeBSD dut 13.0-CURRENT FreeBSD 13.0-CURRENT #0 r368287: amd64\""
    )
}

fn log_header(log: &mut String, interface: &str) {
    for line in [
        format!("main [2938] interface is {interface}"),
        "main [3065] using default burst size: 512".to_owned(),
        "extract_ip_range [477] range is 10.0.0.1:1234 to 10.0.0.1:1234".to_owned(),
        "extract_ip_range [477] range is 10.1.0.1:1234 to 10.1.0.1:1234".to_owned(),
        "main [3172] mapped 334980KB at 0x801600000".to_owned(),
        "start_threads [2596] Wait 4 secs for phy reset".to_owned(),
        "start_threads [2598] Ready...".to_owned(),
    ] {
        let _ = writeln!(log, "437.420770 {line}");
    }
}

fn log_lines(log: &mut String, form: Form, rate: u64, seconds: usize, random: &mut Random) {
    let mut at_us = 438_000_000_u64;
    for _ in 0..seconds {
        let us = 1_000_000 + random.below(3000);
        at_us += us;
        let packets = rate + random.below(rate / 100);
        let pps = (packets * 1_000_000 + us / 2) / us;
        let (s, fraction) = (at_us / 1_000_000 % 1000, at_us % 1_000_000);
        let _ = match form {
            Form::Old => writeln!(
                log,
                "{s}.{fraction:06} main_thread [1550] {pps} pps ({packets} pkts in {us} usec)"
            ),
            Form::New => writeln!(
                log,
                "{s}.{fraction:06} main_thread [2687] {pps} pps ({packets} pkts {} bps in {us} \
                 usec) 42.70 avg_batch 881 min_space",
                packets * 480
            ),
        };
    }
}

/// Returns the figure that the harness publishes for a receiver's log, by its pipeline: `head -n
/// (L-10) | tail -n (L-25)`, field selection, and ministat's median since 2016. Rates below ten
/// million need no rounding.
fn published(log: &str) -> Option<String> {
    let lines: Vec<&str> = log.lines().collect();
    let kept = lines.get(15..lines.len().saturating_sub(10)).unwrap_or_default();
    let mut rates: Vec<u64> = kept
        .iter()
        .filter(|line| line.contains("main_thread"))
        .filter_map(|line| line.split(' ').nth(3)?.parse().ok())
        .collect();
    rates.sort_unstable();
    let middle = rates.len() / 2;
    (rates.len() >= 3).then(|| match rates.len() % 2 {
        0 => ((rates[middle - 1] + rates[middle]) as f64 / 2.0).to_string(),
        _ => rates[middle].to_string(),
    })
}
