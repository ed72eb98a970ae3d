//! A listener's attachment: ATTACH, SUBSCRIBE and UNSUBSCRIBE, RECEIVED, STOP, and its end.

use std::collections::BTreeSet;

use bytes::Bytes;
use quelea_elastic_proto::frame::{AttachListener, ErrorCode, Frame, SlowPolicy, WireError};
use quelea_elastic_proto::limits::{PREFIX_BYTES_MAX, PREFIXES_MAX};
use quelea_elastic_proto::{ClientId, Fence, Named as _, Slot};

use crate::relay::Relay;
use crate::relay::client::{Client, Kind, Listener};
use crate::relay::ledger::Holds;
use crate::relay::prefix::Change;

impl Relay {
    /// Handles ATTACH_LISTENER.
    pub(crate) fn attach_listener(
        &mut self,
        client: u32,
        attach: AttachListener,
    ) -> Result<(), WireError> {
        for prefix in &attach.prefixes {
            check_prefix(prefix)?;
        }
        if attach.prefixes.len() > PREFIXES_MAX {
            return Err(too_many_prefixes(attach.prefixes.len()));
        }
        self.listen(client, attach.listener, attach.slow)?;
        for prefix in &attach.prefixes {
            self.subscribe(client, prefix)?;
        }
        self.send_starts(client);
        let acknowledge = self.config.settings.acknowledge;
        self.send(client, &Frame::Attached { slot: Slot(0), acknowledge, credit_bytes: 0 });
        Ok(())
    }

    /// Makes a client a listener without subscriptions.
    pub(crate) fn listen(
        &mut self,
        client: u32,
        id: ClientId,
        slow: Option<SlowPolicy>,
    ) -> Result<(), WireError> {
        let slow = slow.unwrap_or(self.config.settings.slow);
        if slow == SlowPolicy::Spill && self.spill_bytes_max == 0 {
            let others = SlowPolicy::list_allowed(|policy| policy != slow);
            let text = format!("spill: this relay has no store to spill to; {others} are known");
            return Err(WireError::refusal(ErrorCode::Value, "slow", text));
        }
        if self.clients[client as usize].listener.is_some() {
            let text =
                "this connection has a listener already: change it by SUBSCRIBE and UNSUBSCRIBE";
            return Err(WireError::refusal(ErrorCode::Order, "listener", text));
        }
        // The same one again: its old connection is half-open.
        let same = |index: &&u32| {
            self.clients[**index as usize]
                .listener
                .as_ref()
                .is_some_and(|listener| listener.id == id)
        };
        if let Some(before) = self.listeners.iter().find(same).copied() {
            self.refuse(
                before,
                WireError::fatal(
                    ErrorCode::Fenced,
                    "listener",
                    "it has attached again on another connection",
                ),
            );
        }
        self.clients[client as usize].listener = Some(Listener::new(id, slow, self.now));
        self.listeners.push(client);
        self.misses_no_more(id);
        Ok(())
    }

    /// Handles SUBSCRIBE.
    pub(crate) fn subscribe(&mut self, client: u32, prefix: &Bytes) -> Result<(), WireError> {
        check_prefix(prefix)?;
        let Self { clients, everything, prefixes, subscription_changes, .. } = self;
        let listener = clients[client as usize].listener.as_mut().ok_or_else(no_listener)?;
        if prefix.is_empty() {
            listener.everything += 1;
            if listener.everything == 1 {
                everything.push(client);
            }
            if everything.len() == 1 && listener.everything == 1 {
                subscription_changes.push_back((Bytes::new(), true));
            }
            return Ok(());
        }
        if listener.prefixes.len() >= PREFIXES_MAX && !listener.prefixes.contains_key(prefix) {
            return Err(too_many_prefixes(listener.prefixes.len() + 1));
        }
        // A prefix is a slice of a read buffer, which it must not keep alive.
        let prefix = Bytes::copy_from_slice(prefix);
        *listener.prefixes.entry(prefix.clone()).or_insert(0) += 1;
        if prefixes.add(&prefix, client) == Change::Edge {
            subscription_changes.push_back((prefix, true));
        }
        Ok(())
    }

    /// Handles UNSUBSCRIBE.
    pub(crate) fn unsubscribe(&mut self, client: u32, prefix: &Bytes) -> Result<(), WireError> {
        let Self { clients, everything, prefixes, subscription_changes, .. } = self;
        let listener = clients[client as usize].listener.as_mut().ok_or_else(no_listener)?;
        let unknown = || {
            let text = format!("{prefix:?} is not subscribed to");
            WireError::refusal(ErrorCode::Order, "prefix", text)
        };
        if prefix.is_empty() {
            listener.everything = listener.everything.checked_sub(1).ok_or_else(unknown)?;
            if listener.everything == 0 {
                everything.retain(|index| *index != client);
                if everything.is_empty() {
                    subscription_changes.push_back((Bytes::new(), false));
                }
            }
            return Ok(());
        }
        let count = listener.prefixes.get_mut(prefix).ok_or_else(unknown)?;
        *count -= 1;
        if *count == 0 {
            listener.prefixes.remove(prefix);
        }
        if prefixes.remove(prefix, client) == Change::Edge {
            subscription_changes.push_back((Bytes::copy_from_slice(prefix), false));
        }
        Ok(())
    }

    /// Handles RECEIVED: what the listener has taken holds nothing back any more.
    pub(crate) fn taken(&mut self, client: u32, messages: u64) -> Result<(), WireError> {
        let mut back = None;
        let listener = self.clients[client as usize].listener.as_mut().ok_or_else(no_listener)?;
        if messages > listener.received {
            (listener.received, listener.received_at) = (messages, self.now);
            let caught_up = std::mem::take(&mut listener.left_behind) && !listener.missing;
            back = caught_up.then_some(listener.id);
        }
        // A run counts as sent when its last byte is, and a listener may be quicker to say that it has the
        // first of its messages than the socket was to take the last: those count as awaited later.
        while let Some(awaiting) = listener.awaiting.front()
            && awaiting.sent <= messages
        {
            let (producer, slot, entry) = (awaiting.producer, awaiting.slot, awaiting.entry);
            listener.awaiting.pop_front();
            let holds = Holds { credit: false, acknowledgement: true };
            if let Some(of) = self.producers.get_mut(producer as usize)
                && of.slot == slot
            {
                of.ledger.release(entry, holds);
                if !of.unsettled {
                    of.unsettled = true;
                    self.unsettled.push(producer);
                }
            }
        }
        if let Some(listener) = back {
            self.misses_no_more(listener);
        }
        Ok(())
    }

    /// Handles STOP: a directory has the listener leave. Either this relay is drained, or it is
    /// held for dead and cannot be reached: then what it acknowledged from now on nobody would have
    /// got. Its producers go, before what the listener has not said to have counts as taken.
    pub(crate) fn stop_received(&mut self, client: u32, fence: Fence) -> Result<(), WireError> {
        if self.clients[client as usize].listener.is_none() {
            return Err(no_listener());
        }
        self.compare_fence(fence)?;
        // The listener's own fence is not remembered: one that says the highest would shut out all.
        self.left_under = Some(self.fence);
        let native = self.producers.iter().filter(|(_, producer)| !producer.foreign);
        let clients: BTreeSet<u32> = native.filter_map(|(_, producer)| producer.client).collect();
        for producers in clients {
            self.refuse(producers, left());
        }
        Ok(())
    }

    /// The relay ends, and no directory leads its clients elsewhere. Producers go at once: what is not
    /// acknowledged they still have. Listeners go when all that they are to get is written to them.
    pub fn send_clients_away(&mut self) {
        let may_go = |client: &Client| {
            !client.is_closing() && (client.listener.is_none() || client.waiting_bytes() == 0)
        };
        let clients = self.clients.iter().filter(|(_, client)| may_go(client));
        for index in clients.map(|(index, _)| index as u32).collect::<Vec<_>>() {
            let text = "the relay ends";
            self.refuse(index, WireError::fatal(ErrorCode::Unavailable, "relay", text));
        }
    }

    /// Refuses a producer if listeners were sent away and no later directory than this relay's
    /// sends it.
    pub(crate) fn check_left(&self, fence: Fence) -> Result<(), WireError> {
        if self.left_under.is_some_and(|under| fence <= under) {
            return Err(WireError { fatal: false, ..left() });
        }
        Ok(())
    }

    /// A listener is gone: nothing waits for it any more.
    pub(crate) fn end_listener(&mut self, client: u32) {
        let Some(listener) = self.clients[client as usize].listener.take() else { return };
        self.listeners.retain(|index| *index != client);
        if self.clients[client as usize].kind == Kind::Native && !listener.leaves {
            self.may_miss(listener.id);
        }
        if listener.everything > 0 {
            self.everything.retain(|index| *index != client);
            if self.everything.is_empty() {
                self.subscription_changes.push_back((Bytes::new(), false));
            }
        }
        let of: Vec<Bytes> = listener.prefixes.into_keys().collect();
        let ended = self.prefixes.forget(client, &of);
        self.subscription_changes.extend(ended.into_iter().map(|prefix| (prefix, false)));
        if let Some(spill) = listener.spill {
            self.forget_spill(client, *spill);
        }
        for awaiting in listener.awaiting {
            let holds = Holds { credit: false, acknowledgement: true };
            self.release(awaiting.producer, awaiting.slot, awaiting.entry, holds);
        }
    }
}

fn check_prefix(prefix: &Bytes) -> Result<(), WireError> {
    if prefix.len() <= PREFIX_BYTES_MAX {
        return Ok(());
    }
    let text = format!("a prefix of {} bytes is longer than {PREFIX_BYTES_MAX}", prefix.len());
    Err(WireError::refusal(ErrorCode::Limit, "prefix", text))
}

fn left() -> WireError {
    WireError::fatal(
        ErrorCode::Unavailable,
        "relay",
        "a directory has the listeners leave this relay",
    )
}

fn too_many_prefixes(prefixes: usize) -> WireError {
    let text = format!("{prefixes} prefixes are more than {PREFIXES_MAX}");
    WireError::refusal(ErrorCode::Limit, "prefixes", text)
}

fn no_listener() -> WireError {
    WireError::refusal(
        ErrorCode::Order,
        "listener",
        "this connection has no listener: ATTACH_LISTENER comes first",
    )
}
