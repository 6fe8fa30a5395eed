//! Clocks: one for measuring, one for the calendar.

use rustix::time::{ClockId, clock_gettime};

/// Returns nanoseconds of CLOCK_MONOTONIC, which `bpf_ktime_get_ns` also reads.
pub fn monotonic_ns() -> u64 {
    let t = clock_gettime(ClockId::Monotonic);
    t.tv_sec as u64 * 1_000_000_000 + t.tv_nsec as u64
}

/// Returns nanoseconds of CLOCK_BOOTTIME, which continues while the machine is suspended.
pub fn boottime_ns() -> u64 {
    let t = clock_gettime(ClockId::Boottime);
    t.tv_sec as u64 * 1_000_000_000 + t.tv_nsec as u64
}

/// Returns nanoseconds since 1970 by the wall clock.
pub fn realtime_ns() -> i64 {
    let t = clock_gettime(ClockId::Realtime);
    t.tv_sec * 1_000_000_000 + t.tv_nsec
}

/// Returns the wall clock's time at CLOCK_MONOTONIC 0, in nanoseconds: the difference of the two
/// clocks until the wall clock is set.
pub fn realtime_minus_monotonic_ns() -> i64 {
    // The tightest of a few readings: this thread may be preempted between two readings.
    let readings = (0..3).map(|_| {
        let before = monotonic_ns() as i64;
        let wall = realtime_ns();
        let after = monotonic_ns() as i64;
        (after - before, wall - (before + (after - before) / 2))
    });
    readings.min().map_or(0, |(_, offset)| offset)
}

/// Sleeps until CLOCK_MONOTONIC reaches `deadline_ns`; returns the time reached.
pub fn sleep_until(deadline_ns: u64) -> u64 {
    loop {
        let now = monotonic_ns();
        if now >= deadline_ns {
            return now;
        }
        std::thread::sleep(std::time::Duration::from_nanos(deadline_ns - now));
    }
}
