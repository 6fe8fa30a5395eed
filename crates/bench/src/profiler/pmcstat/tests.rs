//! Tests of pmcstat on a scripted host.

use super::*;
use crate::host::{Ended, FakeHost, FakeProgram};
use fwdlab_model::profile::ProfilePlan;
use std::cell::Cell;

const RATES: &str = "{ hz = 100, tick = 10000, profhz = 8128, stathz = 127 }\n";

/// Returns a log with a mark before and after a sample, as od(1) prints it.
fn log() -> String {
    let word = |bytes: &[u8]| {
        let words = bytes.chunks(4).map(|chunk| {
            let mut word = [0; 4];
            word[..chunk.len()].copy_from_slice(chunk);
            format!(" {:08x}", u32::from_le_bytes(word))
        });
        words.collect::<String>()
    };
    let mark = |number: usize, tsc: u32| {
        let path = word(format!("/var/tmp/x-mark{number}\0").as_bytes());
        let length = 32 + 4 * path.split_whitespace().count();
        format!("ee09{length:04x} 0 {tsc:08x} 0 40f ffffffff 0 0{path}\n")
    };
    let sample = "ee100028 0 00000e53 0 c 186de f00 0 8075b921 ffffffff\n";
    format!("{}{sample}{}", mark(1, 1000), mark(6, 5000))
}

/// Returns a FreeBSD host whose kernel has hwpmc as a module, and no counters.
fn machine() -> FakeHost {
    let system = "FreeBSD\n0\n1302001\nno\nno\n";
    let symbols = "module ffffffff80200000 /boot/kernel/kernel\nffffffff8075b900 T ip_input\n";
    let outputs = [
        ("sysctl -n", RATES),
        ("/bin/sh -c", system),
        ("/bin/sh -s", symbols),
        ("pmcstat -C", "# s/00/unhalted-cycles\n                     0 \n"),
    ];
    let mut outputs: std::collections::BTreeMap<String, String> =
        outputs.map(|(key, text)| (key.into(), text.into())).into();
    outputs.insert("od -An".into(), log());
    let ended = |errors: &str| Ended { well: true, errors: errors.into(), ..Ended::default() };
    FakeHost {
        outputs,
        failures: [
            ("kldstat -q", ""),
            ("kenv -q", ""),
            ("cat /var/db/fwdlab/modules", "No such file"),
        ]
        .map(|(key, why)| (key.into(), why.into()))
        .into(),
        programs: [
            ("/bin/sh -c", FakeProgram::answering("made", ended(""))),
            ("pmcstat -c", FakeProgram::answering("", ended(""))),
        ]
        .map(|(key, program)| (key.into(), program))
        .into(),
        ..FakeHost::default()
    }
}

/// Sampling of a profile run with the default settings.
fn full() -> Sampling {
    Sampling::from(&ProfilePlan::default())
}

fn profile(host: &FakeHost, plan: &Sampling) -> RawProfile {
    let now = Cell::new(0);
    let clock = || {
        now.set(now.get() + 1000);
        now.get()
    };
    let file = Path::new("/var/tmp/x");
    let mut pmcstat = Pmcstat::prepare(host, &clock, plan, &[0, 1], file);
    pmcstat.start();
    pmcstat.stop();
    Box::new(pmcstat).finish()
}

fn commands(host: &FakeHost) -> Vec<String> {
    let commands = host.commands.lock().expect("commands");
    commands.iter().map(|(words, _)| words.join(" ")).collect()
}

#[test]
fn profile_contains_samples_between_start_and_stop() {
    let host = machine();
    let raw = profile(&host, &full());
    // Marks 1 and 6 were made at 3500 and 15500 by the clock, when the counter was 1000 and 5000;
    // start and stop were at 11000 and 12000.
    assert_eq!((raw.sampled_from_ns, raw.sampled_to_ns), (11000, 12000));
    let expected = "unknown 12/100062 [000] 0.000011501:     492125 clock.prof: \n\
                    \tffffffff8075b921 ip_input (kernel)\n\n";
    assert_eq!(raw.text, expected, "{:?}", raw.remarks);
    assert_eq!(raw.source, "pmcstat, CLOCK.PROF at 2032 Hz, frame pointers");
    assert!(raw.remarks[0].contains("counts no cycles"), "{:?}", raw.remarks);
    // Remarks about a clock that is read in microseconds, and about a host that records no module.
    assert_eq!(raw.remarks.len(), 3, "{:?}", raw.remarks);
    let line = "pmcstat -c 0,1 -n 4 -S CLOCK.PROF -O /var/tmp/x";
    assert!(commands(&host).iter().any(|command| command == line), "{:?}", commands(&host));
}

#[test]
fn changes_are_recorded_first_and_restored() {
    let host = machine();
    profile(&host, &full());
    let all = commands(&host);
    let at = |text: &str| {
        let position = all.iter().position(|command| command.starts_with(text));
        position.unwrap_or_else(|| panic!("{text} is not in {all:#?}"))
    };
    assert!(at("kenv kern.hwpmc.nbuffers_pcpu=512") < at("kldload -n hwpmc"));
    assert!(at("tee /var/db/fwdlab/modules.fwdlab") < at("kldload -n hwpmc"));
    assert!(at("kldload -n hwpmc") < at("sysctl kern.hwpmc.mincount=1"));
    assert!(at("pmcstat -c") < at("kenv -u kern.hwpmc.nbuffers_pcpu"));
    at("kenv -u kern.hwpmc.logbuffersize");
    let last =
        all.iter().rposition(|command| command.starts_with("rm -f /var/tmp/x ")).expect("rm");
    assert!(last > at("od -An"));

    // A loaded module stays, and gets its previous settings back.
    let mut host = machine();
    host.failures.remove("kldstat -q");
    host.outputs.insert("sysctl -n".into(), format!("1000 {RATES}"));
    profile(&host, &full());
    let all = commands(&host);
    assert!(
        !all.iter().any(|c| c.starts_with("kldload") || c.starts_with("kldunload")),
        "{all:#?}"
    );
    assert!(all.iter().any(|c| c.starts_with("sysctl kern.hwpmc.mincount=1000")), "{all:#?}");
}

#[test]
fn failures_become_remarks_with_a_next_step() {
    let remarks = |change: &dyn Fn(&mut FakeHost)| {
        let mut host = machine();
        change(&mut host);
        let raw = profile(&host, &full());
        assert_eq!(raw.text, "");
        raw.remarks.join("\n")
    };
    let text = remarks(&|host| {
        host.failures.insert("kldload -n".into(), "can't load hwpmc: No such file".into());
    });
    assert!(text.contains("hwpmc can't be loaded: next step: boot a kernel with"), "{text}");
    let text = remarks(&|host| {
        let ended = Ended { errors: "pmcstat: ERROR: Device busy".into(), ..Ended::default() };
        let dead = FakeProgram { answer: None, ended, ..FakeProgram::default() };
        host.programs.insert("pmcstat -c".into(), dead);
    });
    assert!(text.contains("somebody else samples that machine"), "{text}");
    let text = remarks(&|host| {
        host.outputs.insert("od -An".into(), String::new());
    });
    assert!(text.contains("no mark of the clock"), "{text}");
    let lost = "pmcstat: WARNING: at least 96 events were discarded while running.";
    assert_eq!(discarded(lost), Some(96));
    assert_eq!(discarded("pmcstat: WARNING: nothing"), None);
}

#[test]
fn counted_event_is_sampled() {
    let mut host = machine();
    host.outputs.insert("pmcstat -C".into(), "# s/00/unhalted-cycles\n    12345 \n".into());
    host.outputs.insert("sysctl -n".into(), "2400000000\n".into());
    let raw = profile(&host, &Sampling { frequency_hz: 2000, ..full() });
    assert_eq!(raw.event, "cycles");
    assert_eq!(raw.source, "pmcstat, unhalted-cycles every 1200000 events, frame pointers");
    assert_eq!(profhz(RATES), Some(8128));
    assert_eq!(profhz("nothing"), None);
}
