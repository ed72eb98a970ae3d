//! A broker of the run's own: `quelea serve` on a free port, with a data directory that goes with it.

use std::fs;
use std::net::TcpListener;
use std::path::{Path, PathBuf};

use quelea_bench::BrokerUri;
use quelea_bench::shared::ServeProcess;

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
        let mut broker = Self { program: program.to_owned(), home, port, process: None };
        broker.process = Some(broker.serve()?);
        Ok(broker)
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
    pub fn pid(&self) -> Option<u32> {
        self.process.as_ref().map(ServeProcess::pid)
    }

    /// Its elastic queues' directory, in which there is a queue of that name now.
    ///
    /// # Errors
    /// If it cannot be made.
    pub fn directory(&self, queue: &str) -> Result<String, Error> {
        let Some(process) = &self.process else { return Err(Error::Interrupted) };
        let (http, directory) = (process.said("http")?, process.said("elastic")?);
        let made = ureq::put(format!("http://{http}/api/elastic/queues/{queue}"));
        made.header("authorization", GUEST).content_type("application/json").send("{}")?;
        Ok(directory.to_owned())
    }

    /// Kills it by signal 9, and starts it on what it left.
    ///
    /// # Errors
    /// As [`Broker::start`].
    pub fn kill_and_restart(&mut self) -> Result<(), Error> {
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

impl Drop for Broker {
    fn drop(&mut self) {
        if let Some(process) = self.process.take() {
            process.stop();
        }
        let _ = fs::remove_dir_all(&self.home);
    }
}
