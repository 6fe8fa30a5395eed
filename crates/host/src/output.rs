//! Output of a program of this machine, read continuously.

use std::io::Read;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

/// Time limit for the end of the output after the program has exited: a process that it left in the
/// background may keep the pipe open. Reading the rest takes longer only on a stalled machine.
const GRACE: Duration = Duration::from_secs(5);

/// Everything that a program prints on one pipe.
#[derive(Debug)]
pub(super) struct Output {
    bytes: Arc<Mutex<Vec<u8>>>,
    /// Disconnected at the end of the output.
    end: Receiver<()>,
}

impl Output {
    /// Starts a thread that reads, so the program never blocks on a full pipe.
    pub(super) fn read(mut pipe: impl Read + Send + 'static) -> Output {
        let bytes: Arc<Mutex<Vec<u8>>> = Arc::default();
        let (shared, (reading, end)): (_, (Sender<()>, _)) = (bytes.clone(), channel());
        std::thread::spawn(move || {
            let _reading = reading;
            let mut chunk = [0; 16 * 1024];
            loop {
                match pipe.read(&mut chunk) {
                    Ok(0) => return,
                    Ok(length) => {
                        let mut bytes = shared.lock().unwrap_or_else(PoisonError::into_inner);
                        bytes.extend_from_slice(&chunk[..length]);
                    }
                    Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
                    Err(_) => return,
                }
            }
        });
        Output { bytes, end }
    }

    /// The whole text, after the program has exited.
    pub(super) fn text(self) -> String {
        let _ = self.end.recv_timeout(GRACE);
        let bytes = self.bytes.lock().unwrap_or_else(PoisonError::into_inner);
        String::from_utf8_lossy(&bytes).into_owned()
    }
}
