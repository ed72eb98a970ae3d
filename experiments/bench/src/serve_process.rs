//! `quelea serve` as a child process, for as long as a measurement takes.

use std::fs::{self, OpenOptions};
use std::io::{BufRead, BufReader};
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
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

/// Becomes the program that it is called with, and leaves a child of it behind that reads a pipe of ours. The pipe ends with us,
/// however we end; then the child ends the program, as long as that is its parent. The kernel's own signal for this
/// (`PR_SET_PDEATHSIG`) would need unsafe code between fork and exec, would come when the thread ends that started the program,
/// and could only kill it, so that what it has started itself would stay.
const ENDS_WITH_US: &str = r#"
exec 3<&0
runs() { read -r _ _ _ parent _ </proc/self/stat && [ "$parent" = $$ ]; }
{
    read -r _ <&3
    runs && kill -TERM $$
    looks=0
    while runs && [ $looks -lt 300 ]; do sleep 0.1; looks=$((looks + 1)); done
    runs && kill -KILL $$
} >/dev/null 2>&1 &
exec "$@" </dev/null 3<&-
"#;

/// Why `quelea serve` did not start: a path and the system's reason, or the end of its log.
#[derive(Debug, thiserror::Error)]
#[error("cannot start quelea serve: {0}")]
pub struct ServeStartError(pub String);

/// A process that has said that it is ready. It is killed with the value.
#[derive(Debug)]
pub struct ServeProcess {
    child: Child,
    /// It ends when this is closed.
    _lifeline: Option<ChildStdin>,
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
        // That there is none is said here, not in the shell's words; from `home` it may be another path.
        let found = fs::metadata(program).and_then(|_| std::path::absolute(program));
        let program = &found.map_err(|error| wrong(program, &error))?;
        let mut command = Command::new("/bin/sh");
        command.args(["-c", ENDS_WITH_US, "sh"]).arg(program).arg("serve").current_dir(home);
        for (name, value) in settings {
            command.env(format!("QUELEA__{}", name.to_ascii_uppercase().replace('.', "__")), value);
        }
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(log);
        // Ctrl-C is for the bench, which ends it when the report is made.
        let mut child = command.process_group(0).spawn().map_err(|error| wrong(program, &error))?;
        let Some(stdout) = child.stdout.take() else {
            return Err(ServeStartError("it has no output".to_owned()));
        };
        let (stdout, ready_line) = (BufReader::new(stdout), String::new());
        let lifeline = child.stdin.take();
        let mut process = Self { child, _lifeline: lifeline, _stdout: stdout, ready_line };
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

    /// Returns what its ready line says of a name, such as the address of `sqs`.
    ///
    /// # Errors
    /// [`ServeStartError`] with the line, if it says nothing of it.
    pub fn said(&self, name: &str) -> Result<&str, ServeStartError> {
        let mut words = self.ready_line.trim_end().split(' ');
        let found = words.find_map(|word| word.strip_prefix(name)?.strip_prefix('='));
        found.ok_or_else(|| ServeStartError(self.ready_line.clone()))
    }

    /// Returns its process number.
    #[must_use]
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Ends it in order, with all that it has started. It is killed if that takes too long.
    pub fn stop(mut self) {
        self.signal(Signal::TERM);
        self.wait_for_end();
    }

    pub(crate) fn signal(&self, signal: Signal) {
        send_signal(self.pid(), signal);
    }

    /// Waits for its end. Returns false if it takes too long.
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

/// Returns the program to start: the one that is named, or the `quelea` beside this one.
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

#[cfg(test)]
mod tests {
    use super::*;

    /// Runs as `sh serve` in its home: a script in place of a broker.
    fn start(home: &Path, script: &str) -> Result<ServeProcess, ServeStartError> {
        fs::create_dir_all(home).unwrap();
        fs::write(home.join("serve"), script).unwrap();
        ServeProcess::start(Path::new("/bin/sh"), home, &[])
    }

    struct Home(PathBuf);

    impl Home {
        fn new() -> Self {
            let name = format!("quelea-serve-process-{:016x}", fastrand::u64(..));
            Self(std::env::temp_dir().join(name))
        }
    }

    impl Drop for Home {
        fn drop(&mut self) {
            let _ = fs::remove_dir_all(&self.0);
        }
    }

    #[test]
    fn a_process_ends_with_the_one_that_started_it() {
        let home = Home::new();
        let script = "echo quelea ready amqp=127.0.0.1:1 pid=$$; exec tail -f /dev/null";
        let mut process = start(&home.0, script).unwrap();
        assert_eq!(process.said("amqp").unwrap(), "127.0.0.1:1");
        // What was started is the program itself: signals and CPU times are its own.
        assert_eq!(process.said("pid").unwrap(), process.pid().to_string());
        assert!(matches!(process.child.try_wait(), Ok(None)));
        // The kernel closes it when this process ends.
        process._lifeline = None;
        assert!(process.wait_for_end());
    }

    #[test]
    fn a_process_that_ends_before_it_is_ready_leaves_its_last_words() {
        let home = Home::new();
        let error = start(&home.0, "echo no such setting >&2").unwrap_err();
        assert_eq!(error.0, "no such setting\n");
        let nobody = home.0.join("nobody");
        let error = ServeProcess::start(&nobody, &home.0, &[]).unwrap_err();
        assert!(error.0.contains("nobody: No such file"), "{error}");
    }
}
