//! JSON over HTTP by curl(1), with the API's own errors.

use fwdlab_host::error::BenchError;
use fwdlab_host::{Host, LocalHost};
use serde_json::Value;
use std::time::Duration;

/// A server of the API.
#[derive(Debug)]
pub(super) struct Server {
    url: String,
    timeout: Duration,
    verified: bool,
}

/// Method and body of a request.
enum Request<'a> {
    Get,
    Post(&'a Value),
}

impl Server {
    /// Creates a client without sending anything. Unless `verified`, any certificate is accepted:
    /// generators ship with self-signed ones.
    pub(super) fn new(url: &str, timeout: Duration, verified: bool) -> Server {
        let url = if url.contains("://") { url.to_owned() } else { format!("https://{url}") };
        let url = url.trim_end_matches('/').to_owned();
        Server { url, timeout, verified }
    }

    /// Gets a document.
    ///
    /// # Errors
    /// The errors of [`Server::post`].
    pub(super) fn get(&self, path: &str) -> Result<Value, BenchError> {
        self.send(path, Request::Get)
    }

    /// Sends a document and returns the answer.
    ///
    /// # Errors
    /// Fails if the server does not answer, or answers with an error.
    pub(super) fn post(&self, path: &str, body: &Value) -> Result<Value, BenchError> {
        self.send(path, Request::Post(body))
    }

    fn send(&self, path: &str, request: Request<'_>) -> Result<Value, BenchError> {
        let failed = |why: String| BenchError::Program {
            command: format!("OTG's {path}"),
            host: self.url.clone(),
            why,
        };
        let seconds = self.timeout.as_secs().max(1).to_string();
        let url = format!("{}{path}", self.url);
        // No configuration file of the user affects the request; the status follows the answer.
        let mut argv = vec!["curl", "--disable", "--silent", "--show-error", "--globoff"];
        argv.extend(["--max-time", &seconds, "--write-out", "\n%{http_code}"]);
        argv.extend((!self.verified).then_some("--insecure"));
        let body = match request {
            Request::Get => String::new(),
            Request::Post(body) => {
                argv.extend(["--header", "content-type: application/json"]);
                argv.extend(["--header", "expect:", "--data-binary", "@-"]);
                body.to_string()
            }
        };
        argv.extend(["--url", &url]);
        let output = LocalHost.run(&argv, &body).map_err(|error| match error {
            BenchError::Program { why, .. } if why.contains("not installed") => {
                BenchError::environment(
                    format!("OTG at {} is spoken to by curl, which is not installed", self.url),
                    "apt-get install curl",
                )
            }
            BenchError::Program { why, .. } if why.contains("certificate") => {
                BenchError::environment(
                    format!("{} is not trusted: {why}", self.url),
                    "give it a certificate of a known authority, or the generator the option \
                     insecure",
                )
            }
            BenchError::Program { why, .. } => failed(why),
            other => other,
        })?;
        let (text, status) = output.rsplit_once('\n').unwrap_or(("", &output));
        if !status.starts_with('2') {
            return Err(failed(format!("status {status}: {}", complaint(text))));
        }
        match text.trim().is_empty() {
            true => Ok(Value::Null),
            false => serde_json::from_str(text).map_err(|e| failed(format!("no JSON: {e}"))),
        }
    }
}

/// Text of an error `{code, kind, errors}`, or the unchanged text.
pub fn complaint(text: &str) -> String {
    let Ok(error) = serde_json::from_str::<Value>(text) else {
        return text.chars().take(200).collect();
    };
    let kind = error["kind"].as_str().unwrap_or("error");
    let words = match &error["errors"] {
        Value::Array(errors) => {
            errors.iter().map(|e| e.as_str().map_or_else(|| e.to_string(), str::to_owned)).collect()
        }
        Value::Null => vec![error.to_string()],
        other => vec![other.to_string()],
    };
    format!("{kind}: {}", words.join("; "))
}
