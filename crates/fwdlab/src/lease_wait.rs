//! Waiting for a laboratory's hosts that another controller has.

use crate::signal::Stop;
use crate::terminal;
use fwdlab_bench::BenchError;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// Most time between two attempts to have hosts that another controller has, whose runs each
/// attempt disturbs: it asks every host. Up to a second more by chance, so that two who wait don't
/// keep step.
const ATTEMPTS: Duration = Duration::from_secs(30);

/// A duration with its unit, as options have it.
pub(crate) fn time(text: &str) -> Result<Duration, String> {
    fwdlab_model::spec::duration_ns(text).map(Duration::from_nanos)
}

/// What `open` gives; while another has a host it is tried again for as long as `wait`, which
/// is told once, and until `stop`.
///
/// # Errors
/// As `open`.
pub(crate) fn once_free<T>(
    wait: Duration,
    stop: &Stop,
    tell: impl Fn(&str),
    mut open: impl FnMut() -> Result<T, BenchError>,
) -> Result<T, BenchError> {
    // Since the first refusal: asking the hosts takes a while, too.
    let mut since: Option<Instant> = None;
    loop {
        let is_told = since.is_some();
        let (error, left) = match open() {
            Err(error @ BenchError::Held { left, .. })
                if since.get_or_insert_with(Instant::now).elapsed() < wait && !stop.requested() =>
            {
                (error, left)
            }
            opened => return opened,
        };
        if !is_told {
            let told = error.to_string();
            let what = told.lines().next().unwrap_or_default();
            tell(&format!("waiting for {}: {what}", terminal::duration(wait.as_nanos() as u64)));
        }
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let chance = Duration::from_nanos(now.subsec_nanos().into());
        let waited = since.map_or(Duration::ZERO, |since| since.elapsed());
        // The last attempt is made when the time is over.
        let pause = left.unwrap_or(ATTEMPTS).min(ATTEMPTS).min(wait.saturating_sub(waited));
        let until = Instant::now() + pause + chance;
        while Instant::now() < until && !stop.requested() {
            std::thread::sleep(Duration::from_millis(50));
        }
    }
}
