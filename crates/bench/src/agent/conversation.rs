//! The controller's connection to one agent.

use super::protocol::{Answer, Hello, Order, Received, Sent};
use crate::error::BenchError;
use crate::host::{Host, Running};
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::collections::BTreeMap;
use std::time::{Duration, Instant};

/// Time limit for the hello of a started agent.
const HELLO: Duration = Duration::from_secs(20);
/// Time limit for opening senders or a receiver; some drivers restart the link.
const READY: Duration = Duration::from_secs(45);
/// Time limit for any other answer.
const ANSWER: Duration = Duration::from_secs(10);
/// Time limit for exiting.
const END: Duration = Duration::from_millis(500);
/// Lines of standard error that an error quotes.
const LAST_LINES: usize = 5;

/// A running agent. Dropping it ends the agent.
pub(super) struct Conversation {
    program: Box<dyn Running>,
    host: String,
    command: String,
}

impl Conversation {
    /// Starts `program` with `command` (`send` or `receive`) on the host and sends it its first
    /// order; returns the agent's facts when it is ready.
    pub(super) fn begin(
        host: &dyn Host,
        program: &str,
        command: &str,
        order: &Order,
    ) -> Result<(Conversation, BTreeMap<String, String>), BenchError> {
        let argv = [program, command, "--control"];
        let program = host.spawn(&argv)?;
        let (host, command) = (host.name().to_owned(), argv.join(" "));
        let mut conversation = Conversation { program, host, command };
        conversation.write(&Hello::own())?;
        let hello: Hello = conversation.read(HELLO)?;
        hello.check(&format!("the agent on {}", conversation.host))?;
        conversation.tell(order)?;
        match conversation.answer(READY)? {
            Answer::Ready { facts } => Ok((conversation, facts)),
            other => Err(conversation.failed(&format!("it answered {other:?} instead of ready"))),
        }
    }

    /// Name of the agent's host.
    pub(super) fn host(&self) -> &str {
        &self.host
    }

    /// Sends an order; its answer must be read before the next one.
    pub(super) fn tell(&mut self, order: &Order) -> Result<(), BenchError> {
        self.write(order)
    }

    /// Reads the answer of a sending agent.
    pub(super) fn sent(&mut self) -> Result<Sent, BenchError> {
        match self.answer(ANSWER)? {
            Answer::Sent(sent) => Ok(sent),
            other => Err(self.failed(&format!("it answered {other:?} instead of its send counts"))),
        }
    }

    /// Reads the answer of a receiving agent.
    pub(super) fn received(&mut self) -> Result<Received, BenchError> {
        match self.answer(ANSWER)? {
            Answer::Received(received) => Ok(*received),
            other => {
                Err(self.failed(&format!("it says {other:?} instead of what it has received")))
            }
        }
    }

    /// Waits until an agent that received the order to stop has exited.
    pub(super) fn end(mut self) -> Result<(), BenchError> {
        let ended = self.program.wait(ANSWER);
        match ended.well {
            true => Ok(()),
            false => {
                Err(self.error("it stopped, but did not end well", &ended.status, &ended.errors))
            }
        }
    }

    fn write<T: Serialize>(&mut self, message: &T) -> Result<(), BenchError> {
        let line = serde_json::to_string(message)
            .map_err(|error| BenchError::Refused(format!("an order for an agent: {error}")))?;
        // An agent that has exited can't read this: its last message is the error to report.
        let _ = self.program.tell(&line);
        Ok(())
    }

    fn answer(&mut self, patience: Duration) -> Result<Answer, BenchError> {
        match self.read(patience)? {
            Answer::Failed { what, next } => {
                let what = format!("{}: {what} (`{}`)", self.host, self.command);
                Err(match next.as_str() {
                    "" => BenchError::Refused(what),
                    next => BenchError::environment(what, next),
                })
            }
            answer => Ok(answer),
        }
    }

    fn read<T: DeserializeOwned>(&mut self, patience: Duration) -> Result<T, BenchError> {
        let begin = Instant::now();
        let Some(line) = self.program.hear(patience) else {
            return Err(match begin.elapsed() < patience {
                true => self.failed("it ended before it answered"),
                false => self.failed(&format!("no answer within {patience:?}")),
            });
        };
        serde_json::from_str(&line)
            .map_err(|error| self.failed(&format!("it says `{line}`, which is no answer: {error}")))
    }

    /// Ends the agent; returns an error with its last output.
    fn failed(&mut self, why: &str) -> BenchError {
        let ended = self.program.wait(END);
        self.error(why, &ended.status, &ended.errors)
    }

    fn error(&self, why: &str, status: &str, errors: &str) -> BenchError {
        let lines: Vec<&str> = errors.lines().filter(|line| !line.trim().is_empty()).collect();
        let last = lines[lines.len().saturating_sub(LAST_LINES)..].join("; ");
        let words = [why, status, &last].into_iter().filter(|words| !words.is_empty());
        BenchError::Program {
            command: self.command.clone(),
            host: self.host.clone(),
            why: words.collect::<Vec<_>>().join("; "),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::host::Ended;

    /// A program that runs and prints nothing.
    struct SilentProgram;

    impl Running for SilentProgram {
        fn tell(&mut self, _: &str) -> Result<(), BenchError> {
            Ok(())
        }
        fn hear(&mut self, patience: Duration) -> Option<String> {
            std::thread::sleep(patience);
            None
        }
        fn interrupt(&mut self) {}
        fn has_ended(&mut self) -> bool {
            false
        }
        fn wait(&mut self, _: Duration) -> Ended {
            let (status, errors) = ("it was killed".into(), "loading the BPF sender\n".into());
            Ended { well: false, status, errors, ..Ended::default() }
        }
    }

    #[test]
    fn silent_agent_error_quotes_its_last_output() {
        let (host, command) = ("far".into(), "fwdlab send --control".into());
        let mut mute = Conversation { program: Box::new(SilentProgram), host, command };
        let error = mute.answer(Duration::from_millis(20)).expect_err("silence").to_string();
        assert_eq!(
            error,
            "fwdlab send --control on far failed: no answer within 20ms; it was killed; loading \
             the BPF sender"
        );
        let error = mute.end().expect_err("no good end").to_string();
        assert!(error.contains("did not end well"), "{error}");
    }
}
