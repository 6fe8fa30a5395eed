//! What a laboratory does with a FreeBSD as its DUT, tried on a real one: one boot for all
//! of it. See `freebsd` for what it needs.

use super::freebsd::image;
use fwdlab_bench::host::{Host, SshHost, SshSettings};
use fwdlab_bench::profiler::{Census, Pmcstat, Profiler, RawProfile};
use fwdlab_bench::trial::{Clock, SystemClock};
use fwdlab_model::profile::{Event, ProfilePlan};
use fwdlab_model::record::{ProfileRecord, ProfileWindow};
use fwdlab_packet::{Family, Flows, FrameWriter, Phase, Template};
use fwdlab_results::profile::{fold, of_dut, unfold};
use fwdlab_vm::forwarding::{GUEST_MACS, set_up};
use fwdlab_vm::freebsd::{Guest, Image};
use fwdlab_vm::guest::{self, Running, System};
use fwdlab_vm::machine::{self, Accel, Model, Nic};
use fwdlab_vm::wire::Wire;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// A FreeBSD that is up, and the other ends of its cables.
struct Lab {
    /// Closes before the machine ends.
    host: SshHost,
    _running: Running,
    wires: [Wire; 2],
    _directory: tempfile::TempDir,
}

impl Lab {
    fn boot(image: &Path) -> Lab {
        let directory = tempfile::tempdir().expect("a directory");
        let cache = directory.path().join("cache");
        std::fs::create_dir(&cache).expect("a directory");
        let image = &Image::find(image, &cache).expect("an image");
        let own = machine::directory(directory.path(), 0).expect("a directory");
        let wires = [0, 1].map(|number| Wire::bind(&own, number).expect("a socket"));
        let nics = GUEST_MACS.iter().zip(&wires).map(|(&mac, wire)| Nic {
            model: Model::Virtio,
            mac: mac.to_owned(),
            queues: 1,
            gathers: false,
            backend: wire.backend(),
        });
        let (nics, accel, cache) = (nics.collect(), Accel::Tcg, cache.as_path());
        let guest = Guest { image, kernel: None, accel, cpus: 1, memory: 512, nics, cache };
        let running = guest.boot(&own).unwrap_or_else(|error| panic!("{error}"));
        wires.iter().for_each(|wire| wire.connect().expect("QEMU's end"));
        let ssh = SshSettings {
            config: Some(PathBuf::from(&running.ssh_config)),
            deadline: Duration::from_secs(120),
            connect: Duration::from_secs(60),
            alive: Duration::from_secs(3600),
            one_shell: true,
            directory: Some(own),
            ..SshSettings::default()
        };
        let host = SshHost::connect(guest::NAME, ssh).unwrap_or_else(|error| panic!("{error}"));
        let interfaces = running.interfaces.each_ref().map(String::as_str);
        for command in set_up(System::FreeBsd, interfaces, Family::Inet) {
            let argv: Vec<&str> = command.iter().map(String::as_str).collect();
            host.run(&argv, "").unwrap_or_else(|error| panic!("{error}"));
        }
        Lab { host, _running: running, wires, _directory: directory }
    }

    fn run(&self, argv: &[&str]) -> String {
        self.host.run(argv, "").unwrap_or_else(|error| panic!("{error}"))
    }

    /// What sh(1) prints there.
    fn sh(&self, script: &str) -> String {
        self.run(&["/bin/sh", "-c", script])
    }

    /// Sends packets for a time, a few at once; returns how many, and how many came out.
    fn send(&self, time: Duration) -> (u64, u64) {
        let flows = Flows { sources: 1, destinations: 8 };
        let from = [0x02, 0x00, 0xc6, 0x12, 0x01, 0x01];
        let to = [0x02, 0x00, 0xc6, 0x12, 0x00, 0x01];
        let template = Template::new(Family::Inet, 64, flows, 1, from, to);
        let writer = &mut FrameWriter::new(template, 0);
        let mut frame = vec![0; writer.frame_length()];
        writer.prepare(&mut frame);
        let (mut sent, mut came, mut buffer) = (0, 0, vec![0; 2048]);
        let deadline = Instant::now() + time;
        while Instant::now() < deadline {
            for _ in 0..8 {
                writer.write_next(&mut frame, Phase::Window, 0);
                self.wires[0].send(&frame).expect("QEMU takes it");
                sent += 1;
            }
            let patience = Duration::from_millis(200);
            while came < sent
                && self.wires[1].receive(&mut buffer, patience).expect("a frame").is_some()
            {
                came += 1;
            }
        }
        (sent, came)
    }

    /// A profile of traffic, folded as a store keeps it, with the packets that came out.
    fn profile(&self, plan: &ProfilePlan) -> (RawProfile, ProfileRecord, String) {
        let clock = || SystemClock.now_ns();
        let file = Path::new("/var/tmp/fwdlab-perf.data");
        let mut profiler = Box::new(Pmcstat::prepare(&self.host, &clock, plan, &[0], file));
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
fn a_real_freebsd_is_profiled_and_is_as_it_was_afterwards() {
    let Some(image) = image() else { return };
    let lab = Lab::boot(&image);
    a_profile_tells_what_forwards(&lab);
}

/// Samples of the kernel's clock, by function, of the traffic only; all is put back.
fn a_profile_tells_what_forwards(lab: &Lab) {
    let state =
        "kldstat | awk '{print $NF}'; kenv | grep hwpmc; ls /var/tmp /var/db/fwdlab 2>/dev/null";
    let before = lab.sh(&format!("{state}; true"));
    // Half a second before, and the drain, are none of it.
    let plan = ProfilePlan { duration_ns: 3_000_000_000, ..ProfilePlan::default() };
    let (raw, record, folded) = lab.profile(&plan);
    eprintln!("{} {:?} {:?}", raw.source, raw.remarks, record.windows);
    assert_eq!(raw.event, "clock.prof", "{:?}", raw.remarks);
    // Where the machine is emulated beside other work, a program's start takes long.
    let expected = ["counts no cycles", "times of samples are known to"];
    assert!(
        raw.remarks.iter().all(|remark| expected.iter().any(|words| remark.contains(words))),
        "{:?}",
        raw.remarks
    );
    let census = Census::of(&raw.text);
    // 2032 a second are asked of a machine that may be short of time itself.
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
    // An event that nobody counts there is told, and the clock taken.
    let plan = ProfilePlan { event: Event::Cycles, duration_ns: 1_000_000_000, ..plan };
    let (raw, ..) = lab.profile(&plan);
    assert_eq!(raw.event, "clock.prof");
    assert!(raw.remarks[0].contains("cycles can't be sampled"), "{:?}", raw.remarks);
}
