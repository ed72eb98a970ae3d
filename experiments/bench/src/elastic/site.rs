//! Where elastic queues are measured: a directory that runs already, or one that is started for the run
//! and ended with it.

mod api;
mod started;

use std::cell::RefCell;
use std::thread;
use std::time::Duration;

use quelea_elastic_client::{Client, Options};
use rustix::process::Signal;
use serde_json::Value;

use crate::clock::{SECOND_NS, now_ns};
use crate::elastic::args::SiteArgs;
use crate::elastic::error::ElasticError;
use crate::interrupt::Interrupt;
use crate::serve_process;

pub(crate) use api::Api;
pub(crate) use started::Restarted;
use started::Started;

/// How often something that is waited for is looked at.
const LOOK: Duration = Duration::from_millis(2);

/// A directory.
#[derive(Debug)]
pub(crate) struct Site {
    directory: String,
    pub api: Api,
    pub interrupt: Interrupt,
    /// Ends with the site.
    started: Option<RefCell<Started>>,
}

impl Site {
    pub(crate) fn open(args: &SiteArgs) -> Result<Self, ElasticError> {
        let interrupt = Interrupt::install();
        if let Some(directory) = &args.directory {
            let (directory, api) = (directory.clone(), Api::new(&args.http, &args.user));
            return Ok(Self { directory, api, interrupt, started: None });
        }
        let program = serve_process::program(args.quelea.as_deref())?;
        let started = Started::start(&program)?;
        let api = Api::new(started.address("http"), "guest:guest");
        let directory = started.address("elastic").to_owned();
        Ok(Self { directory, api, interrupt, started: Some(RefCell::new(started)) })
    }

    /// Ends the directory by a signal, and starts it again at its addresses, with its data.
    ///
    /// # Errors
    /// If it is not ours, or does not end or start.
    pub(crate) fn restart(&self, by: Signal) -> Result<Restarted, ElasticError> {
        let started = self.started.as_ref();
        let started = started.ok_or_else(|| ElasticError::Start("it is not ours".to_owned()))?;
        started.borrow_mut().restart(by)
    }

    /// Returns whether the directory was started here.
    pub(crate) const fn is_ours(&self) -> bool {
        self.started.is_some()
    }

    /// Returns a client of this site.
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
            let relays = match self.relays() {
                // A directory that was started anew takes the queue over first.
                Err(ElasticError::Refused { status: 404 | 503, .. }) => return Ok(None),
                relays => relays?,
            };
            let relays: Vec<_> = relays.into_iter().filter(|relay| relay.up).collect();
            Ok((relays.len() >= count).then_some(relays))
        })
    }

    /// Returns a figure of the queue's own, such as `moves_done`.
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
