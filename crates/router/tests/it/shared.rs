//! Tables that change while they are read.

use fwdlab_router::fib::{
    Address, BSearch, Batch, Dir24_8, Fib, Locked, Locking, Multibit, NextHop, Poptrie, Prefix,
    Radix, RadixLockless, Shared, Updated, V4, V6,
};
use fwdlab_router::path::Lookup;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

const UPDATES: u32 = 300;

fn hop(number: u32) -> NextHop {
    NextHop::new(number).expect("a number")
}

/// Three distant routes, in different parts of each table.
fn prefixes<A: Address>() -> [Prefix<A>; 3] {
    let place = |first: u128| A::from_bits(first << (A::BITS - 8));
    [(place(10), 8), (place(20), 20), (place(30), 30)]
        .map(|(a, length)| Prefix::containing(a, length))
}

/// A batch that sets the same next hop for all three.
fn round<A: Address>(number: u32) -> Batch<A> {
    prefixes().into_iter().map(|prefix| (prefix, hop(number))).collect()
}

/// Readers see complete rounds, and rounds never go back.
fn consistent<A: Address, F: Fib<A> + Clone>(fib: F) {
    let shared = Shared::new(fib);
    shared.update(&round(0));
    let done = AtomicBool::new(false);
    thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                let addresses = prefixes::<A>().map(Prefix::last);
                let mut newest = 0;
                while !done.load(Ordering::Relaxed) {
                    let fib = shared.read();
                    let single = addresses.map(|address| fib.lookup(address));
                    let mut batch = [None; 3];
                    fib.lookup_batch(&addresses, &mut batch);
                    assert_eq!(single, batch);
                    let [Some(first), Some(second), Some(third)] = single else {
                        panic!("a route is missing: {single:?}");
                    };
                    assert_eq!((first, second), (second, third), "parts of two rounds");
                    assert!(first.number() >= newest, "back from {newest} to {first:?}");
                    newest = first.number();
                }
            });
        }
        for number in 1..=UPDATES {
            shared.update(&round(number));
        }
        done.store(true, Ordering::Relaxed);
    });
    let last = shared.read().lookup(prefixes::<A>()[1].address());
    assert_eq!(last, Some(hop(UPDATES)));
}

#[test]
fn readers_see_updates_atomically() {
    consistent::<V4, _>(BSearch::new());
    consistent::<V4, _>(RadixLockless::new());
    consistent::<V4, _>(Poptrie::new());
    consistent::<V6, _>(Poptrie::new());
    consistent::<V6, _>(BSearch::new());
}

#[test]
fn readers_of_large_tables_see_old_or_new_next_hops() {
    // Copying 64 MB takes time: few rounds, and no reader waits.
    fn few<A: Address, F: Fib<A> + Clone>(fib: F) {
        let shared = Shared::new(fib);
        for number in 0..4 {
            let kept = shared.read();
            let before = kept.lookup(prefixes::<A>()[0].address());
            shared.update(&round(number));
            assert_eq!(
                kept.lookup(prefixes::<A>()[0].address()),
                before,
                "a guard stays as it was"
            );
            assert_eq!(shared.read().lookup(prefixes::<A>()[2].last()), Some(hop(number)));
        }
    }
    few::<V4, _>(Dir24_8::new());
    few::<V6, _>(Multibit::new());
}

#[test]
fn held_guard_causes_a_copy() {
    let shared = Shared::new(Poptrie::<V4>::new());
    assert_eq!(shared.update(&round(1)), Updated::InPlace);
    let kept = shared.read();
    assert_eq!(shared.update(&round(2)), Updated::InPlace, "the other table is free");
    assert_eq!(shared.update(&round(3)), Updated::Copied, "this one is read");
    drop(kept);
    assert_eq!(shared.update(&round(4)), Updated::InPlace);
    let mut gone = Batch::new();
    gone.remove(prefixes()[0]);
    shared.update(&gone);
    for _ in 0..3 {
        let found = prefixes::<V4>().map(|prefix| shared.read().lookup(prefix.address()));
        assert_eq!(found, [None, Some(hop(4)), Some(hop(4))], "in both tables");
        shared.update(&Batch::new());
    }
}

#[test]
fn locked_tree_supports_concurrent_updates() {
    let radix = Radix::<V4>::new();
    radix.update(&round(0));
    let done = AtomicBool::new(false);
    thread::scope(|scope| {
        scope.spawn(|| {
            let mut newest = 0;
            while !done.load(Ordering::Relaxed) {
                let found = radix.lookup(prefixes::<V4>()[2].last()).expect("never absent");
                assert!(found.number() >= newest);
                newest = found.number();
            }
        });
        for number in 1..=UPDATES {
            radix.update(&round(number));
        }
        done.store(true, Ordering::Relaxed);
    });
    assert_eq!(radix.len(), 3);
}

/// With any locking, a packet sees complete rounds, and never an older one again.
fn kept<A: Address>(locking: Locking)
where
    Locked<A, Poptrie<A>>: Lookup<A>,
{
    let table = Locked::new(Poptrie::<A>::new(), locking);
    table.update(&round(0));
    assert_eq!((table.locking(), table.memory_bytes() > 0), (locking, true));
    let done = AtomicBool::new(false);
    thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                let table: &dyn Lookup<A> = &table;
                let addresses = prefixes::<A>().map(Prefix::last);
                let mut newest = 0;
                while !done.load(Ordering::Relaxed) {
                    let mut found = [None; 3];
                    table.lookup_batch(&addresses, &mut found);
                    for next_hop in found {
                        let number = next_hop.expect("never absent").number();
                        assert!(number >= newest, "back from {newest} to {number}");
                        newest = number;
                    }
                    if locking == Locking::Lockless {
                        assert_eq!((found[0], found[1]), (found[1], found[2]));
                    }
                }
            });
        }
        for number in 1..=UPDATES {
            table.update(&round(number));
        }
        done.store(true, Ordering::Relaxed);
    });
    let mut found = [None; 2];
    let unknown = A::from_bits(1 << (A::BITS - 8));
    table.lookup_batch(&[prefixes::<A>()[1].address(), unknown], &mut found);
    assert_eq!(found, [Some(hop(UPDATES)), None]);
}

#[test]
fn all_lockings_agree_while_routes_change() {
    for locking in Locking::ALL {
        kept::<V4>(locking);
        kept::<V6>(locking);
    }
}
