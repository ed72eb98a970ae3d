//! What the planner remembers from one plan to the next. Data: kept by the caller, changed by `plan` only.

use quelea_elastic_proto::frame::NoticeCode;
use quelea_elastic_proto::{RelayId, Time};

use super::tuning::{BACK_OFF_MAX_MS, BACK_OFF_MS, EFFECT_MAX_MS, EFFECT_MS, NOTICE_MS, REPORT_MS};
use super::view::{RelayState, RelayView, Snapshot};

/// A queue's history. Begin with the default; pass each plan's to the next one. It need not be saved: a
/// new owner of the queue begins anew, and then waits a whole window before it removes anything.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct History {
    /// By id, of those relays that the last snapshot had.
    pub(crate) relays: Vec<RelayHistory>,
    /// When relays were last added for load.
    pub(crate) scaled_out_at: Option<Time>,
    /// When a relay last began to drain.
    pub(crate) scaled_in_at: Option<Time>,
    /// Since when the queue as a whole needs more relays.
    pub(crate) deficit_since: Option<Time>,
    /// On how few relays the load has fitted easily since when.
    pub(crate) fitting: Fitting,
    /// Since when it has no producer.
    pub(crate) idle_since: Option<Time>,
    /// When a relay was last added for latency alone.
    pub(crate) latency_start_at: Option<Time>,
    /// Starts that the snapshot should show by now.
    pub(crate) expected: Option<Expected>,
    /// Starts that failed since the last one that did not.
    pub(crate) boot_failures: u32,
    /// When the last one failed.
    pub(crate) boot_failed_at: Option<Time>,
    /// The notices that users got, and when.
    pub(crate) notices: Vec<(NoticeCode, Time)>,
    /// Policy `paper`: when the rules last looked.
    pub(crate) looked_at: Option<Time>,
}

/// On how few relays the load has fitted easily, and since when: numbers that grow, each with an older time. What
/// fits on some fits on more.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Fitting(Vec<(u32, Time)>);

impl Fitting {
    /// Now it fits on `fewest` relays, and on no fewer.
    pub(crate) fn note(&mut self, fewest: u32, now: Time) {
        self.0.retain(|(relays, _)| *relays >= fewest);
        if self.0.first().is_none_or(|(relays, _)| *relays > fewest) {
            self.0.insert(0, (fewest, now));
        }
    }

    /// Returns since when it has fitted on that many.
    pub(crate) fn since(&self, relays: u32) -> Option<Time> {
        let upto = self.0.partition_point(|(fewest, _)| *fewest <= relays);
        self.0[..upto].last().map(|(_, since)| *since)
    }
}

/// Relays that were asked for by a plan.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Expected {
    pub(crate) count: u32,
    pub(crate) at: Time,
    pub(crate) generation: u64,
}

/// What is remembered of one relay.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct RelayHistory {
    pub(crate) id: RelayId,
    pub(crate) state: RelayState,
    /// A plan's actions on it that the snapshot does not show yet.
    pub(crate) pending: Option<Pending>,
    /// Its last report that was seen.
    pub(crate) reported_at: Option<Time>,
    /// Reports since its last action was done; older samples show a load that is not there any more.
    pub(crate) fresh: usize,
    pub(crate) draining_since: Option<Time>,
    /// Since when it is hot without a break.
    pub(crate) hot_since: Option<Time>,
    /// Since when its load is above [`WARM`](super::tuning::WARM) without a break.
    pub(crate) warm_since: Option<Time>,
    /// Policy `paper` has filled it, or found it filled.
    pub(crate) filled: bool,
    /// A plan had it restarted or stopped: that it goes is no failed start.
    pub(crate) given_up: bool,
}

/// Actions that a plan began.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Pending {
    pub(crate) generation: u64,
    pub(crate) at: Time,
}

impl History {
    /// Takes in what the snapshot shows of the last plans' effects.
    pub(crate) fn observe(&mut self, snapshot: &Snapshot, now: Time) {
        let before = std::mem::take(&mut self.relays);
        let known = |id: RelayId| before.binary_search_by_key(&id, |relay| relay.id).ok();
        let mut relays: Vec<RelayHistory> = snapshot
            .relays
            .iter()
            .map(|view| known(view.id).map_or_else(|| first_seen(view), |at| before[at].clone()))
            .collect();
        for (relay, view) in relays.iter_mut().zip(&snapshot.relays) {
            relay.observe(view, snapshot.generation, now);
        }
        relays.sort_unstable_by_key(|relay| relay.id);
        self.relays = relays;
        self.observe_starts(&before, snapshot, now);
        self.notices.retain(|(_, at)| now.since_ms(*at) < NOTICE_MS);
    }

    /// Finds out which starts came to nothing.
    fn observe_starts(&mut self, before: &[RelayHistory], snapshot: &Snapshot, now: Time) {
        let mut failed = 0;
        let mut served = false;
        for was in before.iter().filter(|was| was.state == RelayState::Starting && !was.given_up) {
            match snapshot.relays.iter().find(|view| view.id == was.id).map(|view| view.state) {
                None | Some(RelayState::Dead) => failed += 1,
                Some(RelayState::Up) => served = true,
                Some(RelayState::Starting | RelayState::Draining) => {}
            }
        }
        if let Some(expected) = self.expected {
            let shown =
                snapshot.relays.iter().filter(|view| view.started_at >= expected.at).count();
            if shown >= expected.count as usize {
                self.expected = None;
            } else if now.since_ms(expected.at) >= EFFECT_MS {
                failed += u32::from(snapshot.generation > expected.generation);
                self.expected = None;
            }
        }
        if served {
            self.boot_failures = 0;
            self.boot_failed_at = None;
        } else if failed > 0 {
            self.boot_failures = self.boot_failures.saturating_add(1);
            self.boot_failed_at = Some(now);
        }
    }

    /// Returns the milliseconds until relays may be started again after failures; 0: now.
    pub(crate) fn back_off_ms(&self, now: Time) -> u64 {
        let Some(failed_at) = self.boot_failed_at else { return 0 };
        let doublings = self.boot_failures.saturating_sub(1).min(16);
        // By a shift of the stored count: a state machine keeps no iterator of waits.
        let pause = (BACK_OFF_MS << doublings).min(BACK_OFF_MAX_MS);
        pause.saturating_sub(now.since_ms(failed_at))
    }

    /// Returns the relays of the last snapshot, by id.
    pub(crate) fn relays(&self) -> &[RelayHistory] {
        &self.relays
    }

    pub(crate) fn relay(&self, id: RelayId) -> Option<&RelayHistory> {
        self.relays.binary_search_by_key(&id, |relay| relay.id).ok().map(|at| &self.relays[at])
    }

    pub(crate) fn relay_mut(&mut self, id: RelayId) -> Option<&mut RelayHistory> {
        let at = self.relays.binary_search_by_key(&id, |relay| relay.id).ok()?;
        Some(&mut self.relays[at])
    }

    /// Notes that a plan acts on a relay.
    pub(crate) fn begin(&mut self, id: RelayId, generation: u64, at: Time) {
        if let Some(relay) = self.relay_mut(id) {
            relay.pending = Some(Pending { generation, at });
        }
    }
}

fn first_seen(view: &RelayView) -> RelayHistory {
    RelayHistory {
        id: view.id,
        state: view.state,
        pending: None,
        reported_at: view.reported_at,
        fresh: view.samples.len(),
        draining_since: None,
        hot_since: None,
        warm_since: None,
        filled: false,
        given_up: false,
    }
}

impl RelayHistory {
    fn observe(&mut self, view: &RelayView, generation: u64, now: Time) {
        if view.moves_under_way > 0 && self.pending.is_none() {
            // Moves of a plan before this history began.
            self.pending = Some(Pending { generation: generation.saturating_sub(1), at: now });
        }
        if view.reported_at != self.reported_at {
            let passed_ms =
                view.reported_at.zip(self.reported_at).map(|(new, old)| new.since_ms(old));
            let reports = (passed_ms.unwrap_or(0) + REPORT_MS / 2) / REPORT_MS;
            self.reported_at = view.reported_at;
            self.fresh = (self.fresh + (reports as usize).max(1)).min(view.samples.len());
        }
        if let Some(pending) = self.pending {
            let shown = generation > pending.generation && view.moves_under_way == 0;
            let lapsed = generation <= pending.generation && now.since_ms(pending.at) >= EFFECT_MS;
            if shown {
                // The report of this moment was measured while the load was still moving.
                self.fresh = 0;
            }
            if shown || lapsed || now.since_ms(pending.at) >= EFFECT_MAX_MS {
                self.pending = None;
            }
        }
        if view.state == RelayState::Draining {
            self.draining_since.get_or_insert(now);
        }
        self.state = view.state;
    }
}
