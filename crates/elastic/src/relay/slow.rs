//! What happens when a listener does not keep up: its policy when its ring is full, and when producers
//! stop waiting for it.

use quelea_elastic_proto::frame::{ErrorCode, SlowPolicy};
use quelea_elastic_proto::{Slot, Time};

use crate::relay::conversation::fatal;
use crate::relay::ledger::{EntryNumber, Holds};
use crate::relay::limits::{LAG_CHECK_MS, RING_ITEMS_MAX};
use crate::relay::listening::waits_for_listeners;
use crate::relay::ring::{Dropped, Run};
use crate::relay::{Port, Relay, release_in};

impl Relay {
    /// Puts messages into a listener's ring, or does what its policy says.
    pub(crate) fn offer(&mut self, index: u32, mut run: Run) {
        let ring_bytes_max = self.ring_bytes_max;
        let client = &mut self.clients[index as usize];
        let Some(listener) = &mut client.listener else { return };
        let bytes = client.ring.bytes() + run.bytes.len();
        // An empty ring takes any message: it may be larger than the ring.
        let full = client.ring.bytes() > 0
            && (bytes > ring_bytes_max || client.ring.items() >= RING_ITEMS_MAX);
        if listener.spill.as_ref().is_some_and(|spill| spill.is_active()) {
            return self.spill(index, run);
        }
        if full || listener.dropping {
            match listener.slow {
                SlowPolicy::HoldProducers => {}
                SlowPolicy::Disconnect => {
                    listener.dropping = true;
                    self.overfull.push(index);
                    return;
                }
                SlowPolicy::DropOldest => self.drop_oldest(index, run.bytes.len()),
                SlowPolicy::Spill => return self.spill(index, run),
                SlowPolicy::DropNewest => {
                    // It goes on only when there is room for some time, or else each message more would
                    // have a GAP of its own.
                    listener.dropping = full || bytes > low_mark(ring_bytes_max);
                    if listener.dropping {
                        client.ring.drop_newest(&run);
                        listener.dropped += u64::from(run.messages);
                        self.counters.dropped_newest += u64::from(run.messages);
                        return;
                    }
                }
            }
        }
        let late = waits_for_listeners(self.config.settings.acknowledge);
        let client = &mut self.clients[index as usize];
        let Some(listener) = &client.listener else { return };
        run.holds = Holds { credit: !listener.lagging, acknowledgement: late || !listener.lagging };
        if run.sparse && client.blocked {
            run.unpin();
        }
        self.producers[run.producer as usize].ledger.hold(run.holds);
        if bytes as u64 > self.lag_bytes() && self.lag_check_at.is_none() {
            self.lag_check_at = Some(self.now.plus_ms(LAG_CHECK_MS));
        }
        self.clients[index as usize].ring.push_run(run);
        self.mark_dirty(index);
    }

    fn drop_oldest(&mut self, index: u32, room: usize) {
        let target = low_mark(self.ring_bytes_max).saturating_sub(room);
        let Self { clients, producers, unsettled, counters, .. } = self;
        let client = &mut clients[index as usize];
        let mut dropped = 0;
        client.ring.drop_oldest(target, |part| {
            dropped += part.messages();
            if let Dropped::Run(run) = part {
                release_in(producers, unsettled, run);
            }
        });
        counters.dropped_oldest += dropped;
        if let Some(listener) = &mut client.listener {
            listener.dropped += dropped;
        }
    }

    /// Ends clients that let too much pile up.
    pub(crate) fn cut_off_the_overfull(&mut self) {
        while let Some(index) = self.overfull.pop() {
            self.too_slow(index);
        }
    }

    fn too_slow(&mut self, index: u32) {
        let Some(client) = self.clients.get(index as usize).filter(|client| !client.is_closing())
        else {
            return;
        };
        let text = format!(
            "{} bytes of messages and {} of other frames wait for this client; its ring has {}",
            client.ring.bytes(),
            client.ring.control_bytes(),
            self.ring_bytes_max
        );
        self.counters.too_slow += 1;
        self.refuse(index, fatal(ErrorCode::TooSlow, "ring_bytes_max", text));
    }

    /// One that held messages back does not any more.
    pub(crate) fn release(&mut self, producer: u32, slot: Slot, entry: EntryNumber, holds: Holds) {
        if let Some(of) = self.producers.get_mut(producer as usize)
            && of.slot == slot
        {
            of.ledger.release(entry, holds);
            self.unsettle(producer);
        }
    }

    /// Waiting for one listener: beyond this it is asked whether the producers should wait for it.
    pub(crate) fn lag_bytes(&self) -> u64 {
        self.window_bytes() * self.by_producer.len().max(1) as u64 / 2
    }

    /// Looks at who is far behind. Producers wait for a listener as long as it is about as quick as the
    /// others: the mean backlog counts each by what it was written, so one that stands still has no say,
    /// and a single slow one among quick ones little. A listener that is left behind holds producers back
    /// again when it has caught up.
    pub(crate) fn check_lag(&mut self, now: Time) {
        let limit = self.lag_bytes();
        let (mut weighted, mut weights) = (0_u128, 0_u128);
        for index in &self.listeners {
            let client = &mut self.clients[*index as usize];
            let Some(listener) = &mut client.listener else { continue };
            listener.pace = listener.pace / 2 + std::mem::take(&mut listener.written_bytes);
            weighted += u128::from(listener.pace) * client.ring.bytes() as u128;
            weights += u128::from(listener.pace);
        }
        let mean = (weighted / weights.max(1)) as u64;
        let mut again = false;
        for at in 0..self.listeners.len() {
            let index = self.listeners[at];
            let client = &mut self.clients[index as usize];
            let backlog = client.ring.bytes() as u64;
            let Some(listener) = &mut client.listener else { continue };
            again |= backlog > limit / 2;
            if listener.slow == SlowPolicy::HoldProducers {
                continue;
            }
            if listener.lagging {
                listener.lagging = backlog > limit / 2;
            } else if backlog > limit + 2 * mean {
                listener.lagging = true;
                self.let_go(index);
            }
        }
        self.lag_check_at = again.then(|| now.plus_ms(LAG_CHECK_MS));
    }

    /// Nothing that waits for this listener holds producers back any more.
    fn let_go(&mut self, index: u32) {
        let late = waits_for_listeners(self.config.settings.acknowledge);
        let Self { clients, producers, unsettled, .. } = self;
        for run in clients[index as usize].ring.runs_mut() {
            let Holds { credit, acknowledgement } = run.holds;
            let freed = Holds { credit, acknowledgement: acknowledgement && !late };
            run.holds = Holds { credit: false, acknowledgement: acknowledgement && late };
            if let Some(producer) = producers.get_mut(run.producer as usize)
                && producer.slot == run.slot
            {
                producer.ledger.release(run.entry, freed);
                if !producer.unsettled {
                    producer.unsettled = true;
                    unsettled.push(run.producer);
                }
            }
        }
    }

    /// The socket of this client takes no more.
    pub fn blocked(&mut self, port: Port) {
        let Some(index) = self.index(port) else { return };
        let client = &mut self.clients[index as usize];
        if !client.blocked {
            client.blocked = true;
            client.ring.unpin();
        }
    }
}

/// A ring that was full has room again below this.
const fn low_mark(ring_bytes_max: usize) -> usize {
    ring_bytes_max / 4 * 3
}
