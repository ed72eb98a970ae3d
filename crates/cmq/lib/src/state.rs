//! What the threads of an endpoint share, under one lock that is never held over a system call.

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::sync::Arc;
use std::task::Waker;

use quelea_cmq_proto::endpoint::DeliveryToken;
use quelea_cmq_proto::{self as proto, Event, Mailbox, Time, limits};

use crate::leadership::Leadership;
use crate::replies::Replies;
use crate::ring::Ring;
use crate::until::Until;
use crate::waiter::{Handle, Waiter};

/// The state.
#[derive(Debug)]
pub(crate) struct State {
    pub(crate) proto: proto::Endpoint,
    sinks: HashMap<Mailbox, Sink>,
    /// For the mailboxes that have none of their own.
    other: Option<Sink>,
    /// The last one that was put into: most deliveries go to the same one as the one before.
    last: Option<(Mailbox, Sink)>,
    /// What the application may ask for; when it is full, the state machine keeps and counts them.
    pub(crate) events: VecDeque<Event>,
    /// Who reads the socket, and who is to be woken.
    pub(crate) leadership: Leadership,
    /// Waiting for something else than a ring.
    waiting: Vec<(Until, Waiter)>,
    /// When futures are to be woken though nothing came.
    pub(crate) alarms: BTreeMap<(Time, u64), Waker>,
    /// Handles are gone, or closed; the thread "cmq-io" ends when all is settled, or at this time.
    pub(crate) closing: Option<Time>,
    /// Pushes fail, pops end.
    pub(crate) closed: bool,
    /// Multicast groups that were joined.
    groups: usize,
    numbers: u64,
}

/// Where a mailbox's deliveries go.
#[derive(Clone, Debug)]
pub(crate) enum Sink {
    /// To a queue.
    Ring(Arc<Ring>),
    /// To those who asked for them.
    Replies(Arc<Replies>),
}

impl State {
    pub(crate) fn new(proto: proto::Endpoint) -> Self {
        Self {
            proto,
            sinks: HashMap::new(),
            other: None,
            last: None,
            events: VecDeque::new(),
            leadership: Leadership::default(),
            waiting: Vec::new(),
            alarms: BTreeMap::new(),
            closing: None,
            closed: false,
            groups: 0,
            numbers: 0,
        }
    }

    pub(crate) fn next_number(&mut self) -> u64 {
        self.numbers += 1;
        self.numbers
    }

    pub(crate) const fn join_group(&mut self) {
        self.groups += 1;
        self.proto.set_in_group(true);
    }

    pub(crate) const fn leave_group(&mut self) {
        self.groups = self.groups.saturating_sub(1);
        self.proto.set_in_group(self.groups > 0);
    }

    /// Has deliveries to `mailbox`, or to those without a sink of their own, put into `sink`.
    pub(crate) fn open_sink(&mut self, mailbox: Option<Mailbox>, sink: Sink) {
        match mailbox {
            Some(mailbox) => drop(self.sinks.insert(mailbox, sink)),
            None => self.other = Some(sink),
        }
        self.last = None;
    }

    /// Ends what [`open_sink`](Self::open_sink) began.
    pub(crate) fn close_sink(&mut self, mailbox: Option<Mailbox>) {
        let sink = match mailbox {
            Some(mailbox) => self.sinks.remove(&mailbox),
            None => self.other.take(),
        };
        self.last = None;
        if let Some(sink) = sink {
            self.end(&sink);
        }
    }

    fn end(&mut self, sink: &Sink) {
        let waiters = match sink {
            Sink::Ring(ring) => ring.close(),
            Sink::Replies(replies) => replies.close(),
        };
        self.leadership.wake(waiters);
        self.leadership.wake_leader();
    }

    pub(crate) const fn has_other(&self) -> bool {
        self.other.is_some()
    }

    /// Ends all that waits.
    pub(crate) fn close_all(&mut self) {
        self.closed = true;
        let sinks: Vec<_> = self.sinks.values().chain(&self.other).cloned().collect();
        for sink in sinks {
            self.end(&sink);
        }
        self.leadership.wake(self.waiting.drain(..).map(|(_, waiter)| waiter));
        self.leadership.wake_leader();
        self.leadership.background.wake();
    }

    /// Takes what was popped of all queues and is not reported to the state machine yet.
    pub(crate) fn take_done(&self) -> Vec<DeliveryToken> {
        let sinks = self.sinks.values().chain(&self.other);
        let rings = sinks.filter_map(|sink| match sink {
            Sink::Ring(ring) => Some(ring.take_done()),
            Sink::Replies(_) => None,
        });
        rings.flatten().collect()
    }

    /// Returns whether somebody is to be woken, or something to be sent.
    pub(crate) fn has_work(&self) -> bool {
        self.leadership.has_wakeups() || self.proto.has_transmit()
    }

    /// Has the state machine do what is due.
    pub(crate) fn drive_timers(&mut self, now: Time) {
        if self.proto.next_deadline().is_some_and(|due| due <= now) {
            self.proto.on_timer(now);
            self.deliver(now);
        }
    }

    /// Moves what the state machine has for the application to where it waits for it.
    pub(crate) fn deliver(&mut self, now: Time) {
        while let Some(delivery) = self.proto.poll_delivery() {
            match self.sink_of(delivery.mailbox) {
                Some(Sink::Ring(ring)) => {
                    self.leadership.wake_leader_of(&ring);
                    self.leadership.wake(ring.put(delivery));
                }
                Some(Sink::Replies(replies)) => {
                    let token = delivery.token;
                    replies.put(delivery, |waiter| self.leadership.wake([waiter]));
                    self.proto.popped(token, now);
                }
                // Closed a moment ago: nobody has seen it, and it is not acknowledged.
                None => {}
            }
        }
        self.collect_events();
        self.wake_ready();
    }

    /// Takes the state machine's events, as far as there is room for them.
    pub(crate) fn collect_events(&mut self) {
        while self.events.len() < limits::EVENTS_MAX
            && let Some(event) = self.proto.poll_event()
        {
            self.events.push_back(event);
        }
    }

    /// Wakes the waiters for something else than a delivery, if it has come.
    pub(crate) fn wake_ready(&mut self) {
        let mut at = 0;
        while at < self.waiting.len() {
            if self.is_ready(&self.waiting[at].0) {
                let (_, waiter) = self.waiting.swap_remove(at);
                self.leadership.wake([waiter]);
            } else {
                at += 1;
            }
        }
        let leader_ready = match self.leadership.leader_until() {
            None | Some(Until::Ring(_)) => false,
            Some(until) => self.is_ready(until),
        };
        if leader_ready {
            self.leadership.wake_leader();
        }
    }

    fn sink_of(&mut self, mailbox: Mailbox) -> Option<Sink> {
        if let Some((last, sink)) = &self.last
            && *last == mailbox
        {
            return Some(sink.clone());
        }
        let sink = self.sinks.get(&mailbox).or(self.other.as_ref())?.clone();
        self.last = Some((mailbox, sink.clone()));
        Some(sink)
    }

    /// Wakes the futures whose time has come.
    pub(crate) fn fire_alarms(&mut self, now: Time) {
        while let Some(first) = self.alarms.first_entry()
            && first.key().0 <= now
        {
            let ((_, number), waker) = first.remove_entry();
            self.leadership.wake([Waiter { number, handle: Handle::Task(waker) }]);
        }
    }

    /// Returns when something is due.
    pub(crate) fn next_deadline(&self) -> Option<Time> {
        let alarm = self.alarms.first_key_value().map(|((time, _), _)| *time);
        [self.proto.next_deadline(), alarm].into_iter().flatten().min()
    }

    /// Returns whether waiting for `until` has an end.
    pub(crate) fn is_ready(&self, until: &Until) -> bool {
        match until {
            Until::Ring(ring) => ring.is_ready(),
            Until::Reply(slot) => slot.is_ready(),
            Until::Writable(id, bytes) => self.closed || self.proto.writable(*id, *bytes),
            Until::Settled(id) => self.closed || self.proto.is_settled(*id),
            Until::AllSettled => self.closed || self.proto.all_settled(),
            Until::Proven(before) => self.closed || self.proto.stats().received.proven > *before,
            Until::Event => self.closed || !self.events.is_empty(),
        }
    }

    /// Has `waiter` woken when waiting has an end.
    pub(crate) fn add_waiter(&mut self, until: &Until, waiter: Waiter) {
        match until {
            Until::Ring(ring) => ring.add_waiter(waiter),
            Until::Reply(slot) => slot.set_waiter(waiter),
            other => self.waiting.push((other.clone(), waiter)),
        }
    }

    /// Removes a waiter, woken or not: it does not wait any more. Returns whether it had not been
    /// woken.
    pub(crate) fn remove_waiter(&mut self, until: &Until, number: u64) -> bool {
        match until {
            Until::Ring(ring) => return ring.remove_waiter(number),
            Until::Reply(slot) => return slot.remove_waiter(),
            _ => {}
        }
        let before = self.waiting.len();
        self.waiting.retain(|(_, waiter)| waiter.number != number);
        self.waiting.len() < before
    }

    /// A delivery is in the ring again: who began to wait while it was away is woken.
    pub(crate) fn wake_for_put_back(&mut self, ring: &Arc<Ring>) {
        self.leadership.wake_leader_of(ring);
        self.leadership.wake(ring.next_waiter(0));
    }

    /// There is more than one needs: the next one may have it.
    pub(crate) fn wake_next(&mut self, until: &Until, messages: u32) {
        if let Until::Ring(ring) = until {
            self.leadership.wake(ring.next_waiter(messages));
        }
    }
}
