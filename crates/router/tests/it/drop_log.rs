//! The log of dropped packets: which packets it contains, and with which reason and rule.

use crate::support::config;
use crate::support::walled::*;
use fwdlab_netio::files::RecordFile;
use fwdlab_packet::forwarding::ForwardingPath;
use fwdlab_router::firewall::StateConfig;
use fwdlab_router::path::{Config, DropLog, DropLogCounts, DropLogSetting};
use std::sync::Arc;

const RULES: &str = "block in proto udp to port 5\n\
                     block out proto udp to port 6\n\
                     block local proto icmp\n\
                     pass in proto udp to port 8 keep state\n\
                     block in from 198.18.0.6 to any";

/// A log in a file of this directory.
fn log(directory: &tempfile::TempDir, per_second: u32, reasons: &[&str]) -> Arc<DropLog> {
    let path = directory.path().join("log").display().to_string();
    let names: Vec<String> = reasons.iter().map(|name| (*name).to_owned()).collect();
    let reasons = DropLogSetting::reasons(&names).expect("known names");
    let interfaces = ["near", "far"].map(str::to_owned);
    let file = RecordFile::create(&path, true).expect("a file");
    let setting = DropLogSetting { per_second, reasons };
    let log = DropLog::new(file, &interfaces, &setting).expect("a log");
    log.set_rules(RULES.lines().map(str::to_owned).collect());
    Arc::new(log)
}

/// The comments of the packets in the log.
fn comments(directory: &tempfile::TempDir, log: &DropLog) -> Vec<String> {
    log.flush();
    let bytes = std::fs::read(directory.path().join("log")).expect("a file");
    let number = |at: usize| u32::from_le_bytes(bytes[at..at + 4].try_into().expect("four bytes"));
    let (mut at, mut found) = (0, Vec::new());
    while at < bytes.len() {
        let length = number(at + 4) as usize;
        if number(at) == 6 {
            let captured = number(at + 20) as usize;
            let option = at + 28 + captured.next_multiple_of(4);
            let size = usize::from(u16::from_le_bytes([bytes[option + 2], bytes[option + 3]]));
            let text = &bytes[option + 4..option + 4 + size];
            found.push(String::from_utf8(text.to_vec()).expect("a text"));
        }
        at += length;
    }
    found
}

fn to(port: u16) -> Spec {
    let mut packet = datagram(("198.18.0.5", 1000), ("198.19.0.9", port));
    packet.port = 0;
    packet
}

#[test]
fn packets_are_logged_with_their_own_reasons_and_rules() {
    for path in [ForwardingPath::Fast, ForwardingPath::Full] {
        let directory = tempfile::tempdir().expect("a directory");
        let log = log(&directory, 1000, &[]);
        let config = Config { path, drop_log: Some(log.clone()), ..config() };
        let mut lab = Walled::of(&config, RULES, &StateConfig::default());
        let mut broken = to(7);
        broken.payload.truncate(3);
        let mut other = to(7);
        other.ends[0] = "198.18.0.6".parse().expect("an address");
        let batch = [
            to(7),
            to(5),
            to(7),
            to(6),
            icmp("198.18.0.5", "198.18.0.1", 8, 1),
            to(5),
            broken,
            other,
            to(7),
        ];
        let outcomes = lab.send_all(&batch, 1);
        let mut found = comments(&directory, &log);
        let mut expected = vec![
            "firewall: rule 1: block in proto udp to port 5",
            "firewall: rule 1: block in proto udp to port 5",
            "firewall: rule 2: block out proto udp to port 6",
            "firewall: rule 3: block local proto icmp",
            "firewall: rule 5: block in from 198.18.0.6 to any",
            "firewall_unreadable",
        ];
        found.sort_unstable();
        expected.sort_unstable();
        assert_eq!(found, expected, "{path:?} {outcomes:?}");
        assert_eq!(log.counts(), DropLogCounts { logged: 6, omitted: 0 });
    }
}

#[test]
fn log_is_limited_in_rate_and_to_its_reasons() {
    let directory = tempfile::tempdir().expect("a directory");
    let log = log(&directory, 3, &["firewall"]);
    let config = Config { drop_log: Some(log.clone()), ..config() };
    let mut lab = Walled::of(&config, RULES, &StateConfig::default());
    let mut broken = to(7);
    broken.payload.truncate(3);
    lab.send_all(&vec![broken; 10], 1);
    assert_eq!(log.counts(), DropLogCounts::default());
    lab.send_all(&vec![to(5); 10], 1);
    assert_eq!(log.counts(), DropLogCounts { logged: 3, omitted: 7 });
    lab.send(&to(5), 400_000_000);
    let found = comments(&directory, &log);
    assert_eq!(found.len(), 4);
    assert!(found[3].ends_with("port 5; 7 earlier packets not logged"), "{found:?}");
}
