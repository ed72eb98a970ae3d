//! A sender's questions, and how far it says that it has come.

use crate::Time;
use crate::inbox::Inbox;
use crate::inbox::content::Arrived;
use crate::inbox::flow::Ending;
use crate::limits::WINDOW_DATAGRAMS_MAX;
use crate::wire::flags;
use crate::wire::probe::Probe;

const SPAN: u64 = WINDOW_DATAGRAMS_MAX as u64;

impl Inbox {
    /// Takes a PROBE: what was sent and did not come is missing, what was given up is not waited for,
    /// and the sender gets a STATUS.
    pub fn on_probe(&mut self, arrived: &Arrived<'_>, probe: &Probe) {
        self.counters.probes += 1;
        let header = arrived.header;
        let known = self.flows.find(&arrived.key());
        let Some(slot) = known.or_else(|| self.admit(arrived, Some(probe))) else { return };
        let flow = self.flows.at(slot);
        if !flow.agrees(header) {
            self.counters.inconsistent += 1;
            return;
        }
        if header.sequence < flow.next_probe {
            self.counters.replayed += 1;
            return;
        }
        flow.next_probe = header.sequence + 1;
        self.note_heard(slot, arrived.bytes, arrived.now);
        self.extend(slot, probe, arrived);
        let flow = self.flows.at(slot);
        if header.has(flags::END) && flow.ending == Ending::Open {
            flow.ending = Ending::Announced(probe.next);
        }
        if flow.mode.is_reliable() && probe.floor > flow.window.below() {
            self.give_up_below(slot, probe.floor, arrived.now);
        }
        self.end_if_complete(slot);
        let flow = self.flows.at(slot);
        // A farewell without credit may be said to a group, where all would answer at once.
        if flow.wants_status() || !header.has(flags::END) {
            flow.report.echo = Some((probe.sent_at_us, arrived.now));
            self.report_now(slot);
        }
    }

    /// Everything below the PROBE's `next` was sent.
    fn extend(&mut self, slot: u32, probe: &Probe, arrived: &Arrived<'_>) {
        let flow = self.flows.at(slot);
        let (before, next) = (flow.window.highest(), probe.next);
        if next <= before {
            return;
        }
        let mut messages = Some(probe.next_message.saturating_sub(flow.next_message));
        if flow.mode.is_reliable() && next - flow.window.below() > SPAN {
            // No more is under way than a window has. If all before was given up, this receiver hears
            // of the flow for the first time; if not, an earlier life of it knew the flow, and the
            // flow begins anew when its sender hears of that.
            if probe.floor <= flow.window.below() || next - probe.floor > SPAN {
                return;
            }
            self.leap(slot, probe.floor, arrived.now);
            messages = None;
        }
        self.make_window(slot, next, arrived.now);
        let flow = self.flows.at(slot);
        let before = flow.window.highest();
        flow.window.extend(next);
        flow.next_message = flow.next_message.max(probe.next_message);
        if before < next {
            self.open_gap(slot, before, next, messages, arrived.now);
        }
    }

    /// Nothing below `floor` is waited for, and nothing is known of it.
    fn leap(&mut self, slot: u32, floor: u64, now: Time) {
        let flow = self.flows.at(slot);
        let before = flow.window.highest();
        if before < floor {
            flow.window.extend(floor);
            self.open_gap(slot, before, floor, None, now);
        }
        self.give_up_below(slot, floor, now);
    }
}
