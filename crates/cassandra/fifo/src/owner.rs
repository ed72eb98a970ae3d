//! A queue at its owner: calls come in, effects go out, and what came of them comes in again. Whoever drives it carries out
//! [`Effect::Write`], [`Effect::Discard`], [`Effect::Load`] and [`Effect::ReadDeduplications`] again and again until they
//! succeed, are refused for good, or the owner has ended; of the others it may say that they failed.

mod delete;
mod load;
mod move_out;
mod peek;
mod receive;
mod refusal;
mod send;
#[cfg(test)]
mod tests;
mod visibility;

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;

use quelea_sqs_protocol::{Backlog, Fault};
use rustc_hash::FxHashMap;
use uuid::Uuid;

use crate::attempts::Attempts;
use crate::call::CallId;
use crate::clock::Now;
use crate::deduplications::Deduplications;
use crate::effect::{Batch, Effect, Renewal};
use crate::lease::Lease;
use crate::limits::{IDLE_MS, SEALS_IDLE_MAX, WAITING_DELETIONS_MAX};
use crate::message::{Arrival, RowKey, sent_at_ms};
use crate::receptions::{Holder, RECEPTIONS_MAX, Reception, decode, encode};
use crate::segments::Segments;
use crate::take_over::TakeOver;
use crate::window::{Held, State, Window};

use delete::{DeleteCall, Deletion};
use receive::Reading;
pub use receive::ReceiveCall;
use send::PendingSend;
pub use send::SendCall;

/// How often what is over is looked for, in ms: ids, messages, and partitions of which nothing is left.
const DROP_EVERY_MS: u64 = 5_000;

/// Messages that one look for such as are kept no longer looks at.
const LOOKED_AT_MAX: usize = 4_096;

/// What is due but has to wait for something else is looked at so often, in ms.
const TICK_MS_MIN: u64 = 5;

/// What a queue's attributes say at the moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Settings {
    /// How long a message is kept, in ms.
    pub retention_ms: u64,
    /// After how many receptions a message goes to the dead-letter queue; `None`: there is none.
    pub receives_max: Option<u32>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    /// Deduplication ids or messages are still to be read: it takes no calls.
    Recovering {
        has_deduplications: bool,
    },
    Serving,
    Ended,
}

/// A queue at its owner.
#[derive(Debug)]
pub struct Owner {
    queue: Uuid,
    generation: Uuid,
    epoch: u64,
    sealed_to: u64,
    phase: Phase,
    lease: Lease,
    settings: Settings,
    segments: Segments,
    window: Window,
    deduplications: Deduplications,
    attempts: Attempts,
    /// The number of the next message.
    next: u64,
    /// All up to here is durable.
    acked_to: u64,
    /// All up to here is in the window, or gone.
    loaded_to: u64,
    is_loading: bool,
    /// Whether owners have taken all the memory that they may.
    is_memory_short: bool,
    /// What the last owner has said of messages that are not loaded yet.
    handed_over: FxHashMap<u64, Reception>,
    /// Messages beyond `loaded_to` that are deleted.
    deleted_ahead: BTreeSet<u64>,
    unsent: VecDeque<(u64, Arrival)>,
    unsent_bytes: usize,
    batch: Option<Arc<Batch>>,
    /// Why the batch under way was refused; it is being discarded.
    refusal: Option<Fault>,
    /// Up to here messages are written one by one: one of them was refused.
    singly_to: u64,
    sends: VecDeque<PendingSend>,
    receives: BTreeMap<CallId, ReceiveCall>,
    /// When those who wait have waited for long enough.
    ends: BTreeSet<(u64, CallId)>,
    readings: FxHashMap<u64, Reading>,
    /// Rows of messages that are kept no longer, to be deleted when there is room.
    expired: VecDeque<RowKey>,
    undeleted: VecDeque<Deletion>,
    deletions: FxHashMap<u64, Vec<Deletion>>,
    /// What is deleted, but may not be confirmed while the lease is being renewed.
    deleted: Vec<Deletion>,
    delete_calls: FxHashMap<CallId, DeleteCall>,
    moves: usize,
    /// When the first of those began that are under way.
    moving_since_ms: u64,
    /// Messages that calls have moved elsewhere.
    moves_out: FxHashMap<CallId, Vec<(u64, Holder)>>,
    receptions: u64,
    next_id: u64,
    used_at_ms: u64,
    drop_at_ms: u64,
    /// The next look for messages that are kept no longer begins here.
    look_from: u64,
    effects: VecDeque<Effect>,
}

impl Owner {
    /// Returns the owner of a queue that was taken over by a lease that was asked for at that
    /// steady time.
    #[must_use]
    pub fn new(
        (queue, generation): (Uuid, Uuid),
        from: TakeOver,
        settings: Settings,
        asked_at_ms: u64,
        now: Now,
    ) -> Self {
        let segments = Segments::new(from.epoch, &from.sealed, &from.ranges);
        let mut owner = Self {
            queue,
            generation,
            epoch: from.epoch,
            sealed_to: from.sealed_to,
            phase: Phase::Recovering { has_deduplications: false },
            lease: Lease::asked_at(asked_at_ms),
            settings,
            segments,
            window: Window::default(),
            deduplications: Deduplications::default(),
            attempts: Attempts::default(),
            next: from.sealed_to + 1,
            acked_to: from.sealed_to,
            loaded_to: 0,
            is_loading: false,
            is_memory_short: false,
            handed_over: decode(from.epoch.saturating_sub(1), &from.received)
                .into_iter()
                .map(|one| (one.number, one))
                .collect(),
            deleted_ahead: BTreeSet::new(),
            unsent: VecDeque::new(),
            unsent_bytes: 0,
            batch: None,
            refusal: None,
            singly_to: 0,
            sends: VecDeque::new(),
            receives: BTreeMap::new(),
            ends: BTreeSet::new(),
            readings: FxHashMap::default(),
            expired: VecDeque::new(),
            undeleted: VecDeque::new(),
            deletions: FxHashMap::default(),
            deleted: Vec::new(),
            delete_calls: FxHashMap::default(),
            moves: 0,
            moving_since_ms: 0,
            moves_out: FxHashMap::default(),
            receptions: 0,
            next_id: 0,
            used_at_ms: now.steady_ms,
            drop_at_ms: now.steady_ms + DROP_EVERY_MS,
            look_from: 0,
            effects: VecDeque::new(),
        };
        owner.recover(now);
        owner
    }

    /// Takes the next thing to be done.
    pub fn poll_effect(&mut self) -> Option<Effect> {
        self.effects.pop_front()
    }

    /// Returns whether it takes calls: all that it has to know was read.
    #[must_use]
    pub fn is_serving(&self) -> bool {
        self.phase == Phase::Serving
    }

    /// Returns whether it has ended: it is not the queue's owner any more.
    #[must_use]
    pub fn has_ended(&self) -> bool {
        self.phase == Phase::Ended
    }

    /// Returns its epoch.
    #[must_use]
    pub const fn epoch(&self) -> u64 {
        self.epoch
    }

    /// The queue's attributes may have changed.
    pub fn set(&mut self, settings: Settings) {
        self.settings = settings;
    }

    /// Whether owners have taken all the memory that they may: then it reads further messages only when it has few.
    pub const fn set_memory_short(&mut self, is_short: bool) {
        self.is_memory_short = is_short;
    }

    /// Returns about how many bytes of memory it takes.
    #[must_use]
    pub fn bytes(&self) -> usize {
        const RECEIVE_BYTES: usize = 256;
        const DELETION_BYTES: usize = 128;
        let waiting = self.receives.len() * RECEIVE_BYTES
            + (self.expired.len() + self.undeleted.len() + self.deleted_ahead.len())
                * DELETION_BYTES;
        let ids = self.deduplications.bytes() + self.attempts.bytes();
        self.window.bytes() + ids + self.unsent_bytes + waiting
    }

    /// Counts what waits; what is not in memory is taken to be visible.
    #[must_use]
    pub fn backlog(&self, now: Now) -> Backlog {
        let unloaded = self.acked_to.saturating_sub(self.loaded_to);
        let oldest = self.window.oldest().map(|held| sent_at_ms(held.id));
        Backlog {
            visible: (self.window.ready() as u64).saturating_add(unloaded),
            in_flight: self.window.in_flight() as u64,
            delayed: self.window.delayed() as u64,
            oldest_age_s: oldest.map_or(0, |at_ms| now.wall_ms.saturating_sub(at_ms) / 1_000),
        }
    }

    /// Time has passed.
    pub fn tick(&mut self, now: Now) {
        if self.has_ended() {
            return;
        }
        if self.is_idle(now) {
            return self.release();
        }
        self.stop_late_discard(now);
        if self.has_ended() {
            return;
        }
        if self.lease.begins_renewal(now) {
            let renewal = self.renewal();
            self.effects.push_back(Effect::Renew(renewal));
        }
        if now.steady_ms >= self.drop_at_ms {
            self.drop_at_ms = now.steady_ms + DROP_EVERY_MS;
            self.drop_old(now);
        }
        self.go_on(now);
    }

    /// Drops what is over. No call may ever meet it: a queue may have sends and no receives, or, when memory is full,
    /// receives and no sends.
    fn drop_old(&mut self, now: Now) {
        self.deduplications.forget_old(now.wall_ms);
        self.attempts.forget_old(now.wall_ms);
        self.forget_expired(now);
        self.delete_expired(now);
        let empty = self.segments.take_empty(self.loaded_to, now.wall_ms);
        if !empty.is_empty() {
            self.effects.push_back(Effect::Drop(empty));
        }
    }

    /// Forgets messages that are kept no longer. They need not be the oldest: dead letters are older than their numbers
    /// say. One call looks at some messages, the next at those behind them, and so round.
    fn forget_expired(&mut self, now: Now) {
        let waits = |state| matches!(state, State::Ready | State::Delayed { .. });
        let is_expired = |held: &Held| waits(held.state) && !self.is_kept(held, now);
        let looked_at = self.window.from(self.look_from).take(LOOKED_AT_MAX);
        let expired = looked_at.filter(|(_, held)| is_expired(held)).map(|(number, _)| number);
        let expired: Vec<u64> = expired.collect();
        let behind = self.window.from(self.look_from).nth(LOOKED_AT_MAX);
        self.look_from = behind.map_or(0, |(number, _)| number);
        expired.into_iter().for_each(|number| self.expire(number));
    }

    /// A message is kept no longer. Its row may be, by the retention at the time when it was sent: it would come back where that is
    /// raised again.
    fn expire(&mut self, number: u64) {
        let Some(segment) = self.window.get(number).map(|held| held.segment) else { return };
        self.forget(number);
        if self.expired.len() < WAITING_DELETIONS_MAX {
            self.expired.push_back(RowKey { segment, number });
        }
    }

    /// Returns after how many ms [`Owner::tick`] has something to do, if nothing comes before.
    #[must_use]
    pub fn due_in_ms(&self, now: Now) -> u64 {
        // Else they end when something comes that is waited for anyway.
        let may_end = self.lease.is_valid(now) && !self.is_loading && !self.is_reading_enough();
        let steady = [
            self.lease.renewal_due_ms(),
            self.ends
                .first()
                .filter(|_| may_end)
                .map(|(at_ms, _)| (*at_ms).max(self.moves_waited_until_ms())),
            Some(self.drop_at_ms),
        ];
        let steady = steady.into_iter().flatten().map(|at_ms| at_ms.saturating_sub(now.steady_ms));
        let wall = self.window.next_due_ms().map(|at_ms| at_ms.saturating_sub(now.wall_ms));
        steady.chain(wall).min().unwrap_or(DROP_EVERY_MS).max(TICK_MS_MIN)
    }

    /// The lease was granted anew; it was asked for at that steady time.
    pub fn renewed(&mut self, asked_at_ms: u64, now: Now) {
        self.lease.renewed(asked_at_ms);
        self.go_on(now);
    }

    /// Nobody says whether the lease was granted anew.
    pub fn renewal_failed(&mut self, now: Now) {
        self.lease.renewal_failed(now);
    }

    /// Somebody else owns the queue.
    pub fn lost(&mut self) {
        self.end();
    }

    /// Lets go of the queue, and tells whoever owns it next what is in flight.
    pub fn release(&mut self) {
        if self.has_ended() {
            return;
        }
        self.undo_unheard();
        let renewal = Renewal { received: self.handover(), ..self.renewal() };
        self.end();
        self.effects.push_back(Effect::Release(renewal));
    }

    fn renewal(&self) -> Renewal {
        let (sealed, oldest) = (self.segments.sealed(), self.segments.oldest());
        Renewal { sealed, sealed_to: self.sealed_to, oldest, received: Vec::new() }
    }

    /// Of what nobody has heard nobody has received.
    fn undo_unheard(&mut self) {
        let read = self.readings.values().flat_map(Reading::holders);
        let unheard: Vec<(u64, Holder)> =
            read.chain(self.moves_out.values().flatten().copied()).collect();
        unheard.into_iter().for_each(|(number, holder)| self.window.undo(number, holder));
    }

    /// Returns what the next owner needs to know, of messages in memory and of those that are not
    /// loaded yet.
    fn handover(&self) -> Vec<u8> {
        let not_loaded = self.handed_over.values().copied();
        let all: Vec<Reception> =
            self.window.receptions().chain(not_loaded).take(RECEPTIONS_MAX).collect();
        encode(self.epoch, &all)
    }

    fn is_idle(&self, now: Now) -> bool {
        self.phase == Phase::Serving
            && self.used_at_ms + IDLE_MS <= now.steady_ms
            && self.window.in_flight() == 0
            && self.sends.is_empty()
            && self.batch.is_none()
            && self.receives.is_empty()
            && self.readings.is_empty()
            && self.delete_calls.is_empty()
            && self.moves == 0
            && self.segments.seals() <= SEALS_IDLE_MAX
            // Of many, the next owner would count receptions anew, and what fails time and again would never go elsewhere.
            && !(self.settings.receives_max.is_some() && self.window.has_received())
    }

    /// Ends it: all who wait look for the queue's owner again.
    fn end(&mut self) {
        self.phase = Phase::Ended;
        self.effects.retain(Effect::is_answer);
        let sends = self.sends.drain(..).map(|send| send.call);
        let receives = std::mem::take(&mut self.receives).into_keys();
        let moves = std::mem::take(&mut self.moves_out).into_keys();
        let readings = std::mem::take(&mut self.readings).into_values().map(|one| one.call);
        let deletes = std::mem::take(&mut self.delete_calls).into_keys();
        let calls: BTreeSet<CallId> =
            sends.chain(receives).chain(moves).chain(readings).chain(deletes).collect();
        self.effects.extend(calls.into_iter().map(Effect::NotOwner));
        self.unsent.clear();
        self.ends.clear();
        self.expired.clear();
        self.undeleted.clear();
        self.deletions.clear();
        self.deleted.clear();
    }

    /// Notes that a call came in. Returns `false` if it is not taken, since this is not the owner
    /// any more.
    fn takes(&mut self, call: CallId, now: Now) -> bool {
        self.used_at_ms = now.steady_ms;
        if self.phase != Phase::Serving {
            self.effects.push_back(Effect::NotOwner(call));
            return false;
        }
        true
    }

    /// Does what can be done after something has changed.
    fn go_on(&mut self, now: Now) {
        if self.has_ended() {
            return;
        }
        self.confirm_sends(now);
        self.confirm_deletions(now);
        self.serve(now);
        self.load_more();
    }

    fn fresh_id(&mut self) -> u64 {
        self.next_id += 1;
        self.next_id
    }

    /// A message is gone.
    fn forget(&mut self, number: u64) {
        if let Some(segment) = self.window.remove(number) {
            self.segments.release(segment);
        }
    }
}
