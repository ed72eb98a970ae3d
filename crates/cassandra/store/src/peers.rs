//! The other front-ends: who is alive, who polls what, who takes which entries, and what is sent to them. All of these are
//! hints: a front-end that hears nothing serves every queue all the same. Only how long it goes by what it has read of a queue depends
//! on what it hears (`peers/peer_changes.rs`).

pub(crate) mod alive;
pub(crate) mod claims;
pub(crate) mod datagram;
pub(crate) mod front_end_table;
pub(crate) mod heartbeat;
pub(crate) mod heartbeat_timestamps;
pub(crate) mod interest;
pub(crate) mod internal_address;
pub(crate) mod notices;
pub(crate) mod peer_changes;
pub(crate) mod peer_socket;
pub(crate) mod rendezvous;

use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;

use quelea_sqs_protocol::QueueRef;
use tokio::sync::{Notify, Semaphore, SemaphorePermit};
use tokio::time::{Instant, timeout};
use uuid::Uuid;

use crate::bucket::{Bucket, Writers};
use crate::entry::Entry;
use crate::limits::{
    BUCKETS_AGE_HEARD_MS_MAX, BUCKETS_AGE_MS_MAX, CHANGES_AT_ONCE, INTERESTED_MAX, NOTED_MS_MAX,
    NUDGED_MAX,
};
use crate::peers::alive::{Alive, FrontEnd, FrontEndView};
use crate::peers::claims::{ClaimOutcome, Claims, Settled};
use crate::peers::datagram::{Claim, Datagram, EntryName, PeerMessage, THINGS_MAX};
use crate::peers::interest::{Interest, SAID_EVERY, some_of};
use crate::peers::notices::Notices;
use crate::peers::peer_changes::PeerChanges;
use crate::peers::peer_socket::PeerSocket;
use crate::peers::rendezvous::owner;
use crate::standard::order_hint::Others;

/// What another front-end has said that a queue has to know.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum PeerEvent {
    /// Something that can be received at once was put into that bucket.
    Stored(Bucket),
    /// A message was delivered here and there.
    Duplicate,
    /// An entry was put into these buckets, the first one of that front-end.
    Listed(Vec<Bucket>),
    /// What is remembered of that queue does not hold any more.
    Changed(QueueRef),
}

/// Datagrams that are taken in before whoever does so goes on with its own work.
const HEARD_AT_ONCE: usize = 1_000;

/// After so long the others know of a queue that it is polled here: it was said at least twice before.
const KNOWN_AFTER: Duration = SAID_EVERY.saturating_mul(2);

/// What this front-end knows of the others.
pub(crate) struct Peers {
    pub(crate) id: Uuid,
    /// Whether entries that others take are left to them.
    pub(crate) claims_are_heeded: bool,
    alive: Mutex<Alive>,
    front_ends: AtomicUsize,
    know_shards: AtomicBool,
    interest: Mutex<Interest>,
    claims: Mutex<Claims>,
    notices: Notices,
    /// Those of queues that may be under way here.
    changes: Semaphore,
    peer_changes: Arc<PeerChanges>,
    socket: OnceLock<Arc<dyn PeerSocket>>,
    /// Somebody has spoken who is not known.
    pub(crate) stranger: Notify,
    counts: Counts,
}

#[derive(Debug, Default)]
struct Counts {
    datagrams_sent: AtomicU64,
    datagrams_heard: AtomicU64,
    datagrams_unreadable: AtomicU64,
    nudges_sent: AtomicU64,
    nudges_heard: AtomicU64,
    entries_claimed: AtomicU64,
    entries_yielded: AtomicU64,
    duplicates_seen: AtomicU64,
}

/// What a front-end had to do with the others so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PeerStats {
    /// Front-ends that are alive, this one included.
    pub front_ends: u64,
    /// Whether all others are heard, so that no change of a queue by one of them is missed.
    pub hears_all: bool,
    /// Datagrams that were sent to others.
    pub datagrams_sent: u64,
    /// Those that came from others.
    pub datagrams_heard: u64,
    /// Those of them that no version known here makes.
    pub datagrams_unreadable: u64,
    /// Nudges about new messages that were sent, one for each front-end that got it.
    pub nudges_sent: u64,
    /// Nudges about queues that are polled here.
    pub nudges_heard: u64,
    /// Entries that were chosen here.
    pub entries_claimed: u64,
    /// Those of them that were left to another front-end, which had chosen them at the same time.
    pub entries_yielded: u64,
    /// Messages that were delivered here and by another front-end, as far as that was noticed.
    pub duplicates_seen: u64,
}

impl Peers {
    pub(crate) fn new(id: Uuid, claims_are_heeded: bool) -> Self {
        Self {
            id,
            claims_are_heeded,
            alive: Mutex::new(Alive::new(id)),
            front_ends: AtomicUsize::new(1),
            // Until it is known who else there is.
            know_shards: AtomicBool::new(false),
            interest: Mutex::default(),
            claims: Mutex::new(Claims::new(id)),
            notices: Notices::default(),
            changes: Semaphore::new(CHANGES_AT_ONCE),
            peer_changes: Arc::default(),
            socket: OnceLock::new(),
            stranger: Notify::new(),
            counts: Counts::default(),
        }
    }

    /// Begins to speak with the others. `false`: it does already.
    pub(crate) fn set_socket(&self, socket: Arc<dyn PeerSocket>) -> bool {
        let is_first = self.socket.set(socket).is_ok();
        self.peer_changes.begin();
        is_first
    }

    /// Returns how much of what the others announce arrives here.
    pub(crate) fn peer_changes(&self) -> Arc<PeerChanges> {
        self.peer_changes.clone()
    }

    /// Returns where the others reach this front-end.
    pub(crate) fn address(&self) -> Option<SocketAddr> {
        self.socket.get().map(|socket| socket.address())
    }

    // -- who is there -------------------------------------------------------------------------

    /// These rows are there, which were asked for at that time; newcomers are greeted, so that they know whom to ask Cassandra for.
    pub(crate) fn observe(&self, rows: Vec<FrontEnd>, asked_at: Instant) {
        let now = Instant::now();
        let is_new = {
            let mut alive = lock(&self.alive);
            let is_new = alive.observe(rows, now);
            self.peer_changes.observe(alive.known(), asked_at, now);
            self.front_ends.store(alive.members(now).len(), Ordering::Relaxed);
            self.know_shards.store(alive.know_shards(now), Ordering::Relaxed);
            is_new
        };
        if is_new {
            self.broadcast(PeerMessage::Interest(Vec::new()));
        }
    }

    /// Returns all front-ends that are alive, this one included.
    pub(crate) fn members(&self) -> Vec<Uuid> {
        lock(&self.alive).members(Instant::now())
    }

    /// Returns all front-ends that are known, this one first.
    pub(crate) fn front_end_views(&self) -> Vec<FrontEndView> {
        let (id, address) = (self.id, self.address());
        let me = FrontEndView { id, address, is_self: true, is_alive: true, silent_for_ms: 0 };
        let mut views = vec![me];
        views.extend(lock(&self.alive).views(Instant::now()));
        views
    }

    /// Returns how many front-ends are alive, as was known at the last heartbeat.
    pub(crate) fn front_ends(&self) -> usize {
        self.front_ends.load(Ordering::Relaxed)
    }

    /// Returns who puts rows into queues, as was known at the last heartbeat.
    pub(crate) fn writers(&self) -> Writers {
        let know_shards = self.know_shards.load(Ordering::Relaxed);
        Writers { front_ends: self.front_ends(), know_shards }
    }

    /// Returns this time or one a fraction of a millisecond later, as no other front-end has it:
    /// two that move the same entry at the same moment must not make the same one of it, or who
    /// yields takes the other's away.
    pub(crate) fn own_us(&self, at_us: i64) -> i64 {
        own_us(self.id, at_us)
    }

    /// Returns whether this front-end has a thing that one of them is to look after.
    pub(crate) fn is_owner(&self, thing: Uuid) -> bool {
        owner(thing, self.members()) == Some(self.id)
    }

    // -- messages that come -------------------------------------------------------------------

    /// A queue is polled here.
    pub(crate) fn polls(&self, generation: Uuid) {
        if self.socket.get().is_none() {
            return;
        }
        if lock(&self.interest).poll(generation, Instant::now()) {
            self.broadcast(PeerMessage::Interest(vec![generation]));
        }
    }

    /// Something that can be received at once was stored here.
    pub(crate) fn stored(&self, generation: Uuid, entry: &Entry) {
        if self.socket.get().is_none() {
            return;
        }
        let interested = lock(&self.interest).interested(generation, Instant::now());
        let nudged = some_of(interested, entry.message, NUDGED_MAX);
        let message = PeerMessage::Nudge { generation, bucket: entry.bucket };
        add(&self.counts.nudges_sent, self.send(&nudged, message));
    }

    /// An entry was put into these buckets here, the first one of this front-end.
    pub(crate) fn listed(&self, generation: Uuid, buckets: &[Bucket]) {
        if self.socket.get().is_none() {
            return;
        }
        let interested = lock(&self.interest).interested(generation, Instant::now());
        for some in buckets.chunks(THINGS_MAX) {
            self.send(&interested, PeerMessage::Listed { generation, buckets: some.to_vec() });
        }
    }

    /// Returns how old the list of a queue's buckets may be here, in µs: whoever polls the queue
    /// hears of each new one, if the others had the time to hear that it does.
    pub(crate) fn buckets_age_us_max(&self, generation: Uuid) -> i64 {
        let is_notified = self.front_ends() <= INTERESTED_MAX && self.is_known_to_poll(generation);
        let age_ms = if is_notified { BUCKETS_AGE_HEARD_MS_MAX } else { BUCKETS_AGE_MS_MAX };
        (age_ms * 1_000) as i64
    }

    /// Returns whether the others nudge this front-end about all that they put into a queue that
    /// can be received at once.
    pub(crate) fn is_nudged(&self, generation: Uuid) -> bool {
        self.front_ends() <= NUDGED_MAX + 1 && self.is_known_to_poll(generation)
    }

    /// Returns whether all others are heard, and had the time to hear that a queue is polled here.
    fn is_known_to_poll(&self, generation: Uuid) -> bool {
        let now = Instant::now();
        now.checked_sub(KNOWN_AFTER).is_some_and(|since| {
            self.peer_changes.is_complete_since(since, now)
                && lock(&self.interest).polls_since(generation, since, now)
        })
    }

    /// A queue was changed here: its attributes, or which messages it has. Returns when the others know, or at the latest
    /// after [`NOTED_MS_MAX`]: one that has not heard it goes by what it remembers, for as long as it does.
    pub(crate) async fn changed(&self, queue: &QueueRef) {
        let others = lock(&self.alive).addresses(Instant::now());
        // It counts also where nobody is known: who comes to hear of it has missed it.
        let notice = self.notices.open(others.iter().map(|(id, _)| *id));
        if self.socket.get().is_none() || others.is_empty() {
            return;
        }
        let message = PeerMessage::Changed { notice: notice.number, queue: queue.clone() };
        // A datagram may be lost: it is said twice.
        for _ in 0..2 {
            self.send(&notice.missing(), message.clone());
            let wait = Duration::from_millis(NOTED_MS_MAX / 2);
            if timeout(wait, notice.noted_by_all()).await.is_ok() {
                return;
            }
        }
    }

    /// Begins a change of a queue here, which is under way until what is returned is dropped.
    /// `None`: too many are.
    pub(crate) fn begin_change(&self) -> Option<SemaphorePermit<'_>> {
        self.changes.try_acquire().ok()
    }

    /// Returns when no change of a queue is under way here.
    pub(crate) async fn changes_ended(&self) {
        drop(self.changes.acquire_many(CHANGES_AT_ONCE as u32).await);
    }

    /// From now on no change begins, and none is counted.
    pub(crate) fn end_changes(&self) {
        self.changes.close();
    }

    /// Returns whether no change begins any more.
    pub(crate) fn has_ended_changes(&self) -> bool {
        self.changes.is_closed()
    }

    /// Sends of how many changes the others were notified so far, unless one is under way: whoever has heard of fewer has missed one,
    /// and whoever hears nothing for a while reads for itself.
    pub(crate) fn count_changes(&self) {
        // In this order: a change that begins in between is not among those that are counted.
        let changes = self.notices.count();
        if self.changes.available_permits() == CHANGES_AT_ONCE && !self.changes.is_closed() {
            self.broadcast(PeerMessage::ChangeCount { changes });
        }
    }

    // -- messages that go ---------------------------------------------------------------------

    /// Returns whether there are others, and whether they say what they take.
    pub(crate) fn others(&self) -> Others {
        let (alive, now) = (lock(&self.alive), Instant::now());
        match (alive.members(now).len() - 1, alive.addresses(now).len()) {
            (0, _) => Others::None,
            (others, heard) if others == heard && self.is_sharing() => Others::Announcing,
            _ => Others::Silent,
        }
    }

    /// Returns whether no other front-end takes an entry.
    pub(crate) fn is_free(&self, generation: Uuid, entry: EntryName) -> bool {
        lock(&self.claims).is_free(generation, entry, Instant::now())
    }

    /// Keeps those entries that no other front-end takes.
    pub(crate) fn retain_free(&self, generation: Uuid, entries: &mut Vec<Entry>) {
        if self.claims_are_heeded {
            let (claims, now) = (lock(&self.claims), Instant::now());
            entries.retain(|entry| claims.is_free(generation, name(entry), now));
        }
    }

    /// These entries are taken here.
    pub(crate) fn claim(&self, generation: Uuid, entries: &[Entry]) {
        if !self.is_sharing() {
            return;
        }
        let now = Instant::now();
        {
            let mut claims = lock(&self.claims);
            entries.iter().for_each(|entry| claims.take(generation, name(entry), now));
        }
        add(&self.counts.entries_claimed, entries.len());
        let interested = lock(&self.interest).interested(generation, now);
        for some in entries.chunks(THINGS_MAX) {
            let claim = |entry| Claim { entry: name(entry), is_delivered: false };
            let claims = some.iter().map(claim).collect();
            self.send(&interested, PeerMessage::Claim { generation, claims });
        }
    }

    /// Settles who delivers an entry that was claimed. Returns whether it may be delivered here:
    /// else another front-end does so.
    pub(crate) fn settle(&self, generation: Uuid, entry: &Entry) -> bool {
        if !self.is_sharing() {
            return true;
        }
        let settled = lock(&self.claims).settle(generation, name(entry), Instant::now());
        add(&self.counts.entries_yielded, usize::from(settled == Settled::Theirs));
        settled == Settled::Mine
    }

    /// These entries were claimed, and are left where they are.
    pub(crate) fn release(&self, generation: Uuid, entries: &[Entry]) {
        if !self.is_sharing() || entries.is_empty() {
            return;
        }
        {
            let mut claims = lock(&self.claims);
            entries.iter().for_each(|entry| claims.release(generation, name(entry)));
        }
        let interested = lock(&self.interest).interested(generation, Instant::now());
        for some in entries.chunks(THINGS_MAX) {
            let entries = some.iter().map(name).collect();
            self.send(&interested, PeerMessage::Release { generation, entries });
        }
    }

    fn is_sharing(&self) -> bool {
        self.claims_are_heeded && self.socket.get().is_some()
    }

    // -- datagrams ----------------------------------------------------------------------------

    /// Takes in what has arrived, and passes on what it means to queues.
    pub(crate) fn poll_events(&self, mut news: impl FnMut(Uuid, PeerEvent)) {
        let Some(socket) = self.socket.get() else { return };
        for _ in 0..HEARD_AT_ONCE {
            let Some(datagram) = socket.try_receive() else { return };
            self.on_datagram(&datagram, &mut news);
        }
    }

    /// Takes in one datagram.
    pub(crate) fn on_datagram(&self, bytes: &[u8], news: &mut impl FnMut(Uuid, PeerEvent)) {
        add(&self.counts.datagrams_heard, 1);
        let Some(Datagram { from, message }) = Datagram::decode(bytes) else {
            add(&self.counts.datagrams_unreadable, 1);
            return;
        };
        if from == self.id {
            return;
        }
        let now = Instant::now();
        if !lock(&self.alive).knows(from) {
            self.peer_changes.on_stranger(now);
            self.stranger.notify_one();
        }
        match message {
            PeerMessage::Interest(generations) => {
                let mut interest = lock(&self.interest);
                generations.iter().for_each(|generation| interest.heard(from, *generation, now));
            }
            PeerMessage::Nudge { generation, bucket } => {
                add(&self.counts.nudges_heard, 1);
                news(generation, PeerEvent::Stored(bucket));
            }
            PeerMessage::Claim { generation, claims } => {
                // Whoever takes something there polls there.
                lock(&self.interest).heard(from, generation, now);
                for _ in 0..self.receive_claims(from, generation, &claims, now) {
                    news(generation, PeerEvent::Duplicate);
                }
            }
            PeerMessage::Listed { generation, buckets } => {
                news(generation, PeerEvent::Listed(buckets));
            }
            PeerMessage::ChangeCount { changes } => self.peer_changes.on_count(from, changes, now),
            PeerMessage::Changed { notice, queue } => {
                self.peer_changes.on_change(from, notice, now);
                news(Uuid::nil(), PeerEvent::Changed(queue));
                self.send(&[from], PeerMessage::Noted { notice });
            }
            PeerMessage::Noted { notice } => self.notices.noted(notice, from),
            PeerMessage::Release { generation, entries } => {
                let mut claims = lock(&self.claims);
                entries.iter().for_each(|entry| claims.receive_release(generation, *entry, from));
            }
        }
    }

    /// Returns how many messages turn out to be delivered twice.
    fn receive_claims(&self, from: Uuid, generation: Uuid, heard: &[Claim], now: Instant) -> usize {
        if !self.claims_are_heeded {
            return 0;
        }
        let (mut again, mut duplicates) = (Vec::new(), 0);
        {
            let mut claims = lock(&self.claims);
            for Claim { entry, is_delivered } in heard.iter().copied() {
                match claims.on_claim(generation, entry, from, is_delivered, now) {
                    ClaimOutcome::Theirs => {}
                    ClaimOutcome::Mine { is_delivered } => {
                        again.push(Claim { entry, is_delivered })
                    }
                    ClaimOutcome::Duplicate => duplicates += 1,
                }
            }
        }
        if !again.is_empty() {
            self.send(&[from], PeerMessage::Claim { generation, claims: again });
        }
        add(&self.counts.duplicates_seen, duplicates);
        duplicates
    }

    fn broadcast(&self, message: PeerMessage) {
        let others = lock(&self.alive).addresses(Instant::now());
        self.send_to(others.into_iter().map(|(_, address)| address), message);
    }

    /// Returns to how many it was sent.
    fn send(&self, whom: &[Uuid], message: PeerMessage) -> usize {
        if whom.is_empty() {
            return 0;
        }
        let addresses: Vec<SocketAddr> = {
            let alive = lock(&self.alive);
            whom.iter().filter_map(|id| alive.address(*id)).collect()
        };
        self.send_to(addresses.into_iter(), message)
    }

    fn send_to(
        &self,
        to: impl ExactSizeIterator<Item = SocketAddr>,
        message: PeerMessage,
    ) -> usize {
        let (Some(socket), count) = (self.socket.get(), to.len()) else { return 0 };
        if count > 0 {
            let bytes = Datagram { from: self.id, message }.encode();
            to.for_each(|address| socket.send(address, &bytes));
            add(&self.counts.datagrams_sent, count);
        }
        count
    }

    /// Returns what was counted so far.
    pub(crate) fn stats(&self) -> PeerStats {
        let read = |count: &AtomicU64| count.load(Ordering::Relaxed);
        let counts = &self.counts;
        PeerStats {
            front_ends: self.members().len() as u64,
            hears_all: self.peer_changes.is_complete(Instant::now()),
            datagrams_sent: read(&counts.datagrams_sent),
            datagrams_heard: read(&counts.datagrams_heard),
            datagrams_unreadable: read(&counts.datagrams_unreadable),
            nudges_sent: read(&counts.nudges_sent),
            nudges_heard: read(&counts.nudges_heard),
            entries_claimed: read(&counts.entries_claimed),
            entries_yielded: read(&counts.entries_yielded),
            duplicates_seen: read(&counts.duplicates_seen),
        }
    }
}

pub(crate) fn name(entry: &Entry) -> EntryName {
    EntryName { message: entry.message, written_at_us: entry.written_at_us }
}

/// Returns the first time behind this one whose last eight bits are the front-end's.
fn own_us(id: Uuid, at_us: i64) -> i64 {
    let digit = (id.as_u128() & 0xff) as i64;
    (at_us | 0xff).saturating_add(1) | digit
}

fn add(count: &AtomicU64, more: usize) {
    count.fetch_add(more as u64, Ordering::Relaxed);
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_front_ends_never_move_an_entry_to_the_same_time() {
        for at_us in 1_000_000..1_000_600 {
            let [a, b] = [1, 2].map(|id| own_us(Uuid::from_u128(id), at_us));
            assert_ne!(a, b);
            assert!(a > at_us && a < at_us + 512);
        }
    }

    #[test]
    fn what_was_changed_elsewhere_is_passed_on_and_what_one_says_oneself_is_not() {
        let peers = Peers::new(Uuid::from_u128(1), true);
        let queue = QueueRef { account: "000000000000".into(), name: "q".into() };
        let mut changed = Vec::new();
        for from in [1, 2] {
            let message = PeerMessage::Changed { notice: 1, queue: queue.clone() };
            let datagram = Datagram { from: Uuid::from_u128(from), message }.encode();
            peers.on_datagram(&datagram, &mut |_, news| {
                if let PeerEvent::Changed(queue) = news {
                    changed.push(queue);
                }
            });
        }
        assert_eq!(changed, [queue]);
    }
}
