//! Tests the parsers of FreeBSD's outputs with texts generated from known values, and with random
//! text, which must not cause a panic.

use super::hp;
use crate::counters::Reading;
use crate::freebsd::apply::{self, Interface};
use crate::freebsd::system::Boot;
use crate::freebsd::{counters, interrupts, plan, queues, rc};
use proptest::prelude::*;
use proptest::test_runner::{Config, RngAlgorithm, TestRng, TestRunner};
use std::fmt::Write;
use std::net::{Ipv4Addr, Ipv6Addr};

fn runner(cases: u32) -> TestRunner {
    let rng = TestRng::from_seed(RngAlgorithm::ChaCha, &[23; 32]);
    TestRunner::new_with_rng(Config { cases, ..Config::default() }, rng)
}

#[test]
fn parsers_do_not_panic_on_random_text() {
    let words = "(irq|[0-9]{1,3}|:|<Link#1>|Name|Ipkts|cxl0|inet6?|netmask|0x|options=|<|>|,|permanent|sec = |=|\"|'|\\\\|\n|\t| |é|[ -~]){0,30}";
    runner(4000)
        .run(&words, |text| {
            Interface::parse(&text);
            interrupts::parse(&text);
            counters::interface_counters("cxl0", &text);
            counters::json_counters("ip", &text);
            counters::text_counters("ip", &text);
            counters::cpu_times(&text);
            queues::driver(&text);
            for format in [rc::Format::Rc, rc::Format::Loader, rc::Format::Sysctl] {
                prop_assert_eq!(rc::Document::parse(format, &text).text(), text.as_str());
            }
            for path in ["/etc/rc.conf", "/boot/loader.conf", "/etc/pf.conf"] {
                plan::at_boot(path, Some(&text), &hp());
            }
            Ok(())
        })
        .expect("no panic");
}

#[test]
fn impossible_values_are_dropped_or_saturated() {
    let addresses = "inet ::1 netmask 0xffffff00\ninet6 198.18.0.1 prefixlen 24\n\
                     inet6 2001:2::1 prefixlen 129\n";
    assert_eq!(Interface::parse(addresses).addresses, []);
    let table = "198.18.0.0/33 198.18.0.2\n198.19.0.0/16 198.19.0.2\n2001:2::/129 2001:2::2\n";
    assert_eq!(apply::routing_table(table).len(), 1);
    let json = r#"{"statistics":{"ip":{"dropped-bad-checksum":18446744073709551615,
        "dropped-bad-version":1}}}"#;
    assert_eq!(counters::json_counters("ip", json), [("ip InHdrErrors".to_owned(), u64::MAX)]);
    let first = Boot(i64::MIN.to_string());
    assert!(first.is(&first.0) && !first.is("1") && !first.is(&i64::MAX.to_string()));
}

#[test]
fn counters_read_back_from_json_and_text() {
    let values = prop::collection::vec(0..1_u64 << 62, counters::NAMES.len());
    // The shift keeps the sum of all header errors within 64 bits.
    let values = values.prop_map(|values| values.iter().map(|v| v >> 4).collect::<Vec<u64>>());
    runner(500)
        .run(&values, |values| {
            let (mut expected, mut json, mut text) = (Reading::new(), Vec::new(), String::new());
            for ((name, fields, sentence), value) in counters::NAMES.iter().zip(&values) {
                *expected.entry(format!("ip6 {name}")).or_default() += value;
                json.push(format!("\"{}\":{value}", fields[fields.len() - 1]));
                let many = ["packet", "datagram", "checksum"].iter().fold(
                    (*sentence).to_owned(),
                    |text, word| {
                        // Only counted nouns take the plural.
                        text.replacen(
                            word,
                            &format!("{word}s"),
                            usize::from(!text.contains("ip packet")),
                        )
                    },
                );
                let _ = writeln!(text, "\t{value} {}", if *value == 1 { sentence } else { &*many });
            }
            let json = format!("{{\"statistics\":{{\"ip6\":{{{}}}}}}}", json.join(","));
            let expected: Vec<_> = expected.into_iter().collect();
            prop_assert_eq!(&counters::json_counters("ip6", &json), &expected);
            prop_assert_eq!(&counters::text_counters("ip6", &text), &expected);
            Ok(())
        })
        .expect("alike");
}

#[test]
fn interfaces_and_interrupts_read_back() {
    let case = (any::<u32>(), 0..33_u8, any::<u128>(), 0..129_u8, any::<u64>(), 0..4096_u32);
    runner(1000)
        .run(&case, |(inet, length, inet6, length6, total, irq)| {
            let (inet, inet6) = (Ipv4Addr::from(inet), Ipv6Addr::from(inet6));
            let mask = u32::MAX.checked_shl(32 - u32::from(length)).unwrap_or(0);
            let text = format!(
                "cxl0: flags=8843<UP> metric 0 mtu 1500\n\tinet {inet} netmask {mask:#010x} \
                 broadcast 0.0.0.0\n\tinet6 {inet6} prefixlen {length6}\n"
            );
            let found = Interface::parse(&text).addresses;
            prop_assert_eq!(found, [(inet.into(), length), (inet6.into(), length6)]);
            let line = format!("irq{irq}: igb1:que 3 {total:>20} {:>10}\n", total / 7);
            let expected = [(irq, "igb1:que 3".to_owned(), total)];
            prop_assert_eq!(interrupts::parse(&line), expected);
            Ok(())
        })
        .expect("read back");
}
