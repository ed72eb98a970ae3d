//! A directory that is started for a measurement, and may be started anew in its midst.

use std::fs;
use std::path::{Path, PathBuf};

use rustix::process::Signal;

use crate::clock::{now_ns, seconds_between};
use crate::elastic::error::ElasticError;
use crate::serve_process::{STOP_S, ServeProcess, ServeStartError};

/// Each listens at an address of its own, by the name that the ready line has for it.
const FRONTS: [&str; 4] = ["amqp", "http", "sqs", "elastic"];

/// A directory of our own; it ends with the value.
#[derive(Debug)]
pub(super) struct Started {
    program: PathBuf,
    home: PathBuf,
    process: ServeProcess,
    /// Those of the fronts.
    addresses: [String; 4],
}

/// How long a restart took.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Restarted {
    /// Until the old process had ended.
    pub ended_s: f64,
    /// From then on until the new one was ready.
    pub ready_s: f64,
    /// When that was.
    pub ready_ns: u64,
}

impl Started {
    pub(super) fn start(program: &Path) -> Result<Self, ElasticError> {
        let home = std::env::temp_dir().join(format!("quelea-bench-{:016x}", fastrand::u64(..)));
        fs::create_dir_all(&home)
            .map_err(|error| ElasticError::Start(format!("{}: {error}", home.display())))?;
        let listens = FRONTS.map(|_| "127.0.0.1:0".to_owned());
        match start(program, &home, &listens) {
            Ok((process, addresses)) => {
                Ok(Self { program: program.to_owned(), home, process, addresses })
            }
            Err(error) => {
                let _ = fs::remove_dir_all(&home);
                Err(error.into())
            }
        }
    }

    /// Returns where a front listens.
    pub(super) fn address(&self, front: &str) -> &str {
        let place = FRONTS.iter().position(|name| *name == front);
        place.map_or("", |place| &self.addresses[place])
    }

    pub(super) fn restart(&mut self, by: Signal) -> Result<Restarted, ElasticError> {
        let begun = now_ns();
        self.process.signal(by);
        if !self.process.wait_for_end() {
            let what = "the directory has ended".to_owned();
            return Err(ElasticError::Late { what, seconds: STOP_S });
        }
        let ended = now_ns();
        (self.process, self.addresses) = start(&self.program, &self.home, &self.addresses)?;
        let ready_ns = now_ns();
        let (ended_s, ready_s) = (seconds_between(begun, ended), seconds_between(ended, ready_ns));
        Ok(Restarted { ended_s, ready_s, ready_ns })
    }
}

fn start(
    program: &Path,
    home: &Path,
    listens: &[String; 4],
) -> Result<(ServeProcess, [String; 4]), ServeStartError> {
    let mut settings = vec![("data_dir".to_owned(), home.join("data").display().to_string())];
    let listen = |(front, address): (&&str, &String)| (format!("{front}.listen"), address.clone());
    settings.extend(FRONTS.iter().zip(listens).map(listen));
    let process = ServeProcess::start(program, home, &settings)?;
    let mut addresses = FRONTS.map(|_| String::new());
    for (front, address) in FRONTS.iter().zip(&mut addresses) {
        process.said(front)?.clone_into(address);
    }
    Ok((process, addresses))
}

impl From<ServeStartError> for ElasticError {
    fn from(ServeStartError(reason): ServeStartError) -> Self {
        Self::Start(reason)
    }
}

impl Drop for Started {
    fn drop(&mut self) {
        self.process.signal(Signal::TERM);
        self.process.wait_for_end();
        let _ = fs::remove_dir_all(&self.home);
    }
}
