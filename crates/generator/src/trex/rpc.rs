//! JSON-RPC 2.0 of TRex's server: over ZeroMQ, optionally compressed.
//!
//! A long answer consists of magic, length and zlib data; requests are never compressed. Errors
//! -32001 (try again) and -32002 (work in progress, with a ticket) are retried. Source: TRex RPC
//! server specification.

use super::zmtp::Requester;
use flate2::read::ZlibDecoder;
use fwdlab_host::error::BenchError;
use serde_json::{Value, json};
use std::io::Read;
use std::time::{Duration, Instant};

/// First bytes of compressed data.
const MAGIC: [u8; 4] = [0xab, 0xe8, 0x5c, 0xea];
/// Maximum accepted length of compressed data.
const LARGEST: u64 = 64 << 20;
/// Interval of polling work in progress.
const PAUSE: Duration = Duration::from_millis(20);
/// The server's error code for busy.
const TRY_AGAIN: i64 = -32001;
/// The server's error code for work in progress.
const IN_PROGRESS: i64 = -32002;

/// A session with a server.
#[derive(Debug)]
pub(super) struct Rpc {
    requester: Requester,
    server: String,
    timeout: Duration,
    next: u64,
    handle: Option<String>,
}

impl Rpc {
    /// Connects and negotiates the API's version.
    ///
    /// # Errors
    /// Fails if there is no server, or its API version differs.
    pub(super) fn open(server: &str, timeout: Duration) -> Result<Rpc, BenchError> {
        let requester = Requester::connect(server, timeout).map_err(|error| {
            BenchError::environment(
                format!("no TRex server answers at {server}: {error}"),
                "start it on its host: ./t-rex-64 -i (its RPC port is 4501)",
            )
        })?;
        let mut rpc = Rpc { requester, server: server.into(), timeout, next: 1, handle: None };
        let version = json!({ "name": "STL", "major": 5, "minor": 1 });
        let answer = rpc.call("api_sync_v2", version)?;
        let handle =
            answer["api_h"].as_str().ok_or_else(|| rpc.failed("api_sync_v2", "no api_h"))?;
        rpc.handle = Some(handle.to_owned());
        Ok(rpc)
    }

    /// Calls a method and returns its result after the server has finished.
    ///
    /// # Errors
    /// Fails if the server reports an error, does not answer, or takes too long.
    pub(super) fn call(&mut self, method: &str, params: Value) -> Result<Value, BenchError> {
        let deadline = Instant::now() + self.timeout;
        let (mut current_method, mut current_params) = (method.to_owned(), params);
        loop {
            let answer = self.call_once(&current_method, &current_params)?;
            let Some(error) = answer.get("error").filter(|error| !error.is_null()) else {
                let result = answer.get("result").cloned();
                return result.ok_or_else(|| self.failed(method, "neither result nor error"));
            };
            let code = error["code"].as_i64().unwrap_or(0);
            let text = error["message"].as_str().unwrap_or("an error without words");
            let specific = error["specific_err"].as_str().unwrap_or(text);
            if Instant::now() > deadline || ![TRY_AGAIN, IN_PROGRESS].contains(&code) {
                return Err(self.failed(method, &format!("{specific} ({code})")));
            }
            if code == IN_PROGRESS
                && let Some(ticket) = ticket(error)
            {
                // From now on poll for the result.
                (current_method, current_params) =
                    ("get_async_results".into(), json!({ "ticket_id": ticket }));
            }
            std::thread::sleep(PAUSE);
        }
    }

    fn call_once(&mut self, method: &str, params: &Value) -> Result<Value, BenchError> {
        let mut params = params.clone();
        if let (Some(handle), Some(params)) = (&self.handle, params.as_object_mut()) {
            params.insert("api_h".into(), json!(handle));
        }
        let id = self.next.to_string();
        self.next += 1;
        let request = json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params });
        let body = request.to_string();
        let answer = match self.requester.ask(body.as_bytes()) {
            Ok(answer) => answer,
            Err(error) => return Err(self.failed(method, &error.to_string())),
        };
        let answer = unpacked(&answer).map_err(|why| self.failed(method, &why))?;
        let answer: Value = serde_json::from_slice(&answer)
            .map_err(|error| self.failed(method, &format!("no JSON: {error}")))?;
        // Ids are strings, but a server may return them as numbers.
        let answer_id = match &answer["id"] {
            Value::String(text) => text.clone(),
            other => other.to_string(),
        };
        match answer_id == id {
            true => Ok(answer),
            false => Err(self.failed(method, &format!("an answer to {answer_id}, not to {id}"))),
        }
    }

    fn failed(&self, method: &str, why: &str) -> BenchError {
        BenchError::Program {
            command: format!("TRex's {method}"),
            host: self.server.clone(),
            why: why.into(),
        }
    }
}

/// Ticket of work in progress; its field depends on the server's version.
pub fn ticket(error: &Value) -> Option<Value> {
    let places = [&error["ticket_id"], &error["data"]["ticket_id"], &error["specific_err"]];
    places.into_iter().find_map(|place| match place {
        Value::Number(_) => Some(place.clone()),
        Value::String(text) => {
            let mut numbers = text.split(|c: char| !c.is_ascii_digit());
            numbers.find_map(|number| number.parse::<u64>().ok()).map(|ticket| json!(ticket))
        }
        _ => None,
    })
}

/// Decompresses an answer if it is compressed.
///
/// # Errors
/// Fails if the data is damaged or differs in length from its header.
pub fn unpacked(bytes: &[u8]) -> Result<Vec<u8>, String> {
    let Some(rest) = bytes.strip_prefix(&MAGIC) else { return Ok(bytes.to_vec()) };
    let (length, data) = rest.split_first_chunk::<4>().ok_or("a compressed answer cut short")?;
    let length = u64::from(u32::from_be_bytes(*length));
    if length > LARGEST {
        return Err(format!("a compressed answer of {length} bytes"));
    }
    let mut text = Vec::new();
    ZlibDecoder::new(data)
        .take(length + 1)
        .read_to_end(&mut text)
        .map_err(|error| format!("a compressed answer that is damaged: {error}"))?;
    match text.len() as u64 == length {
        true => Ok(text),
        false => Err(format!("a compressed answer of {} bytes, not {length}", text.len())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use flate2::Compression;
    use flate2::write::ZlibEncoder;
    use proptest::prelude::*;
    use std::io::Write;

    fn packed(text: &[u8], length: u32) -> Vec<u8> {
        let mut encoder = ZlibEncoder::new(Vec::new(), Compression::fast());
        encoder.write_all(text).expect("compressed");
        let data = encoder.finish().expect("compressed");
        [&MAGIC[..], &length.to_be_bytes(), &data].concat()
    }

    #[test]
    fn compressed_answers_are_unpacked_or_rejected() {
        assert_eq!(unpacked(b"{}").as_deref(), Ok(&b"{}"[..]));
        assert_eq!(unpacked(&packed(b"{\"a\":1}", 7)).as_deref(), Ok(&b"{\"a\":1}"[..]));
        for wrong in [packed(b"abc", 2), packed(b"abc", 4), MAGIC.to_vec(), packed(b"a", u32::MAX)]
        {
            assert!(unpacked(&wrong).is_err());
        }
    }

    #[test]
    fn tickets_are_found_in_all_known_fields() {
        assert_eq!(ticket(&json!({ "code": -32002, "ticket_id": 7 })), Some(json!(7)));
        assert_eq!(ticket(&json!({ "specific_err": "ticket 12" })), Some(json!(12)));
        assert_eq!(ticket(&json!({ "specific_err": "busy" })), None);
    }

    proptest! {
        #[test]
        fn unpacked_accepts_any_bytes(bytes: Vec<u8>) {
            let _ = unpacked(&[&MAGIC[..], &bytes].concat());
        }
    }
}
