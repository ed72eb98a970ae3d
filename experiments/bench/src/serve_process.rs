//! `quelea serve` as a child process, for as long as a measurement takes.

use std::fs::{self, OpenOptions};
use std::io::{BufRead, BufReader};
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, Stdio};
use std::thread;
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};

use crate::clock::{SECOND_NS, now_ns};

/// How long a process may take to end.
pub(crate) const STOP_S: u64 = 30;
/// How often it is looked at meanwhile.
const LOOK: Duration = Duration::from_millis(2);
/// The end of a log that is shown if a process does not start.
const LOG_TAIL_BYTES: usize = 500;

/// Why `quelea serve` did not start: a path and the system's reason, or the end of its log.
#[derive(Debug, thiserror::Error)]
#[error("cannot start quelea serve: {0}")]
pub struct ServeStartError(pub String);

/// A process that has said that it is ready. It is killed with the value.
#[derive(Debug)]
pub struct ServeProcess {
    child: Child,
    /// It has nobody else to write to.
    _stdout: BufReader<ChildStdout>,
    ready_line: String,
}

impl ServeProcess {
    /// Starts `program` in the directory `home`, which gets its log, with settings such as (`sqs.listen`, `127.0.0.1:0`).
    ///
    /// # Errors
    /// [`ServeStartError`] with the end of its log, if it ended before it was ready.
    pub fn start(
        program: &Path,
        home: &Path,
        settings: &[(String, String)],
    ) -> Result<Self, ServeStartError> {
        let log_path = home.join("log");
        let log = OpenOptions::new().create(true).append(true).open(&log_path);
        let log = log.map_err(|error| wrong(&log_path, &error))?;
        let mut command = Command::new(program);
        command.arg("serve").current_dir(home);
        for (name, value) in settings {
            command.env(format!("QUELEA__{}", name.to_ascii_uppercase().replace('.', "__")), value);
        }
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(log);
        // Ctrl-C is for the bench, which ends it when the report is made.
        let mut child = command.process_group(0).spawn().map_err(|error| wrong(program, &error))?;
        let Some(stdout) = child.stdout.take() else {
            return Err(ServeStartError("it has no output".to_owned()));
        };
        let (stdout, ready_line) = (BufReader::new(stdout), String::new());
        let mut process = Self { child, _stdout: stdout, ready_line };
        while !process.ready_line.starts_with("quelea ready ") {
            process.ready_line.clear();
            if process._stdout.read_line(&mut process.ready_line).unwrap_or(0) == 0 {
                let log = fs::read_to_string(&log_path).unwrap_or_default();
                let tail = &log.as_bytes()[log.len().saturating_sub(LOG_TAIL_BYTES)..];
                return Err(ServeStartError(String::from_utf8_lossy(tail).into_owned()));
            }
        }
        Ok(process)
    }

    /// What its ready line says of a name, such as the address of `sqs`.
    ///
    /// # Errors
    /// [`ServeStartError`] with the line, if it says nothing of it.
    pub fn said(&self, name: &str) -> Result<&str, ServeStartError> {
        let mut words = self.ready_line.trim_end().split(' ');
        let found = words.find_map(|word| word.strip_prefix(name)?.strip_prefix('='));
        found.ok_or_else(|| ServeStartError(self.ready_line.clone()))
    }

    /// Its number.
    #[must_use]
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    pub(crate) fn signal(&self, signal: Signal) {
        send_signal(self.pid(), signal);
    }

    /// False if it takes too long.
    pub(crate) fn wait_for_end(&mut self) -> bool {
        let deadline = now_ns() + STOP_S * SECOND_NS;
        while !matches!(self.child.try_wait(), Ok(Some(_)) | Err(_)) {
            if now_ns() > deadline {
                return false;
            }
            thread::sleep(LOOK);
        }
        true
    }
}

impl Drop for ServeProcess {
    fn drop(&mut self) {
        // Both do nothing to one that has ended.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Sends a signal to a process, if it is there.
pub(crate) fn send_signal(pid: u32, signal: Signal) -> bool {
    let pid = i32::try_from(pid).ok().and_then(Pid::from_raw);
    pid.is_some_and(|pid| kill_process(pid, signal).is_ok())
}

/// The program to start: the one that is named, or the `quelea` beside this one.
///
/// # Errors
/// [`ServeStartError`] if nobody knows where this one lies.
pub(crate) fn program(named: Option<&Path>) -> Result<PathBuf, ServeStartError> {
    let beside = || std::env::current_exe().map(|own| own.with_file_name("quelea"));
    let found = named.map_or_else(beside, |named| Ok(named.to_owned()));
    found.map_err(|error| ServeStartError(error.to_string()))
}

fn wrong(path: &Path, error: &std::io::Error) -> ServeStartError {
    ServeStartError(format!("{}: {error}", path.display()))
}
