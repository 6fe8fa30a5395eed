//! Errors of perf, and the next step for each.

/// Returns the remark for an error message of perf; the message itself if the error is unknown.
pub fn remark_on(words: &str) -> String {
    let known: [(&[&str], &str, &str); 7] = [
        (
            &["is not installed"],
            "perf is missing",
            "apt-get install linux-perf (Ubuntu: linux-tools-generic)",
        ),
        (
            &["perf_event_paranoid", "Permission denied", "Operation not permitted"],
            "perf may not sample this machine's CPUs",
            "run as root with CAP_PERFMON, or sysctl kernel.perf_event_paranoid=-1",
        ),
        (
            &["No space left on device"],
            "the samples did not fit on the disk",
            "make room, or ask for a lower `frequency` or a shorter `duration` in [profile]",
        ),
        (
            &["Maximum frequency rate"],
            "this machine does not sample as often as that",
            "ask for a lower `frequency` in [profile], or raise sysctl \
             kernel.perf_event_max_sample_rate",
        ),
        (
            &["unknown option", "Unknown option"],
            "this perf is too old: it can't be told when to sample",
            "install perf 5.10 or newer",
        ),
        (
            &["failed to process type", "file's data size field is 0", "incompatible file format"],
            "the file of samples is cut off",
            "profile again; where that happens again, look at the free space and memory",
        ),
        (
            &["is not supported", "not support sampling", "event syntax error"],
            "this machine does not count the event",
            "write event = \"cpu-clock\" in [profile]",
        ),
    ];
    let hint = known.iter().find(|(signs, ..)| signs.iter().any(|sign| words.contains(sign)));
    match hint {
        Some((_, what, next)) => format!("{what}: next step: {next}"),
        None => {
            let lines: Vec<&str> = words
                .lines()
                .map(str::trim)
                .filter(|line| !line.is_empty() && !line.starts_with("Events "))
                .take(3)
                .collect();
            let lines = if lines.is_empty() { "it said nothing".into() } else { lines.join("; ") };
            format!("perf failed ({lines}): next step: `fwdlab doctor`")
        }
    }
}

/// Returns true if perf's message states that this event is unavailable here.
pub(super) fn is_about_the_event(message: &str) -> bool {
    ["is not supported", "not support sampling", "event syntax error", "No such file or directory"]
        .iter()
        .any(|sign| message.contains(sign))
}
