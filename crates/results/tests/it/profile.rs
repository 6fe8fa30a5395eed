//! Flame graphs and tables compared with golden files (`tests/golden/profile`). `UPDATE=1` rewrites
//! them; `KEEP_PNG=DIR` keeps the pictures for inspection.

use crate::golden::{golden, picture};
use fwdlab_results::document::{Document, form};
use fwdlab_results::profile::compare::{Grouping, Measured, compare};
use fwdlab_results::profile::draw::{Look, Side, difference, flame_graph};
use fwdlab_results::profile::functions::{SortKey, neighbours_in_stacks};
use fwdlab_results::profile::{Filter, FilteredProfile, KeptPart, Subsystems, document, read};

const BEFORE: &str = "\
swapper;do_idle;cpuidle_enter;acpi_idle_do_entry 480
swapper;do_idle;asm_common_interrupt;handle_softirqs;net_rx_action;veth_poll 40
swapper;do_idle;asm_common_interrupt;handle_softirqs;net_rx_action;veth_poll;memcpy 20
ksoftirqd/0;handle_softirqs;net_rx_action;veth_poll;ip_rcv;ip_forward 60
ksoftirqd/0;handle_softirqs;net_rx_action;veth_poll;ip_rcv;ip_forward.cold 4
ksoftirqd/0;handle_softirqs;net_rx_action;veth_poll;ip_rcv;nf_conntrack_in 110
ksoftirqd/0;handle_softirqs;net_rx_action;veth_poll;ip_rcv;nf_conntrack_in;_raw_spin_lock 90
ksoftirqd/0;handle_softirqs;net_rx_action;veth_poll;ip_rcv;fib_table_lookup 130
perf;read;ring_buffer_read 66
";

const AFTER: &str = "\
swapper;do_idle;cpuidle_enter;acpi_idle_do_entry 10
swapper;do_idle;asm_common_interrupt;handle_softirqs;net_rx_action;veth_poll 110
swapper;do_idle;asm_common_interrupt;handle_softirqs;net_rx_action;veth_poll;memcpy 55
ksoftirqd/0;handle_softirqs;net_rx_action;veth_poll;ip_rcv;ip_forward 170
ksoftirqd/0;handle_softirqs;net_rx_action;veth_poll;ip_rcv;fib_table_lookup 420
perf;read;ring_buffer_read 66
";

fn divided(text: &str) -> FilteredProfile {
    FilteredProfile::of(&read(text.as_bytes()).unwrap(), &Filter::default(), false)
}

fn look(title: &str, divided: &FilteredProfile, is_icicle: bool) -> Look {
    let subtitle = divided.summary.shares(false);
    Look { title: title.into(), subtitle, unit: "samples".into(), is_icicle }
}

#[test]
fn flame_graph_draws_flames_and_icicles() {
    let before = divided(BEFORE);
    let stacks = before.kept.to_stacks();
    assert_eq!(stacks.total(), 454);
    picture("profile/flames", &flame_graph(&stacks, &look("Before", &before, false)).unwrap());
    picture("profile/icicles", &flame_graph(&stacks, &look("Before", &before, true)).unwrap());
}

#[test]
fn difference_shows_costs_per_packet() {
    let (before, after) = (divided(BEFORE), divided(AFTER));
    let (a, b) = (before.kept.to_stacks(), after.kept.to_stacks());
    // Nearly twice the samples for three times the packets.
    let side = |stacks, packets: f64| Side { stacks, per_count: 1.0 / packets };
    let look = look("After less before, per packet", &after, false);
    let svg = difference(side(&a, 1e6), side(&b, 3e6), true, &look).unwrap();
    picture("profile/difference", &svg);
    // Most frames cost less, although they have more samples.
    let rises = svg.split("<title>").skip(1).filter(|title| title.contains("; +")).count();
    assert_eq!(rises, 1, "only fib_table_lookup costs more");
}

#[test]
fn profile_tables() {
    let (before, after) = (divided(BEFORE), divided(AFTER));
    let KeptPart::Stacks(stacks) = &before.kept else { panic!("no stacks") };
    let mut blocks = document::summary(&before.summary, "before");
    blocks.push(document::functions(&before, SortKey::Own, 4));
    blocks.push(document::functions(&before, SortKey::Total, 4));
    let subsystems = Subsystems::default().of_stacks(stacks);
    blocks.push(document::subsystems(&subsystems, before.kept.total(), 99));
    let around = neighbours_in_stacks(stacks, "veth_poll").unwrap();
    blocks.push(document::neighbours(&around, 9));
    let windows = |divided: &FilteredProfile, packets: f64| {
        let stacks = divided.kept.to_stacks();
        [0.99, 1.01].map(|f| Measured {
            stacks: stacks.clone(),
            packets: f * packets,
            per_count: 1.0,
        })
    };
    let changes = compare(&windows(&before, 1.0), &windows(&after, 3.0), Grouping::Own, 95.0);
    let unit = "samples per million packets";
    blocks.extend(document::changes(&changes.unwrap(), unit, "function", 9));
    let title = "Before and after".to_owned();
    let document = Document { title, conclusion: Vec::new(), blocks, data: &(), version: 1 };
    golden("profile/tables.txt", &form::text::render(&document, 80));
}
