//! Position of a result set in the archive, from its path or from a note next to it.

use crate::found::Place;
use serde::Deserialize;
use std::fs::File;
use std::io::Read;
use std::path::Path;

/// A note next to `configs/` and `results/` that states the origin of a copy.
const NOTE: &str = "SOURCE.json";
/// Maximum length of a note, bytes.
const LONGEST_NOTE: u64 = 64 << 10;

/// Content of the note.
#[derive(Debug, Deserialize)]
struct Note {
    /// `MACHINE/INTERFACE/TOPIC`.
    topic: String,
}

/// Returns the place of the bench at `origin`, without the label. Folders above `root` give machine
/// and interface only if their names look like it.
pub(super) fn of_bench(origin: &Path, root: &Path) -> Place {
    if let Some(note) = note(origin) {
        let parts: Vec<String> = note.topic.split('/').map(str::to_owned).collect();
        return from_parts(&parts, parts.len());
    }
    let parts: Vec<String> =
        origin.components().map(|part| part.as_os_str().to_string_lossy().into_owned()).collect();
    let below = origin.strip_prefix(root).map_or(0, |below| below.components().count());
    from_parts(&parts, below)
}

/// Derives the place from the parts of a path, the last `known` of which belong to the archive.
fn from_parts(parts: &[String], known: usize) -> Place {
    let Some((topic, above)) = parts.split_last() else { return Place::default() };
    let mut place = Place { topic: topic.clone(), ..Place::default() };
    let machine_and_interface =
        above.iter().enumerate().rev().find_map(|(i, part)| Some((i, machine(part)?)));
    if let Some((i, (machine, interface))) = machine_and_interface {
        place.machine = machine.to_owned();
        let mut rest = &parts[i + 1..];
        place.interface = interface.to_owned();
        if interface.is_empty() && rest.len() > 1 {
            place.interface.clone_from(&rest[0]);
            rest = &rest[1..];
        }
        place.topic = rest.join("/");
    } else if let ([.., machine, interface], 3..) = (above, known) {
        place.machine.clone_from(machine);
        place.interface.clone_from(interface);
    }
    place
}

/// Splits a machine's name from its suffix: `Xeon_E5-2650_8Cores`, or with the interface appended,
/// as in the archive before 2018: `Atom_C2558_4Cores-Intel_i350`.
fn machine(name: &str) -> Option<(&str, &str)> {
    let end = name.find("Cores")? + "Cores".len();
    let number = name[..end].strip_suffix("Cores")?.rsplit('_').next()?;
    let counts = !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit());
    let rest = &name[end..];
    let ends = rest.is_empty() || rest.starts_with(['-', '_']);
    (counts && ends && number.len() + "Cores".len() < end)
        .then(|| (&name[..end], rest.trim_start_matches(['-', '_'])))
}

fn note(origin: &Path) -> Option<Note> {
    let path = origin.join(NOTE);
    // Reading a named pipe with this name would block forever.
    path.metadata().ok().filter(std::fs::Metadata::is_file)?;
    let mut text = String::new();
    File::open(path).ok()?.take(LONGEST_NOTE).read_to_string(&mut text).ok()?;
    serde_json::from_str(&text).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn place(path: &str, root: &str) -> [String; 3] {
        let Place { machine, interface, topic, .. } = of_bench(Path::new(path), Path::new(root));
        [machine, interface, topic]
    }

    #[test]
    fn machine_rejects_other_folders() {
        assert_eq!(machine("Xeon_E5-2650_8Cores"), Some(("Xeon_E5-2650_8Cores", "")));
        let with_interface = Some(("Atom_C2558_4Cores", "Intel_i350"));
        assert_eq!(machine("Atom_C2558_4Cores-Intel_i350"), with_interface);
        for other in ["Cores", "_8Cores_", "8Cores", "manyCores", "a_Cores", "x_8Coresy", "home"] {
            assert_eq!(machine(other).filter(|(name, _)| *name != "_8Cores"), None, "{other}");
        }
    }

    #[test]
    fn of_bench_reads_the_path() {
        let whole = ["Atom_C2758_8Cores", "T540", "firewalls"].map(str::to_owned);
        assert_eq!(place("/a/Atom_C2758_8Cores/T540/firewalls", "/a"), whole);
        assert_eq!(
            place("/a/Atom_C2758_8Cores/T540/firewalls", "/a/Atom_C2758_8Cores/T540"),
            whole
        );
        let deeper = ["x_2Cores", "igb", "firewalls/altq"].map(str::to_owned);
        assert_eq!(place("/a/x_2Cores/igb/firewalls/altq", "/a"), deeper);
        assert_eq!(place("/a/x_2Cores/ipsec", "/a"), ["x_2Cores", "", "ipsec"].map(str::to_owned));
        assert_eq!(place("/a/box/igb/ipsec", "/a"), ["box", "igb", "ipsec"].map(str::to_owned));
        assert_eq!(place("/srv/me/ipsec", "/srv/me"), ["", "", "ipsec"].map(str::to_owned));
        assert_eq!(place("/srv/me/ipsec", "/srv/me/ipsec/results")[0], "");
    }
}
