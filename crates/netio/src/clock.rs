//! Clocks: one for measuring, one for the calendar.

use rustix::time::{ClockId, clock_gettime};

/// Nanoseconds of CLOCK_MONOTONIC, the clock that `bpf_ktime_get_ns` reads too.
pub fn monotonic_ns() -> u64 {
    let t = clock_gettime(ClockId::Monotonic);
    t.tv_sec as u64 * 1_000_000_000 + t.tv_nsec as u64
}

/// Nanoseconds of CLOCK_BOOTTIME, which goes on while the machine is suspended.
pub fn boottime_ns() -> u64 {
    let t = clock_gettime(ClockId::Boottime);
    t.tv_sec as u64 * 1_000_000_000 + t.tv_nsec as u64
}

/// Nanoseconds since 1970 by the wall clock.
pub fn realtime_ns() -> i64 {
    let t = clock_gettime(ClockId::Realtime);
    t.tv_sec * 1_000_000_000 + t.tv_nsec
}

/// What the wall clock shows when CLOCK_MONOTONIC shows 0, nanoseconds: what lies between them
/// until somebody sets the wall clock.
pub fn realtime_minus_monotonic_ns() -> i64 {
    // The tightest of a few looks: this thread may be put aside between two readings.
    let looks = (0..3).map(|_| {
        let before = monotonic_ns() as i64;
        let wall = realtime_ns();
        let after = monotonic_ns() as i64;
        (after - before, wall - (before + (after - before) / 2))
    });
    looks.min().map_or(0, |(_, between)| between)
}

/// Sleeps until CLOCK_MONOTONIC shows `deadline_ns`, then returns what it shows.
pub fn sleep_until(deadline_ns: u64) -> u64 {
    loop {
        let now = monotonic_ns();
        if now >= deadline_ns {
            return now;
        }
        std::thread::sleep(std::time::Duration::from_nanos(deadline_ns - now));
    }
}
