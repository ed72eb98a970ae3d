//! Queues as SQS sees them against a naive model: what a receive returns, what is hidden for how long,
//! what is deleted, delayed and redriven, beside AMQP clients, with restarts, power cuts and
//! checkpoints in between.

use std::collections::BTreeMap;

use bytes::Bytes;
use proptest::prelude::*;
use quelea_broker::{
    BrokerConfig, Fifo, GROUP_HEADER, MoveTaskState, Publish, QueueAttributes, QueueSettings,
    Receive, Redrive, Send,
};
use quelea_model::{Properties, QueueId, Table, Value};

use crate::broker_test::{BrokerTest, StoreKind};

mod naive;

use naive::{Held, Known, Naive};

/// Receptions before a message is moved from `q` to `dlq`.
const RECEIVES_MAX: u16 = 3;
/// The longest visibility timeout.
const TIMEOUT_MS_MAX: u64 = 400;
/// Long enough for nothing to become visible again.
const LONG_MS: u64 = 3_600_000;

#[derive(Clone, Debug)]
enum Operation {
    Send {
        delay_ms: Option<u64>,
        group: u8,
        bytes: usize,
    },
    Publish {
        group: u8,
    },
    Receive {
        dlq: bool,
        max: usize,
        timeout_ms: u64,
    },
    Delete {
        which: usize,
    },
    Change {
        which: usize,
        timeout_ms: u64,
    },
    GiveBack {
        which: usize,
    },
    Move,
    Get,
    Ack {
        which: usize,
    },
    Purge {
        dlq: bool,
    },
    Wait {
        ms: u64,
    },
    /// The next operations come between single turns of the broker and single jobs of the disk:
    /// most often while it makes a checkpoint, of which there are many.
    Slow,
    Crash,
    Shutdown,
    PowerCut {
        seed: u64,
    },
}

fn operation() -> impl Strategy<Value = Operation> {
    use Operation as O;
    let delay = prop_oneof![2 => Just(None), 1 => (0..400u64).prop_map(Some)];
    prop_oneof![
        8 => (delay, 0..4u8, 0..600usize)
            .prop_map(|(delay_ms, group, bytes)| O::Send { delay_ms, group, bytes }),
        2 => (0..4u8).prop_map(|group| O::Publish { group }),
        8 => (prop::bool::weighted(0.2), 1..5usize, 1..TIMEOUT_MS_MAX)
            .prop_map(|(dlq, max, timeout_ms)| O::Receive { dlq, max, timeout_ms }),
        4 => (0..6usize).prop_map(|which| O::Delete { which }),
        2 => (0..6usize, 0..TIMEOUT_MS_MAX).prop_map(|(which, timeout_ms)| O::Change { which, timeout_ms }),
        1 => (0..3usize).prop_map(|which| O::GiveBack { which }),
        1 => Just(O::Move),
        1 => Just(O::Get),
        1 => (0..3usize).prop_map(|which| O::Ack { which }),
        4 => (0..300u64).prop_map(|ms| O::Wait { ms }),
        4 => Just(O::Slow),
        1 => Just(O::Crash),
        1 => Just(O::Shutdown),
        1 => any::<u64>().prop_map(|seed| O::PowerCut { seed }),
        1 => prop::bool::weighted(0.5).prop_map(|dlq| O::Purge { dlq }),
    ]
}

struct Pair {
    test: BrokerTest,
    ids: [QueueId; 2],
    /// `q` and `dlq`.
    naive: [Naive; 2],
    sent: u64,
    /// Every receipt that was got, newest last.
    receipts: Vec<Held>,
    /// A turn at a time.
    is_slow: bool,
}

impl Pair {
    fn new(store_kind: StoreKind, is_fifo: bool) -> Self {
        let config = BrokerConfig {
            resident_bytes_max: 4_000,
            read_ahead_bytes_max: 1_500,
            ..BrokerConfig::default()
        };
        let mut test = BrokerTest::new(config, store_kind);
        let ids = ["dlq", "q"].map(|name| {
            let redrive = Redrive { receives_max: RECEIVES_MAX, target: "dlq".into() };
            let settings = QueueSettings {
                fifo: is_fifo.then_some(Fifo { deduplicates_by_group: false }),
                redrive: (name == "q").then_some(redrive),
                ..QueueSettings::default()
            };
            let attributes = QueueAttributes { settings, ..QueueAttributes::default() };
            test.broker.create_queue(test.now, "/", name, attributes).unwrap().0
        });
        test.settle();
        let naive = [0, 1].map(|_| Naive::new(is_fifo));
        let (receipts, ids) = (Vec::new(), [ids[1], ids[0]]);
        Self { test, ids, naive, sent: 0, receipts, is_slow: false }
    }

    fn perform(&mut self, operation: &Operation) {
        let now = self.test.now;
        self.naive.iter_mut().for_each(|naive| naive.note_returns(now));
        match *operation {
            Operation::Send { delay_ms, group, bytes } => self.send(delay_ms, group, bytes),
            Operation::Publish { group } => self.publish(group),
            Operation::Receive { dlq, max, timeout_ms } => {
                self.receive(usize::from(dlq), max, timeout_ms);
            }
            Operation::Delete { which } => self.delete(which),
            Operation::Change { which, timeout_ms } => self.change(which, timeout_ms),
            Operation::GiveBack { which } => self.give_back(which),
            Operation::Move => self.move_back(),
            Operation::Get => self.get(),
            Operation::Ack { which } => self.ack(which),
            Operation::Purge { dlq } => {
                let at = usize::from(dlq);
                let purged = self.test.broker.purge_queue_by_id(self.test.now, self.ids[at]);
                self.test.promise(purged.unwrap().ticket);
                self.naive[at].messages.retain(|known| known.unacked);
            }
            Operation::Wait { ms } => self.test.wait(ms),
            Operation::Slow => {
                self.is_slow = true;
                return;
            }
            Operation::Crash => {
                self.test.crash(0);
                self.restarted();
            }
            Operation::Shutdown => {
                self.test.shut_down();
                self.restarted();
            }
            Operation::PowerCut { seed } => {
                self.rest();
                self.test.power_cut(seed);
                self.restarted();
                self.empty();
            }
        }
        if self.is_slow && !matches!(operation, Operation::Wait { .. }) {
            self.test.turn();
        } else {
            self.rest();
            self.check();
        }
    }

    fn rest(&mut self) {
        self.is_slow = false;
        self.test.settle();
        assert!(self.test.promises_are_kept());
    }

    /// What AMQP clients had is visible again.
    fn restarted(&mut self) {
        self.is_slow = false;
        let now = self.test.now;
        let known = self.naive.iter_mut().flat_map(|naive| &mut naive.messages);
        for known in known.filter(|known| known.unacked) {
            known.unacked = false;
            known.visible_at = now;
        }
        self.naive.iter_mut().for_each(|naive| naive.forget_returns(now));
    }

    fn properties(group: u8) -> Bytes {
        let name = group.to_string();
        let header = (group > 0).then(|| Table::from_iter([(GROUP_HEADER, Value::text(&name))]));
        let properties =
            Properties { delivery_mode: Some(2), headers: header, ..Properties::default() };
        properties.to_bytes()
    }

    fn add(&mut self, group: u8, delay_ms: u64) {
        let visible_at = self.test.now.plus_ms(delay_ms);
        let known = Known {
            name: self.sent,
            group,
            count: 0,
            most: 0,
            visible_at,
            unacked: false,
            moves: 0,
            order: 0,
            is_back: delay_ms == 0,
        };
        self.naive[0].push(known);
        self.sent += 1;
    }

    fn body(&self, bytes: usize) -> Bytes {
        let mut body = self.sent.to_string().into_bytes();
        body.resize(body.len() + bytes, b' ');
        Bytes::from(body)
    }

    fn send(&mut self, delay_ms: Option<u64>, group: u8, bytes: usize) {
        let group = if self.naive[0].is_fifo { group } else { 0 };
        let send = Send {
            properties: Self::properties(group),
            body: self.body(bytes),
            delay_ms,
            group: (group > 0).then(|| group.to_string().into()),
            deduplication: None,
            message_id: [0; 16],
        };
        let (outcomes, ticket) =
            self.test.broker.send(self.test.now, self.ids[0], vec![send]).unwrap();
        assert!(outcomes[0].is_ok());
        self.test.promise(ticket);
        self.add(group, delay_ms.unwrap_or(0));
    }

    fn publish(&mut self, group: u8) {
        let group = if self.naive[0].is_fifo { group } else { 0 };
        let publish = Publish {
            exchange: "",
            routing_key: "q",
            properties: &Self::properties(group),
            body: self.body(0),
            mandatory: false,
            confirm: true,
        };
        let channel = self.test.client("me").channel;
        let published = self.test.broker.publish(self.test.now, channel, publish).unwrap();
        self.test.promise(published.ticket);
        self.add(group, 0);
    }

    /// Receives messages. Returns of each the name, and which reception it is.
    fn take(&mut self, at: usize, max: usize, visibility_timeout_ms: u64) -> Vec<(u64, u16)> {
        let request = Receive { max, visibility_timeout_ms, wait_ms: 0, attempt: None };
        let id = self.test.broker.receive(self.test.now, self.ids[at], request).unwrap();
        let mut turns = 0;
        let messages = loop {
            if let Some(answer) = self.test.received.remove(&id) {
                break answer.expect("a queue");
            }
            self.test.turn();
            turns += 1;
            assert!(turns < 1_000, "it is answered in the end");
        };
        let taken = messages.iter().map(|message| {
            let name = id_of(message.message.body());
            let mut known = self.naive[at].messages.iter();
            let moves = known.find(|known| known.name == name).map_or(0, |known| known.moves);
            self.receipts.push(Held { at, name, moves, receipt: message.receipt });
            (name, message.receipt.receive_count)
        });
        taken.collect()
    }

    fn receive(&mut self, at: usize, max: usize, timeout_ms: u64) {
        // Where redriven messages are is known when they have come to rest.
        if self.naive[at].messages.iter().any(|known| known.count >= RECEIVES_MAX) {
            self.rest();
        }
        let actual = self.take(at, max, timeout_ms);
        if self.naive[at].messages.iter().any(|known| known.count >= RECEIVES_MAX) {
            self.rest();
        }
        let (now, mut taken, mut with) = (self.test.now, 0, None);
        while taken < max
            && let Some(place) = self.naive[at].next(now, with)
        {
            let known = self.naive[at].messages[place].clone();
            // It may end early, where the next message has to be read first; of a FIFO queue never.
            let is_fifo = self.naive[at].is_fifo;
            let may_be_over = taken > 0 && taken == actual.len() && !is_fifo;
            if at == 0 && known.count >= RECEIVES_MAX {
                let moved = self.test.broker.queue_backlog(now, self.ids[1]).unwrap();
                let moved = moved.visible + moved.in_flight + moved.delayed;
                if may_be_over && moved == self.naive[1].messages.len() as u64 {
                    break;
                }
                self.naive[0].remove(known.name);
                self.naive[1].push(known.moved(now));
                continue;
            }
            if may_be_over {
                break;
            }
            let wanted = Some(&(known.name, known.count + 1));
            assert_eq!(actual.get(taken), wanted, "the next of {:?}", self.naive[at]);
            let known = self.naive[at].take(place);
            known.count += 1;
            known.most = known.most.max(known.count);
            known.visible_at = now.plus_ms(timeout_ms);
            with = Some((known.group, known.order));
            taken += 1;
        }
        assert_eq!(actual.len(), taken, "no more than there is of {:?}", self.naive[at]);
    }

    /// Returns one of the newest receipts.
    fn receipt(&self, which: usize) -> Option<Held> {
        let at = self.receipts.len().checked_sub(which + 1)?;
        self.receipts.get(at).copied()
    }

    fn delete(&mut self, which: usize) {
        let Some(held) = self.receipt(which) else { return };
        let Held { at, receipt, .. } = held;
        let now = self.test.now;
        let (_, ticket) = self.test.broker.delete_messages(now, self.ids[at], &[receipt]).unwrap();
        self.test.promise(ticket);
        let is_fifo = self.naive[at].is_fifo;
        let deletes = self.naive[at].find(&held).is_some_and(|known| {
            let is_late = is_fifo && known.is_visible(now);
            !known.unacked && !is_late && receipt.receive_count >= known.count
        });
        if deletes {
            self.naive[at].remove(held.name);
        }
    }

    fn change(&mut self, which: usize, timeout_ms: u64) {
        let Some(held) = self.receipt(which) else { return };
        let Held { at, receipt, .. } = held;
        let now = self.test.now;
        let changes = [(receipt, timeout_ms)];
        let (_, ticket) = self.test.broker.change_visibility(now, self.ids[at], &changes).unwrap();
        self.test.promise(ticket);
        let is_fifo = self.naive[at].is_fifo;
        if let Some(known) = self.naive[at].find(&held)
            && !known.unacked
            && known.count > 0
            && (!is_fifo || (known.is_in_flight(now) && receipt.receive_count >= known.count))
        {
            known.visible_at = now.plus_ms(timeout_ms);
        }
    }

    fn give_back(&mut self, which: usize) {
        let Some(held) = self.receipt(which) else { return };
        let Held { at, receipt, .. } = held;
        let now = self.test.now;
        self.test.broker.undo_receives(now, &[receipt]);
        if let Some(known) = self.naive[at].find(&held)
            && !known.unacked
            && known.is_in_flight(now)
            && receipt.receive_count == known.count
        {
            known.count -= 1;
            known.visible_at = now;
            known.is_back = true;
        }
    }

    /// Moves what is visible in `dlq` back to `q`.
    fn move_back(&mut self) {
        self.rest();
        let now = self.test.now;
        let (_, ticket) = self.test.broker.start_move(now, self.ids[1], None, None).unwrap();
        self.test.promise(ticket);
        self.rest();
        let task = self.test.broker.move_tasks(self.ids[1]).remove(0);
        assert_eq!(task.progress.state, MoveTaskState::Completed);
        let mut moved = 0;
        while let Some(place) = self.naive[1].next(now, None) {
            let known = self.naive[1].messages.remove(place);
            self.naive[0].push(known.moved(now));
            moved += 1;
        }
        assert_eq!(task.progress.moved, moved);
    }

    fn get(&mut self) {
        let now = self.test.now;
        let channel = self.test.client("me").channel;
        self.test.broker.get(now, channel, "q", false).unwrap();
        let got = loop {
            if let Some(got) = self.test.client("me").got.pop_front() {
                break got;
            }
            self.test.turn();
        };
        let got = got.map(|got| id_of(got.message.body()));
        let wanted = self.naive[0].next(now, None);
        assert_eq!(got, wanted.map(|place| self.naive[0].messages[place].name));
        if let Some(place) = wanted {
            self.naive[0].take(place).unacked = true;
        }
    }

    fn ack(&mut self, which: usize) {
        let now = self.test.now;
        let client = self.test.client("me");
        if which < client.held.len() {
            let held = client.held.remove(which);
            let channel = client.channel;
            self.test.broker.ack(now, channel, held.delivery_tag, false).unwrap();
            self.naive[0].remove(id_of(held.message.body()));
            // Nobody was promised that it is gone.
            self.rest();
            let ticket = self.test.broker.store_mut().ticket(quelea_store::Durability::Fsync);
            self.test.promise(ticket);
        }
    }

    fn check(&mut self) {
        let now = self.test.now;
        for (naive, id) in self.naive.iter().zip(self.ids) {
            let backlog = self.test.broker.queue_backlog(now, id).unwrap();
            let count = |is: &dyn Fn(&Known) -> bool| {
                naive.messages.iter().filter(|known| is(known)).count() as u64
            };
            let wanted = [
                count(&|known| known.is_visible(now)),
                count(&|known| known.is_in_flight(now)),
                count(&|known| known.is_delayed(now)),
            ];
            assert_eq!([backlog.visible, backlog.in_flight, backlog.delayed], wanted, "{naive:?}");
        }
        let live = self.test.broker.overview().store.live;
        let known: usize = self.naive.iter().map(|naive| naive.messages.len()).sum();
        assert_eq!(live, known as u64, "what is in the log");
    }

    /// Takes everything out: each message once, in order as far as there is one. Receptions may have
    /// been forgotten in a power cut, and redrives undone; messages are not.
    fn empty(&mut self) {
        self.rest();
        let all = self.naive.iter().flat_map(|naive| &naive.messages);
        let last = all.map(|known| known.visible_at).max().unwrap_or(self.test.now);
        // What was given back may have been forgotten, too.
        self.test.wait(last.since_ms(self.test.now).max(TIMEOUT_MS_MAX));
        let mut left: Vec<Known> =
            self.naive.iter_mut().flat_map(|naive| naive.messages.drain(..)).collect();
        for at in [0, 1] {
            let mut before = BTreeMap::new();
            loop {
                let from = self.receipts.len();
                let taken = self.take(at, 10, LONG_MS);
                if taken.is_empty() {
                    // What was received too often may be on its way still.
                    self.rest();
                    break;
                }
                let receipts: Vec<_> =
                    self.receipts[from..].iter().map(|held| held.receipt).collect();
                let now = self.test.now;
                self.test.broker.delete_messages(now, self.ids[at], &receipts).unwrap();
                self.test.settle();
                for (name, count) in taken {
                    let place = left.iter().position(|known| known.name == name);
                    let known = left.remove(place.expect("a message that is there once"));
                    assert!(
                        at == 1 || known.moves > 1 || count <= known.most + 1,
                        "receptions are not made up"
                    );
                    if known.moves > 1 {
                        continue;
                    }
                    let before = before.insert(known.group, name);
                    assert!(at == 1 || before < Some(name), "{name} comes after {before:?}");
                }
            }
        }
        assert!(left.is_empty(), "lost: {left:?}");
        self.test.settle();
        assert_eq!(self.test.broker.overview().store.live, 0, "nothing is left in the log");
    }
}

fn id_of(body: &[u8]) -> u64 {
    std::str::from_utf8(body).unwrap().trim_end().parse().unwrap()
}

fn play(store_kind: StoreKind, is_fifo: bool, operations: &[Operation]) {
    let mut pair = Pair::new(store_kind, is_fifo);
    for operation in operations {
        pair.perform(operation);
    }
    pair.test.crash(0);
    pair.restarted();
    pair.empty();
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 100, ..ProptestConfig::default() })]

    #[test]
    fn receives_are_as_a_naive_queue_has_them(
        operations in proptest::collection::vec(operation(), 1..100),
        is_fifo in any::<bool>(),
    ) {
        play(StoreKind::Memory, is_fifo, &operations);
    }

    #[test]
    fn receives_over_the_log_are_as_a_naive_queue_has_them(
        operations in proptest::collection::vec(operation(), 1..100),
        is_fifo in any::<bool>(),
    ) {
        play(StoreKind::Log(8 * 1024), is_fifo, &operations);
    }
}
