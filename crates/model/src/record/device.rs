//! CPU time of device and receiver.

use serde::{Deserialize, Serialize};

/// CPU time of the device and of the receiver during the window, as accounted by the scheduler for
/// their threads.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct DeviceTime {
    /// Time that the forwarding threads ran, in nanoseconds, summed over threads; `None` if
    /// softirqs forward, or if it was not read.
    pub ran_ns: Option<u64>,
    /// Time that the receiver's polling threads ran, in nanoseconds; `None` if it has none.
    pub receiver_ns: Option<u64>,
    /// CPUs that those threads may run on.
    pub receiver_cpus: Vec<u16>,
    /// CPU on which the receiver polls and frames return to their pool.
    pub receiver: ReceiverPlace,
}

/// Place of the receiver on a testbed of one machine.
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
    /// Returns the receiver's share (0 to 1) of the CPU time of device and receiver on the device's
    /// CPUs; `None` if it cannot be determined.
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

    /// Returns the time that the device alone ran, in nanoseconds; `None` if it includes the
    /// receiver's work, or if nothing is known.
    pub fn alone_ns(&self) -> Option<u64> {
        self.receiver_share().and(self.ran_ns).filter(|&ran_ns| ran_ns > 0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn receiver_share_covers_only_the_device_cpus() {
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
    fn older_records_have_no_device_time() {
        let old: DeviceTime = serde_json::from_str("{}").expect("JSON");
        assert_eq!(old, DeviceTime::default());
        let text = serde_json::to_string(&old).expect("JSON");
        assert!(text.contains("\"unknown\""), "{text}");
    }
}
