//! A setting with its value, as a level of a factor applies it to the base.

use super::{Key, Owner, Place, Vary};
use crate::settings::{Revision, Settings, TestbedKind};
use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

/// A setting with its value: a row of the tables of keys, and its value in the file.
#[derive(Clone)]
pub struct Setting {
    key: &'static Key,
    /// Name in a table of names, such as `net.ipv4.ip_early_demux`.
    entry: Option<String>,
    value: String,
    put: Arc<dyn Fn(&mut Settings) + Send + Sync>,
}

impl Setting {
    /// Creates the setting of `key` with this value, stored at `place`.
    pub(in crate::spec) fn new<T: Clone + Send + Sync + 'static>(
        key: &'static Key,
        value: T,
        place: Place<T>,
        text: fn(&T) -> String,
    ) -> Setting {
        let written = text(&value);
        let put = Arc::new(move |settings: &mut Settings| *place(settings) = value.clone());
        Setting { key, entry: None, value: written, put }
    }

    /// Creates one entry of a table of names and values.
    pub(in crate::spec) fn entry(
        key: &'static Key,
        name: String,
        value: String,
        place: Place<BTreeMap<String, String>>,
    ) -> Setting {
        let entry = (name.clone(), value.clone());
        let put = Arc::new(move |settings: &mut Settings| {
            let (name, value) = entry.clone();
            place(settings).insert(name, value);
        });
        Setting { key, entry: Some(name), value, put }
    }

    /// Creates a sysctl by its dotted name.
    pub(in crate::spec) fn sysctl(name: String, value: String) -> Option<Setting> {
        Some(Setting::entry(super::setting("sysctl")?, name, value, |s| &mut s.dut.sysctl))
    }

    /// Returns the row of the tables that describes it.
    pub fn row(&self) -> &'static Key {
        self.key
    }

    /// Returns its key.
    pub fn key(&self) -> &'static str {
        self.key.name
    }

    /// Returns its name: the key, and for an entry of a table also the entry's name, because two
    /// entries are two settings.
    pub fn name(&self) -> String {
        match &self.entry {
            Some(entry) => format!("{} {entry}", self.key()),
            None => self.key().to_owned(),
        }
    }

    /// Returns its value as text.
    pub fn value(&self) -> String {
        self.value.clone()
    }

    /// True if it can be switched while traffic flows.
    pub fn is_live(&self) -> bool {
        self.key.vary == Vary::Live
    }

    /// Applies it to `settings`.
    pub fn apply(&self, settings: &mut Settings) {
        (self.put)(settings);
        settings.forget_empty_revision();
    }

    /// True if the setting has a value; an empty text is one only if a file can contain it.
    fn has_value(&self) -> bool {
        !self.value.is_empty() || self.key.default == "\"\""
    }
}

impl PartialEq for Setting {
    fn eq(&self, other: &Setting) -> bool {
        let applied = |setting: &Setting| {
            let mut settings = Settings::default();
            setting.apply(&mut settings);
            settings
        };
        self.name() == other.name() && applied(self) == applied(other)
    }
}

impl fmt::Debug for Setting {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} = {:?}", self.name(), self.value)
    }
}

impl Settings {
    /// Returns every setting with its value, in the order of the documentation. Settings of a
    /// laboratory's DUT are omitted if they have no value.
    pub fn all(&self) -> Vec<Setting> {
        let mut copy = self.clone();
        let mut all = Vec::new();
        for key in super::settings() {
            if let Some(field) = &key.field {
                (field.get)(&mut copy, key, &mut all);
            }
        }
        let is_vm = self.testbed.kind == TestbedKind::Vm;
        all.retain(|setting| setting.has_value() && (is_vm || setting.key.owner != Owner::Vm));
        all
    }

    /// Removes an empty revision.
    fn forget_empty_revision(&mut self) {
        let revision = &mut self.dut.remote.revision;
        if *revision == Some(Revision::default()) {
            *revision = None;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::settings::*;

    fn routes_file() -> RoutesFile {
        RoutesFile { file: "routes.txt".to_owned(), digest: "0123".to_owned() }
    }

    fn remote() -> RemoteSettings {
        RemoteSettings {
            firewall_program: FirewallProgram::Ipfw,
            loader: BTreeMap::from([("a.b".to_owned(), "1".to_owned())]),
            rc: BTreeMap::from([("c".to_owned(), "YES".to_owned())]),
            harvest_mask: Some(351),
            bind_interrupts: true,
            overlay: Some(Overlay { directory: "configs/1".to_owned(), files: BTreeMap::new() }),
            revision: Some(Revision {
                install: vec!["make install".to_owned()],
                image: Some("image.xz".to_owned()),
                upgrade: "upgrade".to_owned(),
                verify: "uname -v".to_owned(),
                expect: "r287478".to_owned(),
            }),
            reboot: Reboot::Always,
        }
    }

    fn command() -> CommandSettings {
        let words = |text: &str| vec![text.to_owned(), "a b".to_owned()];
        CommandSettings {
            start: words("start"),
            ready: words("ready"),
            stop: words("stop"),
            statistics: words("statistics"),
            counters: [("lost".to_owned(), "/lost".to_owned())].into(),
            rewrites: Rewrites::Mac,
        }
    }

    fn hooks() -> Hooks {
        Hooks { setup: vec!["up".to_owned()], teardown: vec!["down".to_owned()] }
    }

    #[test]
    fn settings_and_tables_contain_each_other() {
        let mut settings = Settings::default();
        settings.testbed.kind = TestbedKind::Vm;
        settings.testbed.vm.kernel = Some("kernel.deb".to_owned());
        settings.testbed.vm.disk = Some("disk.raw".to_owned());
        settings.dut.sysctl.insert("net.ipv4.ip_early_demux".to_owned(), "0".to_owned());
        settings.dut.nat_address = "203.0.113.0".parse().ok();
        settings.dut.nat_port = Some(8080);
        settings.dut.router.routes_file = Some(routes_file());
        settings.dut.remote = remote();
        settings.dut.command = command();
        settings.dut.hooks = hooks();
        settings.traffic.generator_server = "localhost".to_owned();
        settings.traffic.generator_options = vec!["-p".to_owned()];
        let written: Vec<&str> = super::super::settings().map(|key| key.name).collect();
        let existing: Vec<&str> = settings.all().iter().map(Setting::key).collect();
        assert_eq!(written, existing);
    }

    #[test]
    fn applying_all_settings_to_the_default_reproduces_them() {
        let mut settings = Settings::default();
        settings.dut.queues = 4;
        settings.dut.rps = "3".to_owned();
        settings.dut.nat_address = "203.0.113.0".parse().ok();
        settings.dut.nat_port = Some(8080);
        settings.dut.sysctl.insert("net.core.dev_weight".to_owned(), "128".to_owned());
        settings.dut.kind = DutKind::Router;
        settings.dut.router = RouterSettings {
            fib: FibAlgorithm::Poptrie,
            locking: Locking::Rwlock,
            path: ForwardingPath::Full,
            state: StateTable::PerWorker,
            state_limit: 3,
            entropy_harvest: true,
            port: RouterPort::Packet,
            routes_file: Some(routes_file()),
        };
        settings.dut.remote = remote();
        settings.dut.command = command();
        settings.dut.hooks = hooks();
        settings.traffic.generator = GeneratorKind::Trex;
        settings.traffic.generator_server = "localhost".to_owned();
        settings.traffic.generator_options = vec!["-p".to_owned(), "a b".to_owned()];
        settings.traffic.family = Family::Inet6;
        settings.testbed.arrangement = Arrangement::Closed;
        let mut copy = Settings::default();
        for setting in settings.all() {
            setting.apply(&mut copy);
        }
        assert_eq!(copy, settings);
    }
}
