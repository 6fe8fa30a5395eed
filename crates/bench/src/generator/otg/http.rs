//! JSON over HTTP, blocking, with the API's own errors.

use crate::error::BenchError;
use serde_json::Value;
use std::time::Duration;
use ureq::Agent;
use ureq::tls::TlsConfig;

/// A server of the API.
#[derive(Debug)]
pub(super) struct Server {
    agent: Agent,
    url: String,
}

impl Server {
    /// Nothing is sent yet. Unless `verified`, any certificate will do: those that
    /// generators come with are their own.
    pub(super) fn new(url: &str, timeout: Duration, verified: bool) -> Server {
        let tls = TlsConfig::builder().disable_verification(!verified).build();
        let config = Agent::config_builder()
            .timeout_global(Some(timeout))
            .http_status_as_error(false)
            .tls_config(tls)
            .build();
        let url = if url.contains("://") { url.to_owned() } else { format!("https://{url}") };
        let url = url.trim_end_matches('/').to_owned();
        Server { agent: config.into(), url }
    }

    /// Gets a document.
    ///
    /// # Errors
    /// As [`Server::post`].
    pub(super) fn get(&self, path: &str) -> Result<Value, BenchError> {
        self.answered(path, self.agent.get(format!("{}{path}", self.url)).call())
    }

    /// Sends a document and returns the answer.
    ///
    /// # Errors
    /// When the server does not answer, or with an error.
    pub(super) fn post(&self, path: &str, body: &Value) -> Result<Value, BenchError> {
        let request = self.agent.post(format!("{}{path}", self.url));
        let request = request.header("content-type", "application/json");
        self.answered(path, request.send(body.to_string()))
    }

    fn answered(
        &self,
        path: &str,
        answer: Result<ureq::http::Response<ureq::Body>, ureq::Error>,
    ) -> Result<Value, BenchError> {
        let failed = |why: String| BenchError::Program {
            command: format!("OTG's {path}"),
            host: self.url.clone(),
            why,
        };
        let mut answer = answer.map_err(|error| match error.to_string() {
            why if why.contains("certificate") => BenchError::environment(
                format!("{} is not trusted: {why}", self.url),
                "give it a certificate of a known authority, or the generator the option insecure",
            ),
            why => failed(why),
        })?;
        let text = answer.body_mut().read_to_string().map_err(|error| failed(error.to_string()))?;
        if !answer.status().is_success() {
            return Err(failed(format!("{}: {}", answer.status(), complaint(&text))));
        }
        match text.trim().is_empty() {
            true => Ok(Value::Null),
            false => serde_json::from_str(&text).map_err(|e| failed(format!("no JSON: {e}"))),
        }
    }
}

/// The words of an error `{code, kind, errors}`, or the text as it stands.
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
