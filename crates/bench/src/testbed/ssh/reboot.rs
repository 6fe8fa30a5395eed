//! Reboots of the DUT: requested ones, unexpected ones, and power cycling.

use super::is_stopped;
use super::rack::Rack;
use crate::Observer;
use crate::dut::freebsd::system::{BOOT, Boot};
use crate::error::BenchError;
use crate::host::connected::ConnectedHost;
use crate::host::{Host, LocalHost};
use crate::lease::{Leases, mark_sick};
use std::time::{Duration, Instant};

/// Factor on the time limit for a machine that was switched off: its firmware starts again, and its
/// file systems may be checked first.
const COLD: u32 = 3;
/// Interval of attempts to reach a booting host.
const PAUSE: Duration = Duration::from_millis(500);

/// Identity of a host's current boot: Linux's random boot id, or FreeBSD's.
///
/// # Errors
/// Returns an error if the host does not respond.
pub(super) fn mark(host: &dyn Host) -> Result<Boot, BenchError> {
    Boot::by_script(
        host,
        &format!("cat /proc/sys/kernel/random/boot_id 2>/dev/null || {{ {BOOT}; }}"),
    )
}

/// Waits until the DUT responds after another boot than `before` (any boot if `None`). After the
/// time limit it is power-cycled, once, and may take longer.
///
/// # Errors
/// Returns an error if the DUT does not respond, or the observer cancels.
pub(super) fn wait(
    rack: &Rack,
    before: Option<&Boot>,
    observer: &mut dyn Observer,
) -> Result<(), BenchError> {
    let dut = rack.dut()?;
    let late = match await_response(dut, before, rack.patience, observer)? {
        None => return Ok(()),
        Some(late) => late,
    };
    let (name, seconds) = (&dut.described.name, rack.patience.as_secs());
    let Some(argv) = rack.power_cycle(dut) else {
        return Err(BenchError::environment(
            format!("{name} did not come back within {seconds} s: {late}"),
            format!(
                "look at its console, or give the lab's file a `power_cycle` command for {name}"
            ),
        ));
    };
    observer.step(&format!("switching {name} off and on"));
    if let Err(error) = LocalHost.run(&argv.iter().map(String::as_str).collect::<Vec<_>>(), "") {
        // Ctrl-C also reaches the command.
        if is_stopped(rack.stop()) {
            return Err(BenchError::Interrupted);
        }
        let why = format!("{name} did not come back within {seconds} s ({late}), and {error}");
        return Err(is_sick(rack, name, &why, ""));
    }
    match await_response(dut, before, rack.patience * COLD, observer)? {
        None => Ok(()),
        Some(late) => {
            let why = format!(
                "{name} did not come back within {seconds} s, nor within {} s after `{}`: {late}",
                (rack.patience * COLD).as_secs(),
                argv.join(" ")
            );
            Err(is_sick(rack, name, &why, "look at its console; "))
        }
    }
}

/// Marks the DUT as sick, and returns the error that reports this with the cause.
pub(super) fn is_sick(rack: &Rack, name: &str, why: &str, next: &str) -> BenchError {
    let hosts: Vec<&ConnectedHost> = rack.all().iter().collect();
    let (what, next) = match mark_sick(&hosts, &rack.lab.name, name, why) {
        Ok(kept) => (
            format!("{why}\n  {name} is marked sick, on {}", kept.join(" and ")),
            format!("{next}when it is mended, `fwdlab lab mark LAB {name} well`"),
        ),
        Err(error) => (
            format!("{why}\n  {name} could not be marked sick: {error}"),
            format!("{next}`fwdlab lab mark LAB {name} sick WHY` keeps others from it"),
        ),
    };
    BenchError::environment(what, next)
}

/// Waits for a response; returns the last error if there is none in time.
fn await_response(
    reached: &ConnectedHost,
    before: Option<&Boot>,
    patience: Duration,
    observer: &mut dyn Observer,
) -> Result<Option<String>, BenchError> {
    let deadline = Instant::now() + patience;
    loop {
        reached.reconnect();
        let why = match mark(reached.host()) {
            Ok(now) if !before.is_some_and(|before| now.is(&before.0)) => match reached.is_online()
            {
                Ok(()) => return Ok(None),
                Err(error) => error.to_string(),
            },
            Ok(_) => "it answers, but has not booted".to_owned(),
            Err(error) => error.to_string(),
        };
        if observer.cancelled() {
            return Err(BenchError::Interrupted);
        }
        if Instant::now() >= deadline {
            return Ok(Some(why));
        }
        std::thread::sleep(PAUSE);
    }
}

/// Runs `step`, which queries the hosts. If it fails, waits for the DUT as in [`wait`] and runs it
/// again: a host that is about to go down may respond once more in between.
///
/// # Errors
/// Returns the error of the third attempt, or that another process has a host; also if the DUT does
/// not respond, or the observer cancels.
pub(super) fn insist<T>(
    rack: &Rack,
    observer: &mut dyn Observer,
    mut step: impl FnMut() -> Result<T, BenchError>,
) -> Result<T, BenchError> {
    let mut attempts = 3;
    loop {
        attempts -= 1;
        match step() {
            Err(error) if attempts > 0 && !matches!(error, BenchError::Held { .. }) => {
                wait(rack, None, observer)?;
            }
            result => return result,
        }
    }
}

/// Waits after a failure until every host responds, the DUT as in [`wait`], and takes the leases
/// again; returns true if the DUT has rebooted since `before`.
///
/// # Errors
/// Returns an error if a host does not respond, or another process has a lease.
pub(super) fn recover(
    rack: &Rack,
    before: &Boot,
    leases: &Leases,
    observer: &mut dyn Observer,
) -> Result<bool, BenchError> {
    wait(rack, None, observer)?;
    let dut = rack.dut()?;
    for other in rack.all().iter().filter(|host| !std::ptr::eq(*host, dut)) {
        if let Some(why) = await_response(other, None, rack.patience, observer)? {
            return Err(BenchError::environment(
                format!("{} does not answer any more: {why}", other.described.name),
                "see that it is up: it sends or counts, nothing can be measured without it",
            ));
        }
    }
    insist(rack, observer, || {
        leases.again()?;
        Ok(!mark(dut.host())?.is(&before.0))
    })
}
