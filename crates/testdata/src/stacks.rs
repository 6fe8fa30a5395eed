//! Flame graphs in the format of flamegraph.pl, of made-up stacks.

use crate::random::Random;
use std::collections::BTreeMap;
use std::fmt::Write as _;

/// Stacks of a router's kernel, from the root on, and their approximate numbers of samples. The
/// last one is too narrow for a rectangle, like the samples of a function in the first row.
const STACKS: &[(&str, u64)] = &[
    ("fork_exit;ithread_loop;t4_intr;service_iq_fl", 1_420_000),
    ("fork_exit;ithread_loop;t4_intr;service_iq_fl;get_fl_payload;m_get2", 230_000),
    ("fork_exit;ithread_loop;t4_intr;service_iq_fl;ether_input;ether_demux", 610_000),
    ("fork_exit;ithread_loop;t4_intr;service_iq_fl;ether_input;ether_demux;ip_input", 120_000),
    ("fork_exit;ithread_loop;t4_intr;service_iq_fl;ether_input;ip_tryforward", 2_040_000),
    ("fork_exit;ithread_loop;t4_intr;service_iq_fl;ether_input;ip_tryforward;fib4_lookup", 760_000),
    (
        "fork_exit;ithread_loop;t4_intr;service_iq_fl;ether_input;ip_tryforward;ether_output;mlx5e_xmit",
        1_910_000,
    ),
    (
        "fork_exit;ithread_loop;t4_intr;service_iq_fl;ether_input;ip_tryforward;ether_output;\
         mlx5e_xmit;m_free",
        340_000,
    ),
    ("fork_exit;ithread_loop;mlx5_cq_completion;m_free", 520_000),
    ("fork_exit;ithread_loop;mlx5_cq_completion;m_free;uma_zfree_arg", 180_000),
    ("fork_exit;sched_idletd;cpu_idle", 48_000),
    ("Xtimerint;lapic_handle_timer;hardclock", 21_000),
    ("fork_exit;ithread_loop;softclock", 70),
    ("Xapic_isr1", 310),
];

/// Geometry of flamegraph.pl: pixels.
const WIDTH: f64 = 1200.0;
const MARGIN: f64 = 10.0;
const ROW: usize = 16;
const NARROWEST: f64 = 0.1;

#[derive(Default)]
struct Node {
    count: u64,
    callees: BTreeMap<&'static str, Node>,
}

/// Returns a flame graph; the numbers depend on `name`.
pub(crate) fn flame_graph(name: &str) -> String {
    let mut random = Random::of(name);
    let mut all = Node::default();
    for &(stack, count) in STACKS {
        let count = count - count / 10 + random.below(count / 5 + 1);
        let mut node = &mut all;
        node.count += count;
        for function in stack.split(';') {
            node = node.callees.entry(function).or_default();
            node.count += count;
        }
    }
    let deepest = STACKS.iter().map(|(stack, _)| stack.split(';').count()).max().unwrap_or(0);
    let height = (deepest + 1) * ROW + 70;
    let mut svg = format!(
        "<?xml version=\"1.0\" standalone=\"no\"?>\n<svg version=\"1.1\" width=\"{WIDTH}\" \
         height=\"{height}\" viewBox=\"0 0 {WIDTH} {height}\" \
         xmlns=\"http://www.w3.org/2000/svg\">\n<text id=\"title\" x=\"600.00\" y=\"24\" >Flame \
         Graph</text>\n<g id=\"frames\">\n"
    );
    let scale = (WIDTH - 2.0 * MARGIN) / all.count as f64;
    draw(&mut svg, "all", &all, (MARGIN, height - 34 - ROW, scale), all.count);
    svg + "</g>\n</svg>\n"
}

fn draw(svg: &mut String, name: &str, node: &Node, geometry: (f64, usize, f64), all: u64) {
    let (left, top, scale) = geometry;
    let width = node.count as f64 * scale;
    if width < NARROWEST {
        return;
    }
    let (samples, share) = (grouped(node.count), 100.0 * node.count as f64 / all as f64);
    let share = if name == "all" { "100".to_owned() } else { format!("{share:.2}") };
    let _ = writeln!(
        svg,
        "<g >\n<title>{name} ({samples} samples, {share}%)</title><rect x=\"{left:.1}\" \
         y=\"{}\" width=\"{width:.1}\" height=\"15.0\" fill=\"rgb(240,171,38)\" rx=\"2\" ry=\"2\" \
         />\n<text  x=\"{:.2}\" y=\"{}.5\" ></text>\n</g>",
        top + 1,
        left + 3.0,
        top + 11,
    );
    let mut left = left;
    for (name, callee) in &node.callees {
        draw(svg, name, callee, (left, top - ROW, scale), all);
        left += callee.count as f64 * scale;
    }
}

/// Formats a number as `1,234,567`.
fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::new();
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}
