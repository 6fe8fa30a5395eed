//! Offset of a host's clock from this machine's.

use super::{bad, failed, good};
use crate::host::Host;
use crate::probe::Probe;
use jiff::Timestamp;

/// Maximum acceptable offset, in seconds.
const LIMIT: f64 = 1.0;

/// Bounds of a difference in seconds: the host's time minus this machine's.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Difference {
    low: f64,
    high: f64,
}

impl Difference {
    /// From whole seconds that the host reported between two moments of this machine, all since
    /// 1970. The host's time was within the second that starts with the reported value.
    fn new(reported: f64, before: f64, after: f64) -> Difference {
        Difference { low: reported - after, high: reported + 1.0 - before }
    }

    /// False if the offset is certainly beyond the limit.
    fn is_small(self) -> bool {
        self.low <= LIMIT && self.high >= -LIMIT
    }
}

/// Queries the host's time.
pub(super) fn probe(host: &dyn Host) -> Probe {
    let before = now();
    let output = match host.run(&["date", "+%s"], "") {
        Ok(output) => output,
        Err(error) => return failed("clock", error),
    };
    let after = now();
    let Ok(seconds) = output.trim().parse::<u32>() else {
        return bad("clock", format!("`{}` is no time", output.trim()), "run `date +%s` there");
    };
    let difference = Difference::new(f64::from(seconds), before, after);
    let Difference { low, high } = difference;
    let detail = format!(
        "{low:+.1} to {high:+.1} s from this machine's, read within {:.2} s",
        after - before
    );
    match difference.is_small() {
        true => good("clock", detail),
        false => bad("clock", detail, "set the clocks by NTP (chronyd, ntpd) on both machines"),
    }
}

fn now() -> f64 {
    Timestamp::now().as_duration().as_secs_f64()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::host::FakeHost;

    #[test]
    fn difference_is_bounded_by_the_round_trip_and_the_second() {
        let difference = Difference::new(1000.0, 1000.2, 1000.5);
        assert!((difference.low + 0.5).abs() < 1e-9 && (difference.high - 0.8).abs() < 1e-9);
        assert!(difference.is_small());
        assert!(Difference::new(1002.0, 1000.9, 1001.0).is_small());
        assert!(!Difference::new(1003.0, 1000.9, 1001.0).is_small());
        assert!(!Difference::new(997.0, 1000.0, 1000.1).is_small());
        // A slow answer proves nothing.
        assert!(Difference::new(997.0, 990.0, 1000.1).is_small());
    }

    #[test]
    fn host_with_a_wrong_clock_is_reported() {
        let probe_with = |text: &str| {
            let mut host = FakeHost::default();
            host.outputs.insert("date +%s".into(), text.into());
            probe(&host)
        };
        let here = format!("{}\n", Timestamp::now().as_second());
        assert!(probe_with(&here).works);
        let other = probe_with("86400\n");
        assert!(!other.works && other.next.contains("NTP"), "{other:?}");
        assert!(probe_with("noon\n").detail.contains("`noon` is no time"));
    }
}
