//! The way in and out for edges that speak other protocols: best effort, this relay only. Their peers
//! have no frames: messages go in and come out as their parts on the wire of ZMTP.

use bytes::{BufMut as _, Bytes, BytesMut};
use quelea_elastic_proto::frame::{SlowPolicy, WireError};
use quelea_elastic_proto::limits::DATA_HEADER_BYTES;
use quelea_elastic_proto::wire::{FrameHeader, data_header};
use quelea_elastic_proto::{ClientId, Epoch, MessageSeq};

use crate::relay::client::Kind;
use crate::relay::ledger::Holds;
use crate::relay::ring::Run;
use crate::relay::{Port, Relay, release_in};

impl Relay {
    /// Connects a peer of an edge.
    ///
    /// # Errors
    /// As [`Relay::connect`].
    pub fn connect_edge(&mut self, name: &str) -> Result<Port, WireError> {
        let port = self.connect_as(Kind::Edge)?;
        self.clients[port.index()].name = name.into();
        Ok(port)
    }

    /// The peer sends messages from now on. Its producer has no epochs and cannot be moved.
    pub fn edge_produces(&mut self, port: Port, producer: ClientId) {
        let Some(client) = self.index(port) else { return };
        let (_, index) = self.reserve(client, producer, Epoch(1));
        self.grant_first(index);
        self.start(index, MessageSeq(0), Epoch(0));
    }

    /// Messages of the peer, each with all its parts as ZMTP frames, checked by the edge. They are
    /// copied once, into one buffer with the headers that native listeners need.
    pub fn edge_publish<'a>(
        &mut self,
        port: Port,
        messages: impl Iterator<Item = &'a [u8]> + Clone,
    ) {
        let Some(client) = self.index(port) else { return };
        let Some((slot, index)) = self.clients[client as usize].slots.first().copied() else {
            return;
        };
        let first = self.producers[index as usize].next;
        let bytes = messages.clone().map(|parts| DATA_HEADER_BYTES + parts.len()).sum();
        if bytes == 0 {
            return;
        }
        let mut frames = BytesMut::with_capacity(bytes);
        for (at, parts) in messages.enumerate() {
            let sequence = MessageSeq(first.0 + at as u64);
            frames.put_slice(&data_header(slot, sequence, parts.len()));
            frames.put_slice(parts);
        }
        self.clients[client as usize].last_read_at = self.now;
        // They were made here, so nothing can be wrong with them but a part that the edge did not check.
        let mut frames = frames.freeze();
        if let Err(error) = self.messages(client, &mut frames, bytes) {
            self.refuse(client, error);
        }
    }

    /// Returns whether the peer's next messages should be read: less than a window of its own waits
    /// here, and it was given one. When this changes the port comes out of [`Relay::poll_writable`].
    #[must_use]
    pub fn edge_may_publish(&self, port: Port) -> bool {
        let Some(client) = self.index(port) else { return false };
        let mut slots = self.clients[client as usize].slots.iter();
        slots.all(|(_, index)| {
            let producer = &self.producers[*index as usize];
            producer.granted_bytes > 0 && producer.under_way_bytes() < self.window_bytes()
        })
    }

    /// Lets the peer listen from now on; it has no subscriptions yet.
    ///
    /// # Errors
    /// If the policy cannot be had, or it listens already.
    pub fn edge_listens(
        &mut self,
        port: Port,
        listener: ClientId,
        slow: Option<SlowPolicy>,
    ) -> Result<(), WireError> {
        let Some(client) = self.index(port) else { return Ok(()) };
        self.listen(client, listener, slow)
    }

    /// Adds one subscription; the empty prefix is everything.
    ///
    /// # Errors
    /// If it is too long or there are too many.
    pub fn edge_subscribes(&mut self, port: Port, prefix: &Bytes) -> Result<(), WireError> {
        let Some(client) = self.index(port) else { return Ok(()) };
        self.subscribe(client, prefix)
    }

    /// Removes one subscription.
    ///
    /// # Errors
    /// If the peer does not have it.
    pub fn edge_unsubscribes(&mut self, port: Port, prefix: &Bytes) -> Result<(), WireError> {
        let Some(client) = self.index(port) else { return Ok(()) };
        self.unsubscribe(client, prefix)
    }

    /// Moves messages for the peer, each with all its parts, from its ring into `out`, until they are
    /// `bytes_max` bytes or more; returns whether any are left. They count as written: what the edge has not
    /// sent of them yet it must bound itself.
    pub fn edge_take(&mut self, port: Port, bytes_max: usize, out: &mut Vec<Bytes>) -> bool {
        let Some(client) = self.index(port) else { return false };
        let mut taken = 0;
        while taken < bytes_max
            && let Some(run) = self.clients[client as usize].ring.pop_run()
        {
            taken += run.bytes.len();
            self.count_taken(client, &run);
            let mut frames = run.bytes;
            while let Ok(Some(header)) = FrameHeader::read(&frames) {
                out.push(frames.split_to(header.frame_bytes()).slice(DATA_HEADER_BYTES..));
            }
        }
        self.make_room(client);
        !self.clients[client as usize].ring.is_empty()
    }

    fn count_taken(&mut self, client: u32, run: &Run) {
        self.counters.messages_out += u64::from(run.messages);
        self.counters.bytes_out += run.bytes.len() as u64;
        self.latency.add(run.at, self.now, run.messages);
        if let Some(listener) = &mut self.clients[client as usize].listener {
            listener.sent += u64::from(run.messages);
            listener.written_bytes += run.bytes.len() as u64;
        }
        if let Some(producer) = self.producers.get_mut(run.producer as usize)
            && producer.slot == run.slot
        {
            producer.bytes_out += run.bytes.len() as u64;
        }
        debug_assert!(run.holds != Holds::BOTH || run.messages > 0);
        release_in(&mut self.producers, &mut self.unsettled, run);
    }

    /// Returns all prefixes that anybody subscribes to, each once: for a producer that filters by
    /// itself.
    pub fn subscriptions(&self) -> impl Iterator<Item = Bytes> {
        let everything = (!self.everything.is_empty()).then(Bytes::new);
        everything.into_iter().chain(self.prefixes.iter().cloned())
    }

    /// Returns the next change of [`Relay::subscriptions`]: a prefix, and whether it is there now.
    pub fn poll_subscription_change(&mut self) -> Option<(Bytes, bool)> {
        self.subscription_changes.pop_front()
    }

    /// Returns how many messages the peer did not get because it was too slow.
    #[must_use]
    pub fn edge_dropped(&self, port: Port) -> u64 {
        let client = self.index(port).map(|index| &self.clients[index as usize]);
        client.and_then(|client| client.listener.as_ref()).map_or(0, |listener| listener.dropped)
    }
}
