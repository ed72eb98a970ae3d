//! The sender's part of encryption: a flow's handshake, and its seal. What is pushed waits for the
//! keys. A flow's number is used with one receiver's salt only: where the receiver has forgotten the
//! keys, another flow takes what it has not acknowledged.

use bytes::{Bytes, BytesMut};

use super::Outbox;
use crate::Time;
use crate::flight;
use crate::seal::{Answer, FlowSeal, Greeting, Keyring, Rejected, SealError};
use crate::transmit::Transmit;
use crate::wire::{Header, Kind, flags};

/// How long the first answer to a HELLO is waited for; twice as long after each, up to the limit.
const HELLO_US: u64 = 2_000;
const HELLO_US_MAX: u64 = 1_000_000;

/// PROBEs without an answer after which HELLO is said again: the receiver may have forgotten the keys.
const UNANSWERED_MAX: u8 = 2;

/// How often HELLO is said to a receiver that says nothing by itself.
const UNHEARD_US: u64 = 5_000_000;

/// A destination's handshake and seal.
#[derive(Debug)]
pub(crate) struct Sealing {
    greeting: Greeting,
    seal: Option<Box<FlowSeal>>,
    /// The seal of what is kept to be repeated, where that is not sealed anew yet.
    old: Option<Box<FlowSeal>>,
    /// The HELLO that waits for its answer.
    request: Option<KeyRequest>,
    /// PROBEs since the last authentic answer.
    unanswered: u8,
    /// When the last CHALLENGE came.
    challenged_at: Time,
}

#[derive(Clone, Copy, Debug)]
struct KeyRequest {
    since: Time,
    next_at: Time,
    wait_us: u64,
}

/// What the handshake wants of a destination's turn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Handshake {
    /// There are keys, or nothing to seal.
    Done,
    /// HELLO is to be said now.
    Greet,
    /// An answer is waited for.
    Waits,
    /// It was waited for too long.
    Silent,
}

impl Sealing {
    fn new(greeting: Greeting, seal: Option<Box<FlowSeal>>, now: Time) -> Self {
        let request = seal.is_none().then(|| KeyRequest::now(now));
        Self { greeting, seal, old: None, request, unanswered: 0, challenged_at: now }
    }

    /// Returns when HELLO is to be said again.
    pub(super) fn next_at(&self) -> Option<Time> {
        self.request.map(|request| request.next_at)
    }

    /// Returns whether datagrams can be sealed now.
    pub(super) const fn has_keys(&self) -> bool {
        self.seal.is_some()
    }

    /// Seals a datagram; `header` is its header.
    pub(super) fn seal(&mut self, header: Header, segment: &mut [u8]) -> Result<(), SealError> {
        self.seal.as_mut().ok_or(SealError::Impossible)?.seal(header, segment)
    }
}

impl KeyRequest {
    const fn now(now: Time) -> Self {
        Self { since: now, next_at: now, wait_us: HELLO_US }
    }
}

impl Outbox {
    /// Returns how far the destination's handshake is; begins it if there is something to seal.
    pub(super) fn handshake(&mut self, slot: u32, now: Time) -> Handshake {
        if self.keyring.is_none() {
            return Handshake::Done;
        }
        let has_more = self.has_more(slot);
        let destination = self.destinations.at_mut(slot);
        let configured = self.profiles.get(destination.profile).dead_after;
        let patience = flight::patience(configured, destination.reliable);
        let wanted = has_more || destination.busy.as_ref().is_some_and(|it| it.ending.is_some());
        let busy = destination.busy.as_mut();
        let Some(sealing) = busy.and_then(|busy| busy.sealing.as_mut()) else {
            if wanted {
                self.begin_sealing(slot, now);
                return self.handshake(slot, now);
            }
            return Handshake::Done;
        };
        let has_keys = sealing.has_keys();
        match sealing.request {
            Some(request) if request.next_at > now && has_keys => Handshake::Done,
            Some(request) if request.next_at > now => Handshake::Waits,
            Some(request) if request.since.after(patience) <= now => Handshake::Silent,
            Some(_) => Handshake::Greet,
            None if wanted && !has_keys => {
                sealing.request = Some(KeyRequest::now(now));
                Handshake::Greet
            }
            None => Handshake::Done,
        }
    }

    /// A seal for a flow that has sent nothing yet.
    fn begin_sealing(&mut self, slot: u32, now: Time) {
        if self.destinations.at(slot).next_sequence > 0 {
            // Its keys were forgotten here, with its flight.
            self.renew_flow(slot);
        }
        let greeting = Greeting::new(self.salts.salt());
        let destination = self.destinations.at_mut(slot);
        let group = destination.key.address.ip().is_multicast();
        let keyring = self.keyring.as_ref().filter(|_| group);
        let seal =
            keyring.map(|keyring| FlowSeal::group_sender(keyring, self.session, destination.flow));
        let sealing = Sealing::new(greeting, seal.map(Box::new), now);
        destination.busy.get_or_insert_default().sealing = Some(Box::new(sealing));
    }

    /// The destination's datagrams are numbered from the start, in a flow that nobody knows.
    fn renew_flow(&mut self, slot: u32) {
        self.last_flow = self.last_flow.wrapping_add(1);
        self.destinations.change_flow(slot, self.last_flow);
        let destination = self.destinations.at_mut(slot);
        (destination.next_sequence, destination.next_message) = (0, 0);
        if let Some(busy) = &mut destination.busy {
            busy.parities = None;
        }
    }

    /// Makes the next HELLO.
    pub(super) fn greet(&mut self, slot: u32, now: Time) -> Option<Transmit> {
        let header = self.small_header(slot, Kind::Hello);
        let keyring = self.keyring.as_ref()?;
        let busy = self.destinations.at_mut(slot).busy.as_mut()?;
        let sealing = busy.sealing.as_mut()?;
        let request = sealing.request.as_mut()?;
        request.next_at = now.plus_us(request.wait_us);
        // Stored: a state machine keeps no iterator of waits.
        request.wait_us = (request.wait_us * 2).min(HELLO_US_MAX);
        let hello = sealing.greeting.hello(keyring, header);
        self.counters.hellos += 1;
        self.set_timer(slot);
        Some(self.small(slot, BytesMut::from(&hello[..])))
    }

    /// Nobody has answered a HELLO. Where there are no keys, what waits for them is given up.
    pub(super) fn on_silence(&mut self, slot: u32) {
        let destination = self.destinations.at_mut(slot);
        let (reliable, closing) = (destination.reliable, destination.closing);
        let busy = destination.busy.as_mut();
        let Some(sealing) = busy.and_then(|busy| busy.sealing.as_mut()) else { return };
        sealing.request = None;
        if !sealing.has_keys() {
            destination.dead = reliable || closing;
            if reliable {
                let kept = self.with_flight(slot, |it| it.missing_messages()).unwrap_or(0);
                self.abandon(slot, kept);
            } else {
                let messages = self.drop_all(slot);
                self.counters.abandoned_messages += messages;
                self.note_given_up(slot, messages);
            }
            self.forget_flight(slot);
        }
        self.set_timer(slot);
        self.enqueue(slot);
    }

    /// A PROBE has left. If those before have no answer, HELLO is said too.
    pub(super) fn note_probe(&mut self, slot: u32, now: Time) {
        let busy = self.destinations.at_mut(slot).busy.as_mut();
        let Some(sealing) = busy.and_then(|busy| busy.sealing.as_mut()) else { return };
        sealing.unanswered = sealing.unanswered.saturating_add(1);
        if sealing.unanswered > UNANSWERED_MAX && sealing.request.is_none() {
            sealing.request = Some(KeyRequest::now(now));
            self.set_timer(slot);
        }
    }

    /// A receiver that is not asked for credit says nothing, not even that it has forgotten the keys:
    /// it gets a HELLO from time to time.
    pub(super) fn greet_the_unheard(&mut self, slot: u32, now: Time) {
        let destination = self.destinations.at_mut(slot);
        let heard = self.profiles.get(destination.profile).credit;
        let group = destination.key.address.ip().is_multicast();
        if heard || group {
            return;
        }
        let busy = destination.busy.as_mut();
        if let Some(sealing) = busy.and_then(|busy| busy.sealing.as_mut())
            && sealing.request.is_none()
            && sealing.challenged_at.plus_us(UNHEARD_US) <= now
        {
            sealing.request = Some(KeyRequest::now(now));
            self.enqueue(slot);
        }
    }

    /// Takes the CHALLENGE of an encrypted flow.
    pub(crate) fn on_challenge(
        &mut self,
        slot: u32,
        header: &Header,
        datagram: &[u8],
        now: Time,
    ) -> Result<(), Rejected> {
        let keyring = self.keyring.as_ref().ok_or(Rejected::NotAuthentic)?;
        let busy = self.destinations.at_mut(slot).busy.as_mut();
        let sealing = busy.and_then(|busy| busy.sealing.as_mut()).ok_or(Rejected::NotAuthentic)?;
        let answer = sealing.greeting.on_challenge(keyring, header, datagram)?;
        sealing.request = None;
        sealing.unanswered = 0;
        sealing.challenged_at = now;
        match answer {
            Answer::Same => {}
            // The receiver has forgotten the flow, and all that was sealed for it.
            Answer::Keys(_) if sealing.seal.is_some() => self.seal_anew(slot, now),
            Answer::Keys(seal) => {
                sealing.seal = Some(seal);
                self.on_keys(slot, now);
            }
        }
        self.set_timer(slot);
        self.enqueue(slot);
        Ok(())
    }

    /// What was sealed for a receiver that has forgotten it goes to another flow, when that has keys.
    pub(super) fn seal_anew(&mut self, slot: u32, now: Time) {
        self.renew_flow(slot);
        let greeting = Greeting::new(self.salts.salt());
        let destination = self.destinations.at_mut(slot);
        let reliable = destination.reliable;
        let Some(busy) = &mut destination.busy else { return };
        if !reliable {
            busy.flight = None;
        }
        let Some(sealing) = &mut busy.sealing else { return };
        let sealed = sealing.seal.take();
        sealing.old = sealing.old.take().or(sealed).filter(|_| reliable);
        sealing.greeting = greeting;
        sealing.request = Some(KeyRequest::now(now));
        self.set_timer(slot);
    }

    /// There are keys: what was sealed with others is sealed anew.
    fn on_keys(&mut self, slot: u32, now: Time) {
        let destination = self.destinations.at_mut(slot);
        let flow = destination.flow;
        let Some(busy) = &mut destination.busy else { return };
        let Some(mut sealing) = busy.sealing.take() else { return };
        if let (Some(old), Some(new)) = (&mut sealing.old, &mut sealing.seal) {
            let mut first_message = 0;
            let next = self.with_flight(slot, |flight| {
                flight.restart(now, |sequence, count, bytes| {
                    let place = Place { flow, sequence, first_message: first_message as u32 };
                    first_message += u64::from(count);
                    resealed(&bytes, place, old, new)
                })
            });
            let destination = self.destinations.at_mut(slot);
            destination.next_sequence = next.unwrap_or(0);
            destination.next_message = first_message;
            if let Some(busy) = &mut destination.busy {
                busy.parities = None;
            }
        }
        sealing.old = None;
        if let Some(busy) = &mut self.destinations.at_mut(slot).busy {
            busy.sealing = Some(sealing);
        }
    }

    /// Opens an answer in place, and says where its body is.
    pub(crate) fn open_answer(
        &mut self,
        slot: u32,
        header: &Header,
        datagram: &mut [u8],
    ) -> Result<core::ops::Range<usize>, Rejected> {
        let busy = self.destinations.at_mut(slot).busy.as_mut();
        let sealing = busy.and_then(|busy| busy.sealing.as_mut()).ok_or(Rejected::NotAuthentic)?;
        let seal = sealing.seal.as_mut().ok_or(Rejected::NotAuthentic)?;
        let body = seal.open(header, datagram)?;
        sealing.unanswered = 0;
        sealing.request = None;
        self.set_timer(slot);
        Ok(body)
    }

    fn forget_flight(&mut self, slot: u32) {
        if let Some(busy) = &mut self.destinations.at_mut(slot).busy {
            self.held_bytes -= core::mem::take(&mut busy.kept_bytes);
            busy.flight = None;
        }
    }

    /// Returns the keys of the endpoint.
    pub(crate) const fn keyring(&self) -> Option<&Keyring> {
        self.keyring.as_ref()
    }
}

/// Finishes a datagram of the flow's, sealed if the flow is; false if it cannot be.
pub(super) fn seal_or_write(
    sealing: Option<&mut Sealing>,
    header: Header,
    segment: &mut [u8],
) -> bool {
    match sealing {
        Some(sealing) => sealing.seal(header, segment).is_ok(),
        None => {
            header.write(segment);
            true
        }
    }
}

/// Where a datagram stands in its new flow.
#[derive(Clone, Copy)]
struct Place {
    flow: u32,
    sequence: u64,
    first_message: u32,
}

fn resealed(
    datagram: &Bytes,
    place: Place,
    old: &mut FlowSeal,
    new: &mut FlowSeal,
) -> Option<Bytes> {
    let mut bytes = BytesMut::from(&datagram[..]);
    let (header, _) = old.recover(&mut bytes).expect("it was sealed here, with this seal");
    if header.kind == Kind::Parity {
        // It names others by their old numbers.
        return None;
    }
    let Place { flow, sequence, first_message } = place;
    let header =
        Header { flow, sequence, first_message, flags: header.flags & !flags::SEALED, ..header };
    new.seal(header, &mut bytes).expect("the flow is new, and its sequences rise");
    Some(bytes.freeze())
}
