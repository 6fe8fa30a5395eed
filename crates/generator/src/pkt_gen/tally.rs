//! Parses the output of one pkt-gen line by line, and sums its reports.

use fwdlab_model::log::{GeneratorLog, Total};
use std::time::Duration;

/// Maximum number of error messages to keep.
const KEPT: usize = 5;

/// Counts of one end.
#[derive(Debug, Default)]
pub struct Tally {
    /// Packets of all intervals.
    pub packets: u64,
    /// Number of reported intervals.
    pub reports: u32,
    /// Length of all intervals with packets.
    pub busy: Duration,
    /// Totals at the end.
    pub total: Option<Total>,
    /// True after the program has reported ready.
    pub is_ready: bool,
    /// True if a number had a unit prefix and was therefore rounded.
    pub is_rounded: bool,
    /// Source line that prints the reports; identifies the version.
    pub version: Option<u32>,
    /// Flows in the program's own description.
    pub flows: Option<String>,
    /// Error messages of the program.
    pub errors: Vec<String>,
}

impl Tally {
    /// Reads a line of its output.
    pub fn read(&mut self, line: &str) {
        // Messages of two generations of netmap before packets arrive.
        let ready = ["Ready...", "waiting for initial packets", "reading from "];
        self.is_ready |= ready.iter().any(|words| line.contains(words));
        let Ok(log) = GeneratorLog::parse(line.as_bytes()) else { return };
        for interval in &log.intervals {
            self.packets = self.packets.saturating_add(interval.packets);
            self.reports = self.reports.saturating_add(1);
            self.is_rounded |= !interval.exact;
            self.version = self.version.or(Some(interval.version));
            if interval.packets > 0 {
                let length = Duration::from_micros(interval.duration_us);
                self.busy = self.busy.saturating_add(length);
            }
        }
        self.total = self.total.take().or(log.total);
        self.flows = self.flows.take().or(log.flows_line);
        let room = KEPT.saturating_sub(self.errors.len());
        self.errors.extend(log.errors.into_iter().take(room).map(|line| line.text));
    }

    /// Number of packets: the totals if there are any, otherwise the sum of the intervals.
    pub fn count(&self) -> u64 {
        // A thread that aborted prints a total of zero after its reports.
        self.total.as_ref().map_or(self.packets, |total| total.packets.max(self.packets))
    }

    /// Sending time that the program reports; `None` if implausible.
    pub fn time(&self) -> Option<Duration> {
        let seconds = self.total.as_ref().and_then(|total| total.seconds);
        seconds.and_then(|s| Duration::try_from_secs_f64(s).ok())
    }

    /// Remarks about one end.
    pub fn remarks(&self, end: &str) -> Vec<String> {
        let mut remarks: Vec<String> =
            self.errors.iter().map(|line| format!("the {end} complained: {line}")).collect();
        if self.total.is_none() {
            let reports = self.reports;
            remarks.push(format!(
                "the {end} left no totals (it was killed): its packets are those of {reports} \
                 reports; what came after the last one is missing"
            ));
        }
        if self.is_rounded {
            remarks.push(format!("the {end} printed figures with units: they are rounded"));
        }
        remarks
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const REPORT: &str = "834.397523 main_thread [2786] 1000 pps (100 pkts 480000 bps in 100000 \
                          usec) 3.10 avg_batch 99999 min_space";

    #[test]
    fn totals_replace_reports() {
        let mut tally = Tally::default();
        tally.read("833.395992 start_threads [2847] Ready...");
        tally.read(REPORT);
        tally.read(REPORT);
        assert!(tally.is_ready && tally.count() == 200 && tally.version == Some(2786));
        assert_eq!(tally.busy, Duration::from_millis(200));
        assert!(tally.remarks("sender")[0].contains("left no totals"));
        tally.read("Sent 230 packets 13800 bytes 9 events 60 bytes each in 0.23 seconds.");
        assert_eq!((tally.count(), tally.time()), (230, Some(Duration::from_millis(230))));
        assert!(tally.remarks("sender").is_empty());
        let mut nothing = Tally::default();
        nothing.read("Sent nothing.");
        assert_eq!(
            (nothing.count(), nothing.time(), nothing.remarks("sender").len()),
            (0, None, 0)
        );
    }

    #[test]
    fn error_messages_are_kept_up_to_a_limit() {
        let mut tally = Tally::default();
        for _ in 0..9 {
            tally.read("578.882170 main_thread [2541] ouch, thread 0 exited with error");
        }
        tally.read("Received 20 packets 1240 bytes 9 events 62 bytes each in -15.05 seconds.");
        assert_eq!((tally.errors.len(), tally.time()), (KEPT, None));
        assert!(tally.remarks("receiver")[0].contains("ouch, thread 0"));
    }

    proptest! {
        #[test]
        fn any_line_is_accepted(
            line in "(main_thread|Sent|Received|pps|[ \\[\\]().0-9a-zA-Z\u{0}\u{fe}-])*"
        ) {
            let mut tally = Tally::default();
            tally.read(&line);
            tally.read(REPORT);
            prop_assert!(tally.count() >= 100);
        }
    }

    /// Real logs, read line by line, give the same result as the whole log.
    #[test]
    fn archived_logs_are_tallied_line_by_line() {
        for archive in fwdlab_testdata::archives() {
            assert_eq!(tally_logs(archive.path()), 440);
        }
    }

    /// Number of logs below a directory.
    fn tally_logs(root: &std::path::Path) -> usize {
        let mut directories = vec![root.to_path_buf()];
        let mut logs = 0;
        while let Some(directory) = directories.pop() {
            for path in std::fs::read_dir(&directory).into_iter().flatten().flatten() {
                let path = path.path();
                if path.is_dir() {
                    directories.push(path);
                    continue;
                }
                let is_log = path.extension().is_some_and(|e| e == "sender" || e == "receiver");
                let Some(bytes) = std::fs::read(&path).ok().filter(|_| is_log) else { continue };
                let Ok(log) = GeneratorLog::parse(&bytes) else { continue };
                let mut tally = Tally::default();
                String::from_utf8_lossy(&bytes).lines().for_each(|line| tally.read(line));
                let sum: u64 = log.intervals.iter().map(|interval| interval.packets).sum();
                assert_eq!((tally.packets, tally.reports as usize), (sum, log.intervals.len()));
                let total = log.total.map(|total| total.packets);
                assert_eq!(tally.total.as_ref().map(|total| total.packets), total, "{path:?}");
                assert!(tally.is_ready || log.intervals.is_empty(), "{path:?}");
                logs += 1;
            }
        }
        logs
    }
}
