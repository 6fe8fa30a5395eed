//! The lease of one host while others are unreachable or lost.

use super::super::{HeldLease, LeaseState, Leases, Owner};
use super::{CLOCK, Ledger, directory};
use crate::error::BenchError;
use crate::host::{Host, LocalHost, Running};
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// This machine behind a cable that can be unplugged.
#[derive(Default)]
struct Unpluggable(AtomicBool);

impl Host for Unpluggable {
    fn name(&self) -> &str {
        "unpluggable"
    }
    fn run(&self, argv: &[&str], stdin: &str) -> Result<String, BenchError> {
        match self.0.load(Ordering::Relaxed) {
            true => Err(BenchError::environment("no route to host", "plug it in")),
            false => LocalHost.run(argv, stdin),
        }
    }
    fn spawn(&self, argv: &[&str]) -> Result<Box<dyn Running>, BenchError> {
        LocalHost.spawn(argv)
    }
    fn put(&self, path: &str, text: &str) -> Result<(), BenchError> {
        LocalHost.put(path, text)
    }
    fn get(&self, path: &str) -> Result<String, BenchError> {
        LocalHost.get(path)
    }
    fn send_file(&self, from: &Path, to: &str) -> Result<(), BenchError> {
        LocalHost.send_file(from, to)
    }
}

#[test]
fn lease_of_one_host_is_kept_while_others_are_unreachable() {
    let path = directory("keeps");
    std::fs::create_dir_all(&path).expect("a directory");
    let cables = ["dut", "sender"].map(|name| (name, Arc::new(Unpluggable::default())));
    let ledger = |name: &str| Ledger::at(&format!("{path}/{name}"), CLOCK);
    let held = cables.clone().map(|(name, host)| HeldLease {
        name: name.into(),
        host,
        ledger: ledger(name),
        standing: Mutex::new(LeaseState::Away),
    });
    let length = Duration::from_secs(600);
    let leases = Leases::begin(Owner::named("ann".into()), length, held.into(), None);
    let leases = leases.unwrap_or_else(|error| panic!("{error}"));
    let unplug = |index: usize, is_out| cables[index].1.0.store(is_out, Ordering::Relaxed);
    unplug(1, true);
    assert!(leases.keeps("dut").expect("an answer"));
    leases.keeps("sender").expect_err("unreachable");
    // Also while the DUT boots.
    leases.away("dut");
    assert!(leases.keeps("dut").expect("an answer"));
    unplug(0, true);
    leases.keeps("dut").expect_err("unreachable");
    unplug(0, false);
    ledger("dut").release(&LocalHost, "ann").expect("released");
    ledger("dut").take(&LocalHost, "bob", length, "", false).expect("taken");
    assert!(!leases.keeps("dut").expect("an answer"));
    leases.away("dut");
    assert!(!leases.keeps("dut").expect("an answer"));
    drop(leases);
    std::fs::remove_dir_all(&path).ok();
}
