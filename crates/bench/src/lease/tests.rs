//! Tests of the protocol: its sh scripts against a model, the model against a slow oracle over all
//! events, and processes that are killed while they hold a lease.

mod keeps;
mod killed;
mod model;

use super::script::{Answer, CLOCK, Ledger};
use crate::host::LocalHost;
use model::{Host as Model, Took};
use rand_xoshiro::Xoshiro256PlusPlus;
use rand_xoshiro::rand_core::{Rng, SeedableRng};
use std::time::Duration;

fn directory(purpose: &str) -> String {
    let path = std::env::temp_dir().join(format!("fwdlab-lease-{purpose}-{}", std::process::id()));
    let _ = std::fs::remove_dir_all(&path);
    path.display().to_string()
}

/// A clock set by a file: hundredths of a second, and the boot.
const SET: &str = "clock() { read -r now boot <\"$lock.clock\"; grain=2; }\n";

#[test]
fn scripts_match_the_model_for_any_clock() {
    let path = directory("model");
    let ledger = Ledger::at(&path, SET);
    let mut random = Xoshiro256PlusPlus::seed_from_u64(20261126);
    let mut below = |bound: u64| random.next_u64() % bound;
    let mut host = Model::default();
    let owners = ["ann", "bob", "eve"];
    let mut outcomes = std::collections::BTreeSet::new();
    for step in 0..220 {
        match below(12) {
            0 => host.boot(),
            1..=3 => host.now += below(400),
            _ => host.now += below(40),
        }
        let clock = format!("{} boot{}\n", host.now, host.boot);
        std::fs::write(format!("{path}.clock"), clock).expect("a clock");
        let (owner, length) = (owners[below(3) as usize], 50 + below(200));
        let gone = if below(8) == 0 { owners[below(3) as usize] } else { "" };
        let action = match below(8) {
            0 => {
                ledger.release(&LocalHost, owner).expect("released");
                host.release(owner);
                format!("{owner} released")
            }
            1 => {
                let record = ledger.show(&LocalHost).expect("shown");
                assert!(ledger.free(&LocalHost, &record.number).expect("freed") || host.is_new());
                assert!(!ledger.free(&LocalHost, &record.number).expect("not again"));
                host.free();
                "freed".to_owned()
            }
            kind => {
                let renew = kind > 5;
                let length_of = Duration::from_millis(length * 10);
                let answer = ledger.take(&LocalHost, owner, length_of, gone, renew);
                let outcome = match answer.expect("an answer") {
                    Answer::Yours => Took::Yours,
                    Answer::Held(holder) => {
                        Took::Held(holder.owner, (holder.left_s * 100.0).round() as u64)
                    }
                    Answer::Lost(owner) => Took::Lost(owner),
                };
                assert_eq!(outcome, host.take(owner, length, gone, renew), "step {step}: {host:?}");
                outcomes.insert(format!("{outcome:?}").chars().next());
                format!("{outcome:?}")
            }
        };
        let record = ledger.show(&LocalHost).expect("shown");
        let left = (host.left(), host.owner().map(str::to_owned));
        let shown = record.holder.map_or((0, None), |holder| {
            ((holder.left_s * 100.0).round() as u64, Some(holder.owner))
        });
        assert_eq!(shown, left, "step {step}, {action}: {host:?}");
    }
    assert_eq!(outcomes.len(), 3, "each answer was given");
    let files = std::fs::read_dir(&path).expect("there").count();
    assert!(files <= 9, "{files} files");
    std::fs::remove_dir_all(&path).ok();
    std::fs::remove_file(format!("{path}.clock")).ok();
}

/// `date` and `sysctl` of a machine whose wall clock is set by hours during a reading, once for
/// each file `jump`. FreeBSD's boot time moves by the same amount.
const JUMPING: &str = r#"jump() { rm "$tools/jump" 2>/dev/null || return 0
[ "$(cat "$tools/offset")" -gt 0 ] && offset=-18000 || offset=7200
echo "$offset" >"$tools/offset"; }
date() { jump; echo $(($(command date +%s) + $(cat "$tools/offset"))); }
sysctl() { case $2 in
kern.boot_id) echo b-1;;
*) echo "{ sec = $((1600000000 + $(cat "$tools/offset"))), usec = 5 } Sun Sep 13 12:26:40 2020";;
esac; }
"#;

#[test]
fn setting_the_wall_clock_changes_no_lease() {
    let path = directory("wall");
    std::fs::create_dir_all(&path).expect("a directory");
    let tools = format!("tools='{path}.tools'\n");
    std::fs::create_dir_all(format!("{path}.tools")).expect("a directory");
    std::fs::write(format!("{path}.tools/offset"), "0\n").expect("written");
    // With /proc as on Linux, and without.
    for (clock, grain_s) in [(CLOCK.to_owned(), 0.02), (CLOCK.replace("/proc/", "/no/"), 2.0)] {
        let ledger = Ledger::at(&path, &[&tools, JUMPING, &clock].concat());
        let take = |owner, renew| {
            std::fs::write(format!("{path}.tools/jump"), "").expect("written");
            ledger.take(&LocalHost, owner, Duration::from_secs(60), "", renew).expect("an answer")
        };
        let is_whole = |left_s: f64| (40.0..=60.0 + grain_s).contains(&left_s);
        assert_eq!(take("ann", false), Answer::Yours);
        for _ in 0..4 {
            let Answer::Held(holder) = take("bob", false) else { panic!("{clock}") };
            assert!(holder.owner == "ann" && is_whole(holder.left_s), "{holder:?}: {clock}");
            assert_eq!(take("ann", true), Answer::Yours);
        }
        ledger.release(&LocalHost, "ann").expect("released");
        assert_eq!(take("bob", false), Answer::Yours);
        ledger.release(&LocalHost, "bob").expect("released");
    }
    for directory in [path.clone(), format!("{path}.tools")] {
        std::fs::remove_dir_all(directory).ok();
    }
}
