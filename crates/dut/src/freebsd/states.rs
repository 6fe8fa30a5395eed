//! Connection states of FreeBSD's firewalls: counting, and removing all of them.

use super::firewall::Program;
use fwdlab_host::Host;
use fwdlab_host::error::BenchError;
use fwdlab_model::settings::Settings;

/// Number of forwarded connections that the firewall tracks; `None` without a firewall, or if it
/// does not report the number.
pub(super) fn count(host: &dyn Host, settings: &Settings) -> Option<u64> {
    match Program::of(settings).ok()?? {
        // A forwarded connection has two states: one where it enters and one where it leaves.
        // `current entries` of `-s info` also includes states that are removed but not freed yet.
        Program::Pf => of_pf(&host.run(&["/bin/sh", "-c", "pfctl -s states | wc -l"], "").ok()?),
        Program::Ipfw => {
            of_ipfw(&host.run(&["sysctl", "-n", "net.inet.ip.fw.dyn_count"], "").ok()?)
        }
        Program::Ipf => of_ipf(&host.run(&["ipfstat", "-s"], "").ok()?),
    }
}

/// Removes all states; returns the command.
///
/// # Errors
/// Fails if the program fails.
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

/// Waits until removed states no longer take room, for half a minute at most. pf's thread frees
/// them at its `interval` (pf.conf(5), 10 s), ipfw's once a second; until then they count towards
/// the limit of the kernel's zone that contains them, which vmstat(8) prints.
///
/// # Errors
/// Fails if the host cannot be queried.
pub(super) fn await_room(host: &dyn Host, settings: &Settings) -> Result<(), BenchError> {
    let (zone, live) = match Program::of(settings)? {
        Some(Program::Pf) => ("pf states", "pfctl -s states | wc -l"),
        Some(Program::Ipfw) => ("IPFW dynamic states data", "sysctl -n net.inet.ip.fw.dyn_count"),
        Some(Program::Ipf) | None => return Ok(()),
    };
    let script = format!(
        r#"n=0
while [ $n -lt 150 ]; do
  used=$(vmstat -z | awk -F '[:,] *' '$1 == "{zone}" {{ print $4 }}')
  [ "${{used:-0}}" -gt $(($({live}) + 10)) ] || exit 0
  n=$((n + 1))
  sleep 0.2
done"#
    );
    host.run(&["/bin/sh", "-c", &script], "").map(drop)
}

/// Number of connections from pf's number of states, in the format of `wc -l`.
fn of_pf(text: &str) -> Option<u64> {
    text.trim().parse::<u64>().ok().map(|states| states / 2)
}

/// Number of ipfw's dynamic rules, from sysctl.
fn of_ipfw(text: &str) -> Option<u64> {
    text.trim().parse().ok()
}

/// Number in the first line of `ipfstat -s`, before its name.
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
    use fwdlab_host::FakeHost;
    use fwdlab_model::settings::{Firewall, FirewallProgram};

    /// A host whose firewall `program` prints `text` for its states.
    fn host_with_output(
        program: FirewallProgram,
        command: &str,
        text: &str,
    ) -> (FakeHost, Settings) {
        let mut host = FakeHost::default();
        host.outputs.insert(command.into(), text.into());
        let mut settings = Settings::default();
        settings.dut.firewall = Firewall::Stateful;
        settings.dut.remote.firewall_program = program;
        (host, settings)
    }

    /// FreeBSD's wc pads its numbers; an unknown sysctl, as without ipfw.ko, prints nothing.
    #[test]
    fn states_are_counted_with_each_firewalls_own_command() {
        let counted = |program, command, text| {
            let (host, settings) = host_with_output(program, command, text);
            let found = count(&host, &settings);
            let commands = host.commands.lock().expect("commands");
            (found, commands[0].0.join(" "))
        };
        let pf = "/bin/sh -c pfctl -s states | wc -l";
        let of_pf = |text| counted(FirewallProgram::Pf, "/bin/sh -c", text);
        assert_eq!(of_pf("   20000\n"), (Some(10_000), pf.into()), "two of each connection");
        assert_eq!(of_pf("       0\n").0, Some(0));
        assert_eq!(of_pf("pfctl: /dev/pf: No such file or directory\n").0, None);
        let of_ipfw = |text| counted(FirewallProgram::Ipfw, "sysctl -n", text);
        let ipfw = "sysctl -n net.inet.ip.fw.dyn_count";
        assert_eq!(of_ipfw("16384\n"), (Some(16_384), ipfw.into()));
        assert_eq!(of_ipfw("").0, None);
        let ipf = "3\tactive state table entries\n0\tadd bad\n";
        let of_ipf = counted(FirewallProgram::Ipf, "ipfstat -s", ipf);
        assert_eq!(of_ipf, (Some(3), "ipfstat -s".into()));
    }

    /// A missing number is `None`; it is not taken from another program.
    #[test]
    fn states_are_unknown_without_a_firewall_or_an_answer() {
        let (mut host, mut settings) = host_with_output(FirewallProgram::Pf, "/bin/sh -c", "4\n");
        host.failures.insert("/bin/sh -c".into(), "exit code 1".into());
        assert_eq!(count(&host, &settings), None);
        settings.dut.firewall = Firewall::None;
        assert_eq!(count(&host, &settings), None);
        assert_eq!(host.commands.lock().expect("commands").len(), 1, "nobody is asked");
    }

    /// Each firewall by the zone of its own states.
    #[test]
    fn await_room_watches_the_zone_of_the_firewall() {
        let waits = |program| {
            let (host, settings) = host_with_output(program, "", "");
            await_room(&host, &settings).expect("room");
            let commands = host.commands.lock().expect("commands");
            commands.iter().map(|command| command.0.join(" ")).collect::<String>()
        };
        assert!(waits(FirewallProgram::Pf).contains("$1 == \"pf states\" { print $4 }"));
        assert!(waits(FirewallProgram::Ipfw).contains("$(($(sysctl -n net.inet.ip.fw.dyn_count)"));
        assert_eq!(waits(FirewallProgram::Ipf), "");
    }

    /// The result names the command that removed the states.
    #[test]
    fn states_are_removed_with_each_firewalls_own_command() {
        for (program, command) in [
            (FirewallProgram::Pf, "pfctl -F states"),
            (FirewallProgram::Ipfw, "ipfw -q -D delete 1-65534"),
            (FirewallProgram::Ipf, "ipf -FS"),
        ] {
            let (host, settings) = host_with_output(program, "", "");
            assert_eq!(forget(&host, &settings).expect("removed").as_deref(), Some(command));
        }
    }

    #[test]
    fn ipf_states_are_parsed_from_ipfstat() {
        let ipf = "3\tactive state table entries\n0\tadd bad\n7\tcheck success\n";
        assert_eq!(of_ipf(ipf), Some(3));
        assert_eq!((of_ipf("active"), of_ipf("0\tadd bad\n")), (None, None));
    }
}
