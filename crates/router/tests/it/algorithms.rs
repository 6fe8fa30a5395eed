//! Compares every table with the simplest one, and with another project's (prefix-trie 0.10.1),
//! after any changes.

use fwdlab_router::fib::{
    Address, Auto, BSearch, Batch, Change, Dir24_8, Fib, Multibit, NextHop, Poptrie, Prefix, Radix,
    RadixLockless, Rib, V4, V6,
};
use prefix_trie::PrefixMap;
use proptest::prelude::*;

/// Creates every algorithm, empty.
trait Tables: Address {
    fn tables() -> Vec<(&'static str, Box<dyn Fib<Self>>)>;
}

impl Tables for V4 {
    fn tables() -> Vec<(&'static str, Box<dyn Fib<V4>>)> {
        let mut tables = common();
        tables.push(("dir24_8", Box::new(Dir24_8::new())));
        tables
    }
}

impl Tables for V6 {
    fn tables() -> Vec<(&'static str, Box<dyn Fib<V6>>)> {
        let mut tables = common();
        tables.push(("multibit", Box::new(Multibit::new())));
        tables
    }
}

fn common<A: Address>() -> Vec<(&'static str, Box<dyn Fib<A>>)> {
    vec![
        ("radix", Box::new(Radix::new())),
        ("radix_lockless", Box::new(RadixLockless::new())),
        ("bsearch", Box::new(BSearch::new())),
        ("poptrie", Box::new(Poptrie::new())),
        ("auto", Box::new(Auto::new())),
    ]
}

/// The simplest table: a list, searched linearly.
#[derive(Default)]
struct Naive<A>(Vec<(Prefix<A>, NextHop)>);

impl<A: Address> Naive<A> {
    fn apply(&mut self, batch: &Batch<A>) {
        for change in batch.changes() {
            self.0.retain(|(prefix, _)| *prefix != change.prefix());
            if let Change::Insert(prefix, next_hop) = *change {
                self.0.push((prefix, next_hop));
            }
        }
    }

    fn lookup(&self, address: A) -> Option<NextHop> {
        let containing = self.0.iter().filter(|(prefix, _)| prefix.contains(address));
        containing.max_by_key(|(prefix, _)| prefix.length()).map(|&(_, next_hop)| next_hop)
    }
}

/// Addresses, many of which share long prefixes.
fn address<A: Address>() -> impl Strategy<Value = A> {
    let clustered = (0..4_u128, 0..4_u128, 0..=A::BITS, any::<u128>()).prop_map(
        |(first, second, length, rest)| {
            let top = A::BITS as u32 - 8;
            let near = A::from_bits(first << top | second << (top - 12) | (rest & 0b11));
            let host = A::default().last(length).to_bits() & rest;
            if rest % 3 == 0 { A::from_bits(near.to_bits() ^ host) } else { near }
        },
    );
    prop_oneof![4 => clustered, 1 => any::<u128>().prop_map(A::from_bits)]
}

fn prefix<A: Address>() -> impl Strategy<Value = Prefix<A>> {
    // The default route is rare, so that the 64 MB table is not rewritten all the time.
    let length = prop_oneof![1 => Just(0), 80 => 8..=A::BITS];
    (address::<A>(), length).prop_map(|(address, length)| Prefix::containing(address, length))
}

/// Few numbers, and some around the end of 16 bits, to which tables shorten them.
fn number() -> impl Strategy<Value = u32> {
    prop_oneof![8 => 0..6_u32, 1 => 65_532..65_538_u32]
}

fn batches<A: Address>() -> impl Strategy<Value = Vec<Batch<A>>> {
    let change =
        (prefix::<A>(), proptest::option::weighted(0.7, number())).prop_map(|(prefix, number)| {
            match number.and_then(NextHop::new) {
                Some(next_hop) => Change::Insert(prefix, next_hop),
                None => Change::Remove(prefix),
            }
        });
    let batch = proptest::collection::vec(change, 1..60).prop_map(Batch::from_iter);
    proptest::collection::vec(batch, 1..6)
}

/// Addresses at the edges of all prefixes, where errors are likely.
fn edges<A: Address>(batches: &[Batch<A>]) -> Vec<A> {
    let prefixes = batches.iter().flat_map(Batch::changes).map(Change::prefix);
    let mut edges = vec![A::default(), A::default().last(0)];
    for prefix in prefixes {
        let (first, last) = (prefix.address(), prefix.last());
        let before = A::from_bits(first.to_bits().wrapping_sub(1));
        edges.extend([first, last, before, last.next().unwrap_or_default()]);
    }
    edges
}

/// Applies the batches in turn to every table, which must agree with the list after each one:
/// single lookups, batch lookups, number of routes, exact routes.
fn all_agree<A: Tables>(batches: &[Batch<A>], others: &[A]) -> Result<(), TestCaseError> {
    let mut naive = Naive(Vec::new());
    let mut tables = A::tables();
    let mut rib = Rib::new();
    let addresses: Vec<A> = edges(batches).into_iter().chain(others.iter().copied()).collect();
    for batch in batches {
        naive.apply(batch);
        rib.apply(batch);
        let expected: Vec<_> = addresses.iter().map(|&address| naive.lookup(address)).collect();
        for (name, table) in &mut tables {
            table.apply(batch);
            prop_assert_eq!(table.len(), naive.0.len(), "{}", name);
            let mut found = vec![None; addresses.len()];
            table.lookup_batch(&addresses, &mut found);
            for (at, &address) in addresses.iter().enumerate() {
                prop_assert_eq!(table.lookup(address), expected[at], "{} of {}", name, address);
                prop_assert_eq!(found[at], expected[at], "{} of {} in a batch", name, address);
            }
            for change in batch.changes() {
                let exact = naive.0.iter().find(|(prefix, _)| *prefix == change.prefix());
                prop_assert_eq!(table.get(change.prefix()), exact.map(|&(_, next_hop)| next_hop));
            }
        }
        for (at, &address) in addresses.iter().enumerate() {
            let found = rib.longest(address, A::BITS).map(|(_, next_hop)| next_hop);
            prop_assert_eq!(found, expected[at], "rib of {}", address);
        }
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, ..ProptestConfig::default() })]

    #[test]
    fn all_tables_agree_with_a_list_inet(
        batches in batches::<V4>(), others in proptest::collection::vec(address::<V4>(), 50),
    ) {
        all_agree(&batches, &others)?;
    }

    #[test]
    fn all_tables_agree_with_a_list_inet6(
        batches in batches::<V6>(), others in proptest::collection::vec(address::<V6>(), 50),
    ) {
        all_agree(&batches, &others)?;
    }

    #[test]
    fn all_tables_agree_with_prefix_trie(
        batches in batches::<V4>(), others in proptest::collection::vec(address::<V4>(), 200),
    ) {
        let mut tables = V4::tables();
        let mut theirs: PrefixMap<(u32, u8), NextHop> = PrefixMap::new();
        for batch in &batches {
            for change in batch.changes() {
                let prefix = (change.prefix().address().0, change.prefix().length());
                match *change {
                    Change::Insert(_, next_hop) => theirs.insert(prefix, next_hop),
                    Change::Remove(_) => theirs.remove(&prefix),
                };
            }
            for (name, table) in &mut tables {
                table.apply(batch);
                for address in others.iter().copied().chain(edges(&batches)) {
                    let found = theirs.get_lpm(&(address.0, 32)).map(|(_, next_hop)| *next_hop);
                    prop_assert_eq!(table.lookup(address), found, "{} of {}", name, address);
                }
            }
        }
    }
}

/// One route of each length, nested, removed from either end.
fn every_length<A: Tables>(address: A) {
    let next_hop = |length: u8| NextHop::new(u32::from(length) * 4000).expect("a number");
    for (name, mut table) in A::tables() {
        for length in (0..=A::BITS).rev() {
            let prefix = Prefix::containing(address, length);
            assert_eq!(table.insert(prefix, next_hop(length)), None, "{name}");
        }
        assert_eq!(table.len(), usize::from(A::BITS) + 1, "{name}");
        for length in 0..=A::BITS {
            // The address that leaves the nested prefixes right after this length.
            let bit = 1_u128.checked_shl(u32::from(A::BITS - length).wrapping_sub(1)).unwrap_or(0);
            let leaving = A::from_bits(address.to_bits() ^ bit);
            assert_eq!(table.lookup(leaving), Some(next_hop(length)), "{name}, {length} bits");
        }
        for length in (0..=A::BITS).rev() {
            assert_eq!(table.lookup(address), Some(next_hop(length)), "{name}");
            let prefix = Prefix::containing(address, length);
            assert_eq!(table.remove(prefix), Some(next_hop(length)), "{name}");
            assert_eq!(table.remove(prefix), None, "{name}: it is gone");
        }
        assert_eq!((table.lookup(address), table.len()), (None, 0), "{name}");
        assert!(table.is_empty());
    }
}

#[test]
fn nested_prefixes_of_every_length_are_found_and_restored() {
    for address in [0, 0x0a01_0203, u32::MAX] {
        every_length(V4(address));
    }
    for address in [0, 0x2001_0db8_0001_0002_0003_0004_0005_0006, u128::MAX] {
        every_length(V6(address));
    }
}

#[test]
fn batches_of_any_length_get_complete_results() {
    for (name, mut table) in V4::tables() {
        table.insert(Prefix::containing(V4(10 << 24), 8), NextHop::new(3).expect("a number"));
        for length in 0..70_u32 {
            let addresses: Vec<V4> = (0..length).map(|n| V4((n % 20) << 24)).collect();
            let mut found = vec![NextHop::new(99); addresses.len()];
            table.lookup_batch(&addresses, &mut found);
            for (address, found) in addresses.iter().zip(found) {
                let expected = NextHop::new(3).filter(|_| address.0 >> 24 == 10);
                assert_eq!(found, expected, "{name}: {address} of {length}");
            }
        }
    }
}
