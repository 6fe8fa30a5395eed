//! Capture files that interfaces read and write: records that were left out.

use super::mistake;
use fwdlab_model::router::{FileWarning, PortKind, RouterSetup};
use fwdlab_netio::files::WriteLosses;
use fwdlab_netio::frame::Batch;
use fwdlab_netio::pcap::{CaptureCounts, PcapPort};
use fwdlab_netio::{NetioError, Port};
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

/// A capture file that a worker reads.
pub(super) struct Capture {
    file: String,
    counts: Arc<Mutex<CaptureCounts>>,
}

impl Capture {
    pub(super) fn new(file: &str, port: &PcapPort) -> Capture {
        Capture { file: file.to_owned(), counts: port.counts() }
    }

    fn counts(&self) -> CaptureCounts {
        self.counts.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Counts of what was left out so far, if any.
    pub(super) fn warning(&self) -> Option<FileWarning> {
        let what = self.counts().remark()?;
        Some(FileWarning { file: self.file.clone(), line: None, what })
    }

    /// Refuses a file of which most was left out.
    ///
    /// # Errors
    /// The counts, if the whole file was read.
    pub(super) fn check(&self) -> anyhow::Result<()> {
        let counts = self.counts();
        match counts.remark() {
            Some(remark) if counts.is_at_end && counts.is_mostly_left_out() => {
                Err(mistake(format!(
                    "{}: {remark}\n  next step: capture whole frames (`tcpdump -s 0`), as pcap",
                    self.file
                )))
            }
            _ => Ok(()),
        }
    }
}

/// Counts of records that a capture or trace did not take, if any.
pub(super) fn unwritten(losses: &WriteLosses) -> Option<FileWarning> {
    Some(FileWarning { file: losses.path().to_owned(), line: None, what: losses.remark()? })
}

/// Reads the input files of a set-up without forwarding their frames; devices and pipes, which can
/// be read only once, are not touched.
///
/// # Errors
/// Files that are cut or malformed, or cannot be used for the most part.
pub(super) fn survey(setup: &RouterSetup) -> anyhow::Result<Vec<FileWarning>> {
    let mut warnings = Vec::new();
    for entry in setup.interfaces.iter().filter(|entry| entry.port == PortKind::Pcap) {
        let Some(file) = &entry.input else { continue };
        if !Path::new(file).metadata().is_ok_and(|metadata| metadata.is_file()) {
            continue;
        }
        let fault = |error: NetioError| mistake(format!("interface {}: {error}", entry.name));
        let mut port = PcapPort::open(Some(Path::new(file)), None, 0).map_err(fault)?;
        let (capture, mut batch) = (Capture::new(file, &port), Batch::new());
        while !port.is_at_end() {
            port.receive(&mut batch).map_err(fault)?;
        }
        capture.check()?;
        warnings.extend(capture.warning());
    }
    Ok(warnings)
}
