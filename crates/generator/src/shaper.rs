//! Rate limit for a program without one: the kernel of the sending host passes frames at the rate,
//! and the program waits.
//!
//! A token bucket (tc-tbf(8)) becomes the queueing discipline of the sending interface. It drops
//! nothing: its queue is longer than the buffer of the program's socket, so the program waits. The
//! interface's counter shows the packets that have left, unlike the program's own counter.
//!
//! The shell that has set the bucket removes it on request or when its input ends, which includes
//! the death of the controller and the loss of the connection to the host.

use fwdlab_host::error::BenchError;
use fwdlab_host::{Host, Running};
use std::time::Duration;

/// Script that sets the bucket of interface `$1` and removes it again.
const SCRIPT: &str = "trap '' INT; tc qdisc replace dev \"$1\" root tbf rate \"$2\"bit burst \"$3\" \
                      limit \"$4\" 2>&1 && echo paced && read -r _; tc qdisc del dev \"$1\" root";
/// Queue length in bytes: more than sockets buffer.
const QUEUE_BYTES: u64 = 64 << 20;
/// Time limit for setting or removing the bucket.
const PATIENCE: Duration = Duration::from_secs(20);

/// A paced interface.
pub(super) struct Shaper {
    running: Box<dyn Running>,
    ended: bool,
}

impl Shaper {
    /// Paces `interface` of a host: `rate_pps` frames per second, each of `bytes` without FCS.
    ///
    /// # Errors
    /// Fails if the interface has a queueing discipline that the kernel did not choose, or if tc(8)
    /// fails.
    pub(super) fn begin(
        host: &dyn Host,
        interface: &str,
        rate_pps: f64,
        bytes: u16,
    ) -> Result<Shaper, BenchError> {
        let shown = host.run(&["tc", "qdisc", "show", "dev", interface], "")?;
        if let Some(existing) = chosen(&shown) {
            return Err(BenchError::environment(
                format!(
                    "{interface} on {} has a queueing discipline already: {existing}",
                    host.name()
                ),
                format!(
                    "take it away (`tc qdisc del dev {interface} root`), or write rate = \"max\""
                ),
            ));
        }
        let [rate, burst] = bucket(rate_pps, bytes).map(|number| number.to_string());
        let queue = QUEUE_BYTES.to_string();
        let argv = ["sh", "-c", SCRIPT, "sh", interface, &rate, &burst, &queue];
        let mut running = host.spawn(&argv)?;
        let output = running.hear(PATIENCE).unwrap_or_default();
        if output.trim() == "paced" {
            return Ok(Shaper { running, ended: false });
        }
        let ended = running.wait(Duration::from_secs(1));
        Err(BenchError::Program {
            command: format!("tc qdisc replace dev {interface} root tbf"),
            host: host.name().to_owned(),
            why: format!("{}; {}{}", ended.status, output, ended.errors),
        })
    }

    /// Removes the bucket; returns an error message if that fails.
    pub(super) fn end(&mut self) -> Option<String> {
        if std::mem::replace(&mut self.ended, true) {
            return None;
        }
        let requested = self.running.tell("");
        let ended = self.running.wait(PATIENCE);
        let failed = requested.is_err() || !ended.well;
        failed.then(|| {
            format!("the pace was not taken away ({}): {}", ended.status, ended.errors.trim())
        })
    }
}

impl Drop for Shaper {
    fn drop(&mut self) {
        // A failed trial already has a more specific error.
        let _ = self.end();
    }
}

/// Rate of the bucket in bits per second, and its size in bytes: the frames of a millisecond, since
/// timers are inexact, but at most half of the smallest ring.
fn bucket(rate_pps: f64, bytes: u16) -> [u64; 2] {
    let frames = (rate_pps / 1e3).clamp(8.0, 128.0);
    let bytes = f64::from(bytes);
    [(rate_pps * bytes * 8.0).round().max(8.0) as u64, (frames * bytes).max(2048.0) as u64]
}

/// The root discipline, unless the kernel chose it: the kernel's own disciplines have the handle
/// `0:`.
fn chosen(shown: &str) -> Option<&str> {
    let root = shown.lines().map(str::trim).find(|line| line.contains(" root"))?;
    let handle = root.split_whitespace().nth(2)?;
    (handle != "0:").then_some(root)
}

#[cfg(test)]
mod tests {
    use super::*;
    use fwdlab_host::FakeHost;

    #[test]
    fn existing_queueing_discipline_is_kept() {
        for default in
            ["", "qdisc noqueue 0: root refcnt 2 ", "qdisc mq 0: root\nqdisc fq_codel 0: parent :1"]
        {
            assert_eq!(chosen(default), None, "{default}");
        }
        let tbf = "qdisc tbf 8009: root refcnt 3 rate 4800Kbit burst 3999b lat 16.7s";
        assert_eq!(chosen(tbf), Some(tbf));
        let mut host = FakeHost::default();
        host.outputs.insert("tc qdisc".into(), tbf.into());
        let refused = Shaper::begin(&host, "ix0", 1000.0, 60).err().expect("refused").to_string();
        for expected in ["ix0 on fake", "tbf 8009:", "tc qdisc del dev ix0 root"] {
            assert!(refused.contains(expected), "{expected} in {refused}");
        }
    }

    #[test]
    fn bucket_has_the_rate_and_a_small_size() {
        assert_eq!(bucket(10_000.0, 60), [4_800_000, 2048]);
        assert_eq!(bucket(100_000.0, 60), [48_000_000, 6000]);
        assert_eq!(bucket(5e6, 60), [2_400_000_000, 7680]);
    }
}
