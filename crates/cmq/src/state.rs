//! What the threads of an endpoint share, under one lock that is never held over a system call.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;

use quelea_cmq_proto::{self as proto, Event, Mailbox, Time, limits};

use crate::net::Watcher;
use crate::pending::Pending as _;
use crate::ring::Ring;
use crate::waiting::{Sleeper, Until};

/// The state.
#[derive(Debug)]
pub(crate) struct State {
    pub(crate) proto: proto::Endpoint,
    rings: HashMap<Mailbox, Arc<Ring>>,
    /// For the mailboxes that have none of their own.
    other: Option<Arc<Ring>>,
    /// The last ring that was put into: most deliveries go to the same one as the one before.
    last: Option<(Mailbox, Arc<Ring>)>,
    /// What the application may ask for; when it is full, the state machine keeps and counts them.
    pub(crate) events: VecDeque<Event>,
    /// Who watches the socket.
    pub(crate) watcher: Option<Watcher>,
    /// What the caller that watches it waits for.
    pub(crate) leader_until: Option<Until>,
    /// Threads that wait while another one watches: one of them goes on when that one leaves.
    pub(crate) followers: Vec<Sleeper>,
    /// Waiting for something else than a ring.
    pub(crate) waiting: Vec<(Until, Sleeper)>,
    /// Futures that wait: the thread "cmq-io" watches the socket for them.
    pub(crate) tasks: usize,
    /// To be woken once the lock is free.
    pub(crate) called: Vec<Sleeper>,
    /// The watching caller is to look again.
    pub(crate) leader_called: bool,
    pub(crate) background: Background,
    /// Handles are gone, or closed; the thread "cmq-io" ends when all is settled, or at this time.
    pub(crate) closing: Option<Time>,
    /// Pushes fail, pops end.
    pub(crate) closed: bool,
    numbers: u64,
}

/// What is known of the thread "cmq-io".
#[derive(Debug, Default)]
pub(crate) struct Background {
    /// When it will look again by itself; none while it sleeps without limit.
    pub(crate) looks_at: Option<Time>,
    /// It waits for the socket, not only for the time.
    pub(crate) polls: bool,
    /// It is to look again now.
    pub(crate) called: bool,
    /// Grows whenever a caller sends or receives: as long as it grows, callers serve the socket.
    pub(crate) busy: u64,
}

impl State {
    pub(crate) fn new(proto: proto::Endpoint) -> Self {
        Self {
            proto,
            rings: HashMap::new(),
            other: None,
            last: None,
            events: VecDeque::new(),
            watcher: None,
            leader_until: None,
            followers: Vec::new(),
            waiting: Vec::new(),
            tasks: 0,
            called: Vec::new(),
            leader_called: false,
            background: Background::default(),
            closing: None,
            closed: false,
            numbers: 0,
        }
    }

    pub(crate) fn next_number(&mut self) -> u64 {
        self.numbers += 1;
        self.numbers
    }

    pub(crate) fn open(&mut self, mailbox: Option<Mailbox>) -> Arc<Ring> {
        let ring = Arc::new(Ring::default());
        match mailbox {
            Some(mailbox) => drop(self.rings.insert(mailbox, Arc::clone(&ring))),
            None => self.other = Some(Arc::clone(&ring)),
        }
        self.last = None;
        ring
    }

    pub(crate) fn close(&mut self, mailbox: Option<Mailbox>) {
        let ring = match mailbox {
            Some(mailbox) => self.rings.remove(&mailbox),
            None => self.other.take(),
        };
        self.last = None;
        if let Some(ring) = ring {
            self.end(&ring);
        }
    }

    fn end(&mut self, ring: &Arc<Ring>) {
        self.called.extend(ring.close());
        self.leader_called |=
            matches!(&self.leader_until, Some(Until::Ring(led)) if Arc::ptr_eq(led, ring));
    }

    /// Ends all that waits.
    pub(crate) fn close_all(&mut self) {
        self.closed = true;
        let rings: Vec<_> = self.rings.values().chain(&self.other).cloned().collect();
        for ring in rings {
            self.end(&ring);
        }
        self.called.extend(self.waiting.drain(..).map(|(_, sleeper)| sleeper));
        self.leader_called = true;
        self.background.called = true;
    }

    /// Moves what the state machine has for the application to where it waits for it.
    pub(crate) fn deliver(&mut self) {
        while let Some(delivery) = self.proto.poll_delivery() {
            let Some(ring) = self.ring_of(delivery.mailbox) else { continue };
            if let Some(Until::Ring(led)) = &self.leader_until {
                self.leader_called |= Arc::ptr_eq(led, &ring);
            }
            self.called.extend(ring.put(delivery));
        }
        while self.events.len() < limits::EVENTS_MAX
            && let Some(event) = self.proto.poll_event()
        {
            self.events.push_back(event);
        }
        self.check();
    }

    /// Calls whoever waits for something else than a delivery, if it has come.
    pub(crate) fn check(&mut self) {
        if !self.waiting.is_empty() {
            self.call_ready();
        }
        let leader_ready = match &self.leader_until {
            None | Some(Until::Ring(_)) => false,
            Some(until) => self.is_ready(until),
        };
        self.leader_called |= leader_ready;
    }

    fn ring_of(&mut self, mailbox: Mailbox) -> Option<Arc<Ring>> {
        if let Some((last, ring)) = &self.last
            && *last == mailbox
        {
            return Some(Arc::clone(ring));
        }
        let ring = Arc::clone(self.rings.get(&mailbox).or(self.other.as_ref())?);
        self.last = Some((mailbox, Arc::clone(&ring)));
        Some(ring)
    }

    fn call_ready(&mut self) {
        let mut at = 0;
        while at < self.waiting.len() {
            if self.is_ready(&self.waiting[at].0) {
                let (_, sleeper) = self.waiting.swap_remove(at);
                self.called.push(sleeper);
            } else {
                at += 1;
            }
        }
    }

    /// Whether waiting has an end.
    pub(crate) fn is_ready(&self, until: &Until) -> bool {
        match until {
            Until::Ring(ring) => ring.is_ready(),
            Until::Writable(id) => self.closed || self.proto.writable(*id),
            Until::Settled(id) => self.closed || self.proto.is_settled(*id),
            Until::AllSettled => self.closed || self.proto.all_settled(),
            Until::Event => self.closed || !self.events.is_empty(),
        }
    }

    /// Has `sleeper` woken when waiting has an end.
    pub(crate) fn sleep(&mut self, until: &Until, sleeper: Sleeper) {
        match until {
            Until::Ring(ring) => ring.sleep(sleeper),
            other => self.waiting.push((other.clone(), sleeper)),
        }
    }

    /// It does not wait any more, woken or not; says whether it was still asleep.
    pub(crate) fn leave(&mut self, until: &Until, number: u64) -> bool {
        if let Until::Ring(ring) = until {
            return ring.leave(number);
        }
        let before = self.waiting.len();
        self.waiting.retain(|(_, sleeper)| sleeper.number != number);
        self.waiting.len() < before
    }

    /// There is more than one needs: the next one may have it.
    pub(crate) fn call_next(&mut self, until: &Until, messages: u32) {
        if let Until::Ring(ring) = until {
            self.called.extend(ring.next_sleeper(messages));
        }
    }
}
