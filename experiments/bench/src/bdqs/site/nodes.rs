//! Nodes of Cassandra that the tests' harness starts, by its command line.

use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::bdqs::error::BdqsError;

/// Where the harness keeps what it starts.
const DIRECTORY: &str = "QUELEA_CASSANDRA_DIRECTORY";
const CQL_PORT: u16 = 9042;

/// Nodes on 127.0.0.1 and the addresses that follow, numbered from 1; gone with the value.
#[derive(Debug)]
pub(crate) struct Nodes {
    tests: PathBuf,
    directory: PathBuf,
    count: u32,
}

impl Nodes {
    /// Starts so many nodes. They are ready when it returns; a third node takes a minute on a busy
    /// machine.
    pub(crate) fn start(tests: PathBuf, directory: PathBuf, count: u32) -> Result<Self, BdqsError> {
        let nodes = Self { tests, directory, count };
        nodes.run("start", &["--nodes", &count.to_string()])?;
        Ok(nodes)
    }

    pub(crate) fn start_anew(&mut self, count: u32) -> Result<(), BdqsError> {
        self.clear()?;
        self.count = count;
        self.run("start", &["--nodes", &count.to_string()])
    }

    pub(crate) const fn count(&self) -> u32 {
        self.count
    }

    pub(crate) fn contact_points(&self) -> Vec<String> {
        (1..=self.count).map(|number| format!("127.0.0.{number}:{CQL_PORT}")).collect()
    }

    pub(crate) fn directories(&self) -> impl Iterator<Item = PathBuf> {
        (1..=self.count).map(|number| self.directory.join(format!("node{number}")))
    }

    /// Lets the harness do something to one node: `kill`, `restart`, `pause`, `resume`.
    pub(crate) fn act(&self, verb: &str, number: u32) -> Result<(), BdqsError> {
        self.run(verb, &[&number.to_string()])
    }

    /// Kills all nodes, and clears away what they stored. That is of no use: they need not end in
    /// good order.
    fn clear(&self) -> Result<(), BdqsError> {
        (1..=self.count).try_for_each(|number| self.act("kill", number))?;
        self.run("clear", &[])
    }

    fn run(&self, verb: &str, words: &[&str]) -> Result<(), BdqsError> {
        let mut command = Command::new("python3");
        command.args(["-m", "harness.cassandra", verb]).args(words).current_dir(&self.tests);
        command.env(DIRECTORY, &self.directory).stdin(Stdio::null());
        // Ctrl-C is for the bench.
        let done = command.process_group(0).output();
        let failed = |reason: String| BdqsError::Harness { verb: verb.to_owned(), reason };
        let done = done.map_err(|error| failed(error.to_string()))?;
        if done.status.success() {
            return Ok(());
        }
        let words = [done.stderr.as_slice(), &done.stdout];
        Err(failed(words.map(String::from_utf8_lossy).join("\n")))
    }
}

impl Drop for Nodes {
    fn drop(&mut self) {
        // What is left then is named in the error.
        if let Err(error) = self.clear() {
            eprintln!("quelea bench: {error}");
        }
    }
}

/// Returns the directory `tests` of the checkout that this was built in.
pub(super) fn tests_of_the_build() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests")
}
