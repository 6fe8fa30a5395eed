//! Checks of a laboratory whose DUT is reached by `ssh`.

use super::server::{Server, free_port};
use fwdlab_bench::lab::check;
use fwdlab_model::Lab;

fn lab() -> Lab {
    let text = r#"
version = 1
name = "loopback"
[[host]]
name = "here"
roles = ["sender", "receiver"]
[[host.interface]]
name = "lo"
side = "sender"
[[host.interface]]
name = "no-such-one"
side = "receiver"
[[host]]
name = "there"
roles = ["dut"]
ssh = "dut"
[[host.interface]]
name = "lo"
side = "sender"
mac = "02:00:00:00:00:01"
[[host.interface]]
name = "no-such-one"
side = "receiver"
[[cable]]
a = "here:lo"
b = "there:lo"
[[cable]]
a = "here:no-such-one"
b = "there:no-such-one"
"#;
    Lab::parse("lab.toml", text).unwrap_or_else(|faults| panic!("{faults}"))
}

#[test]
fn host_of_a_lab_is_probed_over_ssh() {
    let Some(server) = Server::start("") else { return };
    let reports = check(&lab(), &server.settings());
    assert_eq!((reports[0].host.as_str(), reports[1].host.as_str()), ("here", "there"));
    let probe = |name: &str| {
        let found = reports[1].probes.iter().find(|probe| probe.name == name);
        found.unwrap_or_else(|| panic!("no {name} in {reports:#?}")).clone()
    };
    assert!(probe("reach").works && probe("reach").detail.starts_with("ssh dut in "));
    assert!(probe("system").works && probe("system").detail.starts_with("Linux "));
    // One clock, and a round trip within loopback.
    assert!(probe("clock").works, "{:?}", probe("clock"));
    assert!(probe("interface lo").detail.contains("in the file 02:00:00:00:00:01"));
    assert!(probe("link lo").works && probe("MTU lo").works);
    assert!(!probe("interface no-such-one").works);
    assert!(!reports[1].is_fine());
}

#[test]
fn absent_host_is_one_line_with_a_next_step() {
    let Some(server) = Server::start("") else { return };
    let mut settings = server.settings();
    let config = server.directory.join("nobody");
    std::fs::write(&config, format!("Host dut\n HostName 127.0.0.1\n Port {}\n", free_port()))
        .expect("a configuration");
    settings.config = Some(config);
    let reports = check(&lab(), &settings);
    let [reach] = reports[1].probes.as_slice() else { panic!("{reports:#?}") };
    assert!(!reach.works && reach.detail.contains("refuses connections"), "{reach:?}");
    assert!(reach.next.contains("sshd"), "{reach:?}");
}
