//! A port between two files.

use super::read::{Next, PcapReader};
use super::write::PcapWriter;
use crate::frame::{BATCH, Batch};
use crate::poll::Wakers;
use crate::port::{Port, Sent};
use crate::{NetioError, clock};
use std::fs::File;
use std::io::{self, BufWriter};
use std::path::Path;

/// A port that receives the frames of one file and writes outgoing frames to another.
pub struct PcapPort {
    number: u8,
    input: Option<PcapReader>,
    output: Option<(String, PcapWriter<BufWriter<File>>)>,
    missed: u64,
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
        let output = output.map(|path| {
            let name = path.display().to_string();
            let writer = File::create(path).and_then(|file| PcapWriter::new(BufWriter::new(file)));
            match writer {
                Ok(writer) => Ok((name, writer)),
                Err(error) => Err(NetioError::system(format!("writing {name}"), error)),
            }
        });
        Ok(PcapPort { number, input, output: output.transpose()?, missed: 0 })
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
    fn receive(&mut self, batch: &mut Batch) -> Result<usize, NetioError> {
        batch.clear();
        let Some(input) = &mut self.input else { return Ok(0) };
        let (frames, mut count) = (batch.fill(BATCH), 0);
        while count < frames.len() {
            match input.next(self.number, &mut frames[count])? {
                Next::Frame => count += 1,
                Next::Missed => self.missed += 1,
                Next::End => {
                    self.input = None;
                    break;
                }
            }
        }
        batch.fill(count);
        Ok(count)
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
        if self.input.is_some() {
            wakers.ready();
        }
        Ok(())
    }

    /// Returns the number of frames that are truncated in the file, or longer than a
    /// [`crate::Frame`] can be.
    fn missed(&mut self) -> u64 {
        self.missed
    }

    fn is_at_end(&self) -> bool {
        self.input.is_none()
    }
}
