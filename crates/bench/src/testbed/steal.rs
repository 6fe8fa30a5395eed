//! CPU time that device and sender lost while traffic flowed: steal from `/proc/stat`, run delay of
//! threads from [`crate::schedstat`].

use crate::cpu::{self, Placement};
use crate::schedstat::{self, ThreadTimes, Threads};
use crate::trial::Evidence;
use std::collections::BTreeMap;

/// Reads steal and run delay repeatedly during a trial.
pub(crate) struct StealMonitor {
    dut_cpus: Vec<u16>,
    sender_cpus: Vec<u16>,
    device: Threads,
    /// CPU that each device thread is bound to; `None` for an unbound thread.
    bound: Vec<Option<u16>>,
    senders: Threads,
    /// Threads of the receiver on the senders' CPUs.
    receiver: Threads,
    sender_waited_ns: u64,
    /// Readings at the end of the last interval. Run delay is summed per interval: only within one
    /// is it known whether another device thread ran at the same time.
    before: Vec<Option<ThreadTimes>>,
    waited_ns: u64,
}

impl StealMonitor {
    /// Monitors a device whose `threads` forward; without any, softirqs forward: on the sender's
    /// CPUs within the time of its threads, and in the ksoftirqd threads.
    pub(crate) fn new(placement: &Placement, threads: &[u32], senders: &[u32]) -> StealMonitor {
        let mut device = threads.to_vec();
        if device.is_empty() {
            for cpu in &placement.dut {
                device.extend(schedstat::tasks("/proc", &format!("ksoftirqd/{cpu}")));
            }
        }
        // On a shared CPU the sender's thread executes softirqs of the device; time that the
        // device's threads wait for it is not taken from the measured loop.
        if placement.senders.iter().any(|cpu| placement.dut.contains(cpu)) {
            device.extend(senders);
        }
        let bound = device.iter().map(|id| only_cpu(*id)).collect();
        let device = Threads::open(&device);
        StealMonitor {
            dut_cpus: placement.dut.clone(),
            sender_cpus: placement.senders.clone(),
            before: device.read(),
            device,
            bound,
            senders: Threads::open(senders),
            receiver: Threads::default(),
            sender_waited_ns: 0,
            waited_ns: 0,
        }
    }

    /// Registers receiving `threads` that share the senders' CPUs: a sender's wait for them does
    /// not count as lost time, because its own traffic causes it.
    pub(crate) fn receiver_beside_senders(&mut self, threads: &[u32]) {
        self.receiver = Threads::open(threads);
    }

    /// Takes a reading.
    pub(crate) fn read(&mut self) -> Evidence {
        let text = std::fs::read_to_string("/proc/stat").unwrap_or_default();
        let stolen_of = |cpus: &[u16]| cpu::stolen_in(&text, cpus);
        let now = self.device.read();
        self.waited_ns = self.waited_ns.saturating_add(waited(&self.before, &now, &self.bound));
        self.before.clone_from(&now);
        let knows_device = !now.is_empty() && now.iter().any(Option::is_some);
        let senders = self.senders.read();
        let knows_senders = !senders.is_empty() && senders.iter().any(Option::is_some);
        Evidence {
            stolen_ns: stolen_of(&self.dut_cpus),
            ran_ns: knows_device
                .then(|| now.iter().flatten().fold(0, |sum: u64, t| sum.saturating_add(t.ran_ns))),
            waited_ns: knows_device.then_some(self.waited_ns),
            sender_waited_ns: knows_senders.then(|| {
                let waited = senders
                    .iter()
                    .flatten()
                    .fold(stolen_of(&self.sender_cpus), |sum, t| sum.saturating_add(t.waited_ns));
                // The scheduler overstates the receiver's time (see `cpu_times.rs`), so this
                // understates the lost time.
                let others = waited.saturating_sub(self.receiver.total().ran_ns);
                self.sender_waited_ns = self.sender_waited_ns.max(others);
                self.sender_waited_ns
            }),
        }
    }
}

/// Time that the device's threads waited for other programs: on each CPU the longest run delay of a
/// thread, minus the run time of the device's other threads there. Unbound threads are treated as
/// if on one CPU, which understates the lost time.
fn waited(
    before: &[Option<ThreadTimes>],
    now: &[Option<ThreadTimes>],
    bound: &[Option<u16>],
) -> u64 {
    let mut by_cpu: BTreeMap<Option<u16>, Vec<ThreadTimes>> = BTreeMap::new();
    for ((before, now), cpu) in before.iter().zip(now).zip(bound) {
        if let (Some(before), Some(now)) = (before, now) {
            by_cpu.entry(*cpu).or_default().push(now.since(*before));
        }
    }
    let of_cpu = |threads: &Vec<ThreadTimes>| {
        let ran = threads.iter().fold(0_u64, |sum, t| sum.saturating_add(t.ran_ns));
        let alone = |t: &ThreadTimes| t.waited_ns.saturating_sub(ran.saturating_sub(t.ran_ns));
        threads.iter().map(alone).max().unwrap_or(0)
    };
    by_cpu.values().map(of_cpu).fold(0, u64::saturating_add)
}

/// CPU that a thread is bound to; `None` if it may run on several.
fn only_cpu(id: u32) -> Option<u16> {
    let status = std::fs::read_to_string(format!("/proc/{id}/status")).ok()?;
    let list = status.lines().find_map(|line| line.strip_prefix("Cpus_allowed_list:"))?;
    list.trim().parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn times(ran_ns: u64, waited_ns: u64) -> Option<ThreadTimes> {
        Some(ThreadTimes { ran_ns, waited_ns })
    }

    #[test]
    fn waits_for_other_device_threads_do_not_count() {
        let before = [times(100, 0), times(0, 100)];
        let same_cpu = [Some(1), Some(1)];
        // Both ran half of the time, each while the other waited.
        assert_eq!(waited(&before, &[times(150, 50), times(50, 150)], &same_cpu), 0);
        // For 30 ns neither ran.
        assert_eq!(waited(&before, &[times(150, 80), times(50, 180)], &same_cpu), 30);
        // On different CPUs each waited for another program.
        assert_eq!(waited(&before, &[times(150, 50), times(50, 150)], &[Some(1), Some(2)]), 100);
        assert_eq!(waited(&before, &[None, None], &same_cpu), 0);
    }

    #[test]
    fn hog_on_the_cpu_of_the_device_is_detected() {
        use std::sync::atomic::{AtomicBool, Ordering};
        let cpu = fwdlab_netio::affinity::allowed_cpus().expect("CPUs")[0];
        let (ids, started) = std::sync::mpsc::channel();
        let stop = std::sync::Arc::new(AtomicBool::new(false));
        let work = |ids: std::sync::mpsc::Sender<u32>| {
            let stop = stop.clone();
            std::thread::spawn(move || {
                fwdlab_netio::affinity::pin_thread(&[cpu]).expect("pinned");
                ids.send(fwdlab_netio::affinity::this_task()).expect("sent");
                while !stop.load(Ordering::Relaxed) {}
            })
        };
        let threads = [work(ids.clone()), work(ids)];
        let device = started.recv().expect("the device");
        started.recv().expect("the hog");
        let placement = cpu::place(&[cpu], fwdlab_model::settings::Arrangement::Closed, 1, 1);
        let mut monitor = StealMonitor::new(&placement, &[device], &[]);
        let first = monitor.read();
        // Until the scheduler reports that the device had to wait.
        let waited = |e: Evidence| e.waited_ns.expect("told");
        let enough = |e: Evidence| waited(e) > waited(first) + 20_000_000;
        let mut last = first;
        while !enough(last) {
            std::thread::yield_now();
            last = monitor.read();
        }
        stop.store(true, Ordering::Relaxed);
        threads.into_iter().for_each(|thread| thread.join().expect("ended"));
        assert_eq!(last.sender_waited_ns, None);
        assert!(last.ran_ns >= first.ran_ns);
    }
}
