//! The reader of lab.toml never panics. It yields the same consistent laboratory for the same text,
//! and every error names its line.

#![no_main]

use fwdlab_model::Lab;
use fwdlab_model::lab::Role;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &str| match Lab::parse("lab.toml", text) {
    Ok(lab) => {
        assert_eq!(Lab::parse("lab.toml", text).as_ref(), Ok(&lab));
        check_guarantees(&lab);
    }
    Err(faults) => {
        let shown = faults.to_string();
        assert!(shown.contains("lab.toml:") || text.trim().is_empty(), "{shown}");
    }
});

/// Checks the guarantees in the documentation of [`Lab`].
fn check_guarantees(lab: &Lab) {
    let hosts = |role| lab.hosts.iter().filter(move |host| host.is(role)).count();
    assert_eq!((hosts(Role::Dut), hosts(Role::Receiver)), (1, 1));
    assert!((1..=2).contains(&hosts(Role::Sender)));
    for cable in &lab.cables {
        for end in [&cable.dut, &cable.far] {
            let host = lab.host(&end.host).expect("a host of this file");
            assert!(host.interfaces.iter().any(|interface| interface.name == end.interface));
        }
        assert!(lab.host(&cable.dut.host).is_some_and(|host| host.is(Role::Dut)));
    }
    let commands = lab.hosts.iter().flat_map(|host| &host.online);
    commands.for_each(|command| assert!(fwdlab_model::words::split(command).is_ok()));
}
