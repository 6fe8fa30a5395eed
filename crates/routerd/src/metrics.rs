//! Counters in Prometheus' text format, for a collector that reads files.
//!
//! A file rather than a socket: the router does not listen, and the collector (for example the
//! textfile collector of `node_exporter`) needs no access to it.

use anyhow::Context;
use fwdlab_model::router::RouterStats;
use fwdlab_netio::files;
use std::fmt::Write;
use std::io::Write as _;
use std::path::Path;

/// Writes the counters; a reader finds either the new file or the previous one, always complete.
///
/// # Errors
/// Fails if the file cannot be written, or its temporary name is a symbolic link.
pub fn write(path: &Path, stats: &RouterStats) -> anyhow::Result<()> {
    let mut temporary = path.as_os_str().to_owned();
    temporary.push(".new");
    files::create(Path::new(&temporary), 0o644)
        .and_then(|mut file| file.write_all(text(stats).as_bytes()))
        .and_then(|()| std::fs::rename(&temporary, path))
        .with_context(|| format!("writing counters to {}", path.display()))
}

fn text(stats: &RouterStats) -> String {
    let mut text = String::from(
        "# HELP fwdlab_router_packets_total Packets by what became of them.\n\
         # TYPE fwdlab_router_packets_total counter\n",
    );
    // Writing to a string cannot fail.
    for (reason, packets, class) in &stats.counters {
        let class = class.name();
        let _ = writeln!(
            text,
            "fwdlab_router_packets_total{{reason=\"{reason}\",class=\"{class}\"}} {packets}"
        );
    }
    text += "# HELP fwdlab_router_frames_total Frames of each interface.\n\
             # TYPE fwdlab_router_frames_total counter\n";
    for interface in &stats.interfaces {
        let name = interface.name.replace('\\', "\\\\").replace('"', "\\\"");
        for (what, frames) in [
            ("received", interface.received),
            ("sent", interface.sent),
            ("lost", interface.lost),
            ("missed", interface.missed),
        ] {
            let _ = writeln!(
                text,
                "fwdlab_router_frames_total{{interface=\"{name}\",what=\"{what}\"}} {frames}"
            );
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use fwdlab_model::router::InterfaceCounts;
    use fwdlab_packet::forwarding::Class;

    #[test]
    fn metrics_have_names_and_labels() {
        let name = "r\"0".to_owned();
        let interfaces = vec![InterfaceCounts { name, received: 7, ..InterfaceCounts::default() }];
        let counters = vec![("ipv4_checksum".to_owned(), 3, Class::Dropped)];
        let stats = RouterStats { counters, interfaces, ..RouterStats::default() };
        let directory = tempfile::tempdir().expect("a directory");
        let path = directory.path().join("fwdlab.prom");
        write(&path, &stats).expect("a file");
        let text = std::fs::read_to_string(path).expect("text");
        for line in [
            "fwdlab_router_packets_total{reason=\"ipv4_checksum\",class=\"dropped\"} 3",
            "fwdlab_router_frames_total{interface=\"r\\\"0\",what=\"received\"} 7",
        ] {
            assert!(text.lines().any(|other| other == line), "{line} in\n{text}");
        }
    }
}
