//! Where elastic queues are measured: a directory that runs already, or one that is started for the run
//! and ended with it.

mod api;

use std::fs::{self, File};
use std::io::{BufRead, BufReader};
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, Stdio};
use std::thread;
use std::time::Duration;

use quelea_elastic_client::{Client, Options};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

use crate::clock::{SECOND_NS, now_ns};
use crate::elastic::args::SiteArgs;
use crate::elastic::error::ElasticError;
use crate::interrupt::Interrupt;

pub(crate) use api::Api;

/// How often something that is waited for is looked at.
const LOOK: Duration = Duration::from_millis(2);
/// How long a directory may take to end, with its relays.
const STOP_NS: u64 = 30 * SECOND_NS;
/// The end of a log that is shown if a directory does not start.
const LOG_TAIL_BYTES: usize = 500;

/// A directory.
#[derive(Debug)]
pub(crate) struct Site {
    directory: String,
    pub api: Api,
    pub interrupt: Interrupt,
    /// Ends with the site.
    _started: Option<Started>,
}

/// A directory of our own.
#[derive(Debug)]
struct Started {
    child: Child,
    home: PathBuf,
    /// It has nobody else to write to.
    _stdout: BufReader<ChildStdout>,
}

impl Site {
    pub(crate) fn open(args: &SiteArgs) -> Result<Self, ElasticError> {
        let interrupt = Interrupt::install();
        if let Some(directory) = &args.directory {
            let (directory, api) = (directory.clone(), Api::new(&args.http, &args.user));
            return Ok(Self { directory, api, interrupt, _started: None });
        }
        let beside = || std::env::current_exe().map(|own| own.with_file_name("quelea"));
        let program = args.quelea.clone().map_or_else(beside, Ok);
        let program = program.map_err(|error| ElasticError::Start(error.to_string()))?;
        let (started, ready) = Started::start(&program)?;
        let field = |name: &str| {
            let found =
                ready.split(' ').find_map(|word| word.strip_prefix(name)?.strip_prefix('='));
            found.map(str::to_owned).ok_or_else(|| ElasticError::Start(ready.clone()))
        };
        let api = Api::new(&field("http")?, "guest:guest");
        Ok(Self { directory: field("elastic")?, api, interrupt, _started: Some(started) })
    }

    /// A client of this site.
    pub(crate) fn client(&self) -> Result<Client, ElasticError> {
        let options = Options { name: "quelea-bench".to_owned(), ..Options::default() };
        let who = || "the clients".to_owned();
        Client::connect([self.directory.clone()], options)
            .map_err(|source| ElasticError::Client { who: who(), source })
    }

    /// Makes a queue of ours.
    pub(crate) fn make_queue(&self, definition: &Value) -> Result<Queue<'_>, ElasticError> {
        let name = format!("quelea-bench-{:016x}", fastrand::u64(..));
        self.api.define(&name, definition)?;
        let queue = Queue { site: self, name };
        // It is defined when the directory has saved it.
        self.wait_for("the queue is there", 30, || match self.api.queue(&queue.name) {
            Ok(_) => Ok(Some(())),
            Err(ElasticError::Refused { status: 404 | 503, .. }) => Ok(None),
            Err(error) => Err(error),
        })?;
        Ok(queue)
    }

    /// Looks until there is something.
    ///
    /// # Errors
    /// If there is nothing within so many seconds, or at Ctrl-C.
    pub(crate) fn wait_for<T>(
        &self,
        what: &str,
        seconds: u64,
        mut look: impl FnMut() -> Result<Option<T>, ElasticError>,
    ) -> Result<T, ElasticError> {
        let deadline = now_ns() + seconds * SECOND_NS;
        loop {
            if let Some(found) = look()? {
                return Ok(found);
            }
            if self.interrupt.is_set() {
                return Err(ElasticError::Interrupted);
            }
            if now_ns() > deadline {
                return Err(ElasticError::Late { what: what.to_owned(), seconds });
            }
            thread::sleep(LOOK);
        }
    }

    /// Lets time pass; ends early at Ctrl-C.
    pub(crate) fn pause(&self, ns: u64) {
        let end = now_ns() + ns;
        while now_ns() < end && !self.interrupt.is_set() {
            thread::sleep(LOOK.min(Duration::from_nanos(end.saturating_sub(now_ns()))));
        }
    }
}

/// A queue that is deleted with the value.
#[derive(Debug)]
pub(crate) struct Queue<'a> {
    site: &'a Site,
    pub name: String,
}

/// A relay of a queue, as the directory shows it.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct RelayView {
    pub id: u64,
    /// It takes producers.
    pub up: bool,
    pub pid: Option<u32>,
    pub producers: u64,
    pub messages_in_per_s: f64,
    pub messages_out_per_s: f64,
}

impl Queue<'_> {
    pub(crate) fn relays(&self) -> Result<Vec<RelayView>, ElasticError> {
        let relays = self.site.api.relays(&self.name)?;
        let view = |relay: &Value| RelayView {
            id: relay["id"].as_u64().unwrap_or_default(),
            up: relay["state"] == "up",
            pid: relay["pid"].as_u64().and_then(|pid| u32::try_from(pid).ok()),
            producers: relay["producers"].as_u64().unwrap_or_default(),
            messages_in_per_s: relay["messages_in_per_s"].as_f64().unwrap_or_default(),
            messages_out_per_s: relay["messages_out_per_s"].as_f64().unwrap_or_default(),
        };
        Ok(relays.as_array().into_iter().flatten().map(view).collect())
    }

    /// Waits until so many relays are up, or more.
    pub(crate) fn wait_for_relays(&self, count: usize) -> Result<Vec<RelayView>, ElasticError> {
        let what = format!("{count} relays are up");
        self.site.wait_for(&what, 60, || {
            thread::sleep(LOOK * 10); // It is asked by HTTP.
            let relays: Vec<_> = self.relays()?.into_iter().filter(|relay| relay.up).collect();
            Ok((relays.len() >= count).then_some(relays))
        })
    }

    /// A figure of the queue's own, such as `moves_done`.
    pub(crate) fn figure(&self, name: &str) -> Result<u64, ElasticError> {
        Ok(self.site.api.queue(&self.name)?[name].as_u64().unwrap_or_default())
    }
}

impl Drop for Queue<'_> {
    fn drop(&mut self) {
        // A directory that is gone has no queue either.
        let _ = self.site.api.delete(&self.name);
    }
}

impl Started {
    fn start(program: &Path) -> Result<(Self, String), ElasticError> {
        let wrong = |text: String| ElasticError::Start(text);
        let home = std::env::temp_dir().join(format!("quelea-bench-{:016x}", fastrand::u64(..)));
        fs::create_dir_all(&home).map_err(|error| wrong(format!("{}: {error}", home.display())))?;
        let log_path = home.join("log");
        let log = File::create(&log_path)
            .map_err(|error| wrong(format!("{}: {error}", log_path.display())))?;
        let mut command = Command::new(program);
        command.arg("serve").current_dir(&home).env("QUELEA__DATA_DIR", home.join("data"));
        for front in ["AMQP", "HTTP", "SQS", "ELASTIC"] {
            command.env(format!("QUELEA__{front}__LISTEN"), "127.0.0.1:0");
        }
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(log);
        // Ctrl-C is for the bench, which ends it when the report is made.
        let mut child = command
            .process_group(0)
            .spawn()
            .map_err(|error| wrong(format!("{}: {error}", program.display())))?;
        let stdout = child.stdout.take().ok_or_else(|| wrong("it has no output".to_owned()))?;
        let mut started = Self { child, home, _stdout: BufReader::new(stdout) };
        let mut line = String::new();
        while !line.starts_with("quelea ready ") {
            line.clear();
            if started._stdout.read_line(&mut line).unwrap_or(0) == 0 {
                let log = fs::read_to_string(&log_path).unwrap_or_default();
                let tail = log.len().saturating_sub(LOG_TAIL_BYTES);
                return Err(wrong(String::from_utf8_lossy(&log.as_bytes()[tail..]).into_owned()));
            }
        }
        Ok((started, line.trim_end().to_owned()))
    }
}

impl Drop for Started {
    fn drop(&mut self) {
        signal(self.child.id(), Signal::TERM);
        let deadline = now_ns() + STOP_NS;
        while !matches!(self.child.try_wait(), Ok(Some(_)) | Err(_)) && now_ns() < deadline {
            thread::sleep(LOOK);
        }
        // Both do nothing to one that has ended.
        let _ = self.child.kill();
        let _ = self.child.wait();
        let _ = fs::remove_dir_all(&self.home);
    }
}

/// Sends a signal to a process, if it is there.
pub(crate) fn signal(pid: u32, signal: Signal) -> bool {
    let pid = i32::try_from(pid).ok().and_then(Pid::from_raw);
    pid.is_some_and(|pid| kill_process(pid, signal).is_ok())
}
