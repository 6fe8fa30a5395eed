//! Cost of the firewall: packets per second from memory to memory, one core, as in `path.rs`, with
//! each kind of rules and states compared with no firewall, at 2000 and at 1,000,000 flows. Frames
//! of 64 bytes with FCS, IPv4, UDP, two routes; every flow has its state before the first round.
//! The labs take turns, and each round is compared with the adjacent round of the plain router.
//!
//! With `tcp`, packets are acknowledgements of TCP connections, which measures the cost of window
//! tracking: `keep state` tracks windows, `keep state (sloppy)` does not. With `workers`, one and
//! two workers of one router, each on its own CPU with half of the flows, share a table and the
//! states.
//!
//! With names of labs as arguments, only these take turns, for longer. With the name of one lab, a
//! number of sources and a number of batches, the benchmark only sends these batches between that
//! number of sources and destinations: for valgrind, which counts instructions and misses. The
//! difference between two numbers of batches excludes the set-up.

#[path = "firewall/tcp.rs"]
mod tcp;
#[path = "firewall/workers.rs"]
mod workers;

use fwdlab_netio::affinity;
use fwdlab_netio::frame::{BATCH, Batch};
use fwdlab_netio::ring::{Consumer, Producer, ring};
use fwdlab_packet::Flows;
use fwdlab_packet::{Family, FrameWriter, Phase};
use fwdlab_packet::{Stream, Template};
use fwdlab_router::fib::{Dir24_8, Fib, NextHop, Radix, Shared, V4};
use fwdlab_router::firewall::{Ruleset, SharedFirewall, Standard, StateConfig, StateTable};
use fwdlab_router::path::{
    Class, Config, Counters, Firewall, Interface, Lookup, Neighbour, Neighbours, NoFirewall, Router,
};
use std::sync::Arc;
use std::time::{Duration, Instant};

const ROUNDS: usize = 15;
const ROUND: Duration = Duration::from_millis(100);
const MACS: [[u8; 6]; 4] = [[2; 6], [4; 6], [6; 6], [8; 6]];

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).filter(|a| a != "--bench").collect();
    if let [name, ends, batches] = &arguments[..]
        && let (Ok(ends), Ok(batches)) = (ends.parse(), batches.parse())
    {
        return count(name, ends, batches);
    }
    let cpus = affinity::allowed_cpus().expect("CPUs");
    if arguments == ["workers"] {
        return workers::compare(&cpus);
    }
    affinity::pin_thread(&cpus[cpus.len() - 1..]).expect("a CPU that is allowed");
    if arguments == ["tcp"] {
        return tcp::compare();
    }
    println!("million packets a second, and ratio to plain: medians (min to max)");
    for (sources, destinations) in [(20, 100), (1000, 1000)] {
        let flows = Flows { sources, destinations };
        let frames = frames(flows);
        let mut labs = labs();
        let all = labs.len();
        labs.retain(|lab| arguments.is_empty() || arguments.iter().any(|name| name == lab.name));
        for lab in &mut labs {
            lab.run.whole(&frames);
        }
        for _ in 0..ROUNDS * all / labs.len().max(1) {
            for lab in &mut labs {
                // Warms the caches, so that they are as in steady traffic rather than after a
                // pause.
                lab.run.whole(&frames);
                lab.rates.push(lab.run.round(&frames));
            }
        }
        println!("{} flows", flows.count());
        let plain = labs[0].rates.clone();
        for lab in &mut labs {
            let mut ratios: Vec<f64> = lab.rates.iter().zip(&plain).map(|(a, b)| a / b).collect();
            let [low, median, high] = spread(&mut lab.rates);
            let [ratio_low, ratio, ratio_high] = spread(&mut ratios);
            let rates = format!("{:.1} ({:.1} to {:.1})", median / 1e6, low / 1e6, high / 1e6);
            let ratios = format!("{ratio:.2} ({ratio_low:.2} to {ratio_high:.2})");
            let stats = lab.wall.as_ref().map(|wall| wall.stats()).unwrap_or_default();
            let memory = stats.memory_bytes as f64 / (1 << 20) as f64;
            let states = stats.states;
            println!("  {:20} {rates:22} {ratios:22} {states} states, {memory:.1} MiB", lab.name);
            lab.run.check();
        }
    }
}

/// Sends every flow once, then `batches` batches.
fn count(name: &str, ends: u32, batches: usize) {
    let frames = frames(Flows { sources: ends, destinations: ends });
    let lab = labs().into_iter().find(|lab| lab.name == name);
    let mut run = lab.expect("the name of a lab").run;
    run.whole(&frames);
    run.batches(&frames, batches);
    run.check();
}

fn spread(values: &mut [f64]) -> [f64; 3] {
    values.sort_by(f64::total_cmp);
    [values[0], values[values.len() / 2], values[values.len() - 1]]
}

struct Lab {
    name: &'static str,
    run: Box<dyn Run>,
    wall: Option<Arc<SharedFirewall>>,
    rates: Vec<f64>,
}

fn labs() -> Vec<Lab> {
    use Standard::{Rules, Stateful, Stateless};
    let plain = Path::boxed(NoFirewall, &table());
    let mut labs = vec![Lab { name: "plain", run: plain, wall: None, rates: Vec::new() }];
    for (name, standard, kind) in [
        ("none", Standard::None, StateTable::None),
        ("stateless", Stateless, StateTable::None),
        ("100 rules", Rules(100), StateTable::None),
        ("stateful none", Stateful, StateTable::None),
        ("stateful global", Stateful, StateTable::Global),
        ("stateful sharded", Stateful, StateTable::Sharded),
        ("stateful per_worker", Stateful, StateTable::PerWorker),
        ("stateful uncached", Stateful, StateTable::Sharded),
    ] {
        // Value of the flow cache when it has room for all flows.
        let flow_cache = name != "stateful uncached";
        let config = StateConfig { kind, flow_cache, seed: Some(1), ..StateConfig::default() };
        let wall = SharedFirewall::new(&Ruleset::standard(standard), &config).expect("sound rules");
        let run = Path::boxed(wall.filter(), &table());
        labs.push(Lab { name, run, wall: Some(wall), rates: Vec::new() });
    }
    labs
}

/// The frames of all flows, 60 bytes each.
fn frames(flows: Flows) -> Vec<[u8; 60]> {
    let template = Template::new(&Stream::new(Family::Inet, 64, flows), 1, MACS[0], MACS[1]);
    let mut writer = FrameWriter::new(template, 0);
    let mut frame = vec![0; writer.frame_length()];
    writer.prepare(&mut frame);
    let frames = (0..flows.count()).map(|_| {
        writer.write_next(&mut frame, Phase::Window, 0);
        *frame.first_chunk().expect("64 bytes with FCS")
    });
    frames.collect()
}

/// Path of any lab.
trait Run: Send {
    /// Sends packets in at ports, in order.
    fn open(&mut self, packets: &[(u8, [u8; 60])]);
    /// Sends every flow once.
    fn whole(&mut self, frames: &[[u8; 60]]);
    /// Sends this many batches; returns the number of frames that arrived.
    fn batches(&mut self, frames: &[[u8; 60]], batches: usize) -> usize;
    /// Returns packets per second.
    fn round(&mut self, frames: &[[u8; 60]]) -> f64;
    /// Asserts that all packets were forwarded.
    fn check(&self);
}

/// Generator, router and sink.
struct Path<W> {
    next: usize,
    begin: Instant,
    router: Router<W>,
    counters: Arc<Counters>,
    wires: [(Producer, Consumer); 2],
    batches: [Batch; 3],
}

/// Routes to both sides.
fn table() -> Arc<dyn Lookup<V4>> {
    let mut inet = Dir24_8::new();
    for (prefix, number) in [("198.19.0.0/16", 0), ("198.18.0.0/16", 1)] {
        let next_hop = NextHop::new(number).expect("a number");
        inet.insert(prefix.parse().expect("a prefix"), next_hop);
    }
    Arc::new(Shared::new(inet))
}

impl<W: Firewall + 'static> Path<W> {
    fn boxed(firewall: W, inet: &Arc<dyn Lookup<V4>>) -> Box<dyn Run> {
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
        let router = Router::new(&config, Arc::clone(inet), inet6, firewall, tally);
        let router = router.expect("a router");
        let (wires, batches) = ([ring(2), ring(2)], [(); 3].map(|()| Batch::new()));
        Box::new(Path { next: 0, begin: Instant::now(), router, counters, wires, batches })
    }

    /// Passes one batch end to end; returns the number of frames that arrived.
    fn step(&mut self, frames: &[[u8; 60]]) -> usize {
        let [generated, routed, sunk] = &mut self.batches;
        let [(into, from), (out, end)] = &mut self.wires;
        for frame in generated.fill(BATCH) {
            frame.receive(0, &frames[self.next]).expect("it fits");
            self.next = (self.next + 1) % frames.len();
        }
        into.send(generated);
        from.receive(routed);
        let now_ns = self.begin.elapsed().as_nanos() as u64;
        self.router.process(routed.frames_mut(), now_ns);
        self.router.flush();
        out.send(routed);
        end.receive(sunk);
        sunk.frames().iter().filter(|frame| frame.egress() == Some(1)).count()
    }
}

impl<W: Firewall + 'static> Run for Path<W> {
    fn open(&mut self, packets: &[(u8, [u8; 60])]) {
        for packets in packets.chunks(BATCH) {
            let [batch, ..] = &mut self.batches;
            for (frame, (port, packet)) in batch.fill(packets.len()).iter_mut().zip(packets) {
                frame.receive(*port, packet).expect("it fits");
            }
            let now_ns = self.begin.elapsed().as_nanos() as u64;
            self.router.process(batch.frames_mut(), now_ns);
            self.router.flush();
        }
    }

    fn whole(&mut self, frames: &[[u8; 60]]) {
        self.batches(frames, frames.len().div_ceil(BATCH));
    }

    fn batches(&mut self, frames: &[[u8; 60]], batches: usize) -> usize {
        (0..batches).map(|_| self.step(frames)).sum()
    }

    fn round(&mut self, frames: &[[u8; 60]]) -> f64 {
        let begin = Instant::now();
        let (mut sunk, mut elapsed) = (0, Duration::ZERO);
        while elapsed < ROUND {
            sunk += self.batches(frames, 256);
            elapsed = begin.elapsed();
        }
        sunk as f64 / elapsed.as_secs_f64()
    }

    fn check(&self) {
        let snapshot = self.counters.read();
        assert_eq!(snapshot.total(Class::Forwarded), snapshot.received(), "all is forwarded");
    }
}
