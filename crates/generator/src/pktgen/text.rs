//! Parses the files of `/proc/net/pktgen` (Linux, `Documentation/networking/pktgen.rst`).

use std::time::Duration;

/// File of a device, read during or after sending.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Device {
    /// `pkts-sofar`.
    pub sent: u64,
    /// `errors`: attempts that the driver rejected; most are retried.
    pub errors: u64,
    /// Time from `started` to `stopped`; `None` before the device has stopped.
    pub time: Option<Duration>,
    /// Text after `Result:`.
    pub result: String,
}

impl Device {
    /// Parses the file of a device. Missing values are 0.
    pub fn parse(text: &str) -> Device {
        let mut device = Device::default();
        let words: Vec<&str> = text.split_whitespace().collect();
        let value = |name: &str| -> Option<u64> {
            let at = words.iter().position(|word| *word == name)?;
            // Times are printed with their unit.
            words.get(at + 1)?.trim_end_matches("us").parse().ok()
        };
        device.sent = value("pkts-sofar:").unwrap_or(0);
        device.errors = value("errors:").unwrap_or(0);
        if let (Some(started), Some(stopped)) = (value("started:"), value("stopped:"))
            && stopped > started
        {
            device.time = Some(Duration::from_micros(stopped - started));
        }
        device.result = result(text);
        device
    }

    /// Time and packets of the last run: `OK: T(cA+dB) usec, N (60byte,0frags)`.
    pub fn last_run(&self) -> Option<(Duration, u64)> {
        let (time, rest) = self.result.strip_prefix("OK: ")?.split_once('(')?;
        let (_, rest) = rest.split_once("usec, ")?;
        let packets = rest.split_whitespace().next()?.parse().ok()?;
        Some((Duration::from_micros(time.trim().parse().ok()?), packets))
    }
}

/// Text after `Result:`, without line feeds.
pub fn result(text: &str) -> String {
    let result = text.rsplit_once("Result:").map_or("", |(_, result)| result);
    result.split_whitespace().collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Format of `Documentation/networking/pktgen.rst`, with consistent values.
    const SENT: &str = "\
Params: count 0  min_pkt_size: 60  max_pkt_size: 60
     frags: 0  delay: 10000  clone_skb: 0  ifname: eth4@0
     flows: 0 flowlen: 0
     queue_map_min: 0  queue_map_max: 0
     dst_min: 198.19.1.0  dst_max: 198.19.1.9
     src_min: 198.18.1.0  src_max: 198.18.1.0
     src_mac: 02:00:00:00:00:01 dst_mac: 02:00:00:00:00:02
     udp_src_min: 49184  udp_src_max: 49184  udp_dst_min: 7  udp_dst_max: 7
     src_mac_count: 0  dst_mac_count: 0
     Flags: QUEUE_MAP_CPU
Current:
     pkts-sofar: 1000010  errors: 3
     started: 17265318us  stopped: 27265818us idle: 9876us
     seq_num: 1000011  cur_dst_mac_offset: 0  cur_src_mac_offset: 0
     cur_saddr: 198.18.1.0  cur_daddr: 198.19.1.1
     cur_udp_dst: 7  cur_udp_src: 49184
     cur_queue_map: 0
     flows: 0
Result: OK: 10000500(c9990624+d9876) usec, 1000010 (60byte,0frags)
  99996pps 47Mb/sec (47998080bps) errors: 3
";

    #[test]
    fn device_file_is_parsed() {
        let device = Device::parse(SENT);
        assert_eq!((device.sent, device.errors), (1_000_010, 3));
        assert_eq!(device.time, Some(Duration::from_micros(10_000_500)));
        assert_eq!(device.last_run(), Some((Duration::from_micros(10_000_500), 1_000_010)));
        let busy = SENT.replace("stopped: 27265818us", "stopped: 0us");
        assert_eq!(Device::parse(&busy).time, None);
        let idle = Device::parse("Current:\n\nResult: OK: pkt_size=60\n");
        assert_eq!((idle.result.as_str(), idle.last_run()), ("OK: pkt_size=60", None));
    }

    proptest! {
        #[test]
        fn parser_accepts_any_text(text in "(pkts-sofar:|started:|stopped:|Result:|OK: |usec, |[ (0-9a-z\n])*") {
            let _ = Device::parse(&text).last_run();
        }
    }
}
