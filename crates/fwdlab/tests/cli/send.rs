//! `fwdlab send` and `fwdlab receive`, manually and as agents, between two namespaces.

use crate::support::{Lab, is_root};
use fwdlab_bench::NoopObserver;
use fwdlab_bench::agent::protocol::{Hello, Order, SendOrder};
use fwdlab_bench::agent::{AgentLoad, AgentTraffic, End, ThisProgram, program};
use fwdlab_bench::host::{Host, LocalHost, NamespaceHost};
use fwdlab_bench::trial::{self, SystemClock};
use fwdlab_model::plan::Trial;
use fwdlab_model::settings::Engine;
use fwdlab_netio::NetNs;
use fwdlab_packet::{Family, Flows, Stream};
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

pub(crate) const PROGRAM: &str = env!("CARGO_BIN_EXE_fwdlab");
pub(crate) const NEAR: [u8; 6] = [2, 0, 0, 0, 0, 1];
pub(crate) const FAR: [u8; 6] = [2, 0, 0, 0, 0, 2];
pub(crate) const MS: u64 = 1_000_000;

static COUNT: AtomicU32 = AtomicU32::new(0);

/// Senders spin on the same CPU: two tests at the same time would starve each other.
static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());

/// Two namespaces and a cable from `g0` in one to `r0` in the other.
pub(crate) struct Wired {
    pub(crate) near: String,
    pub(crate) far: String,
    _turn: MutexGuard<'static, ()>,
}

impl Wired {
    pub(crate) fn new() -> Option<Wired> {
        if !is_root("agents in namespaces need root") {
            return None;
        }
        let number = COUNT.fetch_add(1, Ordering::Relaxed);
        let name = |role| format!("agents-{}-{number}-{role}", std::process::id());
        let _turn = ONE_AT_A_TIME.lock().unwrap_or_else(PoisonError::into_inner);
        let wired = Wired { near: name("near"), far: name("far"), _turn };
        let Wired { near, far, .. } = &wired;
        let made = LocalHost.run(
            &["ip", "-batch", "-"],
            &format!(
                "netns add {near}\nnetns add {far}\n\
                 link add g0 address 02:00:00:00:00:01 netns {near} type veth \
                 peer name r0 address 02:00:00:00:00:02 netns {far}\n"
            ),
        );
        let up = made.and_then(|_| {
            for (namespace, interface) in [(near, "g0"), (far, "r0")] {
                let text =
                    format!("link set {interface} addrgenmode none\nlink set {interface} up\n");
                LocalHost.run(&["ip", "-n", namespace, "-batch", "-"], &text)?;
            }
            Ok(())
        });
        if let Err(error) = up {
            fwdlab_testdata::skip(&format!("no network namespaces here: {error}"));
            return None;
        }
        Some(wired)
    }

    fn host(&self, name: &str) -> NamespaceHost {
        let namespace = NetNs::open(name).expect("a namespace");
        NamespaceHost::new(&namespace, &[]).expect("a host")
    }

    /// Output of `ip link` for the receiver's interface.
    pub(crate) fn receiver(&self) -> String {
        LocalHost.run(&["ip", "-n", &self.far, "-d", "link", "show", "r0"], "").expect("ip link")
    }

    /// Number of frames received at the far end.
    fn arrived(&self) -> u64 {
        let count = self.host(&self.far).get("/sys/class/net/r0/statistics/rx_packets");
        count.expect("a counter").parse().expect("a number")
    }
}

impl Drop for Wired {
    fn drop(&mut self) {
        for name in [&self.near, &self.far] {
            let _ = LocalHost.run(&["ip", "netns", "delete", name], "");
        }
    }
}

pub(crate) fn end<'a>(host: &'a dyn Host, interface: &str, mac: [u8; 6]) -> End<'a> {
    let own = ThisProgram { program: Path::new(PROGRAM), version: "any" };
    let program = program(host, own, None).expect("the same machine");
    End { host, program, interface: interface.into(), mac, cpus: vec![] }
}

pub(crate) fn load(family: Family, engine: Engine) -> AgentLoad {
    let stream = Stream::new(family, 100, Flows { sources: 4, destinations: 4 });
    AgentLoad {
        stream,
        arriving: stream,
        run_id: 4711,
        rate_pps: Some(2000.0),
        limit: None,
        timestamps: false,
        sampled: false,
        engine,
        hops: 0,
        last_mac: None,
        translated: None,
        at_most: Duration::from_secs(30),
    }
}

pub(crate) fn trial(duration_ns: u64) -> Trial {
    let (warmup_ns, drain_ns) = (50 * MS, 500 * MS);
    Trial { warmup_ns, duration_ns, drain_ns, interval_ns: 100 * MS, slice_ns: 20 * MS }
}

/// Runs one trial with a number of senders through the veth pair.
fn observe(wired: &Wired, senders: usize, load: &AgentLoad) -> trial::Observed {
    let (near, far) = (wired.host(&wired.near), wired.host(&wired.far));
    let senders: Vec<_> = (0..senders).map(|_| (end(&near, "g0", NEAR), FAR)).collect();
    let receiver = end(&far, "r0", FAR);
    let mut traffic = AgentTraffic::arm(&senders, &receiver, load).expect("armed");
    assert!(traffic.facts().contains_key("receiver"), "{:?}", traffic.facts());
    let trial = trial(800 * MS);
    let order = trial::TrialSpec {
        trial: &trial,
        rate_pps: load.rate_pps,
        variant: 0,
        alternation: None,
        at_window: &mut |_| {},
        awaited: trial::OpeningConditions::default(),
        account: &mut trial::NoCounters,
    };
    let seen = trial::run(&mut traffic, &SystemClock, order, &mut NoopObserver).expect("a trial");
    assert_eq!(Some(seen.window_ns), traffic.window_ns());
    seen
}

#[test]
fn agents_count_every_packet_of_each_family_and_engine() {
    let Some(wired) = Wired::new() else { return };
    for family in [Family::Inet, Family::Inet6] {
        for engine in [Engine::Packet, Engine::Xdp] {
            let seen = observe(&wired, 1, &load(family, engine));
            let what = format!("{family:?} {engine:?}: {seen:?}");
            assert_eq!(seen.window.offered, seen.window.forwarded, "{what}");
            assert_eq!(seen.total.offered, seen.total.forwarded, "{what}");
            // More on an idle machine; the counts agree either way.
            assert!(seen.window.offered >= 16, "{what}");
            assert_eq!((seen.foreign, seen.flows_seen), (0, Some(16)), "{what}");
            assert!((790 * MS..60_000 * MS).contains(&seen.window_ns), "{what}");
            assert!(!wired.receiver().contains("xdp"), "{}", wired.receiver());
        }
    }
}

#[test]
fn two_senders_share_a_rate_and_auto_finds_an_engine() {
    let Some(wired) = Wired::new() else { return };
    let seen = observe(&wired, 2, &load(Family::Inet, Engine::Auto));
    assert_eq!(seen.window.offered, seen.window.forwarded, "{seen:?}");
    // Packets that were late when the window opened are sent within it.
    let seconds = (seen.opening.warmup_ns + seen.window_ns) as f64 / 1e9;
    assert!(seen.total.offered as f64 <= 2000.0 * seconds * 1.02 + 4.0, "{seen:?}");
    assert_eq!(seen.foreign, 0, "packets by which engines were tried are not counted");
}

#[test]
fn killed_agent_is_named_in_the_error() {
    let Some(wired) = Wired::new() else { return };
    let (near, far) = (wired.host(&wired.near), wired.host(&wired.far));
    for (namespace, command) in [(&wired.near, "send"), (&wired.far, "receive")] {
        let senders = [(end(&near, "g0", NEAR), FAR)];
        let load = load(Family::Inet, Engine::Packet);
        let mut traffic = AgentTraffic::arm(&senders, &end(&far, "r0", FAR), &load).expect("armed");
        let mut kill = |moment| {
            if matches!(moment, trial::Moment::Open(_)) {
                let pids = LocalHost.run(&["ip", "netns", "pids", namespace], "").expect("pids");
                let pids: Vec<&str> = pids.split_whitespace().collect();
                assert_eq!(pids.len(), 1, "the agent's");
                LocalHost.run(&["kill", "-KILL", pids[0]], "").expect("killed");
            }
        };
        let trial = trial(200 * MS);
        let at_window: &mut dyn FnMut(trial::Moment) = &mut kill;
        let order = trial::TrialSpec {
            trial: &trial,
            rate_pps: None,
            variant: 0,
            alternation: None,
            at_window,
            awaited: trial::OpeningConditions::default(),
            account: &mut trial::NoCounters,
        };
        let begin = Instant::now();
        let error = trial::run(&mut traffic, &SystemClock, order, &mut NoopObserver);
        let error = error.expect_err("it is dead").to_string();
        for expected in [&format!("{command} --control on {namespace} failed"), "signal: 9"] {
            assert!(error.contains(expected), "{expected} in {error}");
        }
        assert!(begin.elapsed() < PATIENCE, "{:?}", begin.elapsed());
        drop(traffic);
        assert!(!wired.receiver().contains("xdp"), "{}", wired.receiver());
    }
}

#[test]
fn missing_interface_is_named_with_its_host() {
    let Some(wired) = Wired::new() else { return };
    let (near, far) = (wired.host(&wired.near), wired.host(&wired.far));
    let armed = |from, to| {
        let senders = [(end(&near, from, NEAR), FAR)];
        let load = load(Family::Inet, Engine::Packet);
        AgentTraffic::arm(&senders, &end(&far, to, FAR), &load).map(drop)
    };
    for (error, host) in [(armed("g1", "r0"), &wired.near), (armed("g0", "r1"), &wired.far)] {
        let error = error.expect_err("no such interface").to_string();
        assert!(error.starts_with(host.as_str()) && error.contains("1` here"), "{error}");
        assert!(error.contains("next step: `ip -br link`"), "{error}");
    }
}

/// The lines that make an agent send, up to the start.
fn orders(at_most: Duration) -> String {
    let order = Order::Send(SendOrder {
        interface: "g0".into(),
        source_mac: NEAR,
        next_hop_mac: FAR,
        stream: Stream::new(Family::Inet, 64, Flows { sources: 1, destinations: 1 }),
        run_id: 1,
        first_number: 0,
        rate_pps: Some(1000.0),
        limit: None,
        first_flow: 0,
        timestamps: false,
        engine: Engine::Packet,
        cpus: vec![],
        at_most_ns: at_most.as_nanos() as u64,
    });
    let lines = [
        serde_json::to_string(&Hello::own()),
        serde_json::to_string(&order),
        serde_json::to_string(&Order::Start),
    ];
    lines.map(|line| line.expect("JSON") + "\n").concat()
}

fn until(patience: Duration, mut is_so: impl FnMut() -> bool) -> bool {
    let deadline = Instant::now() + patience;
    while !is_so() && Instant::now() < deadline {
        std::thread::sleep(Duration::from_millis(20));
    }
    is_so()
}

const PATIENCE: Duration = Duration::from_secs(20);

#[test]
fn traffic_ends_with_its_controller_or_time_limit() {
    let Some(wired) = Wired::new() else { return };
    let lab = Lab::new("");
    for (at_most, kill, code) in
        [(Duration::from_secs(600), true, Some(0)), (Duration::from_secs(1), false, Some(3))]
    {
        lab.write("orders", &orders(at_most));
        // Sends its orders, and then nothing more.
        let mut controller = Command::new("sh")
            .args(["-c", "cat orders; exec sleep 600"])
            .current_dir(lab.path(""))
            .stdout(Stdio::piped())
            .spawn()
            .expect("sh");
        let before = wired.arrived();
        let mut agent = Command::new("ip")
            .args(["netns", "exec", &wired.near, PROGRAM, "send", "--control"])
            .stdin(controller.stdout.take().expect("its output"))
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .expect("an agent");
        assert!(until(PATIENCE, || wired.arrived() > before + 5), "it sends");
        if kill {
            assert_eq!(agent.try_wait().expect("its state"), None);
            controller.kill().expect("killed");
        }
        assert!(until(PATIENCE, || matches!(agent.try_wait(), Ok(Some(_)))), "it ends");
        assert_eq!(agent.wait().expect("its end").code(), code);
        let after = wired.arrived();
        std::thread::sleep(Duration::from_millis(200));
        assert_eq!(wired.arrived(), after, "nothing is sent any more");
        let _ = controller.kill();
        let _ = controller.wait();
    }
}

#[test]
fn manual_send_and_receive_agree() {
    let Some(wired) = Wired::new() else { return };
    let lab = Lab::new("");
    let start = |namespace: &str, arguments: &str| {
        let mut command = Command::new("ip");
        command.args(["netns", "exec", namespace, PROGRAM]).args(arguments.split(' '));
        command.current_dir(lab.path("")).stdout(Stdio::piped()).spawn().expect("fwdlab")
    };
    let receive = "receive --interface r0 --run-id 9 --flows 2x3 --seconds 60 --json";
    let receiver = start(&wired.far, receive);
    assert!(until(PATIENCE, || wired.receiver().contains("xdp")), "it counts");
    let send = "send --interface g0 --to 02:00:00:00:00:02 --run-id 9 --flows 2x3 --rate 2k \
                --seconds 1.2 --json";
    let sent = start(&wired.near, send).wait_with_output().expect("its end");
    let pid = rustix::process::Pid::from_child(&receiver);
    // Ctrl-C ends it with its totals.
    rustix::process::kill_process(pid, rustix::process::Signal::INT).expect("a signal");
    let received = receiver.wait_with_output().expect("its end");
    assert_eq!((sent.status.code(), received.status.code()), (Some(0), Some(0)));
    let lines = |output: &[u8]| -> Vec<serde_json::Value> {
        let text = String::from_utf8_lossy(output).into_owned();
        text.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect()
    };
    let (sent, received) = (lines(&sent.stdout), lines(&received.stdout));
    assert_eq!(sent.len(), 3, "facts, a second, the total: {sent:?}");
    let (sent, received) = (&sent[2], received.last().expect("totals"));
    assert!(sent["packets"].as_u64() > Some(20), "{sent}");
    assert_eq!(sent["packets"], received["packets"][0], "{received}");
    assert_eq!((&received["flows"], &received["total"]), (&6.into(), &true.into()));
    assert!(!wired.receiver().contains("xdp"), "the program goes with the receiver");
}

#[test]
fn invalid_send_arguments_are_refused_with_a_next_step() {
    let lab = Lab::new("");
    for (arguments, code, expected) in [
        ("send", 2, "--interface"),
        ("send --interface g0", 2, "--to"),
        ("send --interface g0 --to 01:00:5e:00:00:01", 2, "a group's MAC"),
        ("send --interface g0 --to 02:00:00:00:00:02 --rate 0", 2, "20kpps"),
        (
            "send --interface g0 --to 02:00:00:00:00:02 --from 02:00:00:00:00:01 --family inet6 --frame-size 64",
            2,
            "84 bytes",
        ),
        ("send --control --interface g0", 2, "cannot be used with"),
        ("send --interface none0 --to 02:00:00:00:00:02", 3, "`ip -br link` lists them"),
        ("receive --interface none0", 3, "no Ethernet interface `none0`"),
        ("receive --interface r0 --flows 9", 2, "20x100"),
        ("receive", 2, "--interface"),
    ] {
        let arguments: Vec<&str> = arguments.split(' ').collect();
        let ended = lab.fwdlab(&arguments).expect(code);
        assert!(ended.stderr.contains(expected), "{expected} in\n{}", ended.stderr);
    }
    for command in ["send", "receive"] {
        let help = lab.fwdlab(&[command, "--help"]).expect(0).stdout;
        assert!(help.contains("Examples:") && help.contains("--control"), "{help}");
        // No one sends orders: nothing to do.
        let ended = lab.fwdlab(&[command, "--control"]).expect(0);
        let hello: Hello = serde_json::from_str(ended.stdout.trim()).expect("hello");
        assert_eq!(hello, Hello::own());
    }
}
