//! A broker of the run's own: `quelea serve` on a free port, with a data directory that goes with it.

use std::fs;
use std::io::{BufRead as _, BufReader};
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use quelea_bench::BrokerUri;

use crate::error::Error;

/// A process that is killed with this value, and its directory removed.
#[derive(Debug)]
pub struct Broker {
    program: PathBuf,
    home: PathBuf,
    port: u16,
    child: Child,
}

impl Broker {
    /// Starts it, and waits until it is ready.
    ///
    /// # Errors
    /// [`Error::System`] with its log.
    pub fn start(program: &Path) -> Result<Self, Error> {
        let system = |what: &str, source| Error::System { what: what.to_owned(), source };
        let home = std::env::temp_dir().join(format!("stock-exchange-{}", std::process::id()));
        fs::create_dir_all(&home).map_err(|error| system("make a directory", error))?;
        // The same after a restart; who else takes it meanwhile makes the start fail.
        let free = TcpListener::bind("127.0.0.1:0").and_then(|socket| socket.local_addr());
        let port = free.map_err(|error| system("find a free port", error))?.port();
        let program = program.to_owned();
        let child = match serve(&program, &home, port) {
            Ok(child) => child,
            Err(error) => {
                let _ = fs::remove_dir_all(&home);
                return Err(error);
            }
        };
        Ok(Self { program, home, port, child })
    }

    /// Where it listens.
    #[must_use]
    pub fn uri(&self) -> BrokerUri {
        BrokerUri {
            user: "guest".to_owned(),
            password: "guest".to_owned(),
            host: "127.0.0.1".to_owned(),
            port: self.port,
            vhost: "/".to_owned(),
        }
    }

    /// Its process.
    #[must_use]
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Kills it by signal 9, and starts it on what it left.
    ///
    /// # Errors
    /// As [`Broker::start`].
    pub fn kill_and_restart(&mut self) -> Result<(), Error> {
        let _ = self.child.kill();
        let _ = self.child.wait();
        self.child = serve(&self.program, &self.home, self.port)?;
        Ok(())
    }
}

impl Drop for Broker {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
        let _ = fs::remove_dir_all(&self.home);
    }
}

fn serve(program: &Path, home: &Path, port: u16) -> Result<Child, Error> {
    let system = |source| Error::System { what: format!("start {}", program.display()), source };
    let log_path = home.join("log");
    let log = fs::OpenOptions::new().create(true).append(true).open(&log_path).map_err(system)?;
    let any = "127.0.0.1:0".to_owned();
    let settings = [
        ("AMQP__LISTEN", format!("127.0.0.1:{port}")),
        ("DATA_DIR", home.join("data").display().to_string()),
        ("HTTP__LISTEN", any.clone()),
        ("SQS__LISTEN", any.clone()),
        ("ELASTIC__LISTEN", any),
    ];
    let mut command = Command::new(program);
    command.arg("serve");
    for (name, value) in settings {
        command.env(format!("QUELEA__{name}"), value);
    }
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(log);
    let mut child = command.spawn().map_err(system)?;
    let ready = child.stdout.take().is_some_and(|stdout| {
        let mut lines = BufReader::new(stdout).lines().map_while(Result::ok);
        lines.any(|line| line.starts_with("quelea ready "))
    });
    if ready {
        return Ok(child);
    }
    let _ = child.kill();
    let _ = child.wait();
    let log = fs::read_to_string(&log_path).unwrap_or_default();
    let last = log.lines().rev().take(5).collect::<Vec<_>>().join(" / ");
    Err(Error::System {
        what: format!("start {}: {last}", program.display()),
        source: std::io::Error::other("it has ended"),
    })
}

/// Seconds of CPU time that a process has used; `None` if it is not there.
#[must_use]
pub fn process_cpu_s(pid: u32) -> Option<f64> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // The name in parentheses may have spaces; user and system time are the 12th and 13th behind it (proc(5)).
    let mut fields = stat.rsplit_once(')')?.1.split_ascii_whitespace().skip(11);
    let ticks: f64 = fields.next()?.parse::<f64>().ok()? + fields.next()?.parse::<f64>().ok()?;
    Some(ticks / rustix::param::clock_ticks_per_second() as f64)
}
