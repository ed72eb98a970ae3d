//! The built binary, started on free ports and a directory of its own.

use std::fs;
use std::io::{BufRead as _, BufReader, Read as _};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::thread;
use std::time::{Duration, Instant};

use crate::client::PATIENCE;

/// A directory that goes with the test.
pub(crate) struct DataDir(PathBuf);

impl DataDir {
    pub(crate) fn new() -> Self {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let name = format!("quelea-server-{}-{number}", std::process::id());
        let path = std::env::temp_dir().join(name);
        fs::create_dir_all(&path).unwrap();
        Self(path)
    }

    pub(crate) fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for DataDir {
    fn drop(&mut self) {
        if thread::panicking() {
            eprintln!("the data directory is kept: {}", self.0.display());
        } else {
            fs::remove_dir_all(&self.0).unwrap();
        }
    }
}

/// A broker process that has been started; it need not be ready.
pub(crate) struct Starting {
    child: Option<Child>,
    lines: Receiver<String>,
}

/// A broker process that serves.
pub(crate) struct Broker {
    child: Child,
    lines: Receiver<String>,
    pub(crate) amqp: SocketAddr,
    pub(crate) ready_line: String,
}

/// Returns the command for a broker on `dir`, with keys of the configuration.
pub(crate) fn command(dir: &Path, settings: &[(&str, &str)]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_quelea"));
    command.arg("serve").current_dir(dir).stdin(Stdio::null()).stdout(Stdio::piped());
    command.env("QUELEA__DATA_DIR", dir.join("data"));
    command.env("QUELEA__AMQP__LISTEN", "127.0.0.1:0");
    command.env("QUELEA__HTTP__LISTEN", "127.0.0.1:0");
    command.env("QUELEA__SQS__LISTEN", "127.0.0.1:0");
    command.env("QUELEA__ELASTIC__LISTEN", "127.0.0.1:0");
    command.env("QUELEA__LOGGING__LEVEL", "warn");
    for (key, value) in settings {
        command.arg("--set").arg(format!("{key}={value}"));
    }
    command
}

impl Broker {
    pub(crate) fn start(dir: &DataDir, settings: &[(&str, &str)]) -> Self {
        match Starting::spawn(dir, settings).ready_within(PATIENCE) {
            Ok(broker) => broker,
            Err(_) => panic!("the broker is not ready after {PATIENCE:?}"),
        }
    }

    pub(crate) fn pid(&self) -> u32 {
        self.child.id()
    }

    /// SIGKILL, and the process is gone.
    pub(crate) fn kill_hard(mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }

    /// Sends a signal.
    pub(crate) fn signal(&self, signal: rustix::process::Signal) {
        let pid = i32::try_from(self.child.id()).unwrap();
        let pid = rustix::process::Pid::from_raw(pid).unwrap();
        rustix::process::kill_process(pid, signal).unwrap();
    }

    /// Sends SIGTERM; returns the exit status and the lines that were printed until the end.
    pub(crate) fn terminate(mut self) -> (ExitStatus, Vec<String>) {
        self.signal(rustix::process::Signal::TERM);
        let status = self.wait();
        (status, self.lines.iter().collect())
    }

    /// Waits for the end.
    pub(crate) fn wait(&mut self) -> ExitStatus {
        // The line channel ends with the process's standard output.
        let deadline = Instant::now() + PATIENCE;
        let mut last_lines = Vec::new();
        loop {
            let left = deadline.saturating_duration_since(Instant::now());
            match self.lines.recv_timeout(left) {
                Ok(line) => last_lines.push(line),
                Err(RecvTimeoutError::Disconnected) => break,
                Err(RecvTimeoutError::Timeout) => {
                    self.child.kill().unwrap();
                    panic!("the broker does not end within {PATIENCE:?}");
                }
            }
        }
        let (sender, lines) = channel();
        last_lines.into_iter().for_each(|line| sender.send(line).unwrap());
        self.lines = lines;
        self.child.wait().unwrap()
    }

    /// Returns the resident memory of the process, in bytes, from `/proc`.
    pub(crate) fn resident_bytes(&self) -> u64 {
        let status = fs::read_to_string(format!("/proc/{}/status", self.child.id())).unwrap();
        let line = status.lines().find(|line| line.starts_with("VmRSS:")).unwrap();
        let kib: u64 = line.split_whitespace().nth(1).unwrap().parse().unwrap();
        kib * 1024
    }
}

impl Drop for Broker {
    fn drop(&mut self) {
        // It may have ended already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Starting {
    pub(crate) fn spawn(dir: &DataDir, settings: &[(&str, &str)]) -> Self {
        Self::run(command(dir.path(), settings))
    }

    /// Starts what [`command`] has made.
    pub(crate) fn run(mut command: Command) -> Self {
        let mut child = command.spawn().unwrap();
        let stdout = BufReader::new(child.stdout.take().unwrap());
        let (sender, lines) = channel();
        thread::spawn(move || {
            for line in stdout.lines() {
                let Ok(line) = line else { return };
                if sender.send(line).is_err() {
                    return;
                }
            }
        });
        Self { child: Some(child), lines }
    }

    /// Waits for the ready line; returns itself if it does not come in time.
    pub(crate) fn ready_within(mut self, wait: Duration) -> Result<Broker, Self> {
        let line = match self.lines.recv_timeout(wait) {
            Ok(line) => line,
            Err(RecvTimeoutError::Timeout) => return Err(self),
            Err(RecvTimeoutError::Disconnected) => panic!("the broker ended before it was ready"),
        };
        assert!(line.starts_with("quelea ready "), "{line}");
        let amqp = word(&line, "amqp").parse().unwrap();
        let child = self.child.take().unwrap();
        let lines = std::mem::replace(&mut self.lines, channel().1);
        Ok(Broker { child, lines, amqp, ready_line: line })
    }

    /// SIGKILL, wherever it is.
    pub(crate) fn kill_hard(self) {
        drop(self);
    }
}

impl Drop for Starting {
    fn drop(&mut self) {
        if let Some(child) = &mut self.child {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

/// Returns the value of `name=value` in a line.
pub(crate) fn word<'a>(line: &'a str, name: &str) -> &'a str {
    let words = line.split_whitespace().filter_map(|word| word.split_once('='));
    words.filter(|(key, _)| *key == name).map(|(_, value)| value).next().unwrap()
}

/// Runs a broker that is expected to refuse to start; returns its exit code and its error output.
pub(crate) fn refused(dir: &DataDir, settings: &[(&str, &str)]) -> (Option<i32>, String) {
    let mut child = command(dir.path(), settings).stderr(Stdio::piped()).spawn().unwrap();
    let mut errors = String::new();
    child.stderr.take().unwrap().read_to_string(&mut errors).unwrap();
    (child.wait().unwrap().code(), errors)
}
