//! CPU time of device and receiver.

use serde::{Deserialize, Serialize};

/// CPU time of the device and of the receiver during the window, by the scheduler's
/// account of their threads.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct DeviceTime {
    /// Time that the threads which forward ran, nanoseconds, summed over threads; none
    /// where softirqs forward, or where it was not read.
    pub ran_ns: Option<u64>,
    /// Time that the receiver's polling threads ran, nanoseconds; none where it has none.
    pub receiver_ns: Option<u64>,
    /// CPUs that those threads may run on.
    pub receiver_cpus: Vec<u16>,
    /// The CPU that the receiver polls on, and where frames return to their pool.
    pub receiver: ReceiverPlace,
}

/// Where the receiver of a testbed on one machine runs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ReceiverPlace {
    /// Not recorded, or on another machine.
    #[default]
    Unknown,
    /// On a dedicated CPU.
    Own,
    /// In a separate thread on a sender's CPU.
    Sender,
    /// In a separate thread on a CPU of the device.
    Device,
    /// Within the threads or softirqs of the device, inseparable from its work.
    Within,
}

impl DeviceTime {
    /// Share (0 to 1) of the CPU time of device and receiver on the device's CPUs that
    /// was the receiver's; none where it can't be told.
    pub fn receiver_share(&self) -> Option<f64> {
        match self.receiver {
            ReceiverPlace::Unknown | ReceiverPlace::Within => None,
            ReceiverPlace::Own | ReceiverPlace::Sender => Some(0.0),
            ReceiverPlace::Device => {
                let (ran_ns, receiver_ns) = (self.ran_ns? as f64, self.receiver_ns? as f64);
                (ran_ns + receiver_ns > 0.0).then(|| receiver_ns / (ran_ns + receiver_ns))
            }
        }
    }

    /// Time that the device alone ran, nanoseconds; none where the receiver's work is in
    /// it, or where nothing is known.
    pub fn alone_ns(&self) -> Option<u64> {
        self.receiver_share().and(self.ran_ns).filter(|&ran_ns| ran_ns > 0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_runs_on_the_devices_cpus_is_a_share_of_them() {
        let time = |receiver| DeviceTime {
            ran_ns: Some(900),
            receiver_ns: Some(100),
            receiver_cpus: vec![1],
            receiver,
        };
        let shares = [ReceiverPlace::Own, ReceiverPlace::Sender, ReceiverPlace::Device]
            .map(|place| time(place).receiver_share());
        assert_eq!(shares, [Some(0.0), Some(0.0), Some(0.1)]);
        assert_eq!(time(ReceiverPlace::Device).alone_ns(), Some(900));
        for place in [ReceiverPlace::Within, ReceiverPlace::Unknown] {
            assert_eq!((time(place).receiver_share(), time(place).alone_ns()), (None, None));
        }
        let silent = DeviceTime { ran_ns: None, ..time(ReceiverPlace::Own) };
        assert_eq!((silent.receiver_share(), silent.alone_ns()), (Some(0.0), None));
    }

    #[test]
    fn records_from_before_say_nothing() {
        let old: DeviceTime = serde_json::from_str("{}").expect("JSON");
        assert_eq!(old, DeviceTime::default());
        let text = serde_json::to_string(&old).expect("JSON");
        assert!(text.contains("\"unknown\""), "{text}");
    }
}
