//! Time that was provably taken from the device under test.
//!
//! On shared CPUs a run's rate is the device's only for the time that the device had a CPU. Only
//! the kernel reports the time taken, never the rate itself: steal of the device's CPUs, the time
//! that its threads were ready to run and waited (run delay; `/proc/PID/schedstat`), and, within
//! the time that the device was idle, the time that the sender's threads waited for a CPU. If the
//! kernel reports nothing, nothing counts as taken: the rate is then the plain mean, including the
//! machine's scatter.
//!
//! Out of scope: excluding slices by their value. A device that stalls is slow.

use fwdlab_model::record::{CpuTime, Sample};

/// Numbers of CPUs per role of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Roles {
    /// CPUs of the device, at least 1.
    pub device: u64,
    /// CPUs of senders, at least 1.
    pub senders: u64,
}

impl Roles {
    /// Returns the roles in the record of a run.
    pub fn of(cpus: &[CpuTime]) -> Roles {
        let count = |role: &str| {
            let named = |cpu: &&CpuTime| cpu.role.split('+').any(|part| part == role);
            cpus.iter().filter(named).count().max(1) as u64
        };
        Roles { device: count("dut"), senders: count("sender") }
    }
}

/// Stolen time of some samples, in nanoseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct StolenTime {
    /// Total length of the samples.
    pub duration_ns: u64,
    /// Time taken from the device.
    pub device_ns: u64,
    /// Time without packets because the sender had no CPU.
    pub sender_ns: u64,
    /// Time that the device's CPUs were idle although the sender had its CPU; 0 if the kernel does
    /// not report run times.
    pub idle_ns: u64,
    /// True if the kernel reported run delay of threads, not only steal.
    pub knows_threads: bool,
}

impl StolenTime {
    /// Returns the time taken over these samples. The caller should exclude samples that are not
    /// valid.
    pub fn of<'a>(samples: impl IntoIterator<Item = &'a Sample>, roles: Roles) -> StolenTime {
        let (mut duration, mut stolen, mut waited, mut sender) = (0_u64, 0_u64, 0_u64, 0_u64);
        let (mut ran, mut starved) = (Some(0_u64), 0_u64);
        for sample in samples {
            duration = duration.saturating_add(sample.duration_ns);
            stolen = stolen.saturating_add(sample.stolen_ns);
            waited = waited.saturating_add(sample.waited_ns.unwrap_or(0));
            sender = sender.saturating_add(sample.sender_waited_ns.unwrap_or(0));
            ran = ran.zip(sample.ran_ns).map(|(sum, ran)| sum.saturating_add(ran));
            starved = starved.saturating_add(starved_ns(sample));
        }
        let Roles { device: cpus, senders } = roles;
        let all = duration.saturating_mul(cpus);
        // A thread that waits while its CPU is stolen is reported twice: the time taken is at most
        // the time that it didn't run, and at least the larger of both. A wait is accounted when it
        // ends: a starved thread has none until then, and afterwards all of it.
        let waited = waited.max(starved.saturating_mul(cpus));
        let both = stolen.saturating_add(waited);
        let at_least = stolen.max(waited);
        let taken = match ran {
            Some(ran) => both.min(all.saturating_sub(ran).max(at_least)),
            None => both,
        }
        .min(all);
        // A sender without CPU left the device idle, but not for longer than it was idle.
        let idle = ran.map_or(0, |ran| all.saturating_sub(ran).saturating_sub(taken)) / cpus;
        let sender_ns = (sender / senders).min(idle);
        StolenTime {
            duration_ns: duration,
            device_ns: taken / cpus,
            sender_ns,
            idle_ns: idle - sender_ns,
            knows_threads: ran.is_some() && duration > 0,
        }
    }

    /// Adds the steal of the whole window if the samples contain less: the steal of a device on
    /// another machine is read only at the ends of the window.
    #[must_use]
    pub fn and_of_window(self, cpus: &[CpuTime], window_ns: u64, roles: Roles) -> StolenTime {
        let of_device = cpus.iter().filter(|cpu| cpu.role.split('+').any(|role| role == "dut"));
        let stolen = of_device.fold(0_u64, |sum, cpu| sum.saturating_add(cpu.stolen_ns));
        let share = stolen as f64 / roles.device as f64 / window_ns.max(1) as f64;
        let device_ns = (share.min(1.0) * self.duration_ns as f64) as u64;
        StolenTime { device_ns: self.device_ns.max(device_ns), ..self }
    }

    /// Returns the total time taken, in nanoseconds.
    pub fn total_ns(&self) -> u64 {
        self.device_ns.saturating_add(self.sender_ns).min(self.duration_ns)
    }

    /// Returns the share of the time that was taken, 0 to 1.
    pub fn share(&self) -> f64 {
        if self.duration_ns == 0 { 0.0 } else { self.total_ns() as f64 / self.duration_ns as f64 }
    }

    /// Returns the share of the time that was taken from the device itself, 0 to 1.
    pub fn device_share(&self) -> f64 {
        self.device_ns as f64 / self.duration_ns.max(1) as f64
    }

    /// Returns packets per second of the time that the device had, given the packets of the whole
    /// `window_ns`, of which these samples are the largest part; `None` if it had none. The share
    /// that was taken is applied to the window.
    pub fn rate_pps(&self, packets: u64, window_ns: u64) -> Option<f64> {
        let left_ns = window_ns as f64 * (1.0 - self.share());
        // Less than a fiftieth of the window is not a basis for a rate.
        (left_ns > 0.02 * window_ns as f64 && window_ns > 0).then(|| packets as f64 * 1e9 / left_ns)
    }
}

/// Returns the length of a sample in which packets arrived and the device's threads neither ran nor
/// forwarded: they got no CPU. A device that is merely slow runs.
fn starved_ns(sample: &Sample) -> u64 {
    let is_starved = sample.ran_ns == Some(0) && sample.forwarded == 0 && sample.offered > 0;
    if is_starved { sample.duration_ns } else { 0 }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const MS: u64 = 1_000_000;

    fn sample(stolen: u64, ran: Option<u64>, waited: Option<u64>, sender: Option<u64>) -> Sample {
        Sample {
            duration_ns: 100 * MS,
            stolen_ns: stolen * MS,
            ran_ns: ran.map(|ms| ms * MS),
            waited_ns: waited.map(|ms| ms * MS),
            sender_waited_ns: sender.map(|ms| ms * MS),
            ..Sample::default()
        }
    }

    fn taken(samples: &[Sample]) -> (u64, u64) {
        let taken = StolenTime::of(samples, Roles { device: 1, senders: 1 });
        (taken.device_ns / MS, taken.sender_ns / MS)
    }

    #[test]
    fn only_reported_time_counts_as_taken() {
        // Idle without a reason is the device's own: a shaper, a lock.
        assert_eq!(taken(&[sample(0, Some(60), Some(0), Some(0))]), (0, 0));
        assert_eq!(taken(&[sample(0, None, None, None)]), (0, 0));
        assert_eq!(taken(&[sample(20, None, None, None)]), (20, 0));
        assert_eq!(taken(&[sample(10, Some(70), Some(20), Some(0))]), (30, 0));
        // The sender had no CPU for 30, the device was idle for 20 of them.
        assert_eq!(taken(&[sample(10, Some(70), Some(0), Some(30))]), (10, 20));
        // Busy all the time: the sender's absence did not affect the device.
        assert_eq!(taken(&[sample(0, Some(100), Some(0), Some(30))]), (0, 0));
    }

    #[test]
    fn thread_without_cpu_is_starved_not_idle() {
        let starved = Sample { offered: 1000, ..sample(0, Some(0), Some(0), Some(0)) };
        assert_eq!(taken(&[starved]), (100, 0));
        // The wait is accounted when it ends, and counts once.
        let ends = Sample { offered: 1000, forwarded: 900, ..sample(0, Some(90), Some(210), None) };
        let found = StolenTime::of(&[starved, starved, ends], Roles { device: 1, senders: 1 });
        assert_eq!(found.device_ns, 210 * MS);
        // No packets arrived.
        assert_eq!(taken(&[sample(0, Some(0), Some(0), Some(0))]), (0, 0));
    }

    #[test]
    fn overlapping_steal_and_wait_count_once() {
        // Ready and waiting while the CPU was stolen: 30 ms, in both readings.
        assert_eq!(taken(&[sample(30, Some(70), Some(30), Some(0))]), (30, 0));
        // On a kernel that does not deduct steal from the run time.
        assert_eq!(taken(&[sample(30, Some(100), Some(0), Some(0))]), (30, 0));
    }

    #[test]
    fn stolen_time_is_averaged_over_cpus() {
        let samples = [sample(20, Some(180), Some(0), None)];
        let taken = StolenTime::of(&samples, Roles { device: 2, senders: 1 });
        assert_eq!((taken.device_ns / MS, taken.total_ns() / MS), (10, 10));
        let roles = [("sender", 0), ("dut", 1), ("sender+dut", 2)];
        let cpus =
            roles.map(|(role, cpu)| CpuTime { cpu, role: role.into(), ..CpuTime::default() });
        assert_eq!(Roles::of(&cpus), Roles { device: 2, senders: 2 });
        assert_eq!(Roles::of(&[]), Roles { device: 1, senders: 1 });
    }

    #[test]
    fn window_reading_adds_missing_steal() {
        let cpu = CpuTime { role: "dut".into(), stolen_ns: 20 * MS, ..CpuTime::default() };
        let roles = Roles::of(std::slice::from_ref(&cpu));
        let silent = StolenTime::of(&[sample(0, None, None, None)], roles);
        assert_eq!(
            silent.and_of_window(std::slice::from_ref(&cpu), 100 * MS, roles).device_ns,
            20 * MS
        );
        let stolen = StolenTime::of(&[sample(30, None, None, None)], roles);
        assert_eq!(stolen.and_of_window(&[cpu], 100 * MS, roles).device_ns, 30 * MS);
    }

    #[test]
    fn rate_refers_to_the_remaining_time() {
        let taken = StolenTime::of(&[sample(20, Some(80), Some(0), None)], Roles::of(&[]));
        assert_eq!(taken.rate_pps(80_000, 100 * MS), Some(1_000_000.0));
        let all = StolenTime::of(&[sample(100, Some(0), Some(0), None)], Roles::of(&[]));
        assert_eq!(all.rate_pps(1, 100 * MS), None);
        assert_eq!(StolenTime::default().rate_pps(1, 0), None);
    }

    proptest! {
        #[test]
        fn stolen_time_is_at_most_the_duration(
            stolen in 0..300u64, ran in proptest::option::of(0..300u64),
            waited in proptest::option::of(0..300u64), sender in proptest::option::of(0..300u64),
            device in 1..4u64, senders in 1..4u64,
        ) {
            let found = StolenTime::of(&[sample(stolen, ran, waited, sender)], Roles { device, senders });
            prop_assert!(found.device_ns <= 100 * MS && found.total_ns() <= 100 * MS);
            prop_assert!((0.0..=1.0).contains(&found.share()));
        }
    }
}
