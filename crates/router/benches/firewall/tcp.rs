//! Cost of TCP window tracking.

use super::{MACS, Path, ROUNDS, Run, spread, table};
use etherparse::PacketBuilder;
use fwdlab_router::firewall::text::read;
use fwdlab_router::firewall::{SharedFirewall, StateConfig};
use fwdlab_router::path::NoFirewall;

/// Initial sequence numbers of both sides.
const BEGIN: [u32; 2] = [1000, 5000];

/// Compares the labs in turns, at 2000 and at 200,000 connections.
pub(super) fn compare() {
    println!("million packets a second, and ratio to plain: medians (min to max)");
    for (sources, destinations) in [(20, 100), (2000, 100)] {
        let all = 0..sources * destinations;
        let ends: Vec<_> = all.map(|flow| ends(flow / destinations, flow % destinations)).collect();
        let acknowledgements: Vec<[u8; 60]> =
            ends.iter().map(|&ends| segment(ends, Step::Acknowledge).1).collect();
        let mut labs: Vec<(&str, Box<dyn Run>, Vec<f64>)> =
            vec![("plain", Path::boxed(NoFirewall, &table()), Vec::new())];
        for (name, rules) in
            [("windows", "pass in all keep state"), ("sloppy", "pass in all keep state (sloppy)")]
        {
            let config = StateConfig { seed: Some(1), ..StateConfig::default() };
            let rules = read(rules).expect("sound rules");
            let wall = SharedFirewall::new(&rules, &config).expect("sound rules");
            labs.push((name, Path::boxed(wall.filter(), &table()), Vec::new()));
        }
        for (_, run, _) in &mut labs {
            for step in [Step::Open, Step::Agree, Step::Acknowledge] {
                let packets: Vec<_> = ends.iter().map(|&ends| segment(ends, step)).collect();
                run.open(&packets);
            }
        }
        for _ in 0..ROUNDS {
            for (_, run, rates) in &mut labs {
                run.whole(&acknowledgements);
                rates.push(run.round(&acknowledgements));
            }
        }
        println!("{} connections", ends.len());
        let plain = labs[0].2.clone();
        for (name, run, rates) in &mut labs {
            let mut ratios: Vec<f64> = rates.iter().zip(&plain).map(|(a, b)| a / b).collect();
            let [low, median, high] = spread(rates).map(|rate| rate / 1e6);
            let [ratio_low, ratio, ratio_high] = spread(&mut ratios);
            println!(
                "  {name:20} {median:.1} ({low:.1} to {high:.1})   \
                 {ratio:.2} ({ratio_low:.2} to {ratio_high:.2})"
            );
            run.check();
        }
    }
}

/// Position of a segment in its connection.
#[derive(Clone, Copy)]
enum Step {
    Open,
    Agree,
    Acknowledge,
}

fn ends(source: u32, destination: u32) -> [[u8; 4]; 2] {
    let low = |base: u32, number: u32| (base + 2 + number).to_be_bytes();
    [low(0xc612_0000, source), low(0xc613_0000, destination)]
}

/// A segment, and the port at which it arrives.
fn segment([client, server]: [[u8; 4]; 2], step: Step) -> (u8, [u8; 60]) {
    let forth =
        |macs: [[u8; 6]; 2]| PacketBuilder::ethernet2(macs[0], macs[1]).ipv4(client, server, 64);
    let [ours, theirs] = BEGIN;
    let (port, builder) = match step {
        Step::Open => (0, forth([MACS[0], MACS[1]]).tcp(4000, 80, ours, 60_000).syn()),
        Step::Agree => {
            let back = PacketBuilder::ethernet2(MACS[3], MACS[2]).ipv4(server, client, 64);
            (1, back.tcp(80, 4000, theirs, 60_000).syn().ack(ours + 1))
        }
        Step::Acknowledge => {
            (0, forth([MACS[0], MACS[1]]).tcp(4000, 80, ours + 1, 60_000).ack(theirs + 1))
        }
    };
    let mut bytes = Vec::new();
    builder.write(&mut bytes, &[]).expect("a packet");
    bytes.resize(60, 0);
    (port, *bytes.first_chunk().expect("60 bytes"))
}
