//! Packets a second from memory to memory, one core: a generator writes headers into
//! frames, a ring carries them to the router, another to a sink. Frames of 64 bytes
//! with FCS, 2000 flows, tables of 2 and of 1,000,000 routes in rounds that take
//! turns, every check and rewrite done. What the generator and the rings take is
//! part of the figure.

use fwdlab_packet::template::{FlowRange, Template};
use fwdlab_packet::{Family, FrameWriter, Phase};
use fwdlab_port::affinity;
use fwdlab_port::frame::{BATCH, Batch};
use fwdlab_port::ring::{Consumer, Producer, ring};
use fwdlab_router::fib::{Dir24_8, Fib, NextHop, Poptrie, Radix, V4};
use fwdlab_router::path::{
    Class, Config, Counters, Interface, Lookup, Neighbour, Neighbours, NoFirewall, Router,
};
use fwdlab_router::routes::synthesis::{Synthesis, synthesise};
use std::sync::Arc;
use std::time::{Duration, Instant};

const ROUNDS: usize = 15;
const ROUND: Duration = Duration::from_millis(200);
const FLOWS: FlowRange = FlowRange { sources: 20, destinations: 100 };
const MACS: [[u8; 6]; 4] = [[2; 6], [4; 6], [6; 6], [8; 6]];

fn main() {
    let cpus = affinity::allowed_cpus().expect("CPUs");
    affinity::pin_thread(&cpus[cpus.len() - 1..]).expect("a CPU that is allowed");
    let mut labs = [
        Lab::new("2 routes, dir24_8", table(Dir24_8::new(), 2)),
        Lab::new("2 routes, poptrie", table(Poptrie::new(), 2)),
        Lab::new("1,000,000 routes, dir24_8", table(Dir24_8::new(), 1_000_000)),
        Lab::new("1,000,000 routes, poptrie", table(Poptrie::new(), 1_000_000)),
    ];
    for _ in 0..ROUNDS {
        labs.iter_mut().for_each(Lab::round);
    }
    println!("million packets a second: median (min to max)");
    for lab in &mut labs {
        let snapshot = lab.counters.read();
        assert_eq!(snapshot.total(Class::Forwarded), snapshot.received(), "all is forwarded");
        lab.rates.sort_by(f64::total_cmp);
        let [low, median, high] = [0, ROUNDS / 2, ROUNDS - 1].map(|at| lab.rates[at] / 1e6);
        println!("  {:28} {median:.1} ({low:.1} to {high:.1})", lab.name);
    }
}

/// Two routes, and others up to `routes`.
fn table<F: Fib<V4>>(mut fib: F, routes: usize) -> Arc<F> {
    let wanted = Synthesis { inet: routes - 2, inet6: 0, next_hops: 1, seed: 1 };
    fib.apply(&synthesise(&wanted).inet.into_iter().collect());
    for (prefix, number) in [("198.18.0.0/16", 1), ("198.19.0.0/16", 0)] {
        let next_hop = NextHop::new(number).expect("a number");
        fib.insert(prefix.parse().expect("a prefix"), next_hop);
    }
    Arc::new(fib)
}

/// Generator, router and sink.
struct Lab {
    name: &'static str,
    frames: Vec<Vec<u8>>,
    next: usize,
    router: Router,
    counters: Arc<Counters>,
    wires: [(Producer, Consumer); 2],
    batches: [Batch; 3],
    rates: Vec<f64>,
}

impl Lab {
    fn new(name: &'static str, inet: Arc<dyn Lookup<V4>>) -> Lab {
        let template = Template::new(Family::Inet, 64, FLOWS, 1, MACS[0], MACS[1]);
        let mut writer = FrameWriter::new(template, 0);
        let mut frame = vec![0; writer.frame_length()];
        writer.prepare(&mut frame);
        let frames = (0..FLOWS.count()).map(|_| {
            writer.write_next(&mut frame, Phase::Window, 0);
            frame.clone()
        });
        let frames = frames.collect();
        let interface = |mac| Interface { mac, mtu: 1500, addresses: Vec::new() };
        let mut neighbours = Neighbours::new();
        for (number, port, mac) in [(0, 1, MACS[3]), (1, 0, MACS[0])] {
            let next_hop = NextHop::new(number).expect("a number");
            neighbours.set(next_hop, Neighbour { port, mac }).expect("a low number");
        }
        let interfaces = vec![interface(MACS[1]), interface(MACS[2])];
        let config = Config { interfaces, neighbours, ..Config::default() };
        let counters = Counters::new(1);
        let tally = counters.tally(0).expect("a worker");
        let inet6 = Arc::new(Radix::new());
        let router = Router::new(&config, inet, inet6, NoFirewall, tally).expect("a router");
        let (wires, batches) = ([ring(2), ring(2)], [(); 3].map(|()| Batch::new()));
        Lab { name, frames, next: 0, router, counters, wires, batches, rates: Vec::new() }
    }

    fn round(&mut self) {
        let begin = Instant::now();
        let (mut sunk, mut elapsed) = (0, Duration::ZERO);
        while elapsed < ROUND {
            for _ in 0..256 {
                sunk += self.step();
            }
            elapsed = begin.elapsed();
        }
        self.rates.push(sunk as f64 / elapsed.as_secs_f64());
    }

    /// One batch all the way; returns the frames that arrived.
    fn step(&mut self) -> usize {
        let [generated, routed, sunk] = &mut self.batches;
        let [(into, from), (out, end)] = &mut self.wires;
        for frame in generated.fill(BATCH) {
            frame.receive(0, &self.frames[self.next]).expect("it fits");
            self.next = (self.next + 1) % self.frames.len();
        }
        into.send(generated);
        from.receive(routed);
        self.router.process(routed.frames_mut(), 0);
        self.router.flush();
        out.send(routed);
        end.receive(sunk);
        sunk.frames().iter().filter(|frame| frame.egress() == Some(1)).count()
    }
}
