//! pkt-gen's command lines (pkt-gen(8) of netmap, and the usage of FreeBSD's port).

use crate::{GeneratorHosts, Load, mac};
use fwdlab_host::error::BenchError;
use fwdlab_packet::Family;
use fwdlab_packet::address::{Side, flow_address};
use fwdlab_packet::template::{DESTINATION_PORT, SOURCE_PORT};

/// Milliseconds between two reports.
pub(super) const REPORT_MS: u32 = 100;
/// Batch size without a rate: pkt-gen's default.
const BURST: f64 = 512.0;

/// Command line of the sender.
///
/// # Errors
/// Fails if its CPUs are not consecutive.
pub(super) fn sender(ends: &GeneratorHosts<'_>, load: &Load) -> Result<Vec<String>, BenchError> {
    let mut words = common("tx", &ends.sender_interface);
    // A packet limit in case the controller dies. Without a rate pkt-gen exits when its output pipe
    // closes.
    let count = load.rate_pps.map_or(0, |rate| (rate * load.at_most.as_secs_f64()).ceil() as u64);
    words.extend(["-n".into(), count.to_string()]);
    words.push(if load.stream.family == Family::Inet6 { "-6" } else { "-4" }.into());
    // pkt-gen's sizes exclude the FCS.
    words.extend(["-l".into(), load.stream.frame_size.most().saturating_sub(4).to_string()]);
    words.extend(["-s".into(), range(load, Side::Sender)]);
    words.extend(["-d".into(), range(load, Side::Receiver)]);
    words.extend(["-S".into(), mac(load.source_mac)]);
    words.extend(["-D".into(), mac(load.next_hop_mac)]);
    if let Some(rate) = load.rate_pps {
        words.extend(["-R".into(), (rate.round().max(1.0) as u64).to_string()]);
        // pkt-gen sends whole bursts: with 512 packets a slow rate would be very bursty.
        words.extend(["-b".into(), burst(rate).to_string()]);
    }
    words.extend(threads(&ends.sender_cpus)?);
    words.extend(ends.options.iter().cloned());
    Ok(words)
}

/// Command line of the receiver.
///
/// # Errors
/// Fails if its CPUs are not consecutive.
pub(super) fn receiver(ends: &GeneratorHosts<'_>) -> Result<Vec<String>, BenchError> {
    let mut words = common("rx", &ends.receiver_interface);
    words.extend(threads(&ends.receiver_cpus)?);
    Ok(words)
}

fn common(function: &str, interface: &str) -> Vec<String> {
    let report = REPORT_MS.to_string();
    // -N prints numbers without unit prefixes, which would be rounded.
    let words =
        ["pkt-gen", "-N", "-f", function, "-i", interface, "-w", "2", "-T", report.as_str()];
    words.map(str::to_owned).to_vec()
}

/// Batch size for a rate: the packets of one millisecond.
pub(super) fn burst(rate: f64) -> u32 {
    (rate / 1000.0).clamp(1.0, BURST) as u32
}

/// One thread per CPU. `-a` names the first CPU and the others follow; `-c` is the number of CPUs
/// that pkt-gen assumes, without which all threads are bound to the first.
fn threads(cpus: &[u16]) -> Result<Vec<String>, BenchError> {
    let (Some(&first), Some(&last)) = (cpus.first(), cpus.last()) else { return Ok(Vec::new()) };
    if !cpus.windows(2).all(|pair| pair[1] == pair[0].saturating_add(1)) {
        let list = cpus.iter().map(u16::to_string).collect::<Vec<_>>().join(",");
        return Err(BenchError::Refused(format!(
            "pkt-gen binds its threads to neighbouring CPUs only, not to {list}: name CPUs in a row"
        )));
    }
    let words = ["-p", &cpus.len().to_string(), "-c", &(u32::from(last) + 1).to_string(), "-a"];
    Ok(words.iter().map(|word| word.to_string()).chain([first.to_string()]).collect())
}

/// Address range such as `198.18.1.0:49184-198.18.1.19:49184`; IPv6 addresses are in brackets.
fn range(load: &Load, side: Side) -> String {
    let (count, port) = match side {
        Side::Sender => (load.stream.flows.sources, SOURCE_PORT),
        Side::Receiver => (load.stream.flows.destinations, DESTINATION_PORT),
    };
    let end = |index| match (load.stream.family, flow_address(load.stream.family, side, index)) {
        (Family::Inet, address) => format!("{address}:{port}"),
        (Family::Inet6, address) => format!("[{address}]:{port}"),
    };
    match count {
        0 | 1 => end(0),
        _ => format!("{}-{}", end(0), end(count - 1)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn threads_require_consecutive_cpus() {
        let words = |cpus: &[u16]| threads(cpus).map(|words| words.join(" "));
        assert_eq!(words(&[]).expect("none"), "");
        assert_eq!(words(&[3]).expect("one"), "-p 1 -c 4 -a 3");
        assert_eq!(words(&[2, 3, 4]).expect("three"), "-p 3 -c 5 -a 2");
        let error = words(&[1, 3]).expect_err("a gap").to_string();
        assert!(error.contains("not to 1,3"), "{error}");
    }

    #[test]
    fn burst_shrinks_with_the_rate() {
        assert_eq!([10.0, 5e3, 1e9].map(burst), [1, 5, 512]);
    }
}
