//! Reports the ends of processes: one thread that sleeps until the kernel says so, for any number of them.
//! (Tokio takes a foreign descriptor only in an unsafe call.)

use std::collections::BTreeMap;
use std::os::fd::OwnedFd;
use std::sync::{Arc, Mutex, PoisonError};

use rustix::buffer::spare_capacity;
use rustix::event::{EventfdFlags, epoll, eventfd};
use tokio::sync::watch;

/// Events that are taken from the kernel at once.
const EVENTS_MAX: usize = 64;
/// The number of the descriptor that ends the thread.
const END: u64 = 0;

/// Watches processes by their descriptors.
pub(super) struct Watcher {
    shared: Arc<Shared>,
    end: OwnedFd,
}

struct Shared {
    epoll: OwnedFd,
    watched: Mutex<WatchedProcesses>,
}

#[derive(Default)]
struct WatchedProcesses {
    last: u64,
    /// The descriptor is kept: a closed one would never say.
    processes: BTreeMap<u64, (Arc<OwnedFd>, watch::Sender<bool>)>,
}

impl Watcher {
    pub(super) fn new() -> std::io::Result<Self> {
        let epoll = epoll::create(epoll::CreateFlags::CLOEXEC)?;
        let end = eventfd(0, EventfdFlags::CLOEXEC)?;
        epoll::add(&epoll, &end, epoll::EventData::new_u64(END), epoll::EventFlags::IN)?;
        let shared = Arc::new(Shared { epoll, watched: Mutex::default() });
        let waiting = Arc::clone(&shared);
        std::thread::Builder::new().name("relay-watch".to_owned()).spawn(move || waiting.run())?;
        Ok(Self { shared, end })
    }

    /// Watches a process. What is returned becomes true when the process has ended, and stays so.
    pub(super) fn watch(&self, pidfd: Arc<OwnedFd>) -> std::io::Result<watch::Receiver<bool>> {
        let (ended, is_ended) = watch::channel(false);
        let mut watched = self.shared.watched.lock().unwrap_or_else(PoisonError::into_inner);
        watched.last += 1;
        let number = watched.last;
        let flags = epoll::EventFlags::IN | epoll::EventFlags::ONESHOT;
        epoll::add(&self.shared.epoll, &pidfd, epoll::EventData::new_u64(number), flags)?;
        watched.processes.insert(number, (pidfd, ended));
        Ok(is_ended)
    }
}

impl Drop for Watcher {
    fn drop(&mut self) {
        // It only fails if the counter is full, which is readable too.
        let _ = rustix::io::write(&self.end, &1_u64.to_ne_bytes());
    }
}

impl Shared {
    fn run(&self) {
        let mut events = Vec::with_capacity(EVENTS_MAX);
        loop {
            match epoll::wait(&self.epoll, spare_capacity(&mut events), None) {
                Ok(_) | Err(rustix::io::Errno::INTR) => {}
                Err(error) => {
                    tracing::error!(%error, "relays' ends are not seen any more");
                    return;
                }
            }
            for event in events.drain(..) {
                let number = { event.data }.u64();
                if number == END {
                    return;
                }
                let mut watched = self.watched.lock().unwrap_or_else(PoisonError::into_inner);
                if let Some((_, ended)) = watched.processes.remove(&number) {
                    // An error means that nobody waits any more.
                    let _ = ended.send(true);
                }
            }
        }
    }
}
