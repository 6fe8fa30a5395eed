//! Controllers that are killed while they take, hold and renew: processes of this test, which log
//! when they rely on which host.

use super::super::{HeldLease, LeaseState, Leases, Owner};
use super::{CLOCK, Ledger, directory};
use crate::host::LocalHost;
use crate::journal;
use fwdlab_netio::clock::boottime_ns;
use rand_xoshiro::Xoshiro256PlusPlus;
use rand_xoshiro::rand_core::{Rng, SeedableRng};
use std::collections::BTreeMap;
use std::fs;
use std::io::Write;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

/// Environment variable for a process of this test: directory of the hosts, and length of leases.
const HOLDER: &str = "FWDLAB_TEST_LEASE_HOLDER";
const HOSTS: [&str; 3] = ["dut", "receiver", "sender"];
/// Number of processes that compete for the hosts.
const HOLDERS: usize = 3;
/// Delay that a busy machine may add to a lease.
const SLACK: Duration = Duration::from_secs(30);
const MS: u64 = 1_000_000;

/// A process that takes all hosts repeatedly until it is killed.
#[test]
fn a_holder() {
    let Ok(arguments) = std::env::var(HOLDER) else { return };
    let (path, length_ms) = arguments.split_once('|').expect("a directory and a length");
    let length = Duration::from_millis(length_ms.parse().expect("a number"));
    // The owner is on a machine that other processes here cannot inspect.
    let process = journal::identity();
    let owner = Owner::named(format!("holder@nowhere:{process}:{process}"));
    let test = std::os::unix::process::parent_id();
    let mut log = fs::File::create(format!("{path}/log-{process}")).expect("a log");
    // Ends with the test, however the test ends.
    while std::os::unix::process::parent_id() == test {
        let hosts = HOSTS.map(|name| HeldLease {
            name: name.into(),
            host: Arc::new(LocalHost),
            ledger: Ledger::at(&format!("{path}/{name}"), CLOCK),
            standing: Mutex::new(LeaseState::Away),
        });
        let Ok(leases) = Leases::begin(owner.clone(), length, hosts.into(), Some("test")) else {
            std::thread::sleep(Duration::from_millis(20));
            continue;
        };
        // Some leases are released before they expire, some are held for several lengths.
        let until = boottime_ns() + (length.as_nanos() as u64) * (1 + boottime_ns() % 4);
        while boottime_ns() < until && std::os::unix::process::parent_id() == test {
            let now = boottime_ns();
            if leases.watch().lost().is_some() {
                break;
            }
            writeln!(log, "{now}").expect("written");
            std::thread::sleep(Duration::from_millis(2));
        }
    }
}

fn start(path: &str, length: Duration) -> Child {
    let program = std::env::current_exe().expect("this program");
    let mut command = Command::new(program);
    command.args(["--exact", "lease::tests::killed::a_holder", "--nocapture"]);
    command.env(HOLDER, format!("{path}|{}", length.as_millis()));
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    command.spawn().expect("a holder")
}

/// Times at which each process relied on the hosts, nanoseconds of CLOCK_BOOTTIME.
fn beats(path: &str) -> Vec<(u64, String)> {
    let mut beats = Vec::new();
    for entry in fs::read_dir(path).expect("a directory").flatten() {
        let name = entry.file_name().to_string_lossy().into_owned();
        if let Some(process) = name.strip_prefix("log-") {
            let text = fs::read_to_string(entry.path()).unwrap_or_default();
            // The last line of a killed process may be cut off.
            let whole = text.rsplit_once('\n').map_or("", |(whole, _)| whole);
            beats.extend(whole.lines().map(|line| (line.parse().expect("a time"), process.into())));
        }
    }
    beats.sort_unstable();
    beats
}

/// Current owner of each host according to its record.
fn owners(path: &str) -> Vec<Option<String>> {
    let owner = |name: &&str| {
        let seen = Ledger::at(&format!("{path}/{name}"), CLOCK).show(&LocalHost).expect("shown");
        seen.holder.filter(|holder| holder.left_s > 0.0).map(|holder| holder.owner)
    };
    HOSTS.iter().map(owner).collect()
}

#[test]
fn killed_holders_never_share_a_host_and_free_it_within_one_lease() {
    let number = |name: &str, default: u64| {
        std::env::var(name).ok().and_then(|text| text.parse().ok()).unwrap_or(default)
    };
    let kills = number("FWDLAB_TEST_LEASE_KILLS", 8);
    let length = Duration::from_millis(number("FWDLAB_TEST_LEASE_MS", 500));
    let path = directory("killed");
    fs::create_dir_all(&path).expect("a directory");
    let mut random = Xoshiro256PlusPlus::seed_from_u64(50);
    let mut holders: Vec<Child> = (0..HOLDERS).map(|_| start(&path, length)).collect();
    let (mut killed, mut freed_after) = (0, Vec::new());
    let begin = Instant::now();
    while killed < kills {
        assert!(begin.elapsed() < Duration::from_secs(60 + 5 * kills), "nobody takes the hosts");
        std::thread::sleep(Duration::from_millis(random.next_u64() % 400));
        // Current holders: in turn of all hosts, or of some of them while taking the rest.
        let owners_now = owners(&path);
        let pid = |owner: &str| owner.split(':').nth(1)?.split('-').next()?.parse::<u32>().ok();
        if killed % 2 == 0
            && owners_now.iter().any(|owner| owner.is_none() || *owner != owners_now[0])
        {
            continue;
        }
        let Some(victim) = owners_now.iter().flatten().find_map(|owner| pid(owner)) else {
            continue;
        };
        let Some(index) = holders.iter().position(|child| child.id() == victim) else { continue };
        holders[index].kill().expect("killed");
        holders[index].wait().expect("ended");
        killed += 1;
        let at = Instant::now();
        let is_theirs = |owner: &Option<String>| owner.as_deref().and_then(pid) == Some(victim);
        while owners(&path).iter().any(is_theirs) {
            assert!(at.elapsed() < length + SLACK, "{:?} after {:?}", owners(&path), at.elapsed());
            std::thread::sleep(Duration::from_millis(5));
        }
        freed_after.push(at.elapsed());
        holders[index] = start(&path, length);
    }
    for mut holder in holders {
        holder.kill().expect("killed");
        holder.wait().expect("ended");
    }
    let beats = beats(&path);
    // From the first to the last beat of a spell a process held all hosts: no other process has a
    // beat in between. A spell ends after a gap longer than a lease is relied on.
    let mut spells: BTreeMap<&str, Vec<(u64, u64)>> = BTreeMap::new();
    for (time, process) in &beats {
        let spells = spells.entry(process).or_default();
        match spells.last_mut() {
            Some((_, last)) if *time - *last < 60 * MS => *last = *time,
            _ => spells.push((*time, *time)),
        }
    }
    let mut all: Vec<(u64, u64, &str)> = spells
        .iter()
        .flat_map(|(process, spells)| spells.iter().map(|(from, to)| (*from, *to, *process)))
        .collect();
    all.sort_unstable();
    for pair in all.windows(2) {
        let [(_, to, process), (from, _, other)] = pair else { continue };
        assert!(process == other || to < from, "{process} until {to}, {other} from {from}");
    }
    let takers = all.windows(2).filter(|pair| pair[0].2 != pair[1].2).count();
    // How many depends on the machine's other work.
    assert!(takers > 0, "none of {kills} was followed by another");
    freed_after.sort_unstable();
    eprintln!(
        "{kills} holders killed, leases of {length:?}: {} spells of {} beats, none at once; free \
         after {:?} in the middle, {:?} at most",
        all.len(),
        beats.len(),
        freed_after[freed_after.len() / 2],
        freed_after[freed_after.len() - 1],
    );
    assert!(Path::new(&path).exists());
    fs::remove_dir_all(&path).ok();
}

/// One of many simultaneous takers gets a host that is new, was released or has expired.
#[test]
fn one_of_many_simultaneous_takers_gets_the_host() {
    let path = directory("many");
    let ledger = Ledger::at(&path, CLOCK);
    let take = |owner: &str, ms: u64| {
        let length = Duration::from_millis(ms);
        ledger.take(&LocalHost, owner, length, "", false).expect("an answer")
    };
    let mut winner = String::new();
    for round in 0..8 {
        match round % 4 {
            0 => drop(fs::remove_dir_all(&path)),
            1 => ledger.release(&LocalHost, &winner).expect("released"),
            // Expired.
            2 => drop(take(&winner, 0)),
            _ => drop((take(&winner, 0), take("other", 0))),
        }
        std::thread::sleep(Duration::from_millis(50));
        let taken: Vec<(super::Answer, String)> = std::thread::scope(|scope| {
            let takers = (0..24).map(|taker| {
                let (take, owner) = (&take, format!("taker-{round}-{taker}"));
                scope.spawn(move || (take(&owner, 100_000), owner))
            });
            let takers: Vec<_> = takers.collect();
            takers.into_iter().map(|taker| taker.join().expect("no panic")).collect()
        });
        let winners: Vec<&String> = taken
            .iter()
            .filter(|(answer, _)| *answer == super::Answer::Yours)
            .map(|(_, owner)| owner)
            .collect();
        let [one] = winners[..] else { panic!("round {round}: {taken:?}") };
        winner.clone_from(one);
        for (answer, _) in &taken {
            let is_winners = |owner: &str| owner == winner;
            match answer {
                super::Answer::Held(holder) => assert!(is_winners(&holder.owner), "{holder:?}"),
                answer => assert_eq!(*answer, super::Answer::Yours),
            }
        }
    }
    fs::remove_dir_all(&path).expect("clean");
}

/// A process that is delayed between checking and taking checks again, wherever the delay and
/// whatever happens during it.
#[test]
fn taker_delayed_after_checking_checks_again() {
    let path = directory("held-up");
    let tools = directory("held-up-tools");
    fs::create_dir_all(&tools).expect("a directory");
    let ledger = Ledger::at(&path, CLOCK);
    for program in ["cat", "ln"] {
        // The first one waits for the file `go`.
        let script = format!(
            "#!/bin/sh\nif mkdir \"{tools}/waits\" 2>/dev/null; then\n\
             until [ -e \"{tools}/go\" ]; do sleep 0.02; done; fi\n\
             PATH=/usr/bin:/bin exec {program} \"$@\"\n"
        );
        let tool = format!("{tools}/{program}");
        fs::write(&tool, script).expect("written");
        Command::new("chmod").args(["+x", &tool]).status().expect("executable");
        let slow = Ledger::at(&path, &format!("PATH={tools}:/usr/bin:/bin\n{CLOCK}"));
        for changes in [0, 1, 40] {
            let _ =
                (fs::remove_file(format!("{tools}/go")), fs::remove_dir(format!("{tools}/waits")));
            let take = |ledger: &Ledger, owner: &str, ms: u64| {
                let length = Duration::from_millis(ms);
                ledger.take(&LocalHost, owner, length, "", false).expect("an answer")
            };
            assert_eq!(take(&ledger, "old", 0), super::Answer::Yours);
            std::thread::sleep(Duration::from_millis(50));
            std::thread::scope(|scope| {
                let late = scope.spawn(|| take(&slow, "late", 100_000));
                let until = Instant::now() + Duration::from_secs(60);
                while !Path::new(&format!("{tools}/waits")).exists() {
                    assert!(Instant::now() < until, "{program} was never called");
                    std::thread::sleep(Duration::from_millis(5));
                }
                for _ in 0..changes {
                    assert_eq!(take(&ledger, "quick", 100_000), super::Answer::Yours);
                    ledger.release(&LocalHost, "quick").expect("released");
                }
                assert_eq!(take(&ledger, "quick", 100_000), super::Answer::Yours);
                fs::write(format!("{tools}/go"), "").expect("written");
                match late.join().expect("no panic") {
                    super::Answer::Held(holder) => assert_eq!(holder.owner, "quick"),
                    other => panic!("{program}, {changes}: {other:?}"),
                }
            });
            ledger.release(&LocalHost, "quick").expect("released");
        }
        fs::remove_file(&tool).expect("removed");
    }
    for directory in [path, tools] {
        fs::remove_dir_all(directory).ok();
    }
}
