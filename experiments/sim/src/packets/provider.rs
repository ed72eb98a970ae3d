//! The provider: starts and ends relay processes as `quelea_elastic_directory::provider` promises, or does not.

use quelea_elastic_core::directory::{RelayHandle, RelaySpec};
use quelea_testkit::stream_network::NodeId;

use crate::packets::fault::ProviderMode;
use crate::packets::participant::Participant;

/// A process that was started.
#[derive(Debug)]
pub(super) struct Process {
    pub(super) handle: RelayHandle,
    /// `None`: there never was one.
    pub(super) node: Option<NodeId>,
    pub(super) running: bool,
}

/// What the run has to do for a start.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Start {
    /// Nothing: say this.
    Failed(&'static str),
    /// It was started before.
    Known(RelayHandle),
    /// So many processes, the first of which is what is answered.
    Processes(usize),
    /// None, but say that there is one.
    Ghost,
}

/// Starts and ends relay processes, and says which run.
#[derive(Debug)]
pub(super) struct Provider {
    pub(super) mode: ProviderMode,
    pub(super) processes: Vec<Process>,
    /// Ends that a directory has to be notified of.
    pub(super) unreported: Vec<(Participant, RelayHandle, String)>,
}

impl Provider {
    pub(super) const fn new() -> Self {
        Self { mode: ProviderMode::Well, processes: Vec::new(), unreported: Vec::new() }
    }

    pub(super) fn start(&self, spec: &RelaySpec) -> Start {
        let of_it = |process: &&Process| process.handle.request == spec.request;
        if self.mode == ProviderMode::Fails {
            return Start::Failed("it has no room");
        }
        if let Some(known) = self.processes.iter().find(|of| of_it(of) && of.running) {
            return Start::Known(known.handle.clone());
        }
        if self.processes.iter().any(|of| of_it(&of)) {
            return Start::Failed("the relay of this request has ended");
        }
        match self.mode {
            ProviderMode::Twice => Start::Processes(2),
            ProviderMode::Ghost => Start::Ghost,
            _ => Start::Processes(1),
        }
    }

    pub(super) fn add(&mut self, spec: &RelaySpec, node: Option<NodeId>) -> RelayHandle {
        let name = format!("process {}", self.processes.len() + 1);
        let handle = RelayHandle { relay: spec.relay, request: spec.request.clone(), name };
        self.processes.push(Process { handle: handle.clone(), node, running: true });
        handle
    }

    pub(super) fn find(&mut self, handle: &RelayHandle) -> Option<&mut Process> {
        self.processes.iter_mut().find(|process| {
            let named = process.handle.name == handle.name;
            let meant = handle.name.is_empty() && process.handle.relay == handle.relay;
            process.running && (named || meant)
        })
    }

    pub(super) fn running(&self) -> Vec<RelayHandle> {
        let running = self.processes.iter().filter(|process| process.running);
        running.map(|process| process.handle.clone()).collect()
    }
}
