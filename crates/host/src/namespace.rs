//! A network namespace of this machine.

use super::local::{copy_here, get_here, put_here, run_here};
use super::{Host, Program, Running};
use crate::error::BenchError;
use fwdlab_netio::NetNs;
use std::path::Path;
use std::sync::mpsc::{Sender, channel};
use std::thread::JoinHandle;

type Job = Box<dyn FnOnce() + Send>;

/// A network namespace with its own `/sys`, served by one thread inside it.
#[derive(Debug)]
pub struct NamespaceHost {
    name: String,
    jobs: Option<Sender<Job>>,
    thread: Option<JoinHandle<()>>,
}

impl NamespaceHost {
    /// Enters the namespace with a new thread, bound to `cpus` unless empty. Programs that it
    /// starts inherit both.
    ///
    /// # Errors
    /// Fails if the namespace cannot be entered.
    pub fn new(namespace: &NetNs, cpus: &[u16]) -> Result<NamespaceHost, BenchError> {
        let (jobs, queue) = channel::<Job>();
        let (ready, entered) = channel();
        let (theirs, cpus) = (namespace.clone(), cpus.to_vec());
        let thread = std::thread::spawn(move || {
            let result = theirs.enter_with_sysfs().and_then(|()| match cpus.is_empty() {
                true => Ok(()),
                false => fwdlab_netio::affinity::pin_thread(&cpus),
            });
            let failed = result.is_err();
            let _ = ready.send(result);
            if !failed {
                queue.into_iter().for_each(|job| job());
            }
        });
        let host = NamespaceHost {
            name: namespace.name().to_owned(),
            jobs: Some(jobs),
            thread: Some(thread),
        };
        match entered.recv() {
            Ok(result) => result.map(|()| host).map_err(BenchError::from),
            Err(_) => Err(BenchError::Refused("the namespace's thread ended".into())),
        }
    }

    fn within<T: Send + 'static>(&self, work: impl FnOnce() -> T + Send + 'static) -> T {
        let (answer, result) = channel();
        let job: Job = Box::new(move || {
            let _ = answer.send(work());
        });
        self.jobs
            .as_ref()
            .and_then(|jobs| jobs.send(job).ok())
            .and_then(|()| result.recv().ok())
            .expect("the namespace's thread lives as long as the host")
    }
}

impl Host for NamespaceHost {
    fn name(&self) -> &str {
        &self.name
    }

    fn run(&self, argv: &[&str], stdin: &str) -> Result<String, BenchError> {
        let (name, stdin) = (self.name.clone(), stdin.to_owned());
        let argv: Vec<String> = argv.iter().map(|s| s.to_string()).collect();
        self.within(move || {
            let argv: Vec<&str> = argv.iter().map(String::as_str).collect();
            run_here(&name, &argv, &stdin)
        })
    }

    fn spawn(&self, argv: &[&str]) -> Result<Box<dyn Running>, BenchError> {
        let name = self.name.clone();
        let argv: Vec<String> = argv.iter().map(|s| s.to_string()).collect();
        let program = self.within(move || {
            let argv: Vec<&str> = argv.iter().map(String::as_str).collect();
            Program::start(&name, &argv)
        })?;
        Ok(Box::new(program))
    }

    fn put(&self, path: &str, text: &str) -> Result<(), BenchError> {
        let (name, path, text) = (self.name.clone(), path.to_owned(), text.to_owned());
        self.within(move || put_here(&name, &path, &text))
    }

    fn get(&self, path: &str) -> Result<String, BenchError> {
        let (name, path) = (self.name.clone(), path.to_owned());
        self.within(move || get_here(&name, &path))
    }

    fn send_file(&self, from: &Path, to: &str) -> Result<(), BenchError> {
        // Files are independent of network namespaces.
        copy_here(&self.name, from, to)
    }
}

impl Drop for NamespaceHost {
    fn drop(&mut self) {
        self.jobs = None; // ends the thread's loop
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}
