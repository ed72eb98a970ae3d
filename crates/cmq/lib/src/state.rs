//! What the threads of an endpoint share, under one lock that is never held over a system call.

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::sync::Arc;
use std::task::Waker;
use std::thread::ThreadId;

use quelea_cmq_proto::{self as proto, Event, Mailbox, Time, limits};

use crate::net::Watcher;
use crate::replies::Replies;
use crate::ring::Ring;
use crate::waiting::{Sleeper, Until, Who};

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
    /// Who watches the socket.
    pub(crate) watcher: Option<Watcher>,
    /// What the caller that watches it waits for.
    pub(crate) leader_until: Option<Until>,
    /// Which thread that is: it looks again by itself after all that it does.
    pub(crate) leader_thread: Option<ThreadId>,
    /// Threads that wait while another one watches: one of them goes on when that one leaves.
    pub(crate) followers: Vec<Sleeper>,
    /// Waiting for something else than a ring.
    pub(crate) waiting: Vec<(Until, Sleeper)>,
    /// Futures that wait: the thread "cmq-io" watches the socket for them.
    pub(crate) tasks: usize,
    /// When futures are to be woken though nothing came.
    pub(crate) alarms: BTreeMap<(Time, u64), Waker>,
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

/// Where a mailbox's deliveries go.
#[derive(Clone, Debug)]
pub(crate) enum Sink {
    /// To a queue.
    Ring(Arc<Ring>),
    /// To those who asked for them.
    Replies(Arc<Replies>),
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
            sinks: HashMap::new(),
            other: None,
            last: None,
            events: VecDeque::new(),
            watcher: None,
            leader_until: None,
            leader_thread: None,
            followers: Vec::new(),
            waiting: Vec::new(),
            tasks: 0,
            alarms: BTreeMap::new(),
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

    pub(crate) fn open(&mut self, mailbox: Option<Mailbox>, sink: Sink) {
        match mailbox {
            Some(mailbox) => drop(self.sinks.insert(mailbox, sink)),
            None => self.other = Some(sink),
        }
        self.last = None;
    }

    pub(crate) fn close(&mut self, mailbox: Option<Mailbox>) {
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
        match sink {
            Sink::Ring(ring) => self.called.extend(ring.close()),
            Sink::Replies(replies) => self.called.extend(replies.close()),
        }
        self.leader_called = true;
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
        self.called.extend(self.waiting.drain(..).map(|(_, sleeper)| sleeper));
        self.leader_called = true;
        self.background.called = true;
    }

    /// Whether somebody is to be called, or something to be sent.
    pub(crate) fn has_work(&self) -> bool {
        !self.called.is_empty() || self.leader_called || self.proto.has_transmit()
    }

    /// Moves what the state machine has for the application to where it waits for it.
    pub(crate) fn deliver(&mut self, now: Time) {
        while let Some(delivery) = self.proto.poll_delivery() {
            match self.sink_of(delivery.mailbox) {
                Some(Sink::Ring(ring)) => {
                    if let Some(Until::Ring(led)) = &self.leader_until {
                        self.leader_called |= Arc::ptr_eq(led, &ring);
                    }
                    self.called.extend(ring.put(delivery));
                }
                Some(Sink::Replies(replies)) => {
                    let token = delivery.token;
                    replies.put(delivery, &mut self.called);
                    self.proto.popped(token, now);
                }
                // Closed a moment ago: nobody has seen it, and it is not acknowledged.
                None => {}
            }
        }
        self.collect_events();
        self.check();
    }

    /// Takes the state machine's events, as far as there is room for them.
    pub(crate) fn collect_events(&mut self) {
        while self.events.len() < limits::EVENTS_MAX
            && let Some(event) = self.proto.poll_event()
        {
            self.events.push_back(event);
        }
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

    /// Calls the futures whose time has come.
    pub(crate) fn ring_alarms(&mut self, now: Time) {
        while let Some(first) = self.alarms.first_entry()
            && first.key().0 <= now
        {
            let ((_, number), waker) = first.remove_entry();
            self.called.push(Sleeper { number, who: Who::Task(waker) });
        }
    }

    /// When something is due.
    pub(crate) fn next_deadline(&self) -> Option<Time> {
        let alarm = self.alarms.first_key_value().map(|((time, _), _)| *time);
        [self.proto.next_deadline(), alarm].into_iter().flatten().min()
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
            Until::Reply(slot) => slot.is_ready(),
            Until::Writable(id, bytes) => self.closed || self.proto.writable(*id, *bytes),
            Until::Settled(id) => self.closed || self.proto.is_settled(*id),
            Until::AllSettled => self.closed || self.proto.all_settled(),
            Until::Proven(before) => self.closed || self.proto.stats().received.proven > *before,
            Until::Event => self.closed || !self.events.is_empty(),
        }
    }

    /// Has `sleeper` woken when waiting has an end.
    pub(crate) fn sleep(&mut self, until: &Until, sleeper: Sleeper) {
        match until {
            Until::Ring(ring) => ring.sleep(sleeper),
            Until::Reply(slot) => slot.sleep(sleeper),
            other => self.waiting.push((other.clone(), sleeper)),
        }
    }

    /// It does not wait any more, woken or not; says whether it was still asleep.
    pub(crate) fn leave(&mut self, until: &Until, number: u64) -> bool {
        match until {
            Until::Ring(ring) => return ring.leave(number),
            Until::Reply(slot) => return slot.leave(),
            _ => {}
        }
        let before = self.waiting.len();
        self.waiting.retain(|(_, sleeper)| sleeper.number != number);
        self.waiting.len() < before
    }

    /// A delivery is in the ring again: who fell asleep while it was away is called.
    pub(crate) fn call_back(&mut self, ring: &Arc<Ring>) {
        let led = self.leader_until.as_ref();
        self.leader_called |=
            led.is_some_and(|until| matches!(until, Until::Ring(led) if Arc::ptr_eq(led, ring)));
        self.called.extend(ring.next_sleeper(0));
    }

    /// There is more than one needs: the next one may have it.
    pub(crate) fn call_next(&mut self, until: &Until, messages: u32) {
        if let Until::Ring(ring) = until {
            self.called.extend(ring.next_sleeper(messages));
        }
    }
}
