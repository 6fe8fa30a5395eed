//! Waiting for hosts of a laboratory that another controller holds.

use crate::signal::Stop;
use crate::terminal;
use fwdlab_bench::BenchError;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// Maximum time between two attempts to acquire held hosts. Each attempt queries every host and so
/// disturbs the other controller's runs. A random extra of up to a second keeps two waiting
/// controllers out of step.
const ATTEMPTS: Duration = Duration::from_secs(30);

/// Parses a duration with its unit, as options have it.
pub(crate) fn time(text: &str) -> Result<Duration, String> {
    fwdlab_model::spec::duration_ns(text).map(Duration::from_nanos)
}

/// Returns the result of `open`. While another controller holds a host, retries for up to `wait` or
/// until `stop`; the wait is reported once through `report`.
///
/// # Errors
/// As `open`.
pub(crate) fn once_free<T>(
    wait: Duration,
    stop: &Stop,
    report: impl Fn(&str),
    mut open: impl FnMut() -> Result<T, BenchError>,
) -> Result<T, BenchError> {
    // From the first refusal: querying the hosts also takes a while.
    let mut since: Option<Instant> = None;
    loop {
        let is_reported = since.is_some();
        let (error, left) = match open() {
            Err(error @ BenchError::Held { left, .. })
                if since.get_or_insert_with(Instant::now).elapsed() < wait && !stop.requested() =>
            {
                (error, left)
            }
            opened => return opened,
        };
        if !is_reported {
            let text = error.to_string();
            let what = text.lines().next().unwrap_or_default();
            report(&format!("waiting for {}: {what}", terminal::duration(wait.as_nanos() as u64)));
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
