//! Evidence that other work on the device's CPUs changed the figure of a run.
//!
//! Only the time that the device waited for a CPU is evidence, whatever process used it. At full
//! load the waiting time can be removed from the rate ([`crate::stolen_time`]), provided that the
//! CPU limits the device and the kernel's accounting is consistent. At a paced rate waiting matters
//! only if packets were lost in that time.

use crate::stolen_time::{Roles, StolenTime};
use fwdlab_model::record::{Counter, Ring, Sample};

/// Maximum share of the window that a correction removes. With a competitor at real-time priority
/// the measured cost of twenty firewall rules was 310 to 340 ns per packet with 0, 32 and 62 % of
/// the CPU taken, and 224 ns with 76 %: accounting errors grow with the correction.
pub const LARGEST_CORRECTION: f64 = 0.7;
/// Maximum share taken from the device for a rate that is not corrected.
pub const LARGEST_UNCORRECTED: f64 = 0.05;

/// Packets that a veth queue holds while its poll waits (`VETH_RING_SIZE`, `drivers/net/veth.c`);
/// rings of network cards are not smaller.
const RING: f64 = 256.0;
/// Maximum tolerated share of the lost packets that may have been lost to waiting.
const OF_LOST: f64 = 0.1;
/// Share of the offered packets below which these losses do not matter.
const OF_OFFERED: f64 = 2e-4;

/// Returns an upper bound of the packets that a paced device lost because it waited for its CPU: of
/// the packets that arrived while it waited, those that a ring could not hold, at most the number
/// lost at that time, and at most the number dropped by its ring, if counted.
pub fn lost_to_waiting(samples: &[Sample], roles: Roles, counters: &[Counter]) -> u64 {
    let arrived = |sample: &Sample| {
        let taken = StolenTime::of([sample], roles).device_ns as f64;
        sample.offered as f64 * taken / sample.duration_ns.max(1) as f64
    };
    let mut before = 0.0;
    let bounds = samples.iter().map(|sample| {
        let now = arrived(sample);
        // A wait may begin in one sample and end in the next.
        let overflow = (before + now - RING).max(0.0);
        before = now;
        overflow.min(sample.offered.saturating_sub(sample.forwarded) as f64)
    });
    let dropped = Ring::of(counters).map_or(u64::MAX, |ring| ring.dropped);
    (bounds.sum::<f64>() as u64).min(dropped)
}

/// Returns whether waiting may have caused so many of the losses that the loss is not the device's.
pub fn is_loss_doubtful(lost_to_waiting: u64, lost: u64, offered: u64) -> bool {
    let waiting = lost_to_waiting as f64;
    waiting > OF_LOST * lost as f64 && waiting > OF_OFFERED * offered as f64
}

/// Evidence, from the samples of runs, that the CPU limits a device at full load.
///
/// A device that drops packets only in its receive ring, and never idles, forwards at the rate that
/// its CPU permits. For a device that drops packets on its own, the limit may be something else,
/// such as a shaper. Then the samples decide: within each run the rate is regressed on the share of
/// the time that the device had. Both are centred, and the rate is divided by the run's rate per
/// share, so the slope is 1 for a device limited by its CPU and 0 for a shaper.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct CpuBound {
    xx: f64,
    xy: f64,
    yy: f64,
    freedom: f64,
    duration_ns: f64,
    idle_ns: f64,
    taken_in: u64,
    dropped: u64,
    is_unknown: bool,
}

impl CpuBound {
    /// Minimum slope for a device that counts as limited by its CPU. It is less than 1 even with an
    /// even share of every sample, because waiting is accounted when it ends, possibly in the next
    /// sample.
    const SLOPE: f64 = 0.4;
    /// Maximum standard error of a slope that decides.
    const ERROR: f64 = 0.2;
    /// Minimum share of idle time of a device that is not limited by its CPU.
    const IDLE: f64 = 0.1;
    /// Maximum share of the received packets that a device may drop on its own.
    const OWN_DROPS: f64 = 0.02;

    /// Adds the packets that the device took from its ring in a trial, and the number of them that
    /// it did not forward; `None` if its counters do not report them.
    pub fn add_packets(&mut self, counts: Option<(u64, u64)>) {
        match counts {
            Some((taken_in, dropped)) => {
                self.taken_in += taken_in;
                self.dropped += dropped;
            }
            None => self.is_unknown = true,
        }
    }

    /// Adds the valid samples of a run at full load.
    pub fn add_run(&mut self, samples: &[Sample], roles: Roles) {
        let points: Vec<(f64, f64, f64)> = samples
            .iter()
            .filter(|sample| sample.valid && sample.duration_ns > 0)
            .map(|sample| {
                let ns = sample.duration_ns as f64;
                let had = 1.0 - StolenTime::of([sample], roles).share();
                (ns, had, sample.forwarded as f64 / ns)
            })
            .collect();
        let of = |value: fn(&(f64, f64, f64)) -> f64| {
            points.iter().map(|point| point.0 * value(point)).sum::<f64>()
                / points.iter().map(|point| point.0).sum::<f64>()
        };
        let (mean_had, mean_rate) = (of(|point| point.1), of(|point| point.2));
        if !(mean_had > 0.0 && mean_rate > 0.0) || points.len() < 3 {
            return;
        }
        for (_, had, rate) in &points {
            let (x, y) = (had - mean_had, (rate - mean_rate) * mean_had / mean_rate);
            self.xx += x * x;
            self.xy += x * y;
            self.yy += y * y;
        }
        self.freedom += points.len() as f64 - 1.0;
        let taken = StolenTime::of(samples.iter().filter(|sample| sample.valid), roles);
        self.duration_ns += taken.duration_ns as f64;
        self.idle_ns += taken.idle_ns as f64;
    }

    /// Returns the slope and its standard error; `None` if the device had the same share of every
    /// sample.
    pub fn slope(&self) -> Option<(f64, f64)> {
        let freedom = self.freedom - 1.0;
        if self.xx < 1e-9 || freedom < 1.0 {
            return None;
        }
        let slope = self.xy / self.xx;
        let residual = (self.yy - slope * self.xy).max(0.0) / freedom;
        Some((slope, (residual / self.xx).sqrt()))
    }

    /// Returns whether the CPU limits the device.
    pub fn is_cpu_bound(&self) -> bool {
        let is_busy = self.idle_ns <= Self::IDLE * self.duration_ns;
        let drops_little = self.dropped as f64 <= Self::OWN_DROPS * self.taken_in as f64;
        if is_busy && drops_little && !self.is_unknown && self.taken_in > 0 {
            return true;
        }
        match self.slope() {
            Some((slope, error)) if error <= Self::ERROR => slope >= Self::SLOPE,
            // Without counters a busy device gets the benefit of the doubt.
            _ => is_busy && (self.is_unknown || self.taken_in == 0),
        }
    }
}

/// Returns whether the accounting of a run contradicts itself: the CPU time per packet that it
/// implies is far below the usual one of its variant. The time taken then includes waiting that
/// never happened, and a correction would invent packets.
pub fn is_account_contradicted(ns_per_packet: f64, usual_ns: f64, taken: f64) -> bool {
    ns_per_packet < 0.75 * usual_ns || (taken > 0.15 && ns_per_packet < 0.9 * usual_ns)
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;
    const ALONE: Roles = Roles { device: 1, senders: 1 };

    /// A sample of 20 ms in which the device waited for part of the time and ran for the rest.
    fn sample(waited_ms: u64, offered: u64, forwarded: u64) -> Sample {
        Sample {
            duration_ns: 20 * MS,
            offered,
            forwarded,
            ran_ns: Some((20 - waited_ms) * MS),
            waited_ns: Some(waited_ms * MS),
            valid: true,
            ..Sample::default()
        }
    }

    #[test]
    fn paced_waiting_is_harmless_while_the_ring_holds() {
        // 1 kpps: a wait of half the sample is ten packets.
        let slow: Vec<Sample> = (0..50).map(|i| sample(10, 20, 20 - i % 2)).collect();
        assert_eq!(lost_to_waiting(&slow, ALONE, &[]), 0);
        // 100 kpps: 1000 packets arrive during the wait.
        let fast = vec![sample(10, 2000, 1300); 50];
        let lost = 50 * 700;
        assert!(lost_to_waiting(&fast, ALONE, &[]) > lost / 2);
        assert!(is_loss_doubtful(lost_to_waiting(&fast, ALONE, &[]), lost, 100_000));
        // The same loss without waiting is caused by the device.
        assert_eq!(lost_to_waiting(&vec![sample(0, 2000, 1300); 50], ALONE, &[]), 0);
        // Its ring dropped hardly any packets.
        let counter = |what: &str, after| Counter {
            name: format!("d0 {what}"),
            before: 0,
            after,
            expected: None,
        };
        let counters = [
            counter("rx_packets", 99_990),
            counter("rx_dropped", 10),
            counter("rx_packets + rx_dropped", 100_000),
        ];
        assert_eq!(lost_to_waiting(&fast, ALONE, &counters), 10);
        assert!(!is_loss_doubtful(3, 3, 1_000_000));
        assert!(!is_loss_doubtful(90, 1000, 10_000));
    }

    #[test]
    fn only_a_device_that_forwards_more_in_more_time_is_cpu_bound() {
        let waits = [0, 4, 9, 2, 14, 6, 0, 11, 3, 8];
        let mut bound = CpuBound::default();
        let mut shaped = CpuBound::default();
        let noise = [7, -5, 3, -8, 2, 6, -4, 1, -6, 4];
        let near = |packets: u64, i: usize| packets.saturating_add_signed(noise[i]);
        let points = || waits.iter().enumerate();
        let cpu: Vec<Sample> =
            points().map(|(i, &w)| sample(w, 5000, near(50 * (20 - w), i))).collect();
        let shaper: Vec<Sample> = points().map(|(i, &w)| sample(w, 5000, near(400, i))).collect();
        bound.add_run(&cpu, ALONE);
        shaped.add_run(&shaper, ALONE);
        let (slope, _) = bound.slope().expect("a slope");
        assert!((slope - 1.0).abs() < 0.05 && bound.is_cpu_bound(), "{slope}");
        let (slope, _) = shaped.slope().expect("a slope");
        assert!(slope.abs() < 0.05 && !shaped.is_cpu_bound(), "{slope}");
    }

    #[test]
    fn an_idle_device_is_not_cpu_bound() {
        let idle = Sample { ran_ns: Some(12 * MS), ..sample(0, 5000, 400) };
        let mut found = CpuBound::default();
        found.add_run(&[idle; 20], ALONE);
        assert_eq!(found.slope(), None);
        assert!(!found.is_cpu_bound());
        let mut found = CpuBound::default();
        found.add_run(&[sample(1, 5000, 400); 20], ALONE);
        assert!(found.is_cpu_bound(), "nothing is known");
        // It forwards all packets that it takes in.
        found.add_packets(Some((8000, 1)));
        assert!(found.is_cpu_bound());
        // It drops nine of ten, and no sample shows the reason.
        found.add_packets(Some((80_000, 72_000)));
        assert!(!found.is_cpu_bound());
    }

    #[test]
    fn too_cheap_run_contradicts_its_accounting() {
        assert!(is_account_contradicted(466.0, 1280.0, 0.0));
        assert!(is_account_contradicted(1039.0, 1280.0, 0.3));
        assert!(!is_account_contradicted(1039.0, 1280.0, 0.1));
        assert!(!is_account_contradicted(1400.0, 1280.0, 0.5));
    }
}
