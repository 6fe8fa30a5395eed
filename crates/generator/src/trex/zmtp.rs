//! Subset of ZeroMQ for a client of one server: a REQ socket over TCP.
//!
//! ZMTP 3.0 (RFC 23/ZMTP): greeting, mechanism NULL, READY, then messages of frames. A request is
//! an empty delimiter frame and a body (RFC 28/REQREP), and so is its answer. Every wait has a time
//! limit. Checked against libzmq (pyzmq 27.3.0). Not supported: other mechanisms and socket types,
//! reconnecting.

use std::io::{Error, ErrorKind, Read, Result, Write};
use std::net::{TcpStream, ToSocketAddrs};
use std::time::{Duration, Instant};

/// Length of the greeting in bytes.
pub(super) const GREETING: usize = 64;
/// Maximum answer size; no answer of a generator is larger.
const LARGEST: u64 = 64 << 20;

const MORE: u8 = 1;
const LONG: u8 = 2;
const COMMAND: u8 = 4;

/// A connected REQ socket.
#[derive(Debug)]
pub(super) struct Requester {
    stream: TcpStream,
    timeout: Duration,
}

impl Requester {
    /// Connects to `host:port` and performs the handshake; no step takes longer than `timeout`.
    ///
    /// # Errors
    /// Fails if no server listens there, or the server does not speak ZMTP 3.
    pub(super) fn connect(server: &str, timeout: Duration) -> Result<Requester> {
        let mut last = Error::new(ErrorKind::NotFound, "the name has no address");
        for address in server.to_socket_addrs()? {
            match TcpStream::connect_timeout(&address, timeout) {
                Ok(stream) => {
                    stream.set_nodelay(true)?;
                    stream.set_write_timeout(Some(timeout))?;
                    let mut requester = Requester { stream, timeout };
                    requester.shake_hands()?;
                    return Ok(requester);
                }
                Err(error) => last = error,
            }
        }
        Err(last)
    }

    /// Sends a request and waits for its answer.
    ///
    /// # Errors
    /// Fails if the answer is late or missing; the connection is then unusable.
    pub(super) fn ask(&mut self, body: &[u8]) -> Result<Vec<u8>> {
        let mut bytes = vec![MORE, 0];
        put_frame(&mut bytes, 0, body);
        self.stream.write_all(&bytes)?;
        read_answer(&mut self.until(Instant::now() + self.timeout))
    }

    fn shake_hands(&mut self) -> Result<()> {
        self.stream.write_all(&greeting())?;
        let deadline = Instant::now() + self.timeout;
        read_greeting(&mut self.until(deadline))?;
        let mut ready = b"\x05READY".to_vec();
        put_property(&mut ready, "Socket-Type", b"REQ");
        put_property(&mut ready, "Identity", b"");
        let mut bytes = Vec::new();
        put_frame(&mut bytes, COMMAND, &ready);
        self.stream.write_all(&bytes)?;
        read_ready(&mut self.until(deadline))
    }

    /// Reader with a deadline for the whole read, however slowly bytes arrive.
    fn until(&self, deadline: Instant) -> DeadlineStream<'_> {
        DeadlineStream { stream: &self.stream, deadline }
    }
}

/// A stream that is readable until a deadline.
struct DeadlineStream<'a> {
    stream: &'a TcpStream,
    deadline: Instant,
}

impl Read for DeadlineStream<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> Result<usize> {
        let left = self.deadline.saturating_duration_since(Instant::now());
        let late = || Error::new(ErrorKind::TimedOut, "no answer in time");
        if left.is_zero() {
            return Err(late());
        }
        self.stream.set_read_timeout(Some(left))?;
        let mut stream = self.stream;
        match stream.read(buffer) {
            Err(error) if error.kind() == ErrorKind::WouldBlock => Err(late()),
            other => other,
        }
    }
}

/// Reads the peer's greeting.
///
/// # Errors
/// Fails if the peer does not speak ZMTP 3, or requires a mechanism other than NULL.
pub fn read_greeting(input: &mut impl Read) -> Result<()> {
    let greeting: [u8; GREETING] = bytes(input)?;
    if greeting[0] != 0xff || greeting[9] & 1 == 0 {
        return Err(invalid("what listens there does not speak ZeroMQ"));
    }
    if greeting[10] < 3 {
        return Err(invalid("its ZeroMQ is older than 4.0"));
    }
    if &greeting[12..17] != b"NULL\0" {
        return Err(invalid("its ZeroMQ wants another security mechanism than NULL"));
    }
    Ok(())
}

/// Reads the command that reports the peer ready.
///
/// # Errors
/// Fails on any other command.
pub fn read_ready(input: &mut impl Read) -> Result<()> {
    let (flags, command) = frame(input, LARGEST)?;
    match flags & COMMAND != 0 && command.starts_with(b"\x05READY") {
        true => Ok(()),
        false => Err(invalid(&format!("it refused: {}", String::from_utf8_lossy(&command)))),
    }
}

/// Reads the frames of an answer, and returns the frames after the delimiter as one.
///
/// # Errors
/// Fails if the answer ends too early, has no delimiter, or exceeds the maximum size.
pub fn read_answer(input: &mut impl Read) -> Result<Vec<u8>> {
    let (mut answer, mut is_body) = (Vec::new(), false);
    loop {
        let (flags, frame) = frame(input, LARGEST - answer.len() as u64)?;
        if flags & COMMAND != 0 {
            continue; // heartbeats (RFC 37) need an answer only if both sides use them
        }
        if is_body {
            answer.extend_from_slice(&frame);
        }
        is_body |= frame.is_empty();
        match flags & MORE == 0 {
            false => {}
            true if is_body => return Ok(answer),
            true => return Err(invalid("an answer without delimiter")),
        }
    }
}

/// Reads flags and body of the next frame, of at most `longest` bytes.
fn frame(input: &mut impl Read, longest: u64) -> Result<(u8, Vec<u8>)> {
    let [flags] = bytes(input)?;
    let length = match flags & LONG {
        0 => u64::from(bytes::<1>(input)?[0]),
        _ => u64::from_be_bytes(bytes(input)?),
    };
    if length > longest {
        return Err(invalid(&format!("a frame of {length} bytes")));
    }
    let mut body = Vec::new();
    // Memory grows with the bytes received: a large length alone allocates nothing.
    match input.take(length).read_to_end(&mut body)? as u64 == length {
        true => Ok((flags, body)),
        false => Err(closed()),
    }
}

fn bytes<const N: usize>(input: &mut impl Read) -> Result<[u8; N]> {
    let mut bytes = [0; N];
    match input.read_exact(&mut bytes) {
        Err(error) if error.kind() == ErrorKind::UnexpectedEof => Err(closed()),
        other => other.map(|()| bytes),
    }
}

fn closed() -> Error {
    Error::new(ErrorKind::UnexpectedEof, "it closed the connection")
}

/// Greeting: signature, version 3.0, mechanism NULL, not as a server.
pub(super) fn greeting() -> [u8; GREETING] {
    let mut bytes = [0; GREETING];
    (bytes[0], bytes[9]) = (0xff, 0x7f);
    bytes[10] = 3;
    bytes[12..16].copy_from_slice(b"NULL");
    bytes
}

fn put_frame(bytes: &mut Vec<u8>, flags: u8, body: &[u8]) {
    match u8::try_from(body.len()) {
        Ok(length) => bytes.extend([flags, length]),
        Err(_) => {
            bytes.push(flags | LONG);
            bytes.extend((body.len() as u64).to_be_bytes());
        }
    }
    bytes.extend_from_slice(body);
}

fn put_property(bytes: &mut Vec<u8>, name: &str, value: &[u8]) {
    bytes.push(name.len() as u8);
    bytes.extend_from_slice(name.as_bytes());
    bytes.extend((value.len() as u32).to_be_bytes());
    bytes.extend_from_slice(value);
}

fn invalid(why: &str) -> Error {
    Error::new(ErrorKind::InvalidData, why.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::net::TcpListener;
    use std::thread::spawn;

    const SHORT: Duration = Duration::from_millis(200);

    /// A server that sends `bytes` regardless of its input, and then nothing more.
    fn server_sending(bytes: Vec<u8>) -> String {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let address = listener.local_addr().expect("an address").to_string();
        spawn(move || {
            let (mut stream, _) = listener.accept().expect("a client");
            let _ = stream.write_all(&bytes);
            let _ = stream.read_to_end(&mut Vec::new());
        });
        address
    }

    fn hello() -> Vec<u8> {
        let mut bytes = greeting().to_vec();
        put_frame(&mut bytes, COMMAND, b"\x05READY\x0bSocket-Type\0\0\0\x03REP");
        bytes
    }

    #[test]
    fn answers_are_read_from_short_and_long_frames_between_commands() {
        let mut bytes = hello();
        put_frame(&mut bytes, COMMAND, b"\x04PING\0\0");
        bytes.extend([MORE, 0]);
        put_frame(&mut bytes, MORE, b"left ");
        put_frame(&mut bytes, 0, &[b'x'; 300]);
        let mut requester = Requester::connect(&server_sending(bytes), SHORT).expect("connected");
        let answer = requester.ask(&[b'y'; 300]).expect("an answer");
        assert_eq!((&answer[..5], answer.len()), (&b"left "[..], 305));
        let error = requester.ask(b"again").expect_err("silence");
        assert_eq!(error.kind(), ErrorKind::TimedOut);
    }

    #[test]
    fn incompatible_peers_are_distinguished() {
        let with = |at: usize, byte: u8| {
            let mut bytes = hello();
            bytes[at] = byte;
            let connected = Requester::connect(&server_sending(bytes), SHORT);
            connected.expect_err("refused").to_string()
        };
        assert!(with(0, b'H').contains("does not speak ZeroMQ"));
        assert!(with(10, 2).contains("older than 4.0"));
        assert!(with(12, b'P').contains("another security mechanism"));
        assert!(with(GREETING, 0).contains("it refused"));
        let silent = Requester::connect(&server_sending(Vec::new()), SHORT).expect_err("late");
        assert_eq!(silent.kind(), ErrorKind::TimedOut);
        let mut huge = hello();
        huge.extend([LONG, 0xff, 0, 0, 0, 0, 0, 0, 0]);
        let mut requester = Requester::connect(&server_sending(huge), SHORT).expect("connected");
        assert!(requester.ask(b"x").expect_err("too much").to_string().contains("a frame of"));
    }

    #[test]
    fn answer_size_is_limited_over_all_frames() {
        let half = vec![0_u8; LARGEST as usize / 2 + 1];
        let mut frames = vec![MORE, 0];
        put_frame(&mut frames, MORE, &half);
        put_frame(&mut frames, 0, &half);
        let error = read_answer(&mut frames.as_slice()).expect_err("too large").to_string();
        assert_eq!(error, format!("a frame of {} bytes", half.len()));
        let mut short = [&[LONG][..], &LARGEST.to_be_bytes(), b"x"].concat();
        let error = read_answer(&mut short.as_slice()).expect_err("cut short").to_string();
        assert_eq!(error, "it closed the connection");
        short.truncate(3);
        assert!(read_answer(&mut short.as_slice()).is_err());
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]
        #[test]
        fn any_bytes_are_accepted(bytes in prop::collection::vec(any::<u8>(), 0..40)) {
            let wait = Duration::from_millis(5);
            let after_greeting = [&greeting()[..], &bytes].concat();
            let after_ready = [hello(), bytes].concat();
            let _ = Requester::connect(&server_sending(after_greeting), wait);
            // On a busy machine even the greeting may be late.
            if let Ok(mut requester) = Requester::connect(&server_sending(after_ready), wait) {
                let _ = requester.ask(b"x");
            }
        }
    }
}
