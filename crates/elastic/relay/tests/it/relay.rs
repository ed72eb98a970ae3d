//! A relay in a thread of the test.

use std::net::SocketAddr;
use std::path::Path;
use std::sync::mpsc;
use std::thread::JoinHandle;
use std::time::Duration;

use quelea_elastic_proto::frame::{Acknowledge, SlowPolicy};
use quelea_elastic_relay::{Config, SpillConfig, Stopped, Stopper, ZmtpAddresses};

use crate::client::Client;

/// The queue of all tests.
pub(crate) const QUEUE: &str = "prices";

pub(crate) struct TestRelay {
    pub(crate) address: SocketAddr,
    pub(crate) zmtp: ZmtpAddresses,
    stopper: Stopper,
    thread: Option<JoinHandle<Stopped>>,
}

impl TestRelay {
    pub(crate) fn start() -> Self {
        Self::with(|_| {})
    }

    pub(crate) fn with(change: impl FnOnce(&mut Config)) -> Self {
        let mut config = Config::standalone(QUEUE);
        config.drain = Duration::from_secs(20);
        change(&mut config);
        let (stopper, stop) = Stopper::new();
        let (ready, address) = mpsc::channel();
        let thread = std::thread::spawn(move || {
            let on_ready = |address| ready.send(address).expect("the test waits for it");
            quelea_elastic_relay::run(&config, stop, on_ready).expect("it starts")
        });
        let address = address.recv().expect("it starts");
        let (zmtp, address) = (address.zmtp, address.native);
        Self { address, zmtp, stopper, thread: Some(thread) }
    }

    /// Starts a relay whose listeners have small rings and this policy.
    pub(crate) fn slow(policy: SlowPolicy, ring_bytes: u64) -> Self {
        Self::with(|config| {
            config.settings.slow = policy;
            config.settings.ring_bytes_max = ring_bytes;
        })
    }

    /// Starts a relay whose listeners spill, so many bytes each, to this directory.
    pub(crate) fn spilling(level: Acknowledge, bytes_max: u64, directory: &Path) -> Self {
        Self::with(|config| {
            config.settings.acknowledge = level;
            config.settings.slow = SlowPolicy::DropNewest;
            config.settings.ring_bytes_max = 256 << 10;
            config.spill = Some(SpillConfig { directory: directory.to_owned(), bytes_max });
        })
    }

    pub(crate) fn acknowledging(level: Acknowledge) -> Self {
        Self::with(|config| config.settings.acknowledge = level)
    }

    /// Connects a client that has said HELLO.
    pub(crate) fn client(&self) -> Client {
        Client::greeted(self.address)
    }

    pub(crate) fn stop(&self) {
        self.stopper.stop();
    }

    pub(crate) fn stopped(mut self) -> Stopped {
        self.thread.take().expect("it is taken once").join().expect("it does not panic")
    }
}

impl Drop for TestRelay {
    fn drop(&mut self) {
        if let Some(thread) = self.thread.take() {
            self.stopper.stop();
            self.stopper.stop();
            // A panic of the relay fails the test, unless it is failing already.
            let ended = thread.join();
            assert!(ended.is_ok() || std::thread::panicking(), "the relay panicked");
        }
    }
}
