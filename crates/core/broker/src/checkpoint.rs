//! Giving the store all live entries for its checkpoint, a slice at a time, while everything goes
//! on in between.
//!
//! Ready messages come first, then those delivered and not settled, then invisible ones, then those on
//! their way to a dead-letter exchange: messages move in that direction only, but for a requeue and
//! for one that becomes visible again, which the store notes (`Store::append_requeue`). So none
//! slips through.

use quelea_model::{QueueId, Seq, Timestamp};
use quelea_store::{NEVER, Visibility};

use crate::clients::Clients;
use crate::ids::ChannelId;
use crate::log::Log;
use crate::queues::Queues;
use crate::queues::queue::Queue;
use crate::queues::queue::ready_messages::ReadyCursor;

/// Entries that are written in one turn: well under a millisecond.
const ENTRIES_PER_SLICE: usize = 8_192;

/// Items of the topology that are written in one turn: of some 100 bytes each.
const TOPOLOGY_PER_SLICE: usize = 4_096;

/// How far a pass has come.
#[derive(Debug)]
enum CheckpointPass {
    /// The topology, which the store has itself.
    Topology,
    /// The queues that are left, and how far the last of them has come.
    Ready { ids: Vec<QueueId>, cursor: ReadyCursor },
    /// The channels that are left; of the last one, the deliveries after this tag. Channels that
    /// are opened meanwhile have what was ready, and so is in the checkpoint, or came later.
    Unacked { channels: Vec<ChannelId>, tag: u64 },
    /// The queues that are left, and how far the last of them has come.
    Noted { ids: Vec<QueueId>, at: NotedCursor },
    /// The queues that are left; of the last one, the invisible messages from this number on.
    Invisible { ids: Vec<QueueId>, from: Seq },
    /// The queues that are left, and how far the last of them has come.
    Leaving { ids: Vec<QueueId>, at: LeavingCursor },
    /// The last pass of all.
    Finished,
}

/// How far a pass has come with what is noted of one queue.
#[derive(Clone, Copy, Debug, Default)]
struct NotedCursor {
    /// The messages from this number on.
    seq: Seq,
    /// The deduplication ids that were sent from then on.
    sent_at: Timestamp,
}

/// How far a pass has come with the dead letters of one queue, and then with what cannot be read: letters of which that is found
/// out go from the first to the second.
#[derive(Clone, Copy, Debug, Default)]
struct LeavingCursor {
    /// Letters that are left, counted from the oldest; `None`: all. The last are written first, since it is the
    /// oldest that leave meanwhile: so none slips through, though some are written twice.
    letters: Option<usize>,
    /// How many of those that cannot be read are written. There come more only behind them.
    unreadable: usize,
}

impl CheckpointPass {
    const fn is_finished(&self) -> bool {
        matches!(self, Self::Finished)
    }
}

/// The checkpoints: the one under way, and the last of all.
#[derive(Debug, Default)]
pub(crate) struct Checkpoints {
    pass: Option<CheckpointPass>,
    /// The final checkpoint is wanted.
    is_shutting_down: bool,
}

impl Checkpoints {
    pub(crate) const fn is_shutting_down(&self) -> bool {
        self.is_shutting_down
    }

    /// The next checkpoint is the last.
    pub(crate) const fn begin_shutdown(&mut self) {
        self.is_shutting_down = true;
    }

    /// Goes on with a slice of the pass, and begins one when it is time. True: call again soon.
    pub(crate) fn run(
        &mut self,
        queues: &mut Queues,
        clients: &mut Clients,
        log: &mut Log,
        now: Timestamp,
    ) -> bool {
        let Some(pass) = self.pass.take() else {
            return self.begin(queues, log);
        };
        if pass.is_finished() {
            self.pass = Some(pass);
            return false;
        }
        if !log.store.checkpoint_gathering() {
            // Given up: the disk refused it. A shutdown does without.
            self.pass = self.is_shutting_down.then_some(CheckpointPass::Finished);
            return false;
        }
        if !log.store.checkpoint_ready() {
            self.pass = Some(pass);
            return false;
        }
        self.pass = match pass {
            CheckpointPass::Topology if log.store.checkpoint_topology(TOPOLOGY_PER_SLICE) => {
                let (ids, cursor) = (queues.ids_of(|_| true), ReadyCursor::default());
                Some(CheckpointPass::Ready { ids, cursor })
            }
            CheckpointPass::Topology => Some(CheckpointPass::Topology),
            CheckpointPass::Ready { ids, cursor } => {
                Some(write_ready(queues, clients, log, ids, cursor))
            }
            CheckpointPass::Unacked { channels, tag } => {
                Some(write_unacked(queues, clients, log, channels, tag))
            }
            CheckpointPass::Noted { ids, at } => Some(write_noted(queues, log, ids, at, now)),
            CheckpointPass::Invisible { ids, from } => {
                Some(write_invisible(queues, log, ids, from))
            }
            CheckpointPass::Leaving { ids, at } if !ids.is_empty() => {
                Some(write_leaving(queues, log, ids, at))
            }
            CheckpointPass::Leaving { .. } => {
                log.store.finish_checkpoint();
                self.is_shutting_down.then_some(CheckpointPass::Finished)
            }
            CheckpointPass::Finished => Some(CheckpointPass::Finished),
        };
        true
    }

    fn begin(&mut self, queues: &mut Queues, log: &mut Log) -> bool {
        let wanted = self.is_shutting_down || log.store.wants_checkpoint();
        if !wanted || log.store.checkpoint_under_way() {
            return false;
        }
        queues.flush_acks(log);
        log.store.begin_checkpoint();
        if log.store.checkpoint_gathering() {
            self.pass = Some(CheckpointPass::Topology);
            return true;
        }
        self.pass = self.is_shutting_down.then_some(CheckpointPass::Finished);
        false
    }
}

fn write_ready(
    queues: &mut Queues,
    clients: &Clients,
    log: &mut Log,
    mut ids: Vec<QueueId>,
    mut cursor: ReadyCursor,
) -> CheckpointPass {
    let mut left = ENTRIES_PER_SLICE;
    while let Some(id) = ids.last().copied() {
        let Some(queue) = queues.get_mut(id) else {
            ids.pop();
            cursor = ReadyCursor::default();
            continue;
        };
        // A queue costs something although it is empty.
        left = left.saturating_sub(1 + queue.ready.len());
        if !queue.ready.checkpoint(id, &mut cursor, ENTRIES_PER_SLICE, &mut *log.store) {
            return CheckpointPass::Ready { ids, cursor };
        }
        ids.pop();
        cursor = ReadyCursor::default();
        if left == 0 {
            return CheckpointPass::Ready { ids, cursor };
        }
    }
    CheckpointPass::Unacked { channels: clients.channels.keys().collect(), tag: 0 }
}

fn write_unacked(
    queues: &Queues,
    clients: &mut Clients,
    log: &mut Log,
    mut channels: Vec<ChannelId>,
    mut tag: u64,
) -> CheckpointPass {
    let mut left = ENTRIES_PER_SLICE;
    while let Some(id) = channels.last().copied() {
        if let Some(channel) = clients.channels.get_mut(id) {
            for (delivery, unacked) in channel.unacked.after_mut(tag) {
                if left == 0 {
                    return CheckpointPass::Unacked { channels, tag };
                }
                left -= 1;
                tag = delivery;
                if unacked.entry.is_stored() && queues.contains(unacked.queue) {
                    let entry = std::slice::from_mut(&mut unacked.entry);
                    log.store.checkpoint_entries(unacked.queue, entry, &[unacked.expires_at]);
                }
            }
        }
        channels.pop();
        tag = 0;
    }
    CheckpointPass::Noted { ids: queues.ids_of(Queue::has_notes), at: NotedCursor::default() }
}

/// Writes what is noted of messages that are visible, and of deduplication ids: the log before the
/// checkpoint is not read again.
fn write_noted(
    queues: &mut Queues,
    log: &mut Log,
    mut ids: Vec<QueueId>,
    mut at: NotedCursor,
    now: Timestamp,
) -> CheckpointPass {
    let mut left = ENTRIES_PER_SLICE;
    while let Some(id) = ids.last().copied() {
        let Some(queue) = queues.get_mut(id) else {
            ids.pop();
            at = NotedCursor::default();
            continue;
        };
        for (seq, first_received_at) in queue.invisible.received_before_from(at.seq) {
            if left == 0 {
                return CheckpointPass::Noted { ids, at };
            }
            left -= 1;
            at.seq = seq.next();
            let Some(held) = queue.ready.get(seq).filter(|held| held.entry.is_durable()) else {
                continue;
            };
            let receive_count = held.entry.delivery_count;
            let visible_at = Timestamp::ZERO;
            let noted = Visibility { seq, visible_at, first_received_at, receive_count };
            log.store.append_visibility(id, &noted);
        }
        let since = at.sent_at;
        for sent in queue.deduplications.iter_mut().flat_map(|ids| ids.since(since, now)) {
            // Those of one moment are given together: the next slice begins at another one.
            if left == 0 && sent.sent_at > at.sent_at {
                at.sent_at = sent.sent_at;
                return CheckpointPass::Noted { ids, at };
            }
            left = left.saturating_sub(1);
            at.sent_at = sent.sent_at;
            log.store.repeat_deduplication(id, sent);
        }
        // Ids that count no more were forgotten.
        queues.count_memory(id);
        ids.pop();
        at = NotedCursor::default();
        left = left.saturating_sub(1);
        if left == 0 {
            return CheckpointPass::Noted { ids, at };
        }
    }
    let ids = queues.ids_of(|queue| !queue.invisible.is_empty());
    CheckpointPass::Invisible { ids, from: Seq(0) }
}

fn write_invisible(
    queues: &mut Queues,
    log: &mut Log,
    mut ids: Vec<QueueId>,
    mut from: Seq,
) -> CheckpointPass {
    let mut left = ENTRIES_PER_SLICE;
    while let Some(id) = ids.last().copied() {
        let invisible = queues.get_mut(id).map(|queue| queue.invisible.starting_at(from));
        for invisible in invisible.into_iter().flatten() {
            if left == 0 {
                return CheckpointPass::Invisible { ids, from };
            }
            left -= 1;
            let visibility = invisible.visibility();
            let entry = &mut invisible.message.entry;
            from = entry.seq.next();
            if entry.is_stored() {
                let expiry = [invisible.message.expires_at.unwrap_or(NEVER)];
                let is_durable = entry.is_durable();
                log.store.checkpoint_entries(id, std::slice::from_mut(entry), &expiry);
                if is_durable {
                    log.store.append_visibility(id, &visibility);
                }
            }
        }
        ids.pop();
        from = Seq(0);
        left = left.saturating_sub(1);
        if left == 0 {
            return CheckpointPass::Invisible { ids, from };
        }
    }
    let ids = queues.ids_of(|q| !q.dead_letters.is_empty() || !q.unreadable.is_empty());
    CheckpointPass::Leaving { ids, at: LeavingCursor::default() }
}

fn write_leaving(
    queues: &mut Queues,
    log: &mut Log,
    mut ids: Vec<QueueId>,
    mut at: LeavingCursor,
) -> CheckpointPass {
    let mut left = ENTRIES_PER_SLICE;
    while let Some(id) = ids.last().copied()
        && left > 0
    {
        // A queue costs something although nothing of it leaves.
        left -= 1;
        let is_done =
            queues.get_mut(id).is_none_or(|queue| write_leaving_of(queue, log, &mut at, &mut left));
        if is_done {
            ids.pop();
            at = LeavingCursor::default();
        }
    }
    CheckpointPass::Leaving { ids, at }
}

/// Returns whether it is all of the queue.
fn write_leaving_of(
    queue: &mut Queue,
    log: &mut Log,
    at: &mut LeavingCursor,
    left: &mut usize,
) -> bool {
    let end = at.letters.unwrap_or(usize::MAX).min(queue.dead_letters.len());
    let begin = end.saturating_sub(*left);
    *left -= end - begin;
    at.letters = Some(begin);
    let from = at.unreadable.min(queue.unreadable.len());
    let count = if begin > 0 { 0 } else { (queue.unreadable.len() - from).min(*left) };
    *left -= count;
    at.unreadable = from + count;
    let letters = queue.dead_letters.range_mut(begin..end);
    for message in letters.chain(&mut queue.unreadable[from..from + count]) {
        if message.entry.is_stored() {
            let expiry = [message.expires_at.unwrap_or(NEVER)];
            let entry = std::slice::from_mut(&mut message.entry);
            log.store.checkpoint_entries(queue.id, entry, &expiry);
        }
    }
    begin == 0 && at.unreadable == queue.unreadable.len()
}
