//! An experiment through a real Slurm: its daemons on this machine, with their own configuration,
//! ports and munge. Each node is a PID namespace, so that it can be lost like a machine.

use crate::support::{INSTANT, Lab};
use fwdlab_results::store::Store;
use serde_json::Value;
use std::collections::BTreeSet;
use std::fs;
use std::net::TcpListener;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};
use tempfile::TempDir;

/// Nodes of the cluster.
const NODES: usize = 4;
/// Maximum time for any step.
const PATIENCE: Duration = Duration::from_secs(90);

/// Short runs in real time: two variants in 24 blocks, about 0.1 s each.
fn slow() -> String {
    INSTANT
        .replace("noise = 0.01", "noise = 0.01\nrealtime = true")
        .replace("blocks = 4", "blocks = 24")
        + "[trial]\nwarmup = \"10ms\"\nduration = \"80ms\"\ndrain = \"10ms\"\ninterval = \"20ms\"\nslice = \"5ms\"\n"
}

/// The daemons; dropping it, or the end of this process, ends and removes them.
struct Cluster {
    directory: TempDir,
    controller: Vec<Child>,
    nodes: Vec<Child>,
}

/// Path of a daemon, which is in no user's PATH.
fn daemon(name: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let folders = std::env::split_paths(&path).chain(["/usr/sbin".into(), "/sbin".into()]);
    folders.map(|folder: PathBuf| folder.join(name)).find(|path| path.is_file())
}

/// The reason why there can be no cluster here.
fn lacking() -> Option<String> {
    if !rustix::process::geteuid().is_root() {
        return Some("Slurm's daemons need root here".into());
    }
    let programs = [
        "munged",
        "slurmctld",
        "slurmd",
        "sbatch",
        "squeue",
        "scancel",
        "scontrol",
        "setpriv",
        "unshare",
    ];
    let missing: Vec<&str> = programs.into_iter().filter(|name| daemon(name).is_none()).collect();
    if !missing.is_empty() {
        let next = "apt-get install slurmctld slurmd slurm-client munge";
        return Some(format!("no {}: {next}", missing.join(", ")));
    }
    let namespace = ["--pid", "--fork", "--mount-proc", "true"];
    let can = Command::new("unshare").args(namespace).stderr(Stdio::null()).status();
    (!can.is_ok_and(|status| status.success())).then(|| "no PID namespaces".into())
}

impl Cluster {
    /// Starts it, or records why there is none.
    fn start() -> Option<Cluster> {
        if let Some(why) = lacking() {
            fwdlab_testdata::skip(&why);
            return None;
        }
        let directory = TempDir::new().expect("a directory");
        let mut cluster = Cluster { directory, controller: Vec::new(), nodes: Vec::new() };
        let at = |name: &str| cluster.directory.path().join(name);
        for name in ["munge", "state", "spool", "log"] {
            fs::create_dir(at(name)).unwrap();
        }
        // A private key.
        let mut key = [0_u8; 128];
        let mut random = fs::File::open("/dev/urandom").unwrap();
        std::io::Read::read_exact(&mut random, &mut key).unwrap();
        fs::write(at("munge/key"), key).unwrap();
        fs::set_permissions(at("munge/key"), fs::Permissions::from_mode(0o400)).unwrap();
        fs::write(at("slurm.conf"), cluster.configuration()).unwrap();
        let munge = ["socket", "key-file", "pid-file", "log-file", "seed-file"].map(|option| {
            let name = option.split('-').next().unwrap_or(option);
            format!("--{option}={}", at("munge").join(name).display())
        });
        let munged = cluster.daemon("munged", &[], &["--foreground", "--force"], &munge);
        cluster.controller.push(munged);
        let socket = cluster.path("munge/socket");
        cluster.wait("munged", |_| socket.exists());
        let slurmctld = cluster.daemon("slurmctld", &[], &["-D", "-c"], &[]);
        cluster.controller.push(slurmctld);
        for number in 1..=NODES {
            let node =
                cluster.daemon("slurmd", NODE, &["-D"], &["-N".into(), format!("n{number}")]);
            cluster.nodes.push(node);
        }
        cluster.wait("the nodes", |cluster| {
            let idle = cluster.output_of("sinfo", &["--noheader", "--Node", "--format=%t"]);
            idle.lines().filter(|line| line.trim() == "idle").count() == NODES
        });
        Some(cluster)
    }

    fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    /// Starts a daemon in the foreground that ends with this process.
    fn daemon(&self, name: &str, within: &[&str], first: &[&str], more: &[String]) -> Child {
        let log = fs::File::create(self.path("log").join(format!("{name}{}", self.nodes.len())));
        let log = log.expect("a log");
        Command::new("setpriv")
            .args(["--pdeathsig", "KILL", "--"])
            .args(within)
            .arg(daemon(name).expect("looked for"))
            .args(first)
            .args(more)
            .env("SLURM_CONF", self.path("slurm.conf"))
            .stdin(Stdio::null())
            .stdout(log.try_clone().expect("a log"))
            .stderr(log)
            .spawn()
            .expect("setpriv")
    }

    /// The minimum for four nodes on one machine, independent of the system's configuration.
    fn configuration(&self) -> String {
        let free: Vec<TcpListener> =
            (0..=NODES).map(|_| TcpListener::bind(("127.0.0.1", 0)).expect("a port")).collect();
        let ports: Vec<u16> = free.iter().map(|port| port.local_addr().unwrap().port()).collect();
        let top = self.directory.path().display();
        let mut text = format!(
            "ClusterName=test\nSlurmctldHost=localhost(127.0.0.1)\nSlurmctldPort={}\nSlurmUser=root\n\
             SlurmdUser=root\nAuthType=auth/munge\nAuthInfo=socket={top}/munge/socket,cred_expire=5\n\
             CredType=cred/munge\nStateSaveLocation={top}/state\nSlurmdSpoolDir={top}/spool/%n\n\
             SlurmctldPidFile={top}/ctld.pid\nSlurmdPidFile={top}/%n.pid\n\
             ProctrackType=proctrack/pgid\nTaskPlugin=task/none\nMpiDefault=none\nSwitchType=switch/none\n\
             JobAcctGatherType=jobacct_gather/none\nAccountingStorageType=accounting_storage/none\n\
             SelectType=select/cons_tres\nSelectTypeParameters=CR_CPU\n\
             SchedulerParameters=batch_sched_delay=0,sched_interval=1\nSlurmdTimeout=10\nKillWait=2\n\
             MinJobAge=10\nReturnToService=2\nSlurmdParameters=config_overrides\n",
            ports[0]
        );
        for (number, port) in (1..).zip(&ports[1..]) {
            text += &format!(
                "NodeName=n{number} NodeHostname=localhost NodeAddr=127.0.0.1 Port={port} CPUs=1\n"
            );
        }
        text + "PartitionName=beds Nodes=ALL Default=YES MaxTime=INFINITE State=UP\n"
    }

    /// Output of one of Slurm's programs.
    fn output_of(&self, program: &str, arguments: &[&str]) -> String {
        let output = Command::new(program)
            .args(arguments)
            .env("SLURM_CONF", self.path("slurm.conf"))
            .output()
            .expect("it starts");
        String::from_utf8_lossy(&output.stdout).into_owned()
    }

    #[track_caller]
    fn wait(&self, what: &str, is_so: impl Fn(&Cluster) -> bool) {
        let began = Instant::now();
        while !is_so(self) {
            assert!(began.elapsed() < PATIENCE, "{what}: {}", self.logs());
            std::thread::sleep(Duration::from_millis(50));
        }
    }

    fn logs(&self) -> String {
        let logs = fs::read_dir(self.path("log")).into_iter().flatten().flatten();
        let text = logs.map(|log| fs::read_to_string(log.path()).unwrap_or_default());
        text.collect::<Vec<String>>().join("\n")
    }

    /// Loses a machine with everything that runs there. Slurm would notice by itself after a while
    /// (SlurmdTimeout); it is informed, as a monitor of the machines would do.
    fn lose(&mut self, node: usize) {
        end(&mut self.nodes[node]);
        let name = format!("NodeName=n{}", node + 1);
        self.output_of("scontrol", &["update", &name, "State=DOWN", "Reason=lost"]);
    }
}

/// A node is a PID namespace: all of it dies with its first process.
const NODE: &[&str] = &["unshare", "--pid", "--fork", "--mount-proc", "--kill-child"];

fn end(child: &mut Child) {
    let _ = child.kill();
    let _ = child.wait();
}

impl Drop for Cluster {
    fn drop(&mut self) {
        self.nodes.iter_mut().for_each(end);
        self.controller.iter_mut().rev().for_each(end);
    }
}

/// Output of `--status`.
fn status(lab: &Lab) -> Value {
    lab.fwdlab(&["submit", "x.toml", "--status", "--json"]).expect(0).json()
}

fn stored(status: &Value) -> u64 {
    status["runs"]["stored"].as_u64().expect("a number")
}

/// Asserts that each run of the plan is stored once; returns the beds that measured them.
fn beds_of(store: &Path) -> BTreeSet<String> {
    let store = Store::open_read_only(store).expect("a store");
    let plan = store.plan().unwrap();
    assert_eq!(store.missing_runs(&plan).unwrap(), Vec::<u32>::new());
    let contents = store.contents().unwrap();
    assert_eq!(contents.runs.len(), plan.runs.len());
    contents.bed_names().map(str::to_owned).collect()
}

#[test]
fn slurm_loses_no_run_to_lost_nodes_or_cancelled_jobs() {
    let Some(mut cluster) = Cluster::start() else { return };
    let conf = cluster.path("slurm.conf");
    let lab = Lab::new(&slow()).with("SLURM_CONF", &conf.to_string_lossy());

    // Cancelled, and submitted again.
    let submission = lab.fwdlab(&["submit", "x.toml", "--json"]).expect(0).json();
    assert_eq!(
        (&submission["submitted"], &submission["exclusive"]),
        (&24.into(), &false.into()),
        "{submission}"
    );
    let refused = lab.fwdlab(&["submit", "x.toml"]).expect(2);
    assert!(refused.stderr.contains("is on its way already"), "{}", refused.stderr);
    cluster.wait("runs", |_| stored(&status(&lab)) >= 3);
    lab.fwdlab(&["submit", "x.toml", "--cancel"]).expect(0);
    cluster.wait("the jobs' end", |_| status(&lab)["jobs"].as_array().is_some_and(Vec::is_empty));
    let before = status(&lab);
    assert!((3..48).contains(&stored(&before)), "{before}");
    let text = lab.fwdlab(&["submit", "x.toml", "--status"]).expect(0).stdout;
    assert!(text.contains("in no queue") && text.contains("fwdlab submit x.toml"), "{text}");

    let submission = lab.fwdlab(&["submit", "x.toml", "--json"]).expect(0).json();
    let left = 24 - before["shares"]["complete"].as_u64().expect("a number");
    assert_eq!(submission["submitted"], left, "only what is left: {submission}");
    // Two machines are lost while they measure.
    cluster.wait("more runs", |_| stored(&status(&lab)) >= stored(&before) + 4);
    cluster.lose(0);
    cluster.lose(2);
    cluster.wait("the merge", |_| {
        let now = status(&lab);
        now["merged"] == true && now["jobs"].as_array().is_some_and(Vec::is_empty)
    });
    let store = lab.path("results/x/run.sqlite");
    let beds = beds_of(&store);
    assert!(beds.len() >= 2 && beds.iter().all(|bed| bed.starts_with('n')), "{beds:?}");
    assert!(lab.path("results/x/README.md").exists(), "the report");
    let done = lab.fwdlab(&["submit", "x.toml", "--status"]).expect(0).stdout;
    assert!(
        done.starts_with("x: 48 of 48 runs are stored, 24 of 24 shares are complete"),
        "{done}"
    );
    assert!(done.contains("merged: "), "{done}");
    let refused = lab.fwdlab(&["submit", "x.toml"]).expect(2);
    assert!(refused.stderr.contains("--fresh"), "{}", refused.stderr);
}
