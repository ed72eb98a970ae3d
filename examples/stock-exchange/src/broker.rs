//! A broker of the run's own: `quelea serve` on a free port, with a data directory that goes with it.

use std::fs;
use std::net::TcpListener;
use std::path::{Path, PathBuf};

use quelea_bench::BrokerUri;
use quelea_bench::shared::{ServeProcess, percent_encoded, sample};

use crate::error::Error;

/// The user of a fresh broker, as HTTP has it.
const GUEST: &str = "Basic Z3Vlc3Q6Z3Vlc3Q=";

/// A process that ends with this value, with its relays, and its directory is removed.
#[derive(Debug)]
pub struct Broker {
    program: PathBuf,
    home: PathBuf,
    port: u16,
    /// None while it is killed and started again.
    process: Option<ServeProcess>,
    /// What those that were killed had used.
    killed_cpu_s: f64,
}

impl Broker {
    /// Starts it, and waits until it is ready.
    ///
    /// # Errors
    /// [`Error::Start`] with the end of its log.
    pub fn start(program: &Path) -> Result<Self, Error> {
        let system = |what: &str, source| Error::System { what: what.to_owned(), source };
        let home = std::env::temp_dir().join(format!("stock-exchange-{}", std::process::id()));
        fs::create_dir_all(&home).map_err(|error| system("make a directory", error))?;
        // The same after a restart; who else takes it meanwhile makes the start fail.
        let free = TcpListener::bind("127.0.0.1:0").and_then(|socket| socket.local_addr());
        let port = free.map_err(|error| system("find a free port", error))?.port();
        let mut broker =
            Self { program: program.to_owned(), home, port, process: None, killed_cpu_s: 0.0 };
        broker.process = Some(broker.serve()?);
        Ok(broker)
    }

    /// Returns where it listens.
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

    /// Returns the seconds of CPU time that it has used, over all its lives; `None` if its process
    /// cannot be seen.
    #[must_use]
    pub fn cpu_s(&self) -> Option<f64> {
        cpu_s(self.process.as_ref()?.pid()).map(|used_s| self.killed_cpu_s + used_s)
    }

    /// Makes an elastic queue of that name. Returns the address of the directory of its elastic
    /// queues, in which there is such a queue now.
    ///
    /// # Errors
    /// If it cannot be made.
    pub fn directory(&self, queue: &str) -> Result<String, Error> {
        let Some(process) = &self.process else { return Err(Error::Interrupted) };
        let (http, directory) = (process.said("http")?, process.said("elastic")?);
        let made =
            ureq::put(format!("http://{http}/api/elastic/queues/{}", percent_encoded(queue)));
        made.header("authorization", GUEST).content_type("application/json").send("{}")?;
        Ok(directory.to_owned())
    }

    /// Kills it by signal 9, and starts it on what it left.
    ///
    /// # Errors
    /// As [`Broker::start`].
    pub fn kill_and_restart(&mut self) -> Result<(), Error> {
        // Right before: what it uses until the signal is there is not seen.
        self.killed_cpu_s = self.cpu_s().unwrap_or(self.killed_cpu_s);
        self.process = None;
        self.process = Some(self.serve()?);
        Ok(())
    }

    fn serve(&self) -> Result<ServeProcess, Error> {
        let any = "127.0.0.1:0";
        let settings = [
            ("amqp.listen", &*format!("127.0.0.1:{}", self.port)),
            ("data_dir", "data"),
            ("http.listen", any),
            ("sqs.listen", any),
            ("elastic.listen", any),
        ];
        let settings = settings.map(|(name, value)| (name.to_owned(), value.to_owned()));
        Ok(ServeProcess::start(&self.program, &self.home, &settings)?)
    }
}

/// Returns the seconds of CPU time that a process has used; `None` if it is not there.
pub(crate) fn cpu_s(pid: u32) -> Option<f64> {
    sample(pid).ok().map(|sample| sample.cpu_us as f64 / 1e6)
}

impl Drop for Broker {
    fn drop(&mut self) {
        if let Some(process) = self.process.take() {
            process.stop();
        }
        let _ = fs::remove_dir_all(&self.home);
    }
}
