//! Operations of a laboratory on a real FreeBSD as its DUT: one machine for all of them, with
//! several pairs of cards. See `count` for the requirements; `lab` continues with it.

use super::lab::{self, TAPS};
use fwdlab_bench::BenchError;
use fwdlab_bench::dut::counters::Reading;
use fwdlab_bench::dut::freebsd::system::kernel_facts;
use fwdlab_bench::dut::freebsd::{counters, queues};
use fwdlab_bench::generator::{Generator, GeneratorHosts, Load, PktGen};
use fwdlab_bench::host::{Host, SshHost, SshSettings};
use fwdlab_bench::links::{Links, mac};
use fwdlab_bench::profiler::{Census, Pmcstat, Profiler, RawProfile};
use fwdlab_bench::trial::{Clock, SystemClock};
use fwdlab_model::profile::{Event, ProfilePlan};
use fwdlab_model::record::queues::{Direction, counter_name};
use fwdlab_model::record::{ProfileRecord, ProfileWindow};
use fwdlab_netio::tun;
use fwdlab_packet::address::{Side, flow_address};
use fwdlab_packet::{Family, Flows, FrameWriter, Phase, Stamp, Stream, Template};
use fwdlab_results::profile::{fold, of_dut, unfold};
use fwdlab_testdata::guests::freebsd_image;
use fwdlab_vm::forwarding::{GUEST_MACS, set_up};
use fwdlab_vm::freebsd::{Guest, Image};
use fwdlab_vm::guest::{self, Common, CountOptions, RunningGuest, System};
use fwdlab_vm::machine::{self, Accel, Backend, Model, Nic};
use fwdlab_vm::wire::Wire;
use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;
use std::os::fd::{AsRawFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// Minimum number of packets to send.
const FEWEST: u64 = 100;
/// Identity of the packets of [`Lab::send_over`].
const RUN: u32 = 1;
/// Maximum number of attempts at a profile with packets in its window.
const PROFILES: usize = 6;

/// A booted FreeBSD, and the other ends of its cables.
pub(super) struct Lab {
    /// Closes before the machine ends.
    pub(super) host: SshHost,
    pub(super) running: RunningGuest,
    /// Time until it answered.
    pub(super) booted_in: Duration,
    wires: [Wire; 2],
    /// Cables of cards of other models, with the guest's names for them.
    others: Vec<([&'static str; 2], [Wire; 2])>,
    /// The ends of `vtnet3` and `vtnet4`, which stay open while the machine is switched off and on.
    _taps: Vec<OwnedFd>,
    pub(super) directory: tempfile::TempDir,
}

impl Drop for Lab {
    fn drop(&mut self) {
        // The console is lost after a failure of the test.
        let console = self.directory.path().join("cache/console.log");
        if let Some(text) = std::fs::read(console).ok().filter(|_| std::thread::panicking()) {
            let text = String::from_utf8_lossy(&text);
            let lines: Vec<&str> = text.lines().rev().take(40).collect();
            eprintln!("the guest's last words:");
            lines.iter().rev().for_each(|line| eprintln!("  {line}"));
        }
    }
}

impl Lab {
    /// Boots it, with two of its interfaces on taps if there is a namespace for them.
    fn boot(image: &Path, has_taps: bool) -> Lab {
        let directory = tempfile::tempdir().expect("a directory");
        let cache = directory.path().join("cache");
        std::fs::create_dir(&cache).expect("a directory");
        let image = &Image::find(image, &cache).expect("an image");
        let machine_directory = machine::directory(directory.path(), 0).expect("a directory");
        let pair = |first| [first, first + 1].map(|number| Wire::new(number).expect("a socket"));
        let wires = pair(0);
        let taps = if has_taps { &TAPS[..] } else { &[] };
        let taps: Vec<OwnedFd> =
            taps.iter().flat_map(|name| tun::open(name, 1).expect("a tap")).collect();
        let ends_of_taps = taps.iter().map(|tap| Backend::Tap(vec![tap.as_raw_fd()])).collect();
        let others = vec![(["vmx0", "vmx1"], pair(2)), (["em0", "em1"], pair(4))];
        let ends = |wires: &[Wire; 2]| wires.each_ref().map(Wire::backend).to_vec();
        let mut nics = Vec::new();
        for (model, backends) in [
            (Model::Virtio, ends(&wires)),
            (Model::Virtio, ends_of_taps),
            (Model::Vmxnet3, ends(&others[0].1)),
            (Model::E1000, ends(&others[1].1)),
        ] {
            for (mac, backend) in GUEST_MACS.iter().zip(backends) {
                let mac = (*mac).to_owned();
                nics.push(Nic { model, mac, queues: 1, backend });
            }
        }
        let (accel, also, cache) = (Accel::Tcg, CountOptions::default(), cache.as_path());
        let log = "console.log";
        let common = Common { accel, cpus: 1, memory: 768, nics, also, cache, log };
        let began = Instant::now();
        let guest = Guest { image, kernel: None, common };
        let running = guest.boot(&machine_directory).unwrap_or_else(|error| panic!("{error}"));
        let booted_in = began.elapsed();
        let ssh = SshSettings {
            config: Some(PathBuf::from(&running.ssh_config)),
            deadline: Duration::from_secs(120),
            connect: Duration::from_secs(60),
            alive: Duration::from_secs(3600),
            one_shell: true,
            directory: Some(machine_directory),
            ..SshSettings::default()
        };
        let host = SshHost::connect(guest::NAME, ssh).unwrap_or_else(|error| panic!("{error}"));
        let lab = Lab { host, running, booted_in, wires, others, _taps: taps, directory };
        lab.set_up(lab.running.interfaces.each_ref().map(String::as_str), Family::Inet);
        lab
    }

    /// Makes it forward between two of its interfaces.
    fn set_up(&self, interfaces: [&str; 2], family: Family) {
        for command in set_up(System::FreeBsd, interfaces, family) {
            let argv: Vec<&str> = command.iter().map(String::as_str).collect();
            self.run(&argv);
        }
    }

    /// Reverses [`Lab::set_up`].
    fn take_down(&self, interfaces: [&str; 2]) {
        for interface in interfaces {
            self.sh(&format!(
                "route -qn flush -inet; for a in $(ifconfig {interface} inet | awk '/inet / {{ print $2 }}'); do \
                 ifconfig {interface} inet $a delete; done; ifconfig {interface} down"
            ));
        }
    }

    /// Its cables, by the address plan.
    fn links(&self) -> Links {
        let mut links = Links::of_namespaces();
        let [ingress, egress] = self.running.interfaces.clone();
        (links.ingress.interface, links.egress.interface) = (ingress, egress);
        links
    }

    fn run(&self, argv: &[&str]) -> String {
        self.host.run(argv, "").unwrap_or_else(|error| panic!("{error}"))
    }

    /// Output of sh(1) there.
    pub(super) fn sh(&self, script: &str) -> String {
        self.run(&["/bin/sh", "-c", script])
    }

    /// Sends packets for a time, a few simultaneously; returns the numbers sent and received.
    fn send(&self, time: Duration) -> (u64, u64) {
        Lab::send_over(&self.wires, Family::Inet, time)
    }

    /// An emulated card negotiates its link after its set-up, and drops packets until then.
    fn wait_for_link(&self, interface: &str) {
        let deadline = Instant::now() + Duration::from_secs(90);
        let status = || self.sh(&format!("ifconfig {interface}"));
        while !status().contains("status: active") {
            assert!(Instant::now() < deadline, "{}", status());
            std::thread::sleep(Duration::from_millis(100));
        }
    }

    /// Receives until a packet of the test arrives; false after `patience`. The guest's own
    /// packets (neighbour discovery, MLD) are ignored.
    fn receive_own(wire: &Wire, buffer: &mut [u8], patience: Duration) -> bool {
        let deadline = Instant::now() + patience;
        loop {
            let left = deadline.saturating_duration_since(Instant::now());
            let Some(length) = wire.receive(buffer, left).expect("a frame") else { return false };
            if Stamp::parse_frame(&buffer[..length]).is_some_and(|stamp| stamp.run_id == RUN) {
                return true;
            }
        }
    }

    /// Waits until packets pass: an interface may drop them while its addresses are tentative.
    fn wait_until_forwarding(wires: &[Wire; 2], family: Family) {
        let deadline = Instant::now() + Duration::from_secs(60);
        let mut passes = false;
        while !passes && Instant::now() < deadline {
            let (sent, came) = Lab::send_over(wires, family, Duration::ZERO);
            passes = came == sent;
        }
        assert!(passes, "no {family:?} packets pass");
        // Packets that were late.
        let mut buffer = vec![0; 2048];
        while Lab::receive_own(&wires[1], &mut buffer, Duration::from_millis(300)) {}
    }

    /// Sends for a time, and at least [`FEWEST`] packets: an emulated card may stall for longer.
    /// Returns the numbers sent and received.
    fn send_over(wires: &[Wire; 2], family: Family, time: Duration) -> (u64, u64) {
        let flows = Flows { sources: 1, destinations: 8 };
        let from = [0x02, 0x00, 0xc6, 0x12, 0x01, 0x01];
        let to = [0x02, 0x00, 0xc6, 0x12, 0x00, 0x01];
        let size = Template::smallest_frame(family);
        let template = Template::new(&Stream::new(family, size, flows), RUN, from, to);
        let writer = &mut FrameWriter::new(template, 0);
        let mut frame = vec![0; writer.frame_length()];
        writer.prepare(&mut frame);
        let (mut sent, mut came, mut buffer) = (0, 0, vec![0; 2048]);
        let deadline = Instant::now() + time;
        while came == sent && (Instant::now() < deadline || sent <= FEWEST) {
            for _ in 0..8 {
                writer.write_next(&mut frame, Phase::Window, 0);
                wires[0].send(&frame).expect("QEMU takes it");
                sent += 1;
            }
            let patience = Duration::from_secs(if time.is_zero() { 5 } else { 30 });
            while came < sent && Lab::receive_own(&wires[1], &mut buffer, patience) {
                came += 1;
            }
        }
        (sent, came)
    }

    /// A profile of traffic, folded as in a store, with the packets that came out. On a busy
    /// machine an emulated card may stall permanently: it is set up again, and the profile is
    /// repeated.
    fn profile(&self, plan: &ProfilePlan) -> (RawProfile, ProfileRecord, String) {
        for _ in 0..PROFILES {
            let found = self.profile_once(plan);
            // A card that stalled leaves few samples of its traffic.
            let is_whole = |window: &ProfileWindow| {
                window.forwarded > FEWEST && window.forwarded == window.offered
            };
            if found.1.windows.iter().all(is_whole) {
                return found;
            }
            eprintln!("{:?}\n{}", found.1.windows, self.sh("netstat -idn; vmstat -i; arp -an"));
            let interfaces = self.running.interfaces.each_ref().map(String::as_str);
            self.take_down(interfaces);
            self.set_up(interfaces, Family::Inet);
            interfaces.iter().for_each(|interface| self.wait_for_link(interface));
        }
        panic!("no packets in {PROFILES} windows")
    }

    fn profile_once(&self, plan: &ProfilePlan) -> (RawProfile, ProfileRecord, String) {
        let clock = || SystemClock.now_ns();
        let file = Path::new("/var/tmp/fwdlab-perf.data");
        let mut profiler = Box::new(Pmcstat::prepare(&self.host, &clock, &plan.into(), &[0], file));
        self.send(Duration::from_millis(300));
        profiler.start();
        let from_ns = clock();
        let (offered, forwarded) = self.send(Duration::from_nanos(plan.duration_ns));
        let to_ns = clock();
        profiler.stop();
        let raw = profiler.finish();
        let record = ProfileRecord {
            event: raw.event.clone(),
            cpus: vec![0],
            windows: vec![ProfileWindow { from_ns, to_ns, offered, forwarded }],
            ..ProfileRecord::default()
        };
        let mut stored = fold(record, &raw.text);
        (raw, stored.record, stored.windows.remove(0))
    }
}

#[test]
fn real_freebsd_supports_all_operations_of_a_laboratory() {
    let Some(image) = freebsd_image() else { return };
    let space = lab::Space::enter();
    let mut lab = Lab::boot(&image, space.is_some());
    check_packet_counters(&lab);
    check_profile(&lab);
    check_pkt_gen(&lab);
    check_inet6_counters(&lab);
    lab.take_down(["vtnet1", "vtnet2"]);
    check_other_cards(&lab);
    if space.is_some() {
        lab::lives_through_experiments(&mut lab, &image);
    }
}

/// The same interfaces have both families; packets other than IPv4 are counted separately.
fn check_inet6_counters(lab: &Lab) {
    lab.set_up(["vtnet1", "vtnet2"], Family::Inet6);
    Lab::wait_until_forwarding(&lab.wires, Family::Inet6);
    let read = || counters::read(&lab.host, &lab.links()).expect("counters");
    let before = read();
    let (sent, came) = Lab::send_over(&lab.wires, Family::Inet6, Duration::from_millis(500));
    assert_eq!(came, sent, "a few at once are not lost");
    assert!(sent > FEWEST, "{sent}");
    let after = read();
    let more = |name: &str| after[name] - before[name];
    assert_eq!(more("ip6 ForwDatagrams"), sent, "{after:#?}");
    assert_eq!(more("vtnet1 rx_packets"), sent, "{after:#?}");
    // Packets for ssh are local.
    assert_eq!(more("ip ForwDatagrams"), 0, "{after:#?}");
}

/// QEMU's vmxnet3 and e1000, each with its own pair of cards.
fn check_other_cards(lab: &Lab) {
    for (interfaces, wires) in &lab.others {
        lab.set_up(*interfaces, Family::Inet);
        for interface in interfaces {
            lab.wait_for_link(interface);
        }
        Lab::wait_until_forwarding(wires, Family::Inet);
        let before = lab.sh(&format!("netstat -I {} -bdnW", interfaces[0]));
        let (sent, came) = Lab::send_over(wires, Family::Inet, Duration::from_millis(500));
        let after = lab.sh(&format!("netstat -I {} -bdnW", interfaces[0]));
        assert_eq!(came, sent, "{interfaces:?}: {before}\n{after}");
        assert!(sent > FEWEST, "{interfaces:?}: {sent}");
        let packets = |text: &str| {
            let found = counters::interface_counters(interfaces[0], text);
            found.iter().find(|(name, _)| name.ends_with("rx_packets")).expect("a count").1
        };
        assert_eq!(packets(&after) - packets(&before), sent, "{interfaces:?}");
        lab.take_down(*interfaces);
    }
}

/// Packet counts of queues, interfaces and protocols equal the packets sent; checks also the
/// kernel's options.
fn check_packet_counters(lab: &Lab) {
    let links = &lab.links();
    let read = || {
        let mut reading = counters::read(&lab.host, links).expect("counters");
        reading.extend(queues::packets(&lab.host, "vtnet1"));
        reading.extend(queues::packets(&lab.host, "vtnet2"));
        reading
    };
    Lab::wait_until_forwarding(&lab.wires, Family::Inet);
    let before = read();
    let (sent, came) = lab.send(Duration::from_millis(500));
    assert_eq!(came, sent, "a few at once are not lost");
    let after = read();
    let more = |name: &str| {
        let of = |reading: &Reading| {
            let found = reading.get(name);
            *found.unwrap_or_else(|| panic!("{name} is not in {reading:#?}"))
        };
        of(&after) - of(&before)
    };
    assert_eq!(more("vtnet1 rx_packets"), sent);
    assert_eq!(more(&counter_name("vtnet1", Direction::Receive, 0)), sent);
    assert_eq!(more("ip ForwDatagrams"), sent);
    // vtnet(4) counts sent packets when it sends the next ones: the last ones are counted later,
    // and earlier ones and the guest's own (ARP) now.
    for name in ["vtnet2 tx_packets".to_owned(), counter_name("vtnet2", Direction::Transmit, 0)] {
        assert!(more(&name).abs_diff(sent) <= 64, "{name}: {} of {sent}", more(&name));
    }
    assert_eq!(more("netisr ip dropped"), 0);
    let facts: BTreeMap<String, String> = kernel_facts(&lab.host).into_iter().collect();
    assert_eq!(facts["kernel file"], "/boot/kernel/kernel");
    assert_eq!(facts["kernel ident"], "FWDLAB");
    assert!(facts["kernel options"].contains("FIB_ALGO"), "{facts:?}");
}

/// Both ends of pkt-gen run in the guest; this process is the cable between them.
fn check_pkt_gen(lab: &Lab) {
    const RATE: f64 = 400.0;
    let stream = Stream::new(Family::Inet, 64, Flows { sources: 2, destinations: 3 });
    // The MAC of vtnet2, which accepts no other.
    let (source_mac, next_hop_mac) = (mac::INGRESS, [0x02, 0x00, 0xc6, 0x12, 0x00, 0x02]);
    let template = Template::new(&stream, 7, source_mac, next_hop_mac);
    let load = Load {
        template,
        stream,
        source_mac,
        next_hop_mac,
        rate_pps: Some(RATE),
        at_most: Duration::from_secs(600),
    };
    let ends = GeneratorHosts {
        sender: &lab.host,
        sender_interface: "vtnet1".into(),
        sender_cpus: vec![0],
        receiver: &lab.host,
        receiver_interface: "vtnet2".into(),
        receiver_cpus: vec![0],
        server: None,
        options: Vec::new(),
    };
    let mut generator = PktGen::new(ends).patience(Duration::from_secs(120));
    generator.prepare(&load).unwrap_or_else(|error| panic!("{error}"));
    generator.start().unwrap_or_else(|error| panic!("{error}"));
    // The cable is read all the time: it holds ten frames, and packets in the ring of a pkt-gen
    // that ends are lost.
    let (wires, carried, is_over) = (&lab.wires, AtomicU64::new(0), AtomicBool::new(false));
    let carry = || {
        let (mut addresses, mut buffer) = (BTreeSet::new(), vec![0; 2048]);
        while !is_over.load(Ordering::Relaxed) {
            let patience = Duration::from_millis(50);
            let Some(length) = wires[0].receive(&mut buffer, patience).expect("a frame") else {
                continue;
            };
            // Other packets of the guest on this cable are not pkt-gen's.
            if buffer[12..14] == [0x08, 0x00] && buffer[23] == 17 {
                assert_eq!(length, 60, "64 bytes with the FCS");
                assert_eq!(buffer[..12], [&next_hop_mac[..], &source_mac[..]].concat());
                addresses.insert(buffer[26..34].to_vec());
                wires[1].send(&buffer[..length]).expect("QEMU takes it");
                carried.fetch_add(1, Ordering::Relaxed);
            }
        }
        addresses
    };
    let count = || carried.load(Ordering::Relaxed);
    let (ran, addresses) = std::thread::scope(|scope| {
        let cable = scope.spawn(carry);
        // Without a panic, which would wait for the cable for ever.
        let mut run = || {
            let deadline = Instant::now() + Duration::from_secs(120);
            while count() < 1600 && Instant::now() < deadline {
                std::thread::sleep(Duration::from_millis(100));
            }
            let under_way = generator.counted()?;
            generator.stop()?;
            let mut before = None;
            while before != Some(count()) {
                before = Some(count());
                std::thread::sleep(Duration::from_secs(2));
            }
            Ok::<_, BenchError>((under_way, generator.finish()?))
        };
        let ran = run();
        is_over.store(true, Ordering::Relaxed);
        (ran, cable.join().expect("the cable"))
    });
    let (under_way, outcome) = ran.unwrap_or_else(|error| panic!("{error}"));
    let passed = count();
    assert!(under_way.sent > 0, "reports come while packets flow: {under_way:?}");
    eprintln!("{passed} passed: {outcome:#?}");
    assert!(passed > 100, "{outcome:#?}");
    let counted = outcome.counted;
    assert_eq!(counted.received, passed, "{outcome:#?}");
    // The last ones may be in its ring when it ends.
    assert!((passed..=passed + 32).contains(&counted.sent), "{passed}: {outcome:#?}");
    let octets = |side, index| match flow_address(Family::Inet, side, index) {
        IpAddr::V4(address) => address.octets().to_vec(),
        IpAddr::V6(_) => panic!("no inet"),
    };
    let expected: BTreeSet<Vec<u8>> = (0..stream.flows.sources)
        .flat_map(|source| {
            (0..stream.flows.destinations).map(move |destination| (source, destination))
        })
        .map(|(source, destination)| {
            [octets(Side::Sender, source), octets(Side::Receiver, destination)].concat()
        })
        .collect();
    assert!(addresses.is_subset(&expected), "{addresses:?} of {expected:?}");
    // It begins at a full second, and no earlier packets are missing.
    assert!(outcome.remarks.iter().all(|r| !r.contains("did not move")), "{outcome:#?}");
    assert!(counted.unsent < passed, "{outcome:#?}");
    assert!(outcome.facts["pkt-gen sender version"].contains("pkt-gen.c"), "{outcome:#?}");
    assert!(outcome.remarks.iter().all(|remark| !remark.contains("complained")), "{outcome:#?}");
}

/// Samples of the kernel's clock, by function, during the traffic only; everything is restored.
fn check_profile(lab: &Lab) {
    let state = "kldstat | awk '{print $NF}'; kenv | grep hwpmc; ls -A /var/tmp; ls -A /var/db/fwdlab 2>/dev/null";
    let before = lab.sh(&format!("{state}; true"));
    // The half second before, and the drain, are outside the window.
    let plan = ProfilePlan { duration_ns: 3_000_000_000, ..ProfilePlan::default() };
    let (raw, record, folded) = lab.profile(&plan);
    eprintln!("{} {:?} {:?}", raw.source, raw.remarks, record.windows);
    assert_eq!(raw.event, "clock.prof", "{:?}", raw.remarks);
    // If an emulated machine shares its CPUs with other work, a program starts slowly.
    let expected = ["counts no cycles", "times of samples are known to"];
    assert!(
        raw.remarks.iter().all(|remark| expected.iter().any(|words| remark.contains(words))),
        "{:?}",
        raw.remarks
    );
    let census = Census::of(&raw.text);
    // 2032 per second are requested of a machine that may be short of time itself.
    assert!(census.samples > 300, "{census:?}");
    assert!(!census.lacks_symbols(), "{census:?}");
    let stacks = unfold(&folded);
    let inside = stacks.total() as f64 / census.samples as f64;
    eprintln!("{census:?} {inside}");
    assert!(inside > 0.95, "{inside} of the samples are in the window");
    let work = of_dut(std::slice::from_ref(&stacks)).split(&stacks).work.folded();
    for function in ["ip_tryforward", "vtnet_rx_vq_process", "ether_output", "kernel/"] {
        assert!(work.contains(function), "{function} is not in {work}");
    }
    assert!(record.remarks.is_empty(), "{:?}", record.remarks);
    let after = lab.sh(&format!("{state}; true"));
    assert_eq!(after, before);
    // An event that cannot be counted there is reported, and the clock used instead.
    let plan = ProfilePlan { event: Event::Cycles, duration_ns: 1_000_000_000, ..plan };
    let (raw, ..) = lab.profile(&plan);
    assert_eq!(raw.event, "clock.prof");
    assert!(raw.remarks[0].contains("cycles can't be sampled"), "{:?}", raw.remarks);
}
