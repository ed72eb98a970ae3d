//! A producer's attachment to this relay: ATTACH, START, FIN, and the credit and acknowledgements in between.

use std::collections::btree_map::Entry;

use quelea_elastic_proto::frame::{ErrorCode, Frame, Start, WireError};
use quelea_elastic_proto::{ClientId, Epoch, Fence, MessageSeq, Slot};

use crate::relay::ledger::Ledger;
use crate::relay::limits::{
    FENCED_PRODUCERS_MAX, SLOTS_PER_CLIENT_MAX, WINDOW_BYTES, WINDOW_BYTES_MAX, WINDOW_BYTES_MIN,
};
use crate::relay::missed_listeners::MissedNumber;
use crate::relay::ring::{Control, encoded};
use crate::relay::{Relay, client};

#[derive(Debug)]
pub(crate) struct Producer {
    pub(crate) slot: Slot,
    pub(crate) id: ClientId,
    pub(crate) epoch: Epoch,
    pub(crate) previous: Epoch,
    /// Index of its client; `None` when that is gone, while its last messages are.
    pub(crate) client: Option<u32>,
    pub(crate) state: State,
    /// One past its last message.
    pub(crate) next: MessageSeq,
    pub(crate) ledger: Ledger,
    /// What it was sent: it may send so many bytes in all, and all below this is done.
    pub(crate) granted_bytes: u64,
    /// Its part of [`Relay::finished_bytes`].
    pub(crate) finished_bytes: u64,
    pub(crate) acknowledged: MessageSeq,
    /// It knows of the listeners that may miss something, up to this one.
    pub(crate) missed_sent: MissedNumber,
    /// The MISSED that it sent in this slot, until START.
    pub(crate) pending_missed: Vec<(ClientId, MessageSeq)>,
    pub(crate) messages: u64,
    pub(crate) bytes: u64,
    pub(crate) bytes_out: u64,
    /// It speaks another protocol.
    pub(crate) foreign: bool,
    /// It is on the list of those whose credit or acknowledgement may have changed.
    pub(crate) unsettled: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum State {
    /// It was announced to nobody.
    Attached,
    Started,
    /// After its FIN; it stays until its last message is done.
    Finished,
}

impl Producer {
    const fn is_present(&self) -> bool {
        matches!(self.state, State::Attached | State::Started)
    }

    /// Returns how many bytes of it wait for somebody.
    pub(crate) const fn under_way_bytes(&self) -> u64 {
        self.bytes - self.ledger.released_bytes()
    }

    fn start(&self) -> Frame {
        Frame::Start(Start {
            slot: self.slot,
            producer: self.id,
            epoch: self.epoch,
            first: self.next,
            previous: self.previous,
        })
    }
}

impl Relay {
    /// Handles ATTACH_PRODUCER.
    pub(crate) fn attach_producer(
        &mut self,
        client: u32,
        id: ClientId,
        fence: Fence,
        epoch: Epoch,
    ) -> Result<(), WireError> {
        if self.draining.is_some() {
            return Err(WireError::refusal(
                ErrorCode::Unavailable,
                "",
                "this relay is draining: it takes no new producer",
            ));
        }
        self.compare_fence(fence)?;
        self.check_left(fence)?;
        if self.clients[client as usize].slots.len() >= SLOTS_PER_CLIENT_MAX {
            let text = format!("{SLOTS_PER_CLIENT_MAX} producers on one connection are the limit");
            return Err(WireError::refusal(ErrorCode::Limit, "producer", text));
        }
        self.check_epoch(id, epoch)?;
        self.end_producer(id);
        let slot = self.reserve(client, id, epoch);
        let credit_bytes = self.grant_first(slot.1);
        let acknowledge = self.config.settings.acknowledge;
        let attached = Frame::Attached { slot: slot.0, acknowledge, credit_bytes };
        self.send(client, &attached);
        Ok(())
    }

    /// Refuses an epoch that is over. The highest epoch that was seen may come again: after the
    /// death of its connection, or of another relay, the producer sends again in a slot of its own.
    fn check_epoch(&self, id: ClientId, epoch: Epoch) -> Result<(), WireError> {
        let present = self.by_producer.get(&id).map(|index| self.producers[*index as usize].epoch);
        let least = present.max(self.fenced.get(&id).copied()).unwrap_or_default();
        if epoch >= least {
            return Ok(());
        }
        Err(epoch_is_over(epoch, least))
    }

    /// Reserves a place for a producer. Returns its slot and its index.
    pub(crate) fn reserve(&mut self, client: u32, id: ClientId, epoch: Epoch) -> (Slot, u32) {
        self.last_slot += 1;
        let slot = Slot(self.last_slot);
        let index = self.producers.insert(Producer {
            slot,
            id,
            epoch,
            previous: Epoch(0),
            client: Some(client),
            state: State::Attached,
            next: MessageSeq(0),
            ledger: Ledger::default(),
            granted_bytes: 0,
            finished_bytes: 0,
            acknowledged: MessageSeq(0),
            missed_sent: 0,
            pending_missed: Vec::new(),
            messages: 0,
            bytes: 0,
            bytes_out: 0,
            foreign: self.clients[client as usize].kind == client::Kind::Edge,
            unsettled: false,
        }) as u32;
        self.by_producer.insert(id, index);
        self.clients[client as usize].slots.push((slot, index));
        (slot, index)
    }

    /// Handles START: announced to all listeners.
    pub(crate) fn start_producer(&mut self, client: u32, start: &Start) -> Result<(), WireError> {
        let index = self.slot_of(client, start.slot)?;
        let producer = &mut self.producers[index as usize];
        if producer.state != State::Attached {
            let text = format!("slot {} has started already", start.slot.0);
            return Err(WireError::refusal(ErrorCode::Order, "slot", text));
        }
        if (producer.id, producer.epoch) != (start.producer, start.epoch) {
            let text = format!(
                "slot {} was attached for producer {:032x}, epoch {:#x}; START says {:032x}, {:#x}",
                start.slot.0, producer.id.0, producer.epoch.0, start.producer.0, start.epoch.0
            );
            return Err(WireError::refusal(ErrorCode::Value, "producer", text));
        }
        self.start(index, start.first, start.previous);
        Ok(())
    }

    pub(crate) fn start(&mut self, index: u32, first: MessageSeq, previous: Epoch) {
        self.send_pending_missed(index);
        let producer = &mut self.producers[index as usize];
        producer.state = State::Started;
        producer.next = first;
        producer.previous = previous;
        producer.acknowledged = first;
        producer.ledger.start(first);
        let frame = encoded(&producer.start());
        self.send_to_listeners(&frame, Control::Other);
    }

    /// Handles FIN: announced to all listeners; the slot ends when its last message is done.
    pub(crate) fn finish_producer(
        &mut self,
        client: u32,
        slot: Slot,
        next: MessageSeq,
    ) -> Result<(), WireError> {
        let index = self.slot_of(client, slot)?;
        let producer = &self.producers[index as usize];
        if producer.state == State::Finished
            || (producer.state == State::Started && producer.next != next)
        {
            let text = format!(
                "FIN of slot {} says next message {}; the next one here is {}{}",
                slot.0,
                next.0,
                producer.next.0,
                if producer.state == State::Finished { ", and FIN came before" } else { "" }
            );
            return Err(WireError::refusal(ErrorCode::Order, "next", text));
        }
        self.finish(index);
        Ok(())
    }

    fn finish(&mut self, index: u32) {
        let producer = &mut self.producers[index as usize];
        let announced = producer.state == State::Started;
        producer.state = State::Finished;
        producer.finished_bytes = producer.under_way_bytes();
        self.finished_bytes += producer.finished_bytes;
        let (id, slot, next) = (producer.id, producer.slot, producer.next);
        if self.by_producer.get(&id) == Some(&index) {
            self.by_producer.remove(&id);
        }
        if announced {
            let fin = encoded(&Frame::Fin { slot, next });
            self.send_to_listeners(&fin, Control::Fin(slot));
        }
        self.unsettle(index);
    }

    /// A producer's slot ends because a later epoch of it is here, or was decreed elsewhere, or its
    /// connection is gone: listeners see a FIN, since nothing more comes in this slot.
    pub(crate) fn end_producer(&mut self, id: ClientId) {
        let Some(index) = self.by_producer.get(&id).copied() else { return };
        self.abandon(index);
    }

    pub(crate) fn abandon(&mut self, index: u32) {
        if self.producers[index as usize].is_present() {
            self.finish(index);
        }
        // Producers that are gone or fenced are sent no acknowledgement any more.
        let Self { producers, clients, .. } = self;
        if let Some(client) = producers[index as usize].client.take() {
            clients[client as usize].slots.retain(|(_, of)| *of != index);
        }
    }

    /// FENCE_PRODUCER: the directory gave this producer a higher epoch elsewhere.
    pub fn fence_producer(&mut self, id: ClientId, below: Epoch) {
        match self.fenced.entry(id) {
            Entry::Occupied(mut bound) => *bound.get_mut() = below.max(*bound.get()),
            Entry::Vacant(place) => {
                place.insert(below);
                self.fenced_order.push_back(id);
            }
        }
        if self.fenced_order.len() > FENCED_PRODUCERS_MAX
            && let Some(oldest) = self.fenced_order.pop_front()
        {
            self.fenced.remove(&oldest);
        }
        let Some(index) = self.by_producer.get(&id).copied() else { return };
        let producer = &self.producers[index as usize];
        if producer.epoch < below {
            let error = epoch_is_over(producer.epoch, below);
            let client = producer.client;
            self.abandon(index);
            if let Some(client) = client {
                self.send(client, &Frame::Error(error));
            }
        }
    }

    /// Refuses a lower fence than the directory's. A higher one is not remembered when a client
    /// says it: a client that says the highest would shut out all others, and the directory too. A
    /// producer that a new directory sends here before this relay has registered there is taken all
    /// the same, and its old attachments are refused by their epochs.
    pub(crate) fn compare_fence(&self, fence: Fence) -> Result<(), WireError> {
        if fence < self.fence {
            let text = format!("fence {} is over: {} was seen here", fence.0, self.fence.0);
            return Err(WireError::refusal(ErrorCode::Fenced, "fence", text));
        }
        Ok(())
    }

    /// Takes a directory's fence: the highest is remembered, a lower one refused.
    pub(crate) fn see_fence(&mut self, fence: Fence) -> Result<(), WireError> {
        self.compare_fence(fence)?;
        self.fence = fence;
        Ok(())
    }

    pub(crate) fn slot_of(&self, client: u32, slot: Slot) -> Result<u32, WireError> {
        let slots = &self.clients[client as usize].slots;
        let found = slots.iter().find(|(of, _)| *of == slot).map(|(_, index)| *index);
        found.ok_or_else(|| {
            let text = format!("slot {} is none of this connection's", slot.0);
            WireError::refusal(ErrorCode::Order, "slot", text)
        })
    }

    /// STARTs of all that are present, for a listener that has just come.
    pub(crate) fn send_starts(&mut self, client: u32) {
        let Self { producers, clients, .. } = self;
        for (_, producer) in producers.iter().filter(|(_, p)| p.state == State::Started) {
            clients[client as usize].ring.push_control(encoded(&producer.start()), Control::Other);
        }
        self.mark_dirty(client);
    }

    /// Returns how many bytes one producer may have under way.
    pub(crate) fn window_bytes(&self) -> u64 {
        let present = self.by_producer.len().max(1) as u64;
        (self.windows_bytes() / present).clamp(WINDOW_BYTES_MIN, WINDOW_BYTES_MAX)
    }

    /// Returns the same of all of them.
    fn windows_bytes(&self) -> u64 {
        WINDOW_BYTES.min(self.config.settings.ring_bytes_max / 2)
    }

    /// Grants a producer that has come its window, and returns it: nothing as long as those that are gone have
    /// as much under way as all may have, or else each that comes and goes would leave a window more.
    pub(crate) fn grant_first(&mut self, index: u32) -> u64 {
        let window = if self.has_credit() { self.window_bytes() } else { 0 };
        self.withholds_credit |= window == 0;
        self.producers[index as usize].granted_bytes = window;
        window
    }

    fn has_credit(&self) -> bool {
        self.finished_bytes < self.windows_bytes().max(WINDOW_BYTES_MIN)
    }

    /// A producer's credit or acknowledgement may have changed.
    pub(crate) fn unsettle(&mut self, index: u32) {
        let producer = &mut self.producers[index as usize];
        if !producer.unsettled {
            producer.unsettled = true;
            self.unsettled.push(index);
        }
    }

    /// Sends producers their acknowledgements and credit: once for all that
    /// happened in a turn.
    pub fn settle(&mut self) {
        self.settle_unsettled();
        if self.withholds_credit && self.has_credit() {
            self.withholds_credit = false;
            let without = |index: &u32| self.producers[*index as usize].granted_bytes == 0;
            let without: Vec<u32> = self.by_producer.values().copied().filter(without).collect();
            without.into_iter().for_each(|index| self.unsettle(index));
            self.settle_unsettled();
        }
    }

    fn settle_unsettled(&mut self) {
        let window = self.window_bytes();
        let mut unsettled = std::mem::take(&mut self.unsettled);
        for index in unsettled.drain(..) {
            self.send_missed_listeners(index);
            let has_credit = self.has_credit();
            let producer = &mut self.producers[index as usize];
            producer.unsettled = false;
            let slot = producer.slot;
            let below = producer.ledger.acknowledged();
            let acknowledged = std::mem::replace(&mut producer.acknowledged, below) < below;
            let bytes = producer.ledger.released_bytes() + window;
            let more = producer.is_present()
                && (producer.granted_bytes > 0 || has_credit)
                && bytes >= producer.granted_bytes + window / 4;
            if more {
                producer.granted_bytes = bytes;
            }
            if producer.state == State::Finished {
                self.finished_bytes -= producer.finished_bytes;
                producer.finished_bytes = producer.under_way_bytes();
                self.finished_bytes += producer.finished_bytes;
            }
            let is_over = producer.state == State::Finished && producer.ledger.is_empty();
            if let Some(client) = producer.client {
                if self.clients[client as usize].kind == client::Kind::Edge {
                    self.mark_dirty(client);
                } else {
                    if acknowledged {
                        self.send(client, &Frame::Ack { slot, below });
                    }
                    if more {
                        self.send(client, &Frame::Credit { slot, bytes });
                    }
                }
            }
            if is_over {
                self.abandon(index);
                self.producers.remove(index as usize);
            }
        }
        self.unsettled = unsettled;
    }
}

fn epoch_is_over(epoch: Epoch, least: Epoch) -> WireError {
    let (epoch, least) = (epoch.0, least.0);
    let text =
        format!("epoch {epoch:#x} is over for this producer: at least {least:#x} is asked for");
    WireError::refusal(ErrorCode::Fenced, "epoch", text)
}
