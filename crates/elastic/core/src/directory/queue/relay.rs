//! A relay as the directory knows it: from its request to its end.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use quelea_elastic_proto::frame::{Capacity, Host, RelayAddress, Report};
use quelea_elastic_proto::{ClientId, RelayId, Time};

use crate::directory::queue::meter::SlotCounts;
use crate::directory::{Peer, RelayStatus};
use crate::plan::{Load, RelayState};

/// One relay of a queue.
pub(in crate::directory) struct Relay {
    pub(super) id: RelayId,
    pub(super) phase: RelayPhase,
    /// It is up, but not yet in the store's record: the change of the record that says so.
    pub(super) up_unsaved: Option<u64>,
    pub(super) request: String,
    pub(super) handle: String,
    pub(super) address: String,
    pub(super) zmtp: (String, String),
    pub(super) capacity: Capacity,
    pub(super) peer: Option<Peer>,
    /// When it was asked for, or taken over.
    pub(super) started_at: Time,
    /// The last sign of life: registration, report, or when it was taken over; then in the future, where a
    /// provider does not see it.
    pub(super) heard_at: Time,
    pub(super) reported_at: Option<Time>,
    /// The counts of the last whole report.
    pub(super) report: Report,
    /// What it said of its host last.
    pub(super) host: Host,
    /// The same at its last sample, `None` before the first one.
    pub(super) host_before: Option<Host>,
    /// A report of which more follows.
    pub(super) partial: Option<Report>,
    /// Each producer's counts in the last whole report.
    pub(super) slots: BTreeMap<ClientId, SlotCounts>,
    pub(super) samples: VecDeque<Load>,
    pub(super) witnesses: Witnesses,
    /// Listeners that count for moves and are attached here.
    pub(super) attached: usize,
    /// Producers that are here or on their way.
    pub(super) producers: usize,
    /// Bytes a second of these, by estimate.
    pub(super) projected: f64,
    /// Since when listeners leave it.
    pub(super) left_at: Time,
    /// Moves under way from or to it.
    pub(super) moves: u32,
}

/// Where a relay is in its lifecycle.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::directory) enum RelayPhase {
    /// In the record; the provider is or will be asked.
    Starting,
    /// Registered, or known from a record in which it was.
    Up,
    /// Gets no new client, and is emptied.
    Draining {
        /// When it began.
        since: Time,
        /// All producers were gone and all was written: listeners are sent away.
        empty: bool,
    },
    /// To be ended by the provider, whatever it does.
    Stopping {
        /// When the provider was asked last.
        asked_at: Time,
    },
}

/// Who says that a relay is gone.
#[derive(Default)]
pub(super) struct Witnesses {
    /// Its connection to this directory ended.
    pub(super) closed: bool,
    /// Clients that lost it.
    pub(super) clients: BTreeSet<ClientId>,
}

impl Relay {
    pub(in crate::directory) fn new(
        id: RelayId,
        phase: RelayPhase,
        request: String,
        now: Time,
    ) -> Self {
        Self {
            id,
            phase,
            up_unsaved: None,
            request,
            handle: String::new(),
            address: String::new(),
            zmtp: (String::new(), String::new()),
            capacity: Capacity::default(),
            peer: None,
            started_at: now,
            heard_at: now,
            reported_at: None,
            report: Report::default(),
            host: Host::default(),
            host_before: None,
            partial: None,
            slots: BTreeMap::new(),
            samples: VecDeque::new(),
            witnesses: Witnesses::default(),
            attached: 0,
            producers: 0,
            projected: 0.0,
            left_at: now,
            moves: 0,
        }
    }

    /// Returns whether clients may be there.
    pub(super) fn serves(&self) -> bool {
        matches!(self.phase, RelayPhase::Up | RelayPhase::Draining { .. })
    }

    /// Returns whether producers may be sent there. Not before the record says that it is up: an
    /// owner that reads otherwise would send listeners away from it.
    pub(super) fn takes_producers(&self) -> bool {
        self.phase == RelayPhase::Up && self.up_unsaved.is_none()
    }

    /// Returns whether listeners are to be there.
    pub(super) fn is_listened_to(&self) -> bool {
        let lives =
            matches!(self.phase, RelayPhase::Up | RelayPhase::Draining { empty: false, .. });
        lives && self.up_unsaved.is_none()
    }

    pub(super) fn is_ending(&self) -> bool {
        matches!(self.phase, RelayPhase::Stopping { .. })
    }

    pub(super) fn to_address(&self) -> RelayAddress {
        RelayAddress { relay: self.id, address: self.address.clone() }
    }

    /// Returns its state as the planner and the API see it.
    pub(in crate::directory) fn state(&self) -> RelayState {
        match self.phase {
            RelayPhase::Starting => RelayState::Starting,
            RelayPhase::Up => RelayState::Up,
            RelayPhase::Draining { .. } => RelayState::Draining,
            RelayPhase::Stopping { .. } => RelayState::Dead,
        }
    }

    pub(in crate::directory) fn load(&self) -> Load {
        self.samples.back().copied().unwrap_or_default()
    }

    /// Returns how many kinds of witnesses there are besides its silence. All clients together are
    /// one: they may be cut off together, by the same network.
    pub(super) fn witness_count(&self) -> u32 {
        u32::from(!self.witnesses.clients.is_empty()) + u32::from(self.witnesses.closed)
    }

    pub(in crate::directory) fn status(&self) -> RelayStatus {
        RelayStatus {
            id: self.id,
            state: self.state(),
            address: self.address.clone(),
            zmtp: self.zmtp.clone(),
            request: self.request.clone(),
            handle: self.handle.clone(),
            started_at: self.started_at,
            reported_at: self.reported_at,
            load: self.load(),
            dropped: self.report.dropped,
            spilled: self.report.spilled,
            left_behind: self.report.left_behind,
            memory_bytes: self.host.memory_bytes,
            memory_bytes_max: self.host.memory_bytes_max,
            producers: self.producers,
            listeners: self.report.listeners,
            connected: self.peer.is_some(),
            witnesses: self.witness_count(),
        }
    }
}
