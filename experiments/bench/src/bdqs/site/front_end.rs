//! A front-end that is started for a measurement: it can be killed and started again at its addresses, or frozen.

use std::fs;
use std::path::{Path, PathBuf};

use rustix::process::Signal;

use crate::bdqs::error::BdqsError;
use crate::serve_process::{ServeProcess, ServeStartError};

/// What listens, by the name that the ready line has for it.
const FRONTS: [&str; 2] = ["sqs", "http"];

/// A front-end, or a broker. It ends with the value.
#[derive(Debug)]
pub(crate) struct FrontEnd {
    program: PathBuf,
    home: PathBuf,
    settings: Vec<(String, String)>,
    process: Option<ServeProcess>,
    addresses: [String; 2],
}

impl FrontEnd {
    /// Starts it on free ports, with a directory of its own below `home`.
    pub(crate) fn start(
        program: &Path,
        home: &Path,
        settings: &[(String, String)],
    ) -> Result<Self, BdqsError> {
        let home = home.join(format!("front-end-{:016x}", fastrand::u64(..)));
        fs::create_dir_all(&home)
            .map_err(|error| BdqsError::Start(format!("{}: {error}", home.display())))?;
        let mut front_end = Self {
            program: program.to_owned(),
            settings: settings.to_vec(),
            process: None,
            addresses: FRONTS.map(|_| "127.0.0.1:0".to_owned()),
            home,
        };
        front_end.start_again()?;
        Ok(front_end)
    }

    /// Starts it again, at the addresses that it had.
    pub(crate) fn start_again(&mut self) -> Result<(), BdqsError> {
        let mut settings = self.settings.clone();
        settings.push(("data_dir".to_owned(), self.home.join("data").display().to_string()));
        let listen =
            |(front, address): (&&str, &String)| (format!("{front}.listen"), address.clone());
        settings.extend(FRONTS.iter().zip(&self.addresses).map(listen));
        let process = ServeProcess::start(&self.program, &self.home, &settings)?;
        for (front, address) in FRONTS.iter().zip(&mut self.addresses) {
            process.said(front)?.clone_into(address);
        }
        self.process = Some(process);
        Ok(())
    }

    /// As `kill -9` does.
    pub(crate) fn kill(&mut self) {
        self.process = None;
    }

    /// It does nothing more until it is thawed; its connections stay.
    pub(crate) fn freeze(&self) {
        self.signal(Signal::STOP);
    }

    pub(crate) fn thaw(&self) {
        self.signal(Signal::CONT);
    }

    fn signal(&self, signal: Signal) {
        if let Some(process) = &self.process {
            process.signal(signal);
        }
    }

    /// Returns its SQS endpoint.
    pub(crate) fn endpoint(&self) -> String {
        format!("http://{}", self.addresses[0])
    }

    /// Returns the address of its management API.
    pub(crate) fn http(&self) -> &str {
        &self.addresses[1]
    }

    pub(crate) fn pid(&self) -> Option<u32> {
        self.process.as_ref().map(ServeProcess::pid)
    }
}

impl From<ServeStartError> for BdqsError {
    fn from(ServeStartError(reason): ServeStartError) -> Self {
        Self::Start(reason)
    }
}
