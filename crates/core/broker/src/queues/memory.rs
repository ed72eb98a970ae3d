//! What messages take of the memory, in totals over all queues and channels.

use quelea_model::{Message, Resident, SharedBodies};

use super::queue::{Queue, QueueMemory};
use crate::config::BrokerConfig;

/// Totals over all queues and channels, in bytes.
#[derive(Debug, Default)]
pub(crate) struct Memory {
    /// Ready messages, as each queue counts them.
    resident: Resident,
    /// Large bodies that several queues hold, each once.
    pub(crate) shared_bodies: SharedBodies,
    /// Messages on their way to a dead-letter exchange, and invisible ones that the log does not have.
    /// They go by themselves, so nothing is written out for them, but publishers must not bring more than are moved on.
    dead_letters: usize,
    /// Bodies that unsettled deliveries keep, since the log does not have them.
    pub(crate) unacked: Resident,
    /// Index entries.
    pub(crate) index: usize,
    /// What is known of messages that are invisible, of groups, and of deduplication ids. It cannot be
    /// written out.
    pub(crate) held: usize,
    /// What there was of bodies, and of the index, after the last relief. Without more there is
    /// no use in another.
    pub(crate) body_floor: usize,
    pub(crate) index_floor: usize,
}

impl Memory {
    /// Brings a queue's share of the totals up to date.
    pub(crate) fn count(&mut self, queue: &mut Queue) {
        let now = QueueMemory {
            resident: queue.ready.resident(),
            dead_letters: queue.dead_letters.resident_bytes() + queue.invisible.resident_bytes(),
            index: queue.ready.index_bytes(),
            held: queue.held_bytes(),
        };
        self.resident = self.resident - queue.counted.resident + now.resident;
        self.dead_letters = self.dead_letters - queue.counted.dead_letters + now.dead_letters;
        self.index = self.index - queue.counted.index + now.index;
        self.held = self.held - queue.counted.held + now.held;
        queue.counted = now;
    }

    /// Takes a queue's share out of the totals: it goes.
    pub(crate) fn forget(&mut self, queue: &mut Queue) {
        self.resident -= queue.counted.resident;
        self.dead_letters -= queue.counted.dead_letters;
        self.index -= queue.counted.index;
        self.held -= queue.counted.held;
        queue.counted = QueueMemory::default();
    }

    /// A delivery whose body only memory has waits for its acknowledgement; `of_channel` is its
    /// channel's share.
    #[inline]
    pub(crate) fn delivered(&mut self, of_channel: &mut Resident, body: Option<&Message>) {
        if let Some(body) = body {
            self.unacked += body.resident();
            *of_channel += body.resident();
        }
    }

    /// A delivery does not wait any more.
    #[inline]
    pub(crate) fn settled(&mut self, of_channel: &mut Resident, body: Option<&Message>) {
        if let Some(body) = body {
            self.unacked -= body.resident();
            *of_channel -= body.resident();
        }
    }

    /// Returns the bytes of bodies that can be dropped or written out. A large one that several
    /// queues hold is there once.
    pub(crate) fn bodies(&self) -> usize {
        (self.resident + self.unacked).with_shared_once(self.shared_bodies.bytes())
    }

    /// Returns whether it is time that publishers wait until what is here has been written out.
    pub(crate) fn is_crowded(&self, config: &BrokerConfig) -> bool {
        self.bodies() + self.dead_letters > config.resident_bytes_max / 2 * 3
            || self.held > config.held_bytes_max
    }

    /// Returns why publishers have to be stopped, if writing out does not help.
    pub(crate) fn stuck_reason(&self, config: &BrokerConfig) -> Option<String> {
        if self.held > config.held_bytes_max {
            let (bytes, max) = (self.held, config.held_bytes_max);
            return Some(format!(
                "memory: delayed messages, messages in flight, groups and deduplication ids take \
                 {bytes} bytes, {max} may be kept"
            ));
        }
        let bytes = self.bodies();
        (bytes > config.resident_bytes_max.saturating_mul(2)).then(|| {
            let max = config.resident_bytes_max;
            format!("memory: {bytes} bytes of messages wait to be written out, {max} may be kept")
        })
    }
}
