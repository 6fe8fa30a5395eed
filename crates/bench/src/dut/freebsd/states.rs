//! The connections that a firewall of FreeBSD keeps: counted, and removed at once.

use super::firewall::Program;
use crate::error::BenchError;
use crate::host::Host;
use fwdlab_model::settings::Settings;

/// States that the firewall holds for connections through the device; none where there is none,
/// or it does not tell.
pub(super) fn count(host: &dyn Host, settings: &Settings) -> Option<u64> {
    match Program::of(settings).ok()?? {
        // A connection that is forwarded has two: where it comes in, and where it goes out.
        // `current entries` of `-s info` has those too that were removed and are not freed yet.
        Program::Pf => {
            let said = host.run(&["/bin/sh", "-c", "pfctl -s states | wc -l"], "").ok()?;
            Some(said.trim().parse::<u64>().ok()? / 2)
        }
        Program::Ipfw => {
            let said = host.run(&["sysctl", "-n", "net.inet.ip.fw.dyn_count"], "").ok()?;
            said.trim().parse().ok()
        }
        Program::Ipf => of_ipf(&host.run(&["ipfstat", "-s"], "").ok()?),
    }
}

/// Removes all of them; the command in words.
///
/// # Errors
/// When the program refuses.
pub(super) fn forget(host: &dyn Host, settings: &Settings) -> Result<Option<String>, BenchError> {
    let Some(program) = Program::of(settings)? else { return Ok(None) };
    let argv: &[&str] = match program {
        Program::Pf => &["pfctl", "-F", "states"],
        // With -D only dynamic rules are deleted (ipfw(8)).
        Program::Ipfw => &["ipfw", "-q", "-D", "delete", "1-65534"],
        Program::Ipf => &["ipf", "-FS"],
    };
    host.run(argv, "")?;
    Ok(Some(argv.join(" ")))
}

/// The first line of `ipfstat -s`, a number before its name.
fn of_ipf(text: &str) -> Option<u64> {
    let number = |line: &str| {
        let (number, name) = line.trim().split_once(char::is_whitespace)?;
        name.trim().starts_with("active").then(|| number.parse().ok())?
    };
    text.lines().find_map(number)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_number_is_found_in_what_ipfstat_says() {
        let ipf = "3\tactive state table entries\n0\tadd bad\n7\tcheck success\n";
        assert_eq!(of_ipf(ipf), Some(3));
        assert_eq!((of_ipf("active"), of_ipf("0\tadd bad\n")), (None, None));
    }
}
