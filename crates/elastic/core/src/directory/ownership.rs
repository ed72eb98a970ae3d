//! Which queues are this directory's: claiming, taking over, losing, defining and deleting them.

use std::collections::VecDeque;
use std::sync::Arc;

use quelea_elastic_proto::frame::{ErrorCode, Frame};
use quelea_elastic_proto::limits::{ADDRESS_BYTES_MAX, DIRECTORIES_MAX};
use quelea_elastic_proto::{Fence, Time};

use crate::directory::limits::{ANNOUNCED_AT_ONCE_MAX, QUEUES_MAX, WAITING_PER_QUEUE_MAX};
use crate::directory::queue::record::Record;
use crate::directory::queue::{FirstUse, Queue};
use crate::directory::{
    Address, Connection, Definition, Directory, Effect, Peer, RelayHandle, SaveError,
};

/// Where the owner is not known, clients ask again after this.
const RETRY_MS: u32 = 500;
/// A client that waits so long for a claim is redirected: this directory alone may be cut off from the store. Well below
/// `absent_ms`, for which a new owner elsewhere waits for the listeners.
const CLAIM_WAIT_MS_MAX: u64 = 1_000;

/// A queue that this directory has to do with.
pub(super) enum QueueEntry {
    /// It was asked for; whose it is, is not known yet.
    Claiming(Claim),
    /// It is this directory's.
    Owned(Box<Queue>),
}

/// What waits until it is known whose the queue is.
#[derive(Default)]
pub(super) struct Claim {
    /// Frames of clients and relays, in the order in which they came.
    frames: VecDeque<(Peer, Frame)>,
    /// When they are sent on, if any waits.
    redirect_at: Option<Time>,
    /// Boxed: few claims have one, and it is most of what they would take.
    definition: Option<Box<Definition>>,
    /// It is deleted before it is defined.
    delete: bool,
}

impl Claim {
    /// Returns whether somebody wants the queue to be made if it is not known. A relay does not:
    /// its queue was deleted while it could not be reached.
    fn wants_creation(&self) -> bool {
        let wants = |(_, frame): &(Peer, Frame)| !matches!(frame, Frame::Register(_));
        self.definition.is_some() || self.delete || self.frames.iter().any(wants)
    }
}

impl Claim {
    /// Returns whether only its use makes the queue.
    const fn is_first_use(&self) -> bool {
        self.definition.is_none() && !self.delete
    }

    /// Returns the clients that wait for it.
    fn users(&self) -> impl Iterator<Item = Peer> {
        let users = self.frames.iter().filter(|(_, frame)| !matches!(frame, Frame::Register(_)));
        users.map(|(peer, _)| *peer)
    }
}

/// Who makes a queue by using it.
#[derive(Clone, Copy, PartialEq, Eq)]
enum FirstUser {
    /// It is not made so, or those who wanted it are gone.
    Nobody,
    /// This connection from this address.
    Maker(Peer, Address),
    /// None of those who want it may, and they know why.
    Refused,
}

impl Directory {
    /// Chooses which of those who wait for a queue makes it, if it is new: the first one that may.
    /// If none may, they are refused.
    fn first_user(&mut self, now: Time, claiming: &Claim, is_new: bool) -> FirstUser {
        if !is_new || !claiming.is_first_use() {
            return FirstUser::Nobody;
        }
        let mut refused = None;
        for peer in claiming.users() {
            let Some(Connection { address, .. }) = self.connections.get(&peer) else { continue };
            match self.first_uses.refusal(peer, *address, &self.settings.first_use) {
                None => return FirstUser::Maker(peer, *address),
                refusal => refused = refusal,
            }
        }
        let Some(text) = refused else { return FirstUser::Nobody };
        let mut cx = self.context(now);
        for peer in claiming.users() {
            cx.refuse(peer, ErrorCode::Limit, "queue", text.clone());
        }
        FirstUser::Refused
    }

    /// A frame that needs an owned queue: it is handled, or waits for the claim.
    pub(super) fn with_queue(&mut self, now: Time, name: &str, peer: Peer, frame: Frame) {
        if matches!(self.queues.get(name), Some(QueueEntry::Owned(_))) {
            self.queue_received(now, name, peer, frame);
            return;
        }
        let Some(claiming) = self.claiming(name) else {
            let text = format!("this directory knows {QUEUES_MAX} queues, the most it can");
            self.context(now).refuse(peer, ErrorCode::Limit, "queue", text);
            return;
        };
        if claiming.frames.len() >= WAITING_PER_QUEUE_MAX {
            let text = format!(
                "queue {name} is being claimed, and {WAITING_PER_QUEUE_MAX} frames wait for it"
            );
            self.context(now).refuse(peer, ErrorCode::Unavailable, "queue", text);
            return;
        }
        claiming.frames.push_back((peer, frame));
        if claiming.redirect_at.is_none() {
            let at = now.plus_ms(CLAIM_WAIT_MS_MAX);
            claiming.redirect_at = Some(at);
            self.deadlines.insert((at, name.to_owned()));
        }
    }

    /// Returns the queue's claim, with what waits for it; begins one if there is none. `None` if
    /// there are too many queues.
    fn claiming(&mut self, name: &str) -> Option<&mut Claim> {
        if !self.queues.contains_key(name) {
            if self.queues.len() >= QUEUES_MAX {
                return None;
            }
            self.queues.insert(name.to_owned(), QueueEntry::Claiming(Claim::default()));
            self.effects.push_back(Effect::Claim { queue: name.to_owned() });
        }
        match self.queues.get_mut(name) {
            Some(QueueEntry::Claiming(claiming)) => Some(claiming),
            _ => None,
        }
    }

    /// Takes away what waits until the queue is owned here. `None`: it is already, and has this
    /// fence now if it is higher.
    fn take_claim(&mut self, now: Time, name: &str, fence: Fence) -> Option<Claim> {
        let claiming = match self.queues.remove(name) {
            Some(QueueEntry::Owned(queue)) => {
                let lower = fence <= queue.fence;
                self.queues.insert(name.to_owned(), QueueEntry::Owned(queue));
                if !lower {
                    self.step(now, name, |queue, cx| queue.renew(cx, fence));
                }
                return None;
            }
            Some(QueueEntry::Claiming(claiming)) => claiming,
            None => Claim::default(),
        };
        if let Some(at) = claiming.redirect_at {
            self.deadlines.remove(&(at, name.to_owned()));
        }
        Some(claiming)
    }

    /// The queue is this directory's from now on.
    pub(super) fn owned(
        &mut self,
        now: Time,
        name: String,
        fence: Fence,
        record: Option<&[u8]>,
        running: &[RelayHandle],
    ) {
        let Some(claiming) = self.take_claim(now, &name, fence) else { return };
        let first_user = self.first_user(now, &claiming, record.is_none());
        let first_relay = self.first_relay;
        let mut cx = self.context(now);
        let mut queue = Queue::new(&cx, name.clone(), fence, first_relay);
        match record.map(Record::parse).transpose() {
            Ok(Some(record)) => queue.restore(&cx, record),
            Ok(None) if claiming.wants_creation() && first_user != FirstUser::Refused => {
                queue.first_use = claiming.is_first_use().then(FirstUse::default);
                queue.change();
            }
            Ok(None) => {
                queue.refuse_unknown(&mut cx, claiming.frames, running);
                self.unlink_queue(&name);
                return;
            }
            Err(error) => {
                // Not this directory's to overwrite, nor to start relays for.
                let text = format!("the record of queue {name} cannot be used: {error}");
                for (peer, _) in claiming.frames {
                    cx.refuse(peer, ErrorCode::Unavailable, "queue", text.clone());
                }
                return;
            }
        }
        queue.adopt(&mut cx, running);
        queue.resume(&mut cx);
        let (recorded, running) = (queue.relays.len(), running.len());
        let reason =
            format!("fence {}, {recorded} relays in the record, {running} running", fence.0);
        queue.log(&mut cx, "own", format!("queue {name}"), reason);
        queue.scheduled_at = queue.deadline();
        self.deadlines.insert((queue.scheduled_at, name.clone()));
        if let FirstUser::Maker(peer, address) = first_user {
            self.first_uses.made(&name, peer, address);
        }
        self.relays += queue.relays.len();
        self.queues.insert(name.clone(), QueueEntry::Owned(Box::new(queue)));
        if claiming.delete {
            self.step(now, &name, Queue::delete);
        }
        if let Some(definition) = claiming.definition {
            self.step(now, &name, |queue, cx| queue.define(cx, *definition));
        }
        for (peer, frame) in claiming.frames {
            if self.connections.contains_key(&peer) {
                self.queue_received(now, &name, peer, frame);
            }
        }
        self.step(now, &name, Queue::tick);
    }

    /// The queue is not this directory's (any more).
    pub(super) fn disowned(&mut self, now: Time, name: &str, owner: Option<&str>) {
        let known = self.queues.remove(name);
        let address = owner.unwrap_or_default();
        let retry_after_ms = if owner.is_some() { 0 } else { RETRY_MS };
        let mut cx = self.context(now);
        match known {
            Some(QueueEntry::Owned(queue)) => {
                queue.redirect_all(&mut cx, address, retry_after_ms);
                self.relays -= queue.relays.len();
                self.first_uses.forget(name);
                self.deadlines.remove(&(queue.scheduled_at, name.to_owned()));
            }
            Some(QueueEntry::Claiming(claiming)) => {
                for (peer, _) in claiming.frames {
                    let (queue, address) = (name.to_owned(), address.to_owned());
                    cx.send(peer, Frame::Redirect { queue, address, retry_after_ms });
                }
                if let Some(at) = claiming.redirect_at {
                    self.deadlines.remove(&(at, name.to_owned()));
                }
            }
            None => {}
        }
        self.unlink_queue(name);
    }

    /// The store has not said in time whose it is: those that wait are sent to ask again, here or at another directory,
    /// which may reach it. What an operator asked for stays, and so does the claim.
    pub(super) fn redirect_waiting(&mut self, now: Time, name: &str) {
        let Some(QueueEntry::Claiming(claiming)) = self.queues.get_mut(name) else { return };
        if let Some(at) = claiming.redirect_at.take() {
            self.deadlines.remove(&(at, name.to_owned()));
        }
        let frames = std::mem::take(&mut claiming.frames);
        let mut cx = self.context(now);
        for (peer, _) in frames {
            let (queue, address) = (name.to_owned(), String::new());
            cx.send(peer, Frame::Redirect { queue, address, retry_after_ms: RETRY_MS });
        }
        self.unlink_queue(name);
    }

    /// Other directories than before. Relays and clients get at most [`DIRECTORIES_MAX`], and none whose address
    /// no frame can hold: it would keep all the others from them.
    pub(super) fn directories_changed(&mut self, now: Time, mut directories: Vec<String>) {
        directories.retain(|address| (1..=ADDRESS_BYTES_MAX).contains(&address.len()));
        directories.truncate(DIRECTORIES_MAX);
        if *self.directories == *directories {
            return;
        }
        self.directories = directories.into();
        self.announcing = Some(Peer(0));
        self.announce_directories(now);
    }

    /// Announces the directories that there are to some connections, and to the others at the next tick.
    pub(super) fn announce_directories(&mut self, now: Time) {
        let Some(from) = self.announcing.take() else { return };
        let mut peers: Vec<Peer> = self
            .connections
            .range(from..)
            .take(ANNOUNCED_AT_ONCE_MAX + 1)
            .map(|(peer, _)| *peer)
            .collect();
        self.announcing = peers.get(ANNOUNCED_AT_ONCE_MAX).copied();
        peers.truncate(ANNOUNCED_AT_ONCE_MAX);
        for peer in peers {
            let frame = Frame::Directories(Arc::clone(&self.directories));
            self.context(now).send(peer, frame);
        }
    }

    pub(super) fn saved(
        &mut self,
        now: Time,
        name: &str,
        save: u64,
        result: Result<(), SaveError>,
    ) {
        let holds = self.step(now, name, |queue, cx| queue.saved(cx, save, result));
        if holds == Some(false) {
            // Another one owns it. Which one, the next claim will show.
            self.disowned(now, name, None);
        }
    }

    pub(super) fn define(&mut self, now: Time, name: String, definition: Definition) {
        if self.step(now, &name, |queue, cx| queue.define(cx, definition.clone())).is_none()
            && let Some(claiming) = self.claiming(&name)
        {
            claiming.definition = Some(Box::new(definition));
        }
    }

    pub(super) fn delete(&mut self, now: Time, name: String) {
        if self.step(now, &name, Queue::delete).is_none()
            && let Some(claiming) = self.claiming(&name)
        {
            (claiming.delete, claiming.definition) = (true, None);
        }
    }

    /// A deleted queue's record is removed.
    pub(super) fn remove(&mut self, name: &str) {
        if let Some(QueueEntry::Owned(queue)) = self.queues.remove(name) {
            self.relays -= queue.relays.len();
            self.first_relay = self.first_relay.max(queue.next_relay);
            self.deadlines.remove(&(queue.scheduled_at, name.to_owned()));
        }
        self.unlink_queue(name);
    }

    /// A connection that ended has nothing waiting any more.
    pub(super) fn forget_waiting(&mut self, name: &str, peer: Peer) {
        if let Some(QueueEntry::Claiming(claiming)) = self.queues.get_mut(name) {
            claiming.frames.retain(|(waiting, _)| *waiting != peer);
        }
    }

    fn unlink_queue(&mut self, name: &str) {
        for connection in self.connections.values_mut() {
            connection.queues.remove(name);
            if connection.relay.as_ref().is_some_and(|(queue, _)| queue == name) {
                connection.relay = None;
            }
        }
    }
}
