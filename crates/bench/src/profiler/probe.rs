//! Tests sampling for real: a tenth of a second of copying zeros.

use super::{Census, remark_on};
use crate::host::Host;
use std::path::Path;

/// Samples all CPUs for a moment; returns a summary of the samples. `file` is written and removed.
///
/// # Errors
/// Returns a remark with the next step.
pub fn attempt(host: &dyn Host, file: &Path) -> Result<String, String> {
    let file = file.display().to_string();
    let result = sample(host, &file);
    let _ = host.run(&["rm", "-f", &file], "");
    result
}

fn sample(host: &dyn Host, file: &str) -> Result<String, String> {
    let record = ["perf", "record", "-a", "-e", "cpu-clock", "-F", "1999", "-g", "-N", "-o", file];
    let copy = ["--", "dd", "if=/dev/zero", "of=/dev/null", "bs=64k", "count=20000"];
    let argv: Vec<&str> = record.into_iter().chain(copy).collect();
    host.run(&argv, "").map_err(|error| remark_on(&error.to_string()))?;
    let argv = ["perf", "script", "-F", "comm,ip,sym,dso", "-i", file];
    let text = host.run(&argv, "").map_err(|error| remark_on(&error.to_string()))?;
    let census = Census::of(&text);
    if census.samples == 0 {
        return Err("perf took no sample: next step: look whether another profiler runs".into());
    }
    if census.lacks_symbols() {
        let hidden = host.get("/proc/sys/kernel/kptr_restrict").unwrap_or_default();
        return Err(format!(
            "the kernel hides the names of its functions (kernel.kptr_restrict = {hidden}): next \
             step: run as root, or sysctl kernel.kptr_restrict=0"
        ));
    }
    let cycles = host.run(
        &["perf", "stat", "-x", ",", "--log-fd", "1", "-a", "-e", "cycles", "--", "sleep", "0.01"],
        "",
    );
    let by = match cycles {
        Ok(text) if !text.contains("<not") => "cycles",
        _ => "the kernel's clock (this machine counts no cycles)",
    };
    Ok(format!("{} samples with the kernel's names; profiles go by {by}", census.samples))
}
