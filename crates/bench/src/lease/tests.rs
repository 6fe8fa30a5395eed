//! The protocol: its lines of sh against a model of them, the model against a slow oracle over
//! all that happened, and processes that are killed while they hold.

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

/// A clock that a file sets: hundredths of a second, and the boot.
const SET: &str = "clock() { read -r now boot <\"$lock.clock\"; grain=2; }\n";

#[test]
fn the_lines_of_sh_do_what_the_model_does_whatever_the_clock() {
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
        let said = match below(8) {
            0 => {
                ledger.release(&LocalHost, owner).expect("released");
                host.release(owner);
                format!("{owner} released")
            }
            1 => {
                let seen = ledger.show(&LocalHost).expect("shown");
                assert!(ledger.free(&LocalHost, &seen.number).expect("freed") || host.is_new());
                assert!(!ledger.free(&LocalHost, &seen.number).expect("not again"));
                host.free();
                "freed".to_owned()
            }
            kind => {
                let renew = kind > 5;
                let length_of = Duration::from_millis(length * 10);
                let answer = ledger.take(&LocalHost, owner, length_of, gone, renew);
                let told = match answer.expect("an answer") {
                    Answer::Yours => Took::Yours,
                    Answer::Held(holder) => {
                        Took::Held(holder.owner, (holder.left_s * 100.0).round() as u64)
                    }
                    Answer::Lost(owner) => Took::Lost(owner),
                };
                assert_eq!(told, host.take(owner, length, gone, renew), "step {step}: {host:?}");
                outcomes.insert(format!("{told:?}").chars().next());
                format!("{told:?}")
            }
        };
        let seen = ledger.show(&LocalHost).expect("shown");
        let left = (host.left(), host.owner().map(str::to_owned));
        let shown = seen.holder.map_or((0, None), |holder| {
            ((holder.left_s * 100.0).round() as u64, Some(holder.owner))
        });
        assert_eq!(shown, left, "step {step}, {said}: {host:?}");
    }
    assert_eq!(outcomes.len(), 3, "each answer was given");
    let files = std::fs::read_dir(&path).expect("there").count();
    assert!(files <= 9, "{files} files");
    std::fs::remove_dir_all(&path).ok();
    std::fs::remove_file(format!("{path}.clock")).ok();
}
