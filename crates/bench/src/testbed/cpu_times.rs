//! CPU time of device and receiver threads in a window, from the scheduler's accounting.
//! The accounting is exact for threads that hold their CPU, as a device under load does. A
//! preempting thread is charged from its wake-up, although the preempted thread runs on until it
//! can be interrupted: if receiver and sender share a CPU, the receiver's time is an upper bound
//! and the sender's a lower bound.

use crate::schedstat::{ThreadTimes, Threads};
use fwdlab_model::record::{DeviceTime, ReceiverPlace};

/// CPU time of a run's threads, read at both ends of the window.
#[derive(Debug)]
pub struct CpuTimes {
    device: Threads,
    receiver: Threads,
    place: ReceiverPlace,
    receiver_cpus: Vec<u16>,
    readings: Vec<[ThreadTimes; 2]>,
}

impl CpuTimes {
    /// Opens the account of the threads `device`, which forward, and `receiver`, which only receive
    /// and run at `place` on `receiver_cpus`.
    pub(crate) fn open(
        device: &[u32],
        receiver: &[u32],
        place: ReceiverPlace,
        receiver_cpus: &[u16],
    ) -> CpuTimes {
        CpuTimes {
            device: Threads::open(device),
            receiver: Threads::open(receiver),
            place,
            receiver_cpus: receiver_cpus.to_vec(),
            readings: Vec::with_capacity(2),
        }
    }

    /// Opens an empty account, for threads on another machine.
    pub(crate) fn none() -> CpuTimes {
        CpuTimes::open(&[], &[], ReceiverPlace::Unknown, &[])
    }

    /// Takes a reading.
    pub(crate) fn read(&mut self) {
        self.readings.push([self.device.total(), self.receiver.total()]);
    }

    /// Returns the CPU time between the first and the last reading.
    pub(crate) fn since_first(&self) -> DeviceTime {
        let ran_ns = |threads: &Threads, which: usize| {
            let (first, last) = (self.readings.first()?, self.readings.last()?);
            (!threads.is_empty()).then(|| last[which].since(first[which]).ran_ns)
        };
        DeviceTime {
            ran_ns: ran_ns(&self.device, 0),
            receiver_ns: ran_ns(&self.receiver, 1),
            receiver_cpus: self.receiver_cpus.clone(),
            receiver: self.place,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use fwdlab_netio::affinity;

    #[test]
    fn cpu_times_cover_the_time_between_readings() {
        let task = affinity::this_task();
        let mut times = CpuTimes::open(&[task], &[], ReceiverPlace::Within, &[]);
        times.read();
        let begin = Threads::open(&[task]);
        let ran_ns = || begin.total().ran_ns;
        let before = ran_ns();
        while ran_ns() < before + 5_000_000 {}
        times.read();
        let time = times.since_first();
        assert!(time.ran_ns >= Some(5_000_000), "{time:?}");
        assert_eq!((time.receiver_ns, time.receiver), (None, ReceiverPlace::Within));
        // Without forwarding threads the CPU time is unknown.
        let mut none = CpuTimes::open(&[], &[task], ReceiverPlace::Own, &[2]);
        none.read();
        assert_eq!(none.since_first().ran_ns, None);
        assert_eq!(none.since_first().receiver, ReceiverPlace::Own);
    }
}
