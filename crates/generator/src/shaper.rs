//! A rate for a program that keeps none: the kernel of the sending host lets frames through at
//! it, and the program waits.
//!
//! A token bucket (tc-tbf(8)) becomes the queueing discipline of the sending interface. Nothing
//! is dropped in it: its queue is longer than what the buffer of the program's socket holds, so
//! that the program is the one that waits. What has left is what the interface counts, not what
//! the program has handed over.
//!
//! The bucket is taken away by the shell that has set it, when that is told to or its input
//! ends: also when whoever paces has died, or the connection to the host.

use fwdlab_host::error::BenchError;
use fwdlab_host::{Host, Running};
use std::time::Duration;

/// Sets the bucket of interface `$1`, and takes it away again.
const SCRIPT: &str = "trap '' INT; tc qdisc replace dev \"$1\" root tbf rate \"$2\"bit burst \"$3\" \
                      limit \"$4\" 2>&1 && echo paced && read -r _; tc qdisc del dev \"$1\" root";
/// Bytes of its queue: more than sockets buffer.
const QUEUE_BYTES: u64 = 64 << 20;
/// Longest that setting it or taking it away may take.
const PATIENCE: Duration = Duration::from_secs(20);

/// A paced interface.
pub(super) struct Pace {
    running: Box<dyn Running>,
    ended: bool,
}

impl Pace {
    /// Paces `interface` of a host: `rate_pps` frames a second, each of `bytes` without FCS.
    ///
    /// # Errors
    /// When the interface has a queueing discipline that somebody chose, or tc(8) fails.
    pub(super) fn begin(
        host: &dyn Host,
        interface: &str,
        rate_pps: f64,
        bytes: u16,
    ) -> Result<Pace, BenchError> {
        let shown = host.run(&["tc", "qdisc", "show", "dev", interface], "")?;
        if let Some(own) = chosen(&shown) {
            return Err(BenchError::environment(
                format!("{interface} on {} has a queueing discipline already: {own}", host.name()),
                format!(
                    "take it away (`tc qdisc del dev {interface} root`), or write rate = \"max\""
                ),
            ));
        }
        let [rate, burst] = bucket(rate_pps, bytes).map(|number| number.to_string());
        let queue = QUEUE_BYTES.to_string();
        let argv = ["sh", "-c", SCRIPT, "sh", interface, &rate, &burst, &queue];
        let mut running = host.spawn(&argv)?;
        let said = running.hear(PATIENCE).unwrap_or_default();
        if said.trim() == "paced" {
            return Ok(Pace { running, ended: false });
        }
        let ended = running.wait(Duration::from_secs(1));
        Err(BenchError::Program {
            command: format!("tc qdisc replace dev {interface} root tbf"),
            host: host.name().to_owned(),
            why: format!("{}; {}{}", ended.status, said, ended.errors),
        })
    }

    /// Takes the bucket away; what went wrong, if anything.
    pub(super) fn end(&mut self) -> Option<String> {
        if std::mem::replace(&mut self.ended, true) {
            return None;
        }
        let told = self.running.tell("");
        let ended = self.running.wait(PATIENCE);
        let failed = told.is_err() || !ended.well;
        failed.then(|| {
            format!("the pace was not taken away ({}): {}", ended.status, ended.errors.trim())
        })
    }
}

impl Drop for Pace {
    fn drop(&mut self) {
        // Of a trial that has failed there is a better reason to tell.
        let _ = self.end();
    }
}

/// Bits a second of the bucket, and the bytes that it holds: what comes within a millisecond, since
/// timers are not exact, and no more than half of the smallest ring.
fn bucket(rate_pps: f64, bytes: u16) -> [u64; 2] {
    let frames = (rate_pps / 1e3).clamp(8.0, 128.0);
    let bytes = f64::from(bytes);
    [(rate_pps * bytes * 8.0).round().max(8.0) as u64, (frames * bytes).max(2048.0) as u64]
}

/// The root discipline, where it is not one that the kernel gave by itself: those have the
/// handle `0:`.
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
    fn a_discipline_that_somebody_chose_is_left_alone() {
        for own in
            ["", "qdisc noqueue 0: root refcnt 2 ", "qdisc mq 0: root\nqdisc fq_codel 0: parent :1"]
        {
            assert_eq!(chosen(own), None, "{own}");
        }
        let tbf = "qdisc tbf 8009: root refcnt 3 rate 4800Kbit burst 3999b lat 16.7s";
        assert_eq!(chosen(tbf), Some(tbf));
        let mut host = FakeHost::default();
        host.outputs.insert("tc qdisc".into(), tbf.into());
        let refused = Pace::begin(&host, "ix0", 1000.0, 60).err().expect("refused").to_string();
        for wanted in ["ix0 on fake", "tbf 8009:", "tc qdisc del dev ix0 root"] {
            assert!(refused.contains(wanted), "{wanted} in {refused}");
        }
    }

    #[test]
    fn a_bucket_has_the_rate_and_little_room() {
        assert_eq!(bucket(10_000.0, 60), [4_800_000, 2048]);
        assert_eq!(bucket(100_000.0, 60), [48_000_000, 6000]);
        assert_eq!(bucket(5e6, 60), [2_400_000_000, 7680]);
    }
}
