//! Relays that are gone, or never came: failover, restart with back-off (EQS §III-C.4).

use quelea_elastic_proto::RelayId;
use quelea_elastic_proto::frame::NoticeCode;

use super::builder::PlanBuilder;
use super::tuning::{FAILURES_REPORTED, SILENT_MS, STALE_MS, WITNESSES};
use super::view::{Action, RelayState, RelayView};

impl PlanBuilder<'_> {
    /// Fails over relays that are gone, restarts those that never registered.
    pub(crate) fn heal(&mut self) {
        for view in &self.projection.snapshot.relays {
            match view.state {
                RelayState::Up | RelayState::Draining => self.judge(view),
                RelayState::Starting => self.judge_boot(view),
                RelayState::Dead => {}
            }
        }
        if self.history.boot_failures >= FAILURES_REPORTED {
            let failures = self.history.boot_failures;
            let reason = format!(
                "{failures} starts of relays in a row failed (told from {FAILURES_REPORTED}): the provider \
                 cannot start relays; the next try is in {} ms",
                self.history.back_off_ms(self.now())
            );
            self.notify(NoticeCode::ProviderFailing, reason);
        }
    }

    /// Two signs are needed: silence alone may be the directory's own cut-off, and one client's word
    /// that client's.
    fn judge(&mut self, view: &RelayView) {
        let silent_ms = view.reported_at.map_or(0, |at| self.now().since_ms(at));
        let silent = silent_ms >= STALE_MS;
        let witnesses = view.witnesses;
        let reason = if witnesses >= WITNESSES {
            format!("{witnesses} witnesses lost it ({WITNESSES} suffice)")
        } else if silent && witnesses > 0 {
            format!("no report for {silent_ms} ms (limit {STALE_MS} ms) and {witnesses} witness")
        } else if silent_ms >= SILENT_MS && self.has_no_client(view.id) {
            format!("no report for {silent_ms} ms (limit without clients {SILENT_MS} ms)")
        } else {
            if silent {
                self.remark(format!(
                    "relay {}: no report for {silent_ms} ms (limit {STALE_MS} ms) but no witness that it \
                     is gone: nothing is decided on it",
                    view.id.0
                ));
            }
            return;
        };
        if self.is_left_alone(view.id) {
            return;
        }
        self.act_on(view.id, Action::FailOver { relay: view.id }, reason);
    }

    fn has_no_client(&self, id: RelayId) -> bool {
        self.projection.find(id).is_some_and(|at| self.projection.relays[at].producers.is_empty())
            && self.projection.snapshot.listeners == 0
    }

    fn judge_boot(&mut self, view: &RelayView) {
        // How long one may take is the directory's to say, which starts another then.
        if view.witnesses == 0 || self.is_left_alone(view.id) {
            return;
        }
        let waited_ms = self.now().since_ms(view.started_at);
        let reason =
            format!("it ended before it registered, {waited_ms} ms after it was asked for");
        let back_off_ms = self.history.back_off_ms(self.now());
        if back_off_ms > 0 {
            let failures = self.history.boot_failures;
            self.remark(format!(
                "relay {}: {reason}; restarted in {back_off_ms} ms, after {failures} failures",
                view.id.0
            ));
            return;
        }
        self.history.boot_failures = self.history.boot_failures.saturating_add(1);
        self.history.boot_failed_at = Some(self.now());
        self.act_on(view.id, Action::Restart { relay: view.id }, reason);
        if let Some(relay) = self.history.relay_mut(view.id) {
            // Its going is this restart, not one more failure.
            relay.given_up = true;
        }
    }

    /// Returns whether a plan's action on it is still to be seen.
    pub(crate) fn is_left_alone(&self, id: RelayId) -> bool {
        self.history.relay(id).is_some_and(|relay| relay.pending.is_some())
    }
}
