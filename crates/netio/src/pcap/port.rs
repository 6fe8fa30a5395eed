//! A port between two files.

use super::counts::CaptureCounts;
use super::read::{Next, PcapReader};
use super::write::PcapWriter;
use crate::files::{RecordFile, WriteLosses};
use crate::frame::{BATCH, Batch};
use crate::poll::Wakers;
use crate::port::{Port, Sent};
use crate::{NetioError, clock};
use std::io;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

/// A port that receives the frames of one file and writes outgoing frames to another.
pub struct PcapPort {
    number: u8,
    input: Option<PcapReader>,
    output: Option<(String, PcapWriter<RecordFile>)>,
    losses: Option<Arc<WriteLosses>>,
    counts: CaptureCounts,
    /// The same counts after the last batch, for other threads.
    shared: Arc<Mutex<CaptureCounts>>,
    /// The fault that ended the input, until it is returned.
    fault: Option<NetioError>,
}

impl PcapPort {
    /// Opens the files. Without input the port receives nothing; without output, sent frames are
    /// discarded.
    ///
    /// # Errors
    /// If a file can't be opened, the input's link type is not Ethernet (pcapng files report other
    /// link types with their first frame), or both are the same file.
    pub fn open(
        input: Option<&Path>,
        output: Option<&Path>,
        number: u8,
    ) -> Result<PcapPort, NetioError> {
        if let (Some(input), Some(output)) = (input, output)
            && (input == output
                || input.canonicalize().ok().is_some_and(|i| output.canonicalize().ok() == Some(i)))
        {
            let error = io::Error::other("it is the input");
            return Err(NetioError::system(format!("writing {}", output.display()), error));
        }
        let input = input.map(PcapReader::open).transpose()?;
        let output = output.map(|path| -> Result<_, NetioError> {
            let name = path.display().to_string();
            let failed = |error: io::Error| NetioError::system(format!("writing {name}"), error);
            let file = RecordFile::create(&name, true).map_err(failed)?;
            let losses = file.losses();
            Ok(((name.clone(), PcapWriter::new(file).map_err(failed)?), losses))
        });
        let (output, losses) = output.transpose()?.unzip();
        let counts = CaptureCounts { is_at_end: input.is_none(), ..CaptureCounts::default() };
        Ok(PcapPort {
            number,
            input,
            output,
            losses,
            shared: Arc::new(Mutex::new(counts.clone())),
            counts,
            fault: None,
        })
    }

    /// Returns the counts of the input's records, which the port updates with each batch.
    pub fn counts(&self) -> Arc<Mutex<CaptureCounts>> {
        Arc::clone(&self.shared)
    }

    /// Returns the losses of the output, if there is one: frames that the file does not take are
    /// dropped.
    pub fn losses(&self) -> Option<Arc<WriteLosses>> {
        self.losses.clone()
    }

    /// Writes buffered data, as [`Port::wait`] and dropping do.
    ///
    /// # Errors
    /// The error of writing; dropping ignores it.
    pub fn flush(&mut self) -> Result<(), NetioError> {
        let Some((path, output)) = &mut self.output else { return Ok(()) };
        output.flush().map_err(|e| NetioError::system(format!("writing {path}"), e))
    }
}

impl Port for PcapPort {
    /// Receives frames. A file that is cut or malformed provides all frames before the fault, then
    /// the fault once, and is at its end afterwards.
    fn receive(&mut self, batch: &mut Batch) -> Result<usize, NetioError> {
        batch.clear();
        if let Some(fault) = self.fault.take() {
            return Err(fault);
        }
        let Some(input) = &mut self.input else { return Ok(0) };
        let (frames, mut count) = (batch.fill(BATCH), 0);
        let end = loop {
            if count == frames.len() {
                break None;
            }
            match input.next(self.number, &mut frames[count]) {
                Ok(Next::Frame) => count += 1,
                Ok(Next::Truncated) => self.counts.truncated += 1,
                Ok(Next::TooLong) => self.counts.too_long += 1,
                Ok(Next::Block(kind)) => *self.counts.blocks.entry(kind).or_default() += 1,
                Ok(Next::End) => break Some(None),
                Err(fault) => break Some(Some(fault)),
            }
        };
        batch.fill(count);
        self.counts.frames += count as u64;
        if let Some(fault) = end {
            self.input = None;
            self.counts.is_at_end = true;
            self.counts.fault = fault.as_ref().map(first_line);
            self.fault = fault;
        }
        self.shared.lock().unwrap_or_else(PoisonError::into_inner).clone_from(&self.counts);
        match self.fault.take() {
            Some(fault) if count == 0 => Err(fault),
            fault => {
                self.fault = fault;
                Ok(count)
            }
        }
    }

    fn send(&mut self, batch: &mut Batch) -> Result<Sent, NetioError> {
        let number = Some(self.number);
        let (mut sent, now) = (Sent::default(), clock::realtime_ns());
        for frame in batch.frames().iter().filter(|frame| frame.egress() == number) {
            if let Some((path, output)) = &mut self.output {
                let written = output.write(now, &frame.whole());
                written.map_err(|e| NetioError::system(format!("writing {path}"), e))?;
            }
            sent.sent += 1;
        }
        Ok(sent)
    }

    fn wake_by(&mut self, wakers: &mut Wakers) -> Result<(), NetioError> {
        self.flush()?;
        if !self.is_at_end() {
            wakers.ready();
        }
        Ok(())
    }

    /// Returns the number of frames that are truncated in the file, or longer than a
    /// [`crate::Frame`] can be.
    fn missed(&mut self) -> u64 {
        self.counts.missed()
    }

    fn is_at_end(&self) -> bool {
        self.input.is_none() && self.fault.is_none()
    }
}

/// Place and reason of a fault, without the file and the next step.
fn first_line(fault: &NetioError) -> String {
    let text = match fault {
        NetioError::Capture { offset, why, .. } => format!("at byte {offset}: {why}"),
        other => other.to_string(),
    };
    text.lines().next().unwrap_or_default().to_owned()
}
