//! Latency of packets through the simulated device.

use fwdlab_packet::arrivals::delays::{BUCKETS, Delays, bounds};

/// Maximum utilisation of a device for which the queue is treated as stationary.
const NEARLY_ALL: f64 = 0.999;

/// Returns the delays of `packets` packets: a queue with random arrivals and service (M/M/1), in
/// which the time from arrival to departure is exponential with the mean 1 / (capacity - load);
/// both in packets per second (Kleinrock, *Queueing Systems* I, section 5.6). The result is
/// deterministic: each range of delays contains its expected number of packets.
///
/// With packets of `flows` flows in turn, consecutive packets of one flow are far enough apart that
/// their delays are independent: the difference of two exponential variables is a Laplace variable,
/// whose absolute value is exponential with the same mean.
pub(super) fn delays(packets: u64, flows: u32, load_pps: f64, capacity_pps: f64) -> Delays {
    let pairs = packets.saturating_sub(flows.into());
    let differences = exponential(pairs, load_pps, capacity_pps);
    exponential(packets, load_pps, capacity_pps).with_differences(differences)
}

fn exponential(packets: u64, load_pps: f64, capacity_pps: f64) -> Delays {
    let rate = capacity_pps - load_pps.min(NEARLY_ALL * capacity_pps);
    let below = |ns: f64| (packets as f64 * -(-rate * ns / 1e9).exp_m1()).round() as u64;
    let mut counts = vec![0; BUCKETS];
    let (mut sum_ns, mut range) = (0, None);
    for (bucket, count) in counts.iter_mut().enumerate() {
        let (first, last) = bounds(bucket);
        let is_last = bucket + 1 == BUCKETS;
        let end = if is_last { packets } else { below(f64::from(last) + 1.0) };
        *count = end - below(f64::from(first));
        if *count > 0 {
            sum_ns += *count * (u64::from(first) + u64::from(last)) / 2;
            range = Some((range.map_or(first, |(least, _)| least), last));
        }
    }
    let (min_ns, max_ns) = range.unwrap_or((u32::MAX, 0));
    Delays::of_parts(&counts, sum_ns, min_ns, max_ns)
}

#[cfg(test)]
mod tests {
    use super::*;
    use fwdlab_model::record::Latency;

    #[test]
    fn delays_follow_the_queueing_law() {
        for (load, capacity) in [(1e5, 1e6), (9e5, 1e6), (5e6, 1e7)] {
            let packets = 1_000_000;
            let latency = Latency::of(&delays(packets, 2000, load, capacity)).expect("packets");
            assert_eq!(latency.packets(), packets);
            let mean_ns = 1e9 / (capacity - load);
            assert!((latency.mean_ns() / mean_ns - 1.0).abs() < 0.01, "{latency:?}");
            let differences = latency.differences.as_ref().expect("pairs");
            assert_eq!(differences.packets(), packets - 2000, "each but a flow's first");
            assert!((differences.mean_ns() / mean_ns - 1.0).abs() < 0.01, "{differences:?}");
            for share in [0.5, 0.9, 0.99, 0.999, 0.9999] {
                let truth = -mean_ns * (1.0f64 - share).ln();
                let quantile_ns = latency.quantile_ns(share).expect("enough packets");
                assert!(
                    (quantile_ns / truth - 1.0).abs() < 0.02,
                    "{share}: {quantile_ns} for {truth}"
                );
            }
        }
        assert_eq!(Latency::of(&delays(0, 2000, 1.0, 2.0)), None);
        let overloaded = Latency::of(&delays(1000, 1, 2e6, 1e6)).expect("packets");
        assert!(overloaded.mean_ns() > 0.9e6, "a thousand services");
    }
}
