//! Commands that configure a device to send a load.

use crate::flow_pattern::FlowPattern;
use crate::{Load, mac};
use fwdlab_packet::Family;
use fwdlab_packet::address::{Side, flow_address};
use fwdlab_packet::template::{DESTINATION_PORT, SOURCE_PORT};

/// Commands for each device, and limitations.
pub(super) struct Settings {
    pub(super) commands: Vec<String>,
    /// Description of the resulting flows.
    pub(super) flows: String,
    pub(super) remarks: Vec<String>,
}

/// Commands for each of `threads` devices.
pub(super) fn device(load: &Load, threads: usize, options: &[String]) -> Settings {
    let mut settings = Settings { commands: Vec::new(), flows: String::new(), remarks: Vec::new() };
    let mut add = |command: String| settings.commands.push(command);
    let per_thread = load.rate_pps.map(|rate| rate / threads.max(1) as f64);
    // A limit in case the controller dies; without a rate the time of the starter process is
    // limited instead.
    let count = per_thread.map_or(0, |rate| (rate * load.at_most.as_secs_f64()).ceil() as u64);
    add(format!("count {count}"));
    add("clone_skb 0".into()); // a new packet each time, otherwise flows would not vary
    add(format!("pkt_size {}", load.stream.frame_size.most().saturating_sub(4))); // without FCS
    add(format!("src_mac {}", mac(load.source_mac)));
    add(format!("dst_mac {}", mac(load.next_hop_mac)));
    for (name, port) in [("udp_src", SOURCE_PORT), ("udp_dst", DESTINATION_PORT)] {
        add(format!("{name}_min {port}"));
        add(format!("{name}_max {port}"));
    }
    add("flag QUEUE_MAP_CPU".into());
    match load.stream.family {
        Family::Inet => inet(load, &mut settings),
        Family::Inet6 => inet6(load, &mut settings),
    }
    settings.commands.extend(options.iter().cloned());
    let burst = options.iter().rev().find_map(|option| {
        option.strip_prefix("burst ").and_then(|burst| burst.trim().parse::<f64>().ok())
    });
    if let Some(rate) = per_thread {
        // pktgen's rate counts bursts, not packets.
        pace(rate / burst.unwrap_or(1.0).max(1.0), &mut settings);
    }
    settings
}

/// Adds `ratep` if the rate is a whole number, `delay` otherwise. The kernel stores both as whole
/// nanoseconds between two packets.
fn pace(rate: f64, settings: &mut Settings) {
    let rounded = rate.round();
    if rounded < 1.0 || (rate - rounded).abs() > rate * 1e-4 {
        let delay = (1e9 / rate.max(1e-9)).round().max(1.0);
        return settings.commands.push(format!("delay {}", delay as u64));
    }
    settings.commands.push(format!("ratep {rounded}"));
    let actual = 1e9 / (1e9 / rounded).floor().max(1.0);
    if actual > rate * 1.001 {
        settings.remarks.push(format!(
            "pktgen keeps whole nanoseconds: {rate:.0} packets per second of a thread become \
             {actual:.0}"
        ));
    }
}

fn inet(load: &Load, settings: &mut Settings) {
    let pattern = FlowPattern::reaching_all(load.stream.flows);
    settings.flows = pattern.describe(load.stream.flows);
    let sides = [("src", Side::Sender, load.stream.flows.sources)];
    for (name, side, count) in
        sides.into_iter().chain([("dst", Side::Receiver, load.stream.flows.destinations)])
    {
        let count = count.max(1);
        // A random destination never equals the upper limit.
        let last = match (pattern, side) {
            (FlowPattern::RandomDestination, Side::Receiver) => count,
            _ => count - 1,
        };
        let address = |index| flow_address(Family::Inet, side, index);
        settings.commands.push(format!("{name}_min {}", address(0)));
        settings.commands.push(format!("{name}_max {}", address(last)));
    }
    if pattern == FlowPattern::RandomDestination {
        settings.commands.push("flag IPDST_RND".into());
    }
}

/// pktgen chooses a destination as `(random | min) & max`, so ranges are powers of two.
fn inet6(load: &Load, settings: &mut Settings) {
    let address = |side, index| flow_address(Family::Inet6, side, index);
    settings.commands.push("flag UDPCSUM".into()); // IPv6 requires a checksum (RFC 8200)
    settings.commands.push(format!("src6 {}", address(Side::Sender, 0)));
    let destinations = load.stream.flows.destinations.max(1);
    let random_count = 1 << destinations.ilog2();
    if random_count == 1 {
        settings.commands.push(format!("dst6 {}", address(Side::Receiver, 0)));
    } else {
        settings.commands.push(format!("dst6_min {}", address(Side::Receiver, 0)));
        settings.commands.push(format!("dst6_max {}", address(Side::Receiver, random_count - 1)));
    }
    let requested = FlowPattern::Nested.flows(load.stream.flows);
    settings.flows =
        format!("{random_count} of {requested}: destinations are drawn, the source is one");
    if u64::from(random_count) != requested {
        settings.remarks.push(format!(
            "pktgen sends {random_count} of the {requested} flows: with IPv6 it varies the destination only, \
             by powers of two"
        ));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use fwdlab_packet::Flows;
    use fwdlab_packet::{Stream, Template};
    use std::time::Duration;

    fn load(family: Family, sources: u32, destinations: u32, rate_pps: Option<f64>) -> Load {
        let stream = Stream::new(family, 84, Flows { sources, destinations });
        let macs = [[2, 0, 0, 0, 0, 1], [2, 0, 0, 0, 0, 2]];
        Load {
            template: Template::new(&stream, 1, macs[0], macs[1]),
            stream,
            source_mac: macs[0],
            next_hop_mac: macs[1],
            rate_pps,
            at_most: Duration::from_secs(10),
        }
    }

    #[test]
    fn ranges_with_a_common_divisor_use_random_destinations() {
        let settings = device(&load(Family::Inet, 20, 100, None), 1, &[]);
        let text = settings.commands.join("\n");
        assert!(text.contains("count 0\n") && text.contains("pkt_size 80\n"), "{text}");
        assert!(text.contains("src_min 198.18.1.0\nsrc_max 198.18.1.19\n"), "{text}");
        assert!(
            text.contains("dst_min 198.19.1.0\ndst_max 198.19.1.100\nflag IPDST_RND"),
            "{text}"
        );
        let settings = device(&load(Family::Inet, 1, 100, None), 1, &[]);
        let text = settings.commands.join("\n");
        assert!(text.contains("dst_max 198.19.1.99") && !text.contains("RND"), "{text}");
    }

    #[test]
    fn ipv6_destinations_vary_by_powers_of_two() {
        let settings = device(&load(Family::Inet6, 2, 100, None), 1, &[]);
        let text = settings.commands.join("\n");
        assert!(text.contains("dst6_min 2001:2:0:8001::1:0\ndst6_max 2001:2:0:8001::1:3f"));
        assert!(settings.remarks[0].starts_with("pktgen sends 64 of the 200 flows"));
        assert!(device(&load(Family::Inet6, 1, 64, None), 1, &[]).remarks.is_empty());
    }

    #[test]
    fn rates_are_per_thread_and_count_bursts() {
        let last = |rate, threads, options: &[String]| {
            let load = load(Family::Inet, 1, 1, Some(rate));
            let settings = device(&load, threads, options);
            (settings.commands.last().cloned().unwrap_or_default(), settings.remarks)
        };
        assert_eq!(last(100_000.0, 2, &[]).0, "ratep 50000");
        assert_eq!(last(100_000.0, 1, &["burst 8".into()]).0, "ratep 12500");
        assert_eq!(last(1.5, 1, &[]).0, "delay 666666667");
        let (command, remarks) = last(3e6, 1, &[]);
        assert_eq!(command, "ratep 3000000");
        assert!(remarks[0].contains("become 3003003"), "{remarks:?}");
    }
}
