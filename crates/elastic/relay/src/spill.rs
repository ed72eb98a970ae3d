//! The store of the policy Spill: for each listener of whom something is away a file without a name,
//! which is used in a circle, so that it is never larger than what may be away. A thread reads and writes,
//! for a file's page may have to wait for a disk.

use std::collections::HashMap;
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt as _;
use std::path::{Path, PathBuf};
use std::sync::mpsc;

use bytes::Bytes;
use quelea_elastic_core::relay::limits::CONTROL_BYTES_MAX;
use quelea_elastic_core::relay::{Port, SpillJob};
use tokio::sync::mpsc::{UnboundedReceiver, unbounded_channel};

use crate::node::SharedNode;

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
enum Done {
    Stored(Port),
    Read(Port, Vec<u8>),
    Failed(Port, String),
}

/// The node's end of the thread. The jobs that wait are bounded by the producers' credit, the answers by
/// the jobs.
pub(crate) struct SpillStore(mpsc::Sender<SpillJob>);

impl SpillStore {
    /// Starts the thread; its answers go to the node.
    pub(crate) fn start(node: &SharedNode, config: SpillConfig) -> io::Result<Self> {
        let (jobs, work) = mpsc::channel();
        let (answer, answers) = unbounded_channel();
        let mut files = Files { config, open: HashMap::new() };
        std::thread::Builder::new().name("relay-spill".to_owned()).spawn(move || {
            for job in work {
                // The relay has ended if nobody takes the answer.
                let _ = files.run(job).is_none_or(|done| answer.send(done).is_ok());
            }
        })?;
        tokio::task::spawn_local(take(node.clone(), answers));
        Ok(Self(jobs))
    }

    pub(crate) fn run(&self, job: SpillJob) {
        // The thread ends only with the relay.
        let _ = self.0.send(job);
    }
}

async fn take(node: SharedNode, mut answers: UnboundedReceiver<Done>) {
    while let Some(done) = answers.recv().await {
        node.with(|node| {
            node.read_clock();
            match done {
                Done::Stored(port) => node.relay.spilled(port),
                Done::Read(port, bytes) => node.relay.read_back(port, &bytes),
                Done::Failed(port, cause) => {
                    tracing::warn!(cause, "cannot spill; a slow listener is disconnected");
                    node.relay.spill_failed(port, &cause);
                }
            }
            node.want_turn();
        });
    }
}

struct Files {
    config: SpillConfig,
    open: HashMap<Port, Circle>,
}

impl Files {
    fn run(&mut self, job: SpillJob) -> Option<Done> {
        let (port, done) = match job {
            SpillJob::Store { port, frames } => (
                port,
                self.circle(port)
                    .and_then(|circle| circle.write(&frames))
                    .map(|()| Done::Stored(port)),
            ),
            SpillJob::Read { port, bytes } => {
                let read = self.circle(port).and_then(|circle| circle.read(bytes));
                (port, read.map(|bytes| Done::Read(port, bytes)))
            }
            SpillJob::Forget { port } => {
                self.open.remove(&port);
                return None;
            }
        };
        let directory = self.config.directory.display();
        Some(done.unwrap_or_else(|error| Done::Failed(port, format!("{directory}: {error}"))))
    }

    fn circle(&mut self, port: Port) -> io::Result<&mut Circle> {
        use std::collections::hash_map::Entry;
        match self.open.entry(port) {
            Entry::Occupied(circle) => Ok(circle.into_mut()),
            Entry::Vacant(place) => {
                let bytes_max = self.config.bytes_max + SLACK_BYTES;
                Ok(place.insert(Circle::new(&self.config.directory, bytes_max)?))
            }
        }
    }
}

/// A file that is written and read in a circle.
struct Circle {
    file: File,
    bytes_max: u64,
    /// Since the beginning.
    written: u64,
    read: u64,
}

impl Circle {
    fn new(directory: &Path, bytes_max: u64) -> io::Result<Self> {
        let file = tempfile::tempfile_in(directory)?;
        Ok(Self { file, bytes_max, written: 0, read: 0 })
    }

    fn write(&mut self, frames: &[Bytes]) -> io::Result<()> {
        for frame in frames {
            let away = self.written - self.read + frame.len() as u64;
            if away > self.bytes_max {
                let text = format!("{away} bytes are more than the {} of a file", self.bytes_max);
                return Err(io::Error::new(io::ErrorKind::StorageFull, text));
            }
            let at = self.written % self.bytes_max;
            let (here, wrapped) = frame.split_at(self.to_the_end(at, frame.len()));
            self.file.write_all_at(here, at)?;
            self.file.write_all_at(wrapped, 0)?;
            self.written += frame.len() as u64;
        }
        Ok(())
    }

    fn read(&mut self, bytes: usize) -> io::Result<Vec<u8>> {
        let mut all = vec![0; bytes];
        let at = self.read % self.bytes_max;
        let (here, wrapped) = all.split_at_mut(self.to_the_end(at, bytes));
        self.file.read_exact_at(here, at)?;
        self.file.read_exact_at(wrapped, 0)?;
        self.read += bytes as u64;
        if self.read == self.written {
            // Nothing is away: its place on the disk is given back.
            self.file.set_len(0)?;
            (self.read, self.written) = (0, 0);
        }
        Ok(all)
    }

    /// How many of so many bytes from `at` lie before the file's end.
    fn to_the_end(&self, at: u64, bytes: usize) -> usize {
        usize::try_from(self.bytes_max - at).unwrap_or(usize::MAX).min(bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_circle_gives_back_what_was_written_however_often_it_goes_round() {
        let mut circle = Circle::new(&std::env::temp_dir(), 1_000).unwrap();
        let (mut random, mut written, mut read) = (fastrand::Rng::with_seed(7), 0_u64, 0_u64);
        for _ in 0..10_000 {
            let room = 1_000 - (written - read);
            let count = random.u64(0..=room.min(400));
            let frame: Vec<u8> = (written..written + count).map(|n| (n % 251) as u8).collect();
            circle.write(&[Bytes::from(frame)]).unwrap();
            written += count;
            let count = random.u64(0..=(written - read));
            let expected: Vec<u8> = (read..read + count).map(|n| (n % 251) as u8).collect();
            assert_eq!(circle.read(count as usize).unwrap(), expected);
            read += count;
            assert!(circle.file.metadata().unwrap().len() <= 1_000);
        }
        assert!(written > 100_000);
    }

    #[test]
    fn a_circle_that_is_full_says_so() {
        let mut circle = Circle::new(&std::env::temp_dir(), 10).unwrap();
        circle.write(&[Bytes::from_static(b"12345678")]).unwrap();
        let error = circle.write(&[Bytes::from_static(b"abc")]).unwrap_err();
        assert_eq!(error.to_string(), "11 bytes are more than the 10 of a file");
    }
}
