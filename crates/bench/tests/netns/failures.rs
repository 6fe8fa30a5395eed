//! Failed runs and killed processes leave nothing behind.

use super::{ONE_AT_A_TIME, namespaces, open, plan};
use fwdlab_bench::{BenchError, Observer, Task};
use std::time::{Duration, Instant};

/// A user who stops the run.
struct Cancel;

impl Observer for Cancel {
    fn cancelled(&self) -> bool {
        true
    }
}

#[test]
fn cancelled_run_cleans_up() {
    const PATH: &str = "/proc/sys/net/core/netdev_budget";
    let _guard = ONE_AT_A_TIME.lock();
    let plan = plan("[dut]\nsysctl = { \"net.core.netdev_budget\" = 299 }\n");
    let Some(mut testbed) = open(&plan) else { return };
    let before = std::fs::read_to_string(PATH).expect("budget");
    let task = Task { plan: &plan, run: &plan.runs[0], ceiling_pps: None };
    assert!(matches!(testbed.run(task, &mut Cancel), Err(BenchError::Interrupted)));
    assert_eq!(std::fs::read_to_string(PATH).expect("budget"), before);
    assert_eq!(namespaces(), Vec::<String>::new());
}

#[test]
fn command_is_stopped_after_a_failed_run() {
    let _guard = ONE_AT_A_TIME.lock();
    let log = std::env::temp_dir().join(format!("fwdlab-stopped-{}", std::process::id()));
    let stop = format!("echo stop >>{}", log.display());
    let plan = plan(&format!(
        "[dut]\nkind = \"command\"\nstart = [\"sleep\", \"600\"]\n\
         stop = [\"sh\", \"-c\", \"{stop}\"]\n"
    ));
    let Some(mut testbed) = open(&plan) else { return };
    let task = Task { plan: &plan, run: &plan.runs[0], ceiling_pps: None };
    assert!(matches!(testbed.run(task, &mut Cancel), Err(BenchError::Interrupted)));
    // Before the start, and after the failure.
    assert_eq!(std::fs::read_to_string(&log).expect("a log"), "stop\nstop\n");
    assert_eq!(namespaces(), Vec::<String>::new());
    let _ = std::fs::remove_file(&log);
}

#[test]
fn program_left_in_a_namespace_of_an_ended_process_is_killed() {
    const NAME: &str = "fwdlab-4194305-77-dut";
    let _guard = ONE_AT_A_TIME.lock();
    let plan = plan("");
    if open(&plan).is_none() {
        return;
    }
    let ip = |words: &[&str]| std::process::Command::new("ip").args(words).spawn().expect("ip");
    assert!(ip(&["netns", "add", NAME]).wait().expect("ended").success());
    let mut left = ip(&["netns", "exec", NAME, "sleep", "600"]);
    // Until ip(8) has entered the namespace.
    let stat = format!("/proc/{}/comm", left.id());
    while std::fs::read_to_string(&stat).is_ok_and(|name| name.trim() != "sleep") {
        std::thread::sleep(Duration::from_millis(5));
    }
    let _testbed = open(&plan).expect("a testbed");
    let deadline = Instant::now() + Duration::from_secs(10);
    while left.try_wait().expect("a child").is_none() && Instant::now() < deadline {
        std::thread::sleep(Duration::from_millis(5));
    }
    let is_killed = left.try_wait().expect("a child").is_some();
    let _ = left.kill();
    assert!(is_killed);
}
