//! CPU times of a DUT on another machine within the window.
//!
//! A saturated machine answers late: queried over a connection at the end of a window of five
//! seconds, it reported times of 17 seconds, while the senders kept sending. So a loop on the DUT
//! itself prints the times from before the traffic until after it, and the readings within the
//! window are picked afterwards. The ticks themselves are the DUT's clock: the sum over all states
//! of a CPU advances with time.

use crate::cpu::passed_ns;
use crate::dut::Dut;
use crate::host::{Host, Running};
use crate::trial::Clock;
use fwdlab_model::record::CpuTime;
use std::time::Duration;

/// Readings in a window: few, because each starts two programs on the DUT.
const READINGS: u64 = 4;
/// Minimum and maximum time between two readings, milliseconds.
const BETWEEN_MS: (u64, u64) = (200, 5000);
/// Time for the last printed lines to arrive.
const PATIENCE: Duration = Duration::from_millis(500);

/// The loop on the DUT.
pub(super) struct Sampler {
    running: Box<dyn Running>,
    /// Offset of the trial's clock from the DUT's, nanoseconds.
    ahead_ns: i64,
}

impl Sampler {
    /// Starts the loop for a window of `window_ns`; `None` if the DUT has no loop or it does not
    /// start. Traffic must not flow yet.
    pub(super) fn start(
        dut: &dyn Dut,
        host: &dyn Host,
        clock: &dyn Clock,
        window_ns: u64,
    ) -> Option<Sampler> {
        let script = dut.cpu_script()?;
        let before = clock.now_ns();
        let first = elapsed_ns(&dut.cpu_times(host))?;
        let now = before.midpoint(clock.now_ns());
        let between = (window_ns / READINGS / 1_000_000).clamp(BETWEEN_MS.0, BETWEEN_MS.1);
        let pause = format!("{}.{:03}", between / 1000, between % 1000);
        let repeated = format!("while :; do echo $({script}); sleep \"$0\"; done");
        let running = host.spawn(&["/bin/sh", "-c", &repeated, &pause]).ok()?;
        Some(Sampler { running, ahead_ns: now as i64 - first as i64 })
    }

    /// Ends the loop and returns the readings whose difference covers the window between these
    /// times of the trial's clock.
    pub(super) fn end(mut self, dut: &dyn Dut, window: (u64, u64)) -> Option<[Vec<CpuTime>; 2]> {
        self.running.interrupt();
        let mut readings = Vec::new();
        while let Some(line) = self.running.hear(PATIENCE) {
            let times = dut.cpu_times_of(&line);
            if let Some(at) = elapsed_ns(&times) {
                readings.push((at.saturating_add_signed(self.ahead_ns), times));
            }
        }
        self.running.wait(PATIENCE);
        pick(readings, window)
    }
}

/// Picks the first and the last reading within the window, or those around it if there are no two
/// within.
fn pick(
    readings: Vec<(u64, Vec<CpuTime>)>,
    (open, close): (u64, u64),
) -> Option<[Vec<CpuTime>; 2]> {
    let position = |within: &dyn Fn(u64) -> bool| readings.iter().position(|(at, _)| within(*at));
    let last = |within: &dyn Fn(u64) -> bool| readings.iter().rposition(|(at, _)| within(*at));
    let is_inside = |at: u64| (open..=close).contains(&at);
    let inside = position(&is_inside).zip(last(&is_inside)).filter(|(first, last)| first < last);
    let around = || last(&|at| at <= open).zip(position(&|at| at >= close));
    let (first, last) = inside.or_else(around)?;
    Some([first, last].map(|at| readings[at].1.clone()))
}

/// Time that passed on the machine since an arbitrary start, by its CPUs.
fn elapsed_ns(times: &[CpuTime]) -> Option<u64> {
    times.iter().map(passed_ns).max().filter(|&passed| passed > 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reading(at: u64) -> (u64, Vec<CpuTime>) {
        (at, vec![CpuTime { softirq_ns: at, ..CpuTime::default() }])
    }

    fn picked(all: &[u64], window: (u64, u64)) -> Option<[u64; 2]> {
        let readings = all.iter().map(|&at| reading(at)).collect();
        pick(readings, window).map(|pair| pair.map(|times| times[0].softirq_ns))
    }

    #[test]
    fn readings_within_the_window_are_picked() {
        assert_eq!(picked(&[0, 10, 20, 30, 40], (5, 35)), Some([10, 30]));
        assert_eq!(picked(&[0, 10, 20, 30, 40], (10, 30)), Some([10, 30]));
        // A starved machine printed once within the window, or not at all.
        assert_eq!(picked(&[0, 20, 90], (10, 30)), Some([0, 90]));
        assert_eq!(picked(&[0, 90], (10, 30)), Some([0, 90]));
        assert_eq!(picked(&[0, 20], (10, 30)), None);
        assert_eq!(picked(&[], (10, 30)), None);
    }
}
