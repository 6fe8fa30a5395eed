//! Backups of a FreeBSD DUT, kept by the programs of another machine.

use crate::server::Server;
use fwdlab_bench::dut::freebsd::backup::Backup;
use fwdlab_bench::dut::freebsd::system::{Boot, System};
use std::fs;

#[test]
fn files_are_backed_up_and_restored_over_ssh() {
    let Some(server) = Server::start("") else { return };
    let host = server.host();
    let home: &'static str = server.directory.join("home").display().to_string().leak();
    let system = System { release: 1_400_097, boot: Boot("1".into()), nanobsd: false, home };
    let memory = Backup::new(&host, &system);
    let kept = server.directory.join("it's kept").display().to_string();
    let new = server.directory.join("new/file").display().to_string();
    let text = "name=\"ünix\"\n\n";
    fs::write(&kept, text).expect("a file");
    for path in [&kept, &new] {
        let now = memory.read(path).expect("read");
        assert_eq!(now.as_deref(), (path == &kept).then_some(text), "not to be read, or not there");
        memory.take(path, now.as_deref(), now.as_deref(), "other\n").expect("taken");
        assert_eq!(fs::read_to_string(path).expect("there"), "other\n");
    }
    memory.remember_sysctl("a.b", "1 2").expect("noted");
    // Another process, which knows nothing but the directory.
    let again = Backup::new(&host, &system);
    assert_eq!(again.sysctls().expect("noted")["a.b"], "1 2");
    for path in again.files().expect("noted").keys() {
        again.give_back(path).expect("given back");
    }
    assert_eq!(fs::read_to_string(&kept).expect("there"), text);
    assert!(!fs::exists(&new).expect("known"));
}
