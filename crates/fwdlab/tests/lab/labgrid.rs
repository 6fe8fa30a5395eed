//! Hosts that labgrid lends: a real coordinator and exporter, from the Python environment in
//! FWDLAB_LABGRID. The test itself provides the power of the DUT's place.

use crate::faults::{RUN, plain, stored};
use crate::program::{run, signal, until};
use crate::rack::{PATIENCE, Rack};
use std::fs::{self, File};
use std::io::{Read, Write};
use std::net::TcpListener;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};

/// The programs of labgrid; `None` without them, which fails in CI.
fn programs() -> Option<PathBuf> {
    let venv = std::env::var_os("FWDLAB_LABGRID").map(PathBuf::from);
    let bin = venv.map(|venv| venv.join("bin")).filter(|bin| bin.join("labgrid-client").exists());
    if bin.is_none() {
        let next = "python3 -m venv V; V/bin/pip install labgrid; FWDLAB_LABGRID=V";
        fwdlab_testdata::skip(&format!("no labgrid: {next}"));
    }
    bin
}

/// Coordinator and exporter, which end with the test.
struct Labgrid {
    bin: PathBuf,
    coordinator: String,
    children: Vec<Child>,
}

impl Labgrid {
    /// Starts two places with a resource each; a request to `power` switches the DUT's power.
    fn start(rack: &Rack, bin: PathBuf, power: &str) -> Labgrid {
        let free = TcpListener::bind("127.0.0.1:0").expect("a port");
        let coordinator = format!("{}", free.local_addr().expect("an address"));
        drop(free);
        let place = |name: &str| {
            format!(
                "{name}:\n  acquired: null\n  acquired_resources: []\n  aliases: []\n  allowed: []\n  \
                 changed: 1\n  comment: ''\n  created: 1\n  matches:\n  - cls: '*'\n    exporter: \
                 test\n    group: {name}\n    name: null\n    rename: null\n  reservation: null\n  \
                 tags: {{}}\n"
            )
        };
        fs::create_dir(rack.path("labgrid")).expect("a directory");
        rack.write("labgrid/places.yaml", &(place("rack-dut") + &place("rack-sender")));
        rack.write(
            "labgrid/exported.yaml",
            &format!(
                "rack-dut:\n  NetworkPowerPort:\n    model: simplerest\n    host: \
                 'http://{power}/{{value}}'\n    index: '1'\nrack-sender:\n  NetworkSerialPort:\n    \
                 host: 127.0.0.1\n    port: 9\n"
            ),
        );
        let mut labgrid = Labgrid { bin, coordinator, children: Vec::new() };
        let address = labgrid.coordinator.clone();
        labgrid.spawn(rack, "labgrid-coordinator", &["-l", &address]);
        let answers = || std::net::TcpStream::connect(&labgrid.coordinator).is_ok();
        assert!(until(PATIENCE, answers), "no coordinator");
        let exporter = ["-c", &address, "-n", "test", "exported.yaml"];
        labgrid.spawn(rack, "labgrid-exporter", &exporter);
        let exported = || labgrid.client("nobody", &["resources"]).1.contains("NetworkPowerPort");
        let log = || fs::read_to_string(rack.path("labgrid/labgrid-exporter.log"));
        assert!(until(PATIENCE, exported), "no exporter: {:?}", log());
        labgrid
    }

    fn spawn(&mut self, rack: &Rack, program: &str, arguments: &[&str]) {
        let log = File::create(rack.path(&format!("labgrid/{program}.log"))).expect("a log");
        let mut command = Command::new(self.bin.join(program));
        command.args(arguments).current_dir(rack.path("labgrid")).stdin(Stdio::null());
        command.stdout(log.try_clone().expect("a log")).stderr(log);
        self.children.push(command.spawn().expect("a program of labgrid"));
    }

    /// Runs `labgrid-client` as a user; returns true if it succeeded, and its output.
    fn client(&self, user: &str, words: &[&str]) -> (bool, String) {
        let mut command = Command::new(self.bin.join("labgrid-client"));
        command.args(["-x", &self.coordinator]).args(words).env("LG_USERNAME", user);
        let output = command.output().expect("labgrid-client");
        let text = [output.stdout, output.stderr].concat();
        (output.status.success(), String::from_utf8_lossy(&text).into_owned())
    }

    /// Notes of processes on this machine about their places.
    fn notes(&self) -> Vec<PathBuf> {
        let notes = fs::read_dir("/var/lib/fwdlab").into_iter().flatten().flatten();
        let paths = notes.map(|note| note.path());
        let is_ours = |path: &PathBuf| {
            fs::read_to_string(path).unwrap_or_default().contains(&self.coordinator)
        };
        paths.filter(is_ours).collect()
    }

    /// The holder of a place.
    fn holder(&self, place: &str) -> String {
        let (_, output) = self.client("nobody", &["-p", place, "show"]);
        let line = output.lines().find_map(|line| line.trim().strip_prefix("acquired: "));
        line.unwrap_or_else(|| panic!("{output}")).to_owned()
    }
}

impl Drop for Labgrid {
    fn drop(&mut self) {
        for child in &mut self.children {
            let _ = (child.kill(), child.wait());
        }
    }
}

/// Serves the power of the DUT: runs `script` on a request to switch it on. Ends with the test's
/// process.
fn power(script: String) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = listener.local_addr().expect("an address").to_string();
    std::thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            let (mut stream, mut request) = (stream, [0; 1024]);
            let length = stream.read(&mut request).unwrap_or(0);
            if request[..length].starts_with(b"GET /1 ") {
                run(&[&script]);
            }
            let _ = stream.write_all(b"HTTP/1.0 200 OK\r\nContent-Length: 1\r\n\r\n1");
        }
    });
    address
}

#[test]
fn places_are_acquired_power_cycled_and_released_even_after_a_kill() {
    let Some(bin) = programs() else { return };
    let Some(rack) = Rack::build() else { return };
    let client = bin.join("labgrid-client").display().to_string();
    let labgrid = Labgrid::start(&rack, bin, &power(rack.at("power_cycle")));
    let table = format!(
        "[labgrid]\ncoordinator = \"{}\"\nclient = \"{client}\"\nwait = \"2s\"\n[ssh]",
        labgrid.coordinator
    );
    let lab = rack.lab("place = \"rack-dut\"\nreboot_timeout = \"8s\"").replace("[ssh]", &table);
    let sender = "name = \"sender\"\n";
    rack.write("lab.toml", &lab.replace(sender, &format!("{sender}place = \"rack-sender\"\n")));
    rack.write("x.toml", &plain(60));

    let program = rack.start(&RUN);
    assert!(until(PATIENCE, || stored(&program) >= 1), "{}", program.stderr());
    let user = format!("-fwdlab-{}-", program.pid());
    for place in ["rack-dut", "rack-sender"] {
        assert!(labgrid.holder(place).contains(&user), "{}", labgrid.holder(place));
    }
    signal("KILL", program.pid());
    assert_eq!(program.end().code, None);
    assert!(labgrid.holder("rack-dut").contains(&user), "labgrid lends for no limited time");
    // As after a power failure of this machine: the note is of an earlier boot.
    let boot = fs::read_to_string("/proc/sys/kernel/random/boot_id").expect("a boot");
    let notes = labgrid.notes();
    let [note] = notes.as_slice() else { panic!("{notes:?}") };
    let earlier = note.display().to_string().replace(boot.trim(), "0a1b2c3d-earlier");
    assert_ne!(note.display().to_string(), earlier);
    fs::rename(note, earlier).expect("renamed");

    // The next session returns the leftover place, acquires it again, and power-cycles the DUT.
    rack.write("x.toml", &plain(4));
    let fresh = [&RUN[..], &["--fresh"]].concat();
    let program = rack.start(&fresh);
    assert!(until(PATIENCE, || program.stderr().contains("testbed: ssh")), "{}", program.stderr());
    rack.write("stays-down", "");
    rack.reboot();
    program.end().carried_out();
    assert_eq!(rack.boots().matches("power").count(), 1, "{}", rack.boots());
    assert_eq!(rack.runs().len(), 4);
    for place in ["rack-dut", "rack-sender"] {
        assert_eq!(labgrid.holder(place), "None");
    }
    assert_eq!(labgrid.client("nobody", &["reservations"]).1, "");

    // A place held by another user.
    let (is_theirs, output) = labgrid.client("ann", &["-p", "rack-sender", "acquire"]);
    assert!(is_theirs, "{output}");
    let refused = rack.fwdlab(&fresh).expect(3);
    for word in ["the place rack-sender of labgrid, for sender, is ", "/ann's", "--wait"] {
        assert!(refused.stderr.contains(word), "no `{word}` in {}", refused.stderr);
    }
    assert_eq!(labgrid.holder("rack-dut"), "None", "all or none");
    assert!(labgrid.holder("rack-sender").ends_with("/ann"));
    assert!(labgrid.notes().is_empty(), "nothing is noted any more");
    // A waiting session receives a request to stop.
    let lab = fs::read_to_string(rack.path("lab.toml")).expect("a lab");
    rack.write("lab.toml", &lab.replace("wait = \"2s\"", "wait = \"10min\""));
    let program = rack.start(&fresh);
    let waits = || labgrid.client("nobody", &["reservations"]).1.contains("state: waiting");
    assert!(until(PATIENCE, waits), "{}", program.stderr());
    std::thread::sleep(std::time::Duration::from_secs(2));
    signal("TERM", program.pid());
    let ended = program.end().expect(130);
    assert!(ended.stderr.contains("interrupted"), "{}", ended.stderr);
    assert_eq!(labgrid.client("nobody", &["reservations"]).1, "");
    assert!(labgrid.notes().is_empty(), "nothing is noted any more");
}
