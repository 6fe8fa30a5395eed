//! Controllers that are killed while they take, hold and renew: processes of this test, which
//! write down when they rely on which host.

use super::super::{Held, Leases, Owner, Standing};
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

/// Says to a process of this test where the hosts are, and how long leases last.
const HOLDER: &str = "FWDLAB_TEST_LEASE_HOLDER";
const HOSTS: [&str; 3] = ["dut", "receiver", "sender"];
/// Processes that want the hosts.
const HOLDERS: usize = 3;
/// What a busy machine may add to a lease.
const SLACK: Duration = Duration::from_secs(5);
const MS: u64 = 1_000_000;

/// A process that takes all hosts again and again, for as long as it is let.
#[test]
fn a_holder() {
    let Ok(asked) = std::env::var(HOLDER) else { return };
    let (path, length_ms) = asked.split_once('|').expect("a directory and a length");
    let length = Duration::from_millis(length_ms.parse().expect("a number"));
    // It is of no machine that another here could look into.
    let process = journal::identity();
    let owner = Owner::named(format!("holder@nowhere:{process}:{process}"));
    let test = std::os::unix::process::parent_id();
    let mut log = fs::File::create(format!("{path}/log-{process}")).expect("a log");
    // It ends with the test, however that ends.
    while std::os::unix::process::parent_id() == test {
        let hosts = HOSTS.map(|name| Held {
            name: name.into(),
            host: Arc::new(LocalHost),
            ledger: Ledger::at(&format!("{path}/{name}"), CLOCK),
            standing: Mutex::new(Standing::Away),
        });
        let Ok(leases) = Leases::begin(owner.clone(), length, hosts.into(), Some("test")) else {
            std::thread::sleep(Duration::from_millis(20));
            continue;
        };
        // Some are given back before they end, some are held for several of their lengths.
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

/// When each process relied on the hosts, nanoseconds of CLOCK_BOOTTIME.
fn beats(path: &str) -> Vec<(u64, String)> {
    let mut beats = Vec::new();
    for entry in fs::read_dir(path).expect("a directory").flatten() {
        let name = entry.file_name().to_string_lossy().into_owned();
        if let Some(who) = name.strip_prefix("log-") {
            let text = fs::read_to_string(entry.path()).unwrap_or_default();
            // The last line of one that was killed may be cut off.
            let whole = text.rsplit_once('\n').map_or("", |(whole, _)| whole);
            beats.extend(whole.lines().map(|line| (line.parse().expect("a time"), who.into())));
        }
    }
    beats.sort_unstable();
    beats
}

/// Who has each host now, as its record says.
fn owners(path: &str) -> Vec<Option<String>> {
    let owner = |name: &&str| {
        let seen = Ledger::at(&format!("{path}/{name}"), CLOCK).show(&LocalHost).expect("shown");
        seen.holder.filter(|holder| holder.left_s > 0.0).map(|holder| holder.owner)
    };
    HOSTS.iter().map(owner).collect()
}

#[test]
fn of_killed_holders_no_host_is_held_twice_and_each_is_free_within_its_lease() {
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
        // Whoever holds something at this instant: in turn all, or some on the way to it.
        let held = owners(&path);
        let pid = |owner: &str| owner.split(':').nth(1)?.split('-').next()?.parse::<u32>().ok();
        if killed % 2 == 0 && held.iter().any(|owner| owner.is_none() || *owner != held[0]) {
            continue;
        }
        let Some(victim) = held.iter().flatten().find_map(|owner| pid(owner)) else { continue };
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
    // From its first beat of a spell to the last, a process had all hosts: no other beat lies
    // there. A spell ends where nothing was heard for longer than a lease is relied on.
    let mut spells: BTreeMap<&str, Vec<(u64, u64)>> = BTreeMap::new();
    for (time, who) in &beats {
        let spells = spells.entry(who).or_default();
        match spells.last_mut() {
            Some((_, last)) if *time - *last < 60 * MS => *last = *time,
            _ => spells.push((*time, *time)),
        }
    }
    let mut all: Vec<(u64, u64, &str)> = spells
        .iter()
        .flat_map(|(who, spells)| spells.iter().map(|(from, to)| (*from, *to, *who)))
        .collect();
    all.sort_unstable();
    for pair in all.windows(2) {
        let [(_, to, who), (from, _, other)] = pair else { continue };
        assert!(who == other || to < from, "{who} until {to}, {other} from {from}");
    }
    let takers = all.windows(2).filter(|pair| pair[0].2 != pair[1].2).count();
    assert!(takers as u64 >= kills / 4, "only {takers} of {kills} were followed by another");
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

/// Of many that come at once for a host that is new, was given back or left over, one has it.
#[test]
fn of_many_at_once_one_takes_it() {
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
            // Left over: its time is over.
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
        let had: Vec<&String> = taken
            .iter()
            .filter(|(answer, _)| *answer == super::Answer::Yours)
            .map(|(_, owner)| owner)
            .collect();
        let [one] = had[..] else { panic!("round {round}: {taken:?}") };
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

/// One that has looked and is held up before it takes, wherever and however much happens
/// meanwhile, looks again.
#[test]
fn who_is_held_up_between_looking_and_taking_looks_again() {
    let path = directory("held-up");
    let tools = directory("held-up-tools");
    fs::create_dir_all(&tools).expect("a directory");
    let ledger = Ledger::at(&path, CLOCK);
    for program in ["cat", "ln"] {
        // The first one waits until it is told to go on.
        let script = format!(
            "#!/bin/sh\nif mkdir \"{tools}/waits\" 2>/dev/null; then\n\
             until [ -e \"{tools}/go\" ]; do sleep 0.02; done; fi\n\
             PATH=/usr/bin:/bin exec {program} \"$@\"\n"
        );
        let tool = format!("{tools}/{program}");
        fs::write(&tool, script).expect("written");
        Command::new("chmod").args(["+x", &tool]).status().expect("executable");
        let slow = Ledger::at(&path, &format!("PATH={tools}:/usr/bin:/bin\n{CLOCK}"));
        for more in [0, 1, 40] {
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
                for _ in 0..more {
                    assert_eq!(take(&ledger, "quick", 100_000), super::Answer::Yours);
                    ledger.release(&LocalHost, "quick").expect("released");
                }
                assert_eq!(take(&ledger, "quick", 100_000), super::Answer::Yours);
                fs::write(format!("{tools}/go"), "").expect("written");
                match late.join().expect("no panic") {
                    super::Answer::Held(holder) => assert_eq!(holder.owner, "quick"),
                    other => panic!("{program}, {more}: {other:?}"),
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
