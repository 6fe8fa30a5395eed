//! Frames received by an interface, from its system's counters.

use crate::error::BenchError;
use crate::host::Host;
use fwdlab_model::lab::System;
use serde_json::Value;
use std::collections::BTreeMap;
use std::time::{Duration, Instant};

/// Interval of readings.
const TICK: Duration = Duration::from_millis(200);
/// Time limit for counters to update: some drivers read the card every two seconds.
const PATIENCE: Duration = Duration::from_millis(3500);

/// Frames received so far, by interface.
pub(super) type Received = BTreeMap<String, u64>;

/// Reads the counters of a host's interfaces.
///
/// # Errors
/// Fails if a counter is missing or the host's output cannot be parsed.
pub(super) fn read(
    host: &dyn Host,
    system: System,
    interfaces: &[String],
) -> Result<Received, BenchError> {
    let one = |name: &String| {
        let count = match system {
            System::Linux => linux(host, name),
            System::FreeBsd => freebsd(host, name),
        };
        count.map(|count| (name.clone(), count))
    };
    interfaces.iter().map(one).collect()
}

/// Reads until `is_enough` accepts the frames received since `before`, or the time limit; returns
/// the frames received.
///
/// # Errors
/// The errors of [`read`].
pub(super) fn since(
    host: &dyn Host,
    system: System,
    before: &Received,
    is_enough: impl Fn(&Received) -> bool,
) -> Result<Received, BenchError> {
    let names: Vec<String> = before.keys().cloned().collect();
    let deadline = Instant::now() + PATIENCE;
    loop {
        let mut received = read(host, system, &names)?;
        for (name, count) in &mut received {
            *count = count.saturating_sub(before.get(name).copied().unwrap_or(0));
        }
        if is_enough(&received) || Instant::now() >= deadline {
            return Ok(received);
        }
        std::thread::sleep(TICK);
    }
}

fn linux(host: &dyn Host, name: &str) -> Result<u64, BenchError> {
    let path = format!("/sys/class/net/{name}/statistics/rx_packets");
    let text = host.get(&path)?;
    text.parse().map_err(|_| unreadable(host, &path, &text))
}

/// `netstat -I` prints a row for each address of an interface; the row of its link counts all
/// frames (netstat(1)).
fn freebsd(host: &dyn Host, name: &str) -> Result<u64, BenchError> {
    let argv = ["netstat", "-I", name, "-b", "-n", "--libxo", "json"];
    let text = host.run(&argv, "")?;
    let json: Option<Value> = serde_json::from_str(&text).ok();
    let rows = json.as_ref().and_then(|json| json["statistics"]["interface"].as_array());
    let is_link = |row: &&Value| row["network"].as_str().is_some_and(|n| n.starts_with("<Link"));
    rows.and_then(|rows| rows.iter().find(is_link))
        .and_then(|row| row["received-packets"].as_u64())
        .ok_or_else(|| unreadable(host, &argv.join(" "), &text))
}

fn unreadable(host: &dyn Host, command: &str, text: &str) -> BenchError {
    let first = text.lines().next().unwrap_or_default();
    BenchError::Program {
        command: command.into(),
        host: host.name().into(),
        why: format!("no count of received packets in `{first}`"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::host::{FakeHost, LocalHost};

    /// Format of FreeBSD's netstat(1), whose link row comes first.
    const NETSTAT: &str = r#"{"__version": "2", "statistics": {"interface": [
        {"name":"cxl0","flags":"0x8843","mtu":1500,"network":"<Link#5>","address":"00:07:43:2e:e4:70","received-packets":123456,"received-errors":0,"dropped-packets":0,"received-bytes":7407360,"sent-packets":9,"send-errors":0,"sent-bytes":540,"collisions":0},
        {"name":"cxl0","network":"198.18.0.0/24","address":"198.18.0.10","received-packets":7,"received-bytes":420,"sent-packets":3,"sent-bytes":180}]}}"#;

    #[test]
    fn netstat_is_parsed_or_quoted() {
        let mut host = FakeHost::default();
        host.outputs.insert("netstat -I".into(), NETSTAT.into());
        let names = ["cxl0".to_owned()];
        let read = |host: &FakeHost| read(host, System::FreeBsd, &names);
        assert_eq!(read(&host).expect("a count")["cxl0"], 123_456);
        host.outputs.insert("netstat -I".into(), "Name Mtu\n".into());
        let error = read(&host).expect_err("no JSON").to_string();
        assert!(error.contains("netstat -I cxl0 -b -n --libxo json on fake"), "{error}");
        assert!(error.contains("`Name Mtu`"), "{error}");
    }

    #[test]
    fn sysfs_is_parsed_or_quoted() {
        assert!(read(&LocalHost, System::Linux, &["lo".into()]).is_ok());
        let host = FakeHost::default();
        let path = "/sys/class/net/eth1/statistics/rx_packets".to_owned();
        let names = ["eth1".to_owned()];
        assert!(read(&host, System::Linux, &names).is_err());
        host.files.lock().expect("files").insert(path.clone(), "41".into());
        let before = read(&host, System::Linux, &names).expect("a count");
        host.files.lock().expect("files").insert(path.clone(), "50".into());
        let more = since(&host, System::Linux, &before, |more| more["eth1"] >= 9);
        assert_eq!(more.expect("a count")["eth1"], 9);
        host.files.lock().expect("files").insert(path, "many".into());
        let error = read(&host, System::Linux, &names).expect_err("no number").to_string();
        assert!(error.contains("`many`"), "{error}");
    }
}
