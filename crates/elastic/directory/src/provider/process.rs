//! Relays as processes of this machine: the program itself as `quelea relay …`, each in a session of its
//! own, so that a relay outlives the directory that started it, and the next one adopts it.
//!
//! A lease file says who runs. The order makes it exact whenever the directory dies: the process is
//! made, but waits for a word on its standard input (see [`hold`]); its lease is written; the word is
//! said. Without the word it ends by itself, so there is no relay without a lease, and none twice.

pub mod hold;
mod identity;
mod lease;
mod log;
mod watcher;

use std::collections::{BTreeMap, VecDeque};
use std::io::Write as _;
use std::os::fd::{AsFd as _, OwnedFd};
use std::path::PathBuf;
use std::pin::Pin;
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use quelea_elastic_core::directory::{RelayHandle, RelaySpec};
use rustix::process::{Signal, WaitId, WaitIdOptions};
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio::sync::watch;

use self::identity::Identity;
use self::lease::Lease;
use self::log::RelayLog;
use self::watcher::Watcher;
use super::{Ended, Provider, ProviderError, ProviderEvent, RelayCommand, Running};
use crate::ResultFuture;
use crate::relay_token::TOKEN_VARIABLE;

/// As in `elastic.provider`.
const NAME: &str = "process";
/// How often a relay's log is looked at, whether it has grown too large.
const LOG_CHECK: Duration = Duration::from_secs(30);
/// Ended relays whose requests are remembered, so that a late repetition does not start them again.
const ENDED_MAX: usize = 1_024;

/// What the provider needs to know.
#[derive(Clone, Debug)]
pub struct ProcessSettings {
    /// Where lease files and logs are; made if it is missing.
    pub dir: PathBuf,
    /// The program that is run.
    pub program: PathBuf,
    /// What every relay is started with.
    pub command: RelayCommand,
}

/// The provider. Lives within a tokio runtime.
#[derive(Clone)]
pub struct Processes {
    shared: Arc<Shared>,
}

struct Shared {
    settings: ProcessSettings,
    host: String,
    watcher: Watcher,
    state: Mutex<State>,
    ends: UnboundedSender<Ended>,
    next_end: tokio::sync::Mutex<UnboundedReceiver<Ended>>,
}

#[derive(Default)]
struct State {
    relays: BTreeMap<Key, Relay>,
    ended: VecDeque<(Key, String)>,
    /// Processes of `relays` that were killed because they did not end when they were asked to, and how long they had.
    killed: BTreeMap<u32, Duration>,
}

/// Queue and request.
type Key = (String, String);

#[derive(Clone)]
struct Relay {
    lease: Lease,
    pidfd: Arc<OwnedFd>,
    /// See [`Watcher::watch`].
    ended: watch::Receiver<bool>,
}

impl Processes {
    /// Adopts what runs. What has ended meanwhile is reported by [`Provider::event`].
    ///
    /// # Errors
    /// If the directory of lease files cannot be made or read.
    pub fn new(settings: ProcessSettings) -> std::io::Result<Self> {
        std::fs::create_dir_all(&settings.dir)?;
        let (ends, next_end) = unbounded_channel();
        let next_end = tokio::sync::Mutex::new(next_end);
        let shared = Arc::new(Shared {
            settings,
            host: identity::host(),
            watcher: Watcher::new()?,
            state: Mutex::default(),
            ends,
            next_end,
        });
        let this = Self { shared };
        for lease in lease::read_all(&this.shared.settings.dir)? {
            this.adopt(lease)?;
        }
        Ok(this)
    }

    fn adopt(&self, lease: Lease) -> std::io::Result<()> {
        // The descriptor first: whom it means cannot change any more while the identity is compared.
        let found = identity::pidfd(lease.identity.pid)
            .filter(|_| Identity::of(lease.identity.pid).as_ref() == Some(&lease.identity));
        match found {
            Some(pidfd) => {
                let pidfd = Arc::new(pidfd);
                let ended = self.shared.watcher.watch(Arc::clone(&pidfd))?;
                let (queue, pid) = (&lease.queue, lease.identity.pid);
                tracing::info!(queue, relay = lease.relay, pid, "relay adopted");
                self.track(Relay { lease, pidfd, ended }, &mut self.state());
            }
            None => self.report_end(&lease, &End::unseen("it ended while no directory looked")),
        }
        Ok(())
    }

    fn start_relay(&self, spec: &RelaySpec) -> Result<RelayHandle, ProviderError> {
        // One lock over all of it: it takes a millisecond, and two starts of a request cannot cross.
        let mut state = self.state();
        let key = (spec.queue.clone(), spec.request.clone());
        if let Some(relay) = state.relays.get(&key) {
            return Ok(self.handle(&relay.lease));
        }
        if let Some((_, cause)) = state.ended.iter().find(|(ended, _)| *ended == key) {
            return Err(ProviderError::Ended {
                request: spec.request.clone(),
                cause: cause.clone(),
            });
        }
        let relay = self.spawn(spec)?;
        let handle = self.handle(&relay.lease);
        let pid = relay.lease.identity.pid;
        tracing::info!(queue = spec.queue, relay = spec.relay.0, pid, "relay started");
        self.track(relay, &mut state);
        Ok(handle)
    }

    fn spawn(&self, spec: &RelaySpec) -> Result<Relay, ProviderError> {
        let settings = &self.shared.settings;
        let what = || format!("start relay {} of {:?}", spec.relay.0, spec.queue);
        let failed = |step: &str, error: std::io::Error| ProviderError::Unavailable {
            provider: NAME,
            what: what(),
            cause: format!("{step}: {error}"),
        };
        let log = RelayLog::of(&settings.dir, &lease::stem(&spec.queue, &spec.request));
        let (out, err) = log.open().map_err(|error| failed("open its log", error))?;
        let mut child = Command::new(&settings.program)
            .arg(hold::COMMAND)
            .args(settings.command.arguments(spec))
            .arg(format!("--spill-dir={}", settings.dir.display()))
            .env(TOKEN_VARIABLE, settings.command.token(spec)?)
            .stdin(Stdio::piped())
            .stdout(out)
            .stderr(err)
            .spawn()
            .map_err(|error| ProviderError::Refused {
                provider: NAME,
                what: what(),
                cause: format!("cannot run {}: {error}", settings.program.display()),
            })?;
        self.lease(spec, &mut child).map_err(|error| {
            // It has not got the word. It can only be gone already.
            let _ = child.kill().and_then(|()| child.wait());
            failed("write its lease", error)
        })
    }

    /// Writes the lease, then says the word.
    fn lease(&self, spec: &RelaySpec, child: &mut Child) -> std::io::Result<Relay> {
        let dir = &self.shared.settings.dir;
        let gone = || std::io::Error::other("the process is gone");
        let pidfd = Arc::new(identity::pidfd(child.id()).ok_or_else(gone)?);
        let lease = Lease {
            queue: spec.queue.clone(),
            relay: spec.relay.0,
            request: spec.request.clone(),
            identity: Identity::of(child.id()).ok_or_else(gone)?,
        };
        let ended = self.shared.watcher.watch(Arc::clone(&pidfd))?;
        let said = lease
            .write(dir)
            .and_then(|()| child.stdin.take().ok_or_else(gone)?.write_all(hold::WORD));
        match said {
            Ok(()) => Ok(Relay { lease, pidfd, ended }),
            Err(error) => {
                lease.remove(dir);
                Err(error)
            }
        }
    }

    /// Knows the relay from now on, and reports its end.
    fn track(&self, relay: Relay, state: &mut State) {
        let Relay { lease, pidfd, mut ended } = relay.clone();
        state.relays.insert((lease.queue.clone(), lease.request.clone()), relay);
        let this = self.clone();
        tokio::spawn(async move {
            let log = RelayLog::of(&this.shared.settings.dir, &lease.stem());
            while tokio::time::timeout(LOG_CHECK, ended.wait_for(|ended| *ended)).await.is_err() {
                log.keep_within_bounds();
            }
            let mut end = how_it_ended(&pidfd);
            if let Some(grace) = this.state().killed.remove(&lease.identity.pid) {
                let ms = grace.as_millis();
                end.cause =
                    format!("{}: it had not ended {ms} ms after it was asked to", end.cause);
            }
            this.report_end(&lease, &end);
        });
    }

    fn report_end(&self, lease: &Lease, end: &End) {
        let log = RelayLog::of(&self.shared.settings.dir, &lease.stem());
        let cause = match log.last_line().filter(|_| end.is_its_own) {
            Some(line) => format!("{}: {line}", end.cause),
            None => end.cause.clone(),
        };
        tracing::info!(
            queue = lease.queue,
            relay = lease.relay,
            pid = lease.identity.pid,
            cause,
            "relay ended"
        );
        let key = (lease.queue.clone(), lease.request.clone());
        let mut state = self.state();
        state.relays.remove(&key);
        state.killed.remove(&lease.identity.pid);
        state.ended.push_back((key, cause.clone()));
        if state.ended.len() > ENDED_MAX {
            state.ended.pop_front();
        }
        drop(state);
        lease.remove(&self.shared.settings.dir);
        log::forget_old(&self.shared.settings.dir);
        let ended = Ended { queue: lease.queue.clone(), handle: self.handle(lease), cause };
        // The receiver lives as long as this.
        let _ = self.shared.ends.send(ended);
    }

    fn stop_relay(
        &self,
        queue: &str,
        handle: &RelayHandle,
        grace: Duration,
    ) -> Result<(), ProviderError> {
        let state = self.state();
        let found = state.relays.values().find(|relay| {
            relay.lease.queue == queue
                && (self.handle(&relay.lease).name == handle.name
                    || (handle.name.is_empty() && relay.lease.relay == handle.relay.0))
        });
        let Some(relay) = found else { return Ok(()) };
        let Relay { pidfd, mut ended, lease } = relay.clone();
        let what = format!("stop relay {}", handle.relay.0);
        drop(state);
        signal(&pidfd, Signal::TERM).map_err(|error| ProviderError::Refused {
            provider: NAME,
            what,
            cause: format!("{} ({error})", handle.name),
        })?;
        let this = self.clone();
        tokio::spawn(async move {
            if tokio::time::timeout(grace, ended.wait_for(|ended| *ended)).await.is_err() {
                let key = (lease.queue, lease.request);
                let mut state = this.state();
                if state.relays.contains_key(&key) {
                    state.killed.insert(lease.identity.pid, grace);
                }
                drop(state);
                // It can only fail if the process has just ended.
                let _ = signal(&pidfd, Signal::KILL);
            }
        });
        Ok(())
    }

    /// Returns whether a process of this machine has ended. The kernel says so, whichever directory
    /// started it.
    fn has_ended(&self, handle: &RelayHandle) -> bool {
        let Some((pid, place)) = handle.name.split_once('@') else { return false };
        let Some((host, start_ticks)) = place.rsplit_once('/') else { return false };
        let (Ok(pid), Ok(start_ticks)) = (pid.parse(), start_ticks.parse::<u64>()) else {
            return false;
        };
        host == self.shared.host
            && Identity::of(pid).is_none_or(|found| found.start_ticks != start_ticks)
    }

    fn handle(&self, lease: &Lease) -> RelayHandle {
        let Identity { pid, start_ticks, .. } = &lease.identity;
        RelayHandle {
            relay: quelea_elastic_proto::RelayId(lease.relay),
            request: lease.request.clone(),
            name: format!("{pid}@{}/{start_ticks}", self.shared.host),
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.shared.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Provider for Processes {
    fn name(&self) -> &'static str {
        NAME
    }

    fn start<'a>(&'a self, spec: &'a RelaySpec) -> ResultFuture<'a, RelayHandle, ProviderError> {
        Box::pin(async move { self.start_relay(spec) })
    }

    fn list<'a>(&'a self, queue: Option<&'a str>) -> ResultFuture<'a, Vec<Running>, ProviderError> {
        Box::pin(async move {
            let state = self.state();
            let leases = state.relays.values().map(|relay| &relay.lease);
            let mut leases: Vec<_> =
                leases.filter(|lease| queue.is_none_or(|queue| queue == lease.queue)).collect();
            leases.sort_by_key(|lease| (&lease.queue, lease.relay));
            let running =
                |lease: &&Lease| Running { queue: lease.queue.clone(), handle: self.handle(lease) };
            Ok(leases.iter().map(running).collect())
        })
    }

    fn has_ended<'a>(
        &'a self,
        _queue: &'a str,
        handle: &'a RelayHandle,
    ) -> ResultFuture<'a, bool, ProviderError> {
        Box::pin(async move { Ok(self.has_ended(handle)) })
    }

    fn stop<'a>(
        &'a self,
        queue: &'a str,
        handle: &'a RelayHandle,
        grace: Duration,
    ) -> ResultFuture<'a, (), ProviderError> {
        Box::pin(async move { self.stop_relay(queue, handle, grace) })
    }

    fn event(&self) -> Pin<Box<dyn Future<Output = ProviderEvent> + Send + '_>> {
        Box::pin(async move {
            match self.shared.next_end.lock().await.recv().await {
                Some(ended) => ProviderEvent::Ended(ended),
                // `shared` holds a sender, so this does not happen.
                None => std::future::pending().await,
            }
        })
    }
}

/// How a process ended.
struct End {
    cause: String,
    /// It ended by itself, so the last line of its log says why. What was killed wrote of something else.
    is_its_own: bool,
}

impl End {
    /// Returns an end of which nobody saw how it came.
    fn unseen(cause: &str) -> Self {
        Self { cause: cause.to_owned(), is_its_own: true }
    }
}

/// Returns how the process ended. Also takes it out of the kernel's table, if it was our child.
fn how_it_ended(pidfd: &OwnedFd) -> End {
    match rustix::process::waitid(WaitId::PidFd(pidfd.as_fd()), WaitIdOptions::EXITED) {
        Ok(Some(status)) => match (status.exit_status(), status.terminating_signal()) {
            (Some(code), _) => End { cause: format!("exit code {code}"), is_its_own: true },
            (None, Some(signal)) => End { cause: format!("signal {signal}"), is_its_own: false },
            (None, None) => End::unseen("it ended"),
        },
        // An adopted one is not our child: who is says how it ended.
        _ => End::unseen("it ended (adopted)"),
    }
}

fn signal(pidfd: &OwnedFd, signal: Signal) -> rustix::io::Result<()> {
    match rustix::process::pidfd_send_signal(pidfd.as_fd(), signal) {
        Err(rustix::io::Errno::SRCH) => Ok(()),
        other => other,
    }
}
