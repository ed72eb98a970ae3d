//! Writing a queue's record, and removing it at last: one write at a time, and what waits for it.

use quelea_elastic_proto::Time;

use crate::directory::context::Context;
use crate::directory::limits::RECORD_BYTES_MAX;
use crate::directory::queue::Queue;
use crate::directory::queue::record::{Record, RelayRecord};
use crate::directory::queue::relay::{Relay, RelayPhase};
use crate::directory::{Effect, SaveError};

/// A write that the store did not answer is tried again after this.
const RETRY_MS: u64 = 500;
/// A record that was too long is tried again after this: a relay may have gone.
const RETRY_LONG_MS: u64 = 5_000;
/// The number of the write that removes the record; others count up from 1.
const REMOVAL: u64 = 0;

/// What is written, and what waits for it.
#[derive(Default)]
pub(in crate::directory) struct RecordWriter {
    /// Counts the changes of what is in the record.
    changed: u64,
    /// The changes up to which the store has it.
    saved: u64,
    /// The write under way: its number, and the changes that are in it.
    under_way: Option<(u64, u64)>,
    last: u64,
    /// The last write has removed it.
    removed: bool,
    retry_at: Option<Time>,
    /// It is too long, which users have been notified of.
    too_long: bool,
    /// Effects that wait until the changes up to this one are written, in order.
    waiting: Vec<(u64, Effect)>,
}

impl RecordWriter {
    pub(in crate::directory) fn deadline(&self) -> Option<Time> {
        self.retry_at
    }
}

impl Queue {
    /// The record has changed; it is written at the end of this step.
    pub(in crate::directory) fn change(&mut self) {
        self.writer.changed += 1;
        self.generation += 1;
    }

    /// Returns the number of the last change.
    pub(super) fn last_change(&self) -> u64 {
        self.writer.changed
    }

    /// Carries out `effect` when the record as it is now has been written.
    pub(super) fn after_save(&mut self, effect: Effect) {
        self.writer.waiting.push((self.writer.changed, effect));
    }

    /// Writes the record if it has changed, or removes it if the queue is gone, and no write is under way.
    pub(in crate::directory) fn save(&mut self, cx: &mut Context<'_>) {
        self.flush_saved(cx);
        let writer = &self.writer;
        let due = writer.retry_at.is_none_or(|at| at <= cx.now);
        if writer.under_way.is_some() || !due {
            return;
        }
        if self.is_gone() {
            return self.remove_record(cx);
        }
        if self.is_saved() {
            return;
        }
        let record = self.to_record(cx).to_bytes();
        if record.len() > RECORD_BYTES_MAX {
            self.refuse_record(cx, record.len());
            return;
        }
        let writer = &mut self.writer;
        (writer.retry_at, writer.too_long, writer.removed) = (None, false, false);
        writer.last += 1;
        writer.under_way = Some((writer.last, writer.changed));
        let save = writer.last;
        cx.effects.push_back(Effect::Save {
            queue: self.name.clone(),
            save,
            fence: self.fence,
            record,
        });
    }

    fn remove_record(&mut self, cx: &mut Context<'_>) {
        let writer = &mut self.writer;
        if writer.removed {
            return;
        }
        writer.retry_at = None;
        writer.under_way = Some((REMOVAL, writer.changed));
        cx.effects.push_back(Effect::Remove { queue: self.name.clone(), fence: self.fence });
    }

    /// No owner could read it any more. What waits for it goes on waiting: no relay is started that is not in a
    /// record. Only ends are not waited for, as nothing else makes it shorter: an owner that finds an ended relay in
    /// the record takes it for one that died.
    fn refuse_record(&mut self, cx: &mut Context<'_>, bytes: usize) {
        self.writer.retry_at = Some(cx.now.plus_ms(RETRY_LONG_MS));
        if !std::mem::replace(&mut self.writer.too_long, true) {
            let reason = format!(
                "the record has {bytes} bytes, more than {RECORD_BYTES_MAX}: it is not written, and nothing that \
                 depends on it is done"
            );
            self.log(cx, "unsaved", format!("queue {}", self.name), reason);
        }
        self.flush_saved(cx);
    }

    /// Returns whether the record has room for one relay more, when all have reported what they
    /// have to.
    pub(super) fn record_has_room(&self, request: &str) -> bool {
        let relay = |relay: &Relay| {
            RelayRecord::bytes_reserved(&relay.request, &relay.handle, &relay.address)
        };
        let relays: usize = self.relays.values().map(relay).sum();
        let more = RelayRecord::bytes_reserved(request, "", "");
        Record::bytes_without_relays(&self.definition) + relays + more <= RECORD_BYTES_MAX
    }

    /// Returns whether the store has all of the record.
    pub(in crate::directory) fn is_saved(&self) -> bool {
        self.writer.changed == self.writer.saved
    }

    /// Returns whether it is deleted, and the store knows that.
    pub(in crate::directory) fn is_removed(&self) -> bool {
        self.is_gone() && self.writer.removed
    }

    /// Takes the answer to a write. Returns `false` if another directory owns the queue.
    pub(in crate::directory) fn saved(
        &mut self,
        cx: &mut Context<'_>,
        save: u64,
        result: Result<(), SaveError>,
    ) -> bool {
        let Some((number, changes)) = self.writer.under_way else { return true };
        if number != save {
            return true;
        }
        self.writer.under_way = None;
        match result {
            Ok(()) => {
                (self.writer.saved, self.writer.removed) = (changes, number == REMOVAL);
                self.flush_saved(cx);
                self.open_saved_relays(cx, changes);
                true
            }
            Err(SaveError::Unavailable) => {
                self.writer.retry_at = Some(cx.now.plus_ms(RETRY_MS));
                true
            }
            Err(SaveError::Fenced) => false,
        }
    }

    /// Carries out what waited for changes that are written now, and ends of relays while nothing can be written.
    pub(super) fn flush_saved(&mut self, cx: &mut Context<'_>) {
        let (saved, too_long) = (self.writer.saved, self.writer.too_long);
        for (change, effect) in std::mem::take(&mut self.writer.waiting) {
            let shortens = too_long && matches!(effect, Effect::StopRelay { .. });
            if change > saved && !shortens {
                self.writer.waiting.push((change, effect));
                continue;
            }
            if let Effect::StartRelay { spec, .. } = &effect {
                // It may have been given up while the store did not answer.
                match self.relays.get_mut(&spec.relay) {
                    Some(relay) if relay.phase == RelayPhase::Starting => relay.started_at = cx.now,
                    _ => continue,
                }
            }
            cx.effects.push_back(effect);
        }
    }

    fn to_record(&self, cx: &Context<'_>) -> Record {
        let mut record = Record::new(self.generation, self.next_relay, self.definition.clone());
        record.relays = self.relays.values().map(RelayRecord::of).collect();
        record.spent_this_hour_micros = self.budget.spent(cx.now);
        record.deleting = self.deleting;
        record.first_use = self.first_use.is_some();
        record
    }
}
