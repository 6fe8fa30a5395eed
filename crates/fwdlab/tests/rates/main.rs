//! Rates of QEMU guests: packets over taps, counted on both sides of the guest and in it. They hold
//! the machine's lock, unlike the counts of `vm`.
//!
//! Needs root, QEMU and the kernels and disks of `vm`.

use fwdlab_testdata::guests::{self, freebsd_image, kernel, left, machines};
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// An experiment on a guest's rate, with `more` set-up.
fn rate(kernel: &Path, vm: &str, more: &str) -> String {
    of_guest(&format!("kernel = \"{}\"\n{vm}", kernel.display()), more)
}

fn of_guest(vm: &str, more: &str) -> String {
    format!(
        "version = 1\ntitle = \"guest\"\n[testbed]\nkind = \"vm\"\n[vm]\n{vm}\
         [trial]\nwarmup = \"500ms\"\nduration = \"2s\"\ndrain = \"20s\"\n[design]\nblocks = 1\n\
         [compare]\nfigure = \"mean\"\n{more}"
    )
}

/// fwdlab on an experiment in `directory`.
fn fwdlab(directory: &Path, text: &str) -> Command {
    guests::command(env!("CARGO_BIN_EXE_fwdlab"), directory, text)
}

/// True for root; otherwise records that the test is skipped.
fn is_root() -> bool {
    let is_root = rustix::process::geteuid().is_root();
    if !is_root {
        fwdlab_testdata::skip("taps need root");
    }
    is_root
}

/// A kernel, if this is root; otherwise `None`.
fn kernel_as_root() -> Option<PathBuf> {
    if is_root() { kernel() } else { None }
}

/// Held by tests that measure: the program measures one at a time on a machine, and a test that
/// waits in it for another is timed with it.
fn machine() -> MutexGuard<'static, ()> {
    static MACHINE: Mutex<()> = Mutex::new(());
    MACHINE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The namespaces of a process.
fn namespaces_of(pid: u32) -> Vec<String> {
    let entries = std::fs::read_dir("/run/netns").into_iter().flatten().flatten();
    let names = entries.map(|entry| entry.file_name().to_string_lossy().into_owned());
    names.filter(|name| name.starts_with(&format!("fwdlab-{pid}-"))).collect()
}

/// Runs the experiment; returns its results, and the process ID.
fn found(directory: &Path, text: &str) -> (Value, u32) {
    let mut command = fwdlab(directory, text);
    let child = command.arg("--fresh").stderr(Stdio::piped()).stdout(Stdio::null()).spawn();
    let child = child.expect("the program starts");
    let pid = child.id();
    let output = child.wait_with_output().expect("its end");
    let stderr = String::from_utf8_lossy(&output.stderr);
    // 4: a rate that may have been affected by the machine's other work.
    assert!(matches!(output.status.code(), Some(0 | 4)), "{stderr}");
    let results = std::fs::read(directory.join("out/results.json")).expect("results");
    (serde_json::from_slice(&results).expect("JSON"), pid)
}

/// Count of a counter of the guest, and its expected value.
fn counter(found: &Value, name: &str) -> (i64, Option<i64>) {
    let rows = found["counters"].as_array().expect("counters");
    let row = rows.iter().find(|row| row["name"] == name);
    row.map_or((0, None), |row| {
        (row["counted"].as_i64().expect("a count"), row["expected"].as_i64())
    })
}

/// Two queues, a rate that the guest carries and one that it cannot: one machine for both. The
/// carried packets fit a queue of 256 even if the guest stalls for two seconds.
const LOADS: &str = "[dut]\nqueues = 2\n[traffic]\nflows = { sources = 1, destinations = 64 }\n\
                     [[factor]]\nname = \"load\"\nlevels = [{ label = \"modest\", rate = 100 }, \
                     { label = \"all\" }]\n";

/// Asserts that every packet of [`LOADS`] is accounted for by the guest's own counts; the count of
/// sent packets may lag by `late`. Returns the number of offered packets.
fn expect_all_accounted_for(found: &Value, [ingress, egress]: [&str; 2], late: i64) -> i64 {
    let runs = found["conservation"].as_array().expect("runs");
    let run = |label: &str| runs.iter().find(|run| run["label"] == label).expect("a run");
    let of = |label: &str, name: &str| run(label)[name].as_i64().unwrap();
    assert_eq!((of("modest", "lost"), of("modest", "foreign")), (0, 0), "{runs:#?}");
    assert!(of("modest", "forwarded") > 30, "{runs:#?}");
    assert!(of("all", "lost") > 0, "an emulated guest that no load of ours exceeds: {runs:#?}");
    assert_eq!(of("all", "offered"), of("all", "forwarded") + of("all", "lost"));
    // The guest's own count, to the packet: its name distinguishes it from ours.
    let sum = |name: &str| of("modest", name) + of("all", name);
    let taken = counter(found, &format!("{ingress} rx_packets + rx_dropped"));
    assert_eq!(taken.0, sum("offered"), "{runs:#?}");
    let sent = counter(found, &format!("{egress} tx_packets")).0;
    let forwarded = sum("forwarded");
    assert!((sent - forwarded).abs() <= late, "{sent} of {forwarded}");
    // Under overload some packets are lost in the queue behind it.
    let lost_behind = counter(found, "ip ForwDatagrams").0 - forwarded;
    assert!((0..=of("all", "lost")).contains(&lost_behind), "{lost_behind}: {runs:#?}");
    sum("offered")
}

/// Asserts that each flow has its queue, and both queues have flows.
fn expect_both_queues_used(found: &Value, ingress: &str) {
    let queues = found["queues"].as_array().expect("queues");
    for label in ["modest", "all"] {
        let is_it = |row: &&Value| {
            row["interface"] == ingress && row["direction"] == "receive" && row["label"] == label
        };
        let used = queues.iter().find(is_it).map(|row| &row["used"]);
        assert_eq!(used, Some(&2.into()), "{queues:#?}");
    }
}

/// True if the driver of a packaged kernel reports packets per queue through `ethtool -S`:
/// `virtio_net` does so before Linux 6.10.
fn counts_queues(kernel: &Path) -> bool {
    let package = std::fs::canonicalize(kernel).expect("a package");
    let name = package.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let version = name.trim_start_matches("linux-image-");
    let mut numbers = version.split(['.', '-', '+', '_']).map_while(|part| part.parse().ok());
    let version: (u32, u32) =
        (numbers.next().expect("a version"), numbers.next().expect("a version"));
    version < (6, 10)
}

#[test]
fn two_queue_guest_accounts_for_every_packet_at_any_load() {
    let Some(kernel) = kernel_as_root() else { return };
    let _machine = machine();
    let directory = tempfile::tempdir().unwrap();
    let vm = "cpus = 2\naccel = \"tcg\"\n";
    let (found, pid) = found(directory.path(), &rate(&kernel, vm, LOADS));
    let offered = expect_all_accounted_for(&found, ["eth1", "eth2"], 0);
    match counts_queues(&kernel) {
        true => expect_both_queues_used(&found, "eth1"),
        false => assert_eq!(found["queues"], serde_json::json!([]), "no counter, no claim"),
    }
    assert_eq!(counter(&found, "eth1 rx_packets + rx_dropped").1, Some(offered));
    // The caption of the report states the validity of the rate.
    let caption = found["testbed"]["caption"].as_str().unwrap();
    let reason = found["testbed"]["reason"].as_str().unwrap();
    assert!(reason.contains("EMULATED"), "{reason}");
    assert!(caption.contains("no time of a machine"), "{caption}");
    assert_eq!(left(directory.path()), Vec::<String>::new());
    assert_eq!(namespaces_of(pid), Vec::<String>::new());
}

#[test]
fn two_queue_freebsd_accounts_for_every_packet_at_any_load() {
    let Some(image) = is_root().then(freebsd_image).flatten() else { return };
    let _machine = machine();
    let directory = tempfile::tempdir().unwrap();
    let vm = format!("disk = \"{}\"\ncpus = 2\naccel = \"tcg\"\n", image.display());
    let text = of_guest(&vm, LOADS).replace("[dut]\n", "[dut]\nkind = \"freebsd\"\n");
    let (found, pid) = found(directory.path(), &text);
    // vtnet(4) counts the sent packets of a queue when it sends again, so that packets sent before
    // a window may be included: at most a ring of 256 packets per queue and load.
    expect_all_accounted_for(&found, ["vtnet1", "vtnet2"], 2 * 2 * 256);
    expect_both_queues_used(&found, "vtnet1");
    assert_eq!(left(directory.path()), Vec::<String>::new());
    assert_eq!(namespaces_of(pid), Vec::<String>::new());
}

#[test]
fn killed_program_leaves_no_machine_and_the_next_start_removes_its_namespaces() {
    let Some(kernel) = kernel_as_root() else { return };
    let _machine = machine();
    let directory = tempfile::tempdir().unwrap();
    let directory = directory.path();
    let text = rate(&kernel, "accel = \"tcg\"\n", "[traffic]\nrate = 300\n");
    let mut command = fwdlab(directory, &text);
    let mut child = command.stderr(Stdio::null()).stdout(Stdio::null()).spawn().unwrap();
    let deadline = Instant::now() + Duration::from_secs(300);
    while machines(directory).is_empty() {
        assert!(Instant::now() < deadline, "no machine came");
        std::thread::sleep(Duration::from_millis(20));
    }
    assert_eq!(namespaces_of(child.id()).len(), 2);
    child.kill().unwrap();
    child.wait().unwrap();
    let deadline = Instant::now() + Duration::from_secs(120);
    while !machines(directory).is_empty() {
        assert!(Instant::now() < deadline, "QEMU outlived fwdlab");
        std::thread::sleep(Duration::from_millis(20));
    }
    // The namespaces remain until the next start, for which a plan that cannot run is enough.
    let text = rate(Path::new("no-such.deb"), "accel = \"tcg\"\n", "");
    let pid = child.id();
    let output = fwdlab(directory, &text).arg("--fresh").output().unwrap();
    assert!(!output.status.success());
    assert_eq!(namespaces_of(pid), Vec::<String>::new());
    assert_eq!(left(directory), Vec::<String>::new());
}

#[test]
fn broken_kvm_is_an_error_with_the_next_step() {
    let Some(kernel) = kernel_as_root() else { return };
    let _machine = machine();
    let directory = tempfile::tempdir().unwrap();
    let began = Instant::now();
    let text = rate(&kernel, "accel = \"kvm\"\n", "[traffic]\nrate = 300\n");
    let output = fwdlab(directory.path(), &text).output().unwrap();
    let stderr = String::from_utf8_lossy(&output.stderr);
    if output.status.success() {
        let results = std::fs::read_to_string(directory.path().join("out/results.json")).unwrap();
        assert!(results.contains("KVM executes the machine"), "{results}");
        return;
    }
    assert_eq!(output.status.code(), Some(3), "{stderr}");
    let expected = ["-accel kvm: ", "KVM can't go on with this guest: "];
    assert!(expected.iter().any(|words| stderr.contains(words)), "{stderr}");
    assert!(stderr.contains("accel = \"tcg\""), "{stderr}");
    // The program also waits for locks of other machines, and for a guest that neither boots nor
    // fails.
    assert!(began.elapsed() < Duration::from_secs(180), "{:?}", began.elapsed());
}
