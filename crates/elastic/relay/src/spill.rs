//! The store of the policy Spill: for each listener of whom something is away a file without a name,
//! which is used as a ring, so that it is never larger than what may be away. A thread reads and writes,
//! for a file's page may have to wait for a disk.

use std::collections::HashMap;
use std::io;
use std::path::PathBuf;
use std::sync::mpsc;

use quelea_elastic_core::relay::limits::CONTROL_BYTES_MAX;
use quelea_elastic_core::relay::{Port, SpillJob};
use tokio::sync::mpsc::{UnboundedReceiver, unbounded_channel};

use crate::ring_file::RingFile;

/// Beyond the messages' limit: frames among them that may not be left out, and the last message.
const SLACK_BYTES: u64 = 2 * CONTROL_BYTES_MAX as u64;

/// Where and how much.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SpillConfig {
    /// The directory of the files; they have no names in it.
    pub directory: PathBuf,
    /// Bytes for each listener.
    pub bytes_max: u64,
}

/// What became of a job.
pub(crate) enum SpillAnswer {
    Stored(Port),
    Read(Port, Vec<u8>),
    Failed(Port, String),
}

/// The node's end of the thread. The jobs that wait are bounded by the producers' credit, the answers by
/// the jobs.
pub(crate) struct SpillStore(mpsc::Sender<SpillJob>);

impl SpillStore {
    /// Starts the thread; returns its answers, too.
    pub(crate) fn start(config: SpillConfig) -> io::Result<(Self, UnboundedReceiver<SpillAnswer>)> {
        let (jobs, work) = mpsc::channel();
        let (answer, answers) = unbounded_channel();
        let mut files = Files { config, open: HashMap::new() };
        std::thread::Builder::new().name("relay-spill".to_owned()).spawn(move || {
            for job in work {
                // The relay has ended if nobody takes the answer.
                let _ = files.run(job).is_none_or(|done| answer.send(done).is_ok());
            }
        })?;
        Ok((Self(jobs), answers))
    }

    pub(crate) fn run(&self, job: SpillJob) {
        // The thread ends only with the relay.
        let _ = self.0.send(job);
    }
}

struct Files {
    config: SpillConfig,
    open: HashMap<Port, RingFile>,
}

impl Files {
    fn run(&mut self, job: SpillJob) -> Option<SpillAnswer> {
        let (port, done) = match job {
            SpillJob::Store { port, frames } => (
                port,
                self.file(port)
                    .and_then(|file| file.write(&frames))
                    .map(|()| SpillAnswer::Stored(port)),
            ),
            SpillJob::Read { port, bytes } => {
                let read = self.file(port).and_then(|file| file.read(bytes));
                (port, read.map(|bytes| SpillAnswer::Read(port, bytes)))
            }
            SpillJob::Forget { port } => {
                self.open.remove(&port);
                return None;
            }
        };
        let directory = self.config.directory.display();
        Some(
            done.unwrap_or_else(|error| SpillAnswer::Failed(port, format!("{directory}: {error}"))),
        )
    }

    fn file(&mut self, port: Port) -> io::Result<&mut RingFile> {
        use std::collections::hash_map::Entry;
        match self.open.entry(port) {
            Entry::Occupied(file) => Ok(file.into_mut()),
            Entry::Vacant(place) => {
                let bytes_max = self.config.bytes_max + SLACK_BYTES;
                Ok(place.insert(RingFile::new(&self.config.directory, bytes_max)?))
            }
        }
    }
}
