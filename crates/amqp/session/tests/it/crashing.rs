//! Over the real log: what was promised is kept when the machine dies at any moment.

use std::collections::{BTreeMap, BTreeSet};

use proptest::prelude::*;
use quelea_amqp_codec::method::{Method, basic, confirm, tx};
use quelea_testkit::disk::{FakeDisk, Survival};

use crate::consuming::consume;
use crate::declaring::durable_queue;
use crate::session_test::{On, SessionTest};

#[derive(Clone, Debug)]
enum Step {
    /// The publisher in confirm mode publishes.
    Publish,
    /// The transactional channel publishes.
    Add,
    Commit,
    Rollback,
    /// The consumer takes one and acknowledges it.
    Take,
    Turn,
}

/// What the clients know.
#[derive(Debug, Default)]
struct Known {
    /// Messages by the number of their publish.
    published: Vec<String>,
    confirmed: usize,
    /// Transactions: what they held, and whether commit-ok came.
    committed: Vec<(Vec<String>, bool)>,
    open: Vec<String>,
    /// Messages that somebody acknowledged: they may be there or not.
    acknowledged: BTreeSet<String>,
    rolled_back: BTreeSet<String>,
}

struct Story {
    node: SessionTest,
    publisher: On,
    transaction: On,
    consumer: On,
    known: Known,
    next: usize,
}

impl Story {
    fn begin(log: &FakeDisk) -> Self {
        let mut node = SessionTest::on_log(log.clone());
        let (publisher, transaction, consumer) = (node.channel(), node.channel(), node.channel());
        node.call(publisher, durable_queue("q"));
        node.call(publisher, confirm::Select { no_wait: false });
        node.call(transaction, tx::Select {});
        Self { node, publisher, transaction, consumer, known: Known::default(), next: 0 }
    }

    fn step(&mut self, step: &Step) {
        let Self { node, known, .. } = self;
        self.next += 1;
        let body = format!("message {}", self.next);
        match step {
            Step::Publish => {
                node.publish_persistent(self.publisher, "q", &body);
                known.published.push(body);
            }
            Step::Add => {
                node.publish_persistent(self.transaction, "q", &body);
                known.open.push(body);
            }
            Step::Commit => {
                node.send_on(self.transaction, tx::Commit {});
                known.committed.push((std::mem::take(&mut known.open), false));
            }
            Step::Rollback => {
                node.send_on(self.transaction, tx::Rollback {});
                known.rolled_back.extend(known.open.drain(..));
            }
            Step::Take => {
                node.send_on(self.consumer, basic::Get { queue: "q".into(), no_ack: false });
            }
            Step::Turn => {
                node.turn();
            }
        }
        self.listen();
    }

    /// What was confirmed to the clients.
    fn listen(&mut self) {
        let Self { node, known, .. } = self;
        for method in node.methods(self.publisher.0) {
            match method {
                Method::BasicAck(ack) => known.confirmed = ack.delivery_tag as usize,
                other => panic!("{other:?}"),
            }
        }
        for method in node.methods(self.transaction.0) {
            match method {
                Method::TxCommitOk(_) => {
                    let waiting = known.committed.iter_mut().find(|(_, ok)| !*ok);
                    waiting.expect("a commit").1 = true;
                }
                Method::TxRollbackOk(_) => {}
                other => panic!("{other:?}"),
            }
        }
        for received in node.all(self.consumer.0) {
            if let Method::BasicGetOk(got) = &received.method {
                known.acknowledged.insert(received.body().to_owned());
                let delivery_tag = got.delivery_tag;
                node.send_on(self.consumer, basic::Ack { delivery_tag, multiple: false });
            }
        }
    }
}

impl Known {
    /// Whether what a restart finds is what the promises allow.
    fn check(&self, found: &BTreeMap<String, usize>) {
        assert!(found.values().all(|count| *count == 1), "twice: {found:?}");
        for body in &self.published[..self.confirmed] {
            let may_be_gone = self.acknowledged.contains(body);
            assert!(may_be_gone || found.contains_key(body), "confirmed and lost: {body}");
        }
        for (bodies, is_ok) in &self.committed {
            let left: Vec<_> =
                bodies.iter().filter(|body| !self.acknowledged.contains(*body)).collect();
            let there = left.iter().filter(|body| found.contains_key(**body)).count();
            assert!(there == left.len() || there == 0, "half a transaction: {left:?}");
            assert!(!is_ok || there == left.len(), "committed and lost: {left:?}");
        }
        for body in self.open.iter().chain(&self.rolled_back) {
            assert!(!found.contains_key(body), "never committed: {body}");
        }
    }
}

/// Returns all messages of the queue after a restart.
fn found(log: FakeDisk) -> BTreeMap<String, usize> {
    let mut node = SessionTest::on_log(log);
    let on = node.channel();
    node.call(on, basic::Consume { no_ack: true, ..consume("q", "me") });
    let mut found = BTreeMap::new();
    for received in node.all(on.0) {
        *found.entry(received.body().to_owned()).or_insert(0) += 1;
    }
    found
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        6 => Just(Step::Publish),
        3 => Just(Step::Add),
        1 => Just(Step::Commit),
        1 => Just(Step::Rollback),
        3 => Just(Step::Take),
        8 => Just(Step::Turn),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, ..ProptestConfig::default() })]

    #[test]
    fn what_was_confirmed_or_committed_survives_every_crash(
        steps in proptest::collection::vec(step(), 1..120),
        survival in prop_oneof![
            Just(Survival::All), Just(Survival::Nothing), Just(Survival::Prefix),
            Just(Survival::Suffix), Just(Survival::Random),
        ],
        seed: u64,
    ) {
        let log = FakeDisk::new();
        let mut story = Story::begin(&log);
        for step in &steps {
            story.step(step);
        }
        story.known.check(&found(log.crash(survival, seed)));
    }
}

#[test]
fn a_queue_whose_declare_ok_came_survives_the_machine() {
    let log = FakeDisk::new();
    let mut node = SessionTest::on_log(log.clone());
    let on = node.channel();
    node.call(on, durable_queue("q"));
    let mut node = SessionTest::on_log(log.crash(Survival::Nothing, 1));
    let on = node.channel();
    node.call(on, consume("q", "me"));
}

#[test]
fn many_publishes_share_a_sync_and_a_confirm() {
    let log = FakeDisk::new();
    let mut node = SessionTest::on_log(log.clone());
    let on = node.channel();
    node.call(on, durable_queue("q"));
    node.call(on, confirm::Select { no_wait: false });
    let before = log.syncs();
    for _ in 0..500 {
        node.publish_persistent(on, "q", "a message of some length, to fill the log");
    }
    node.settle();
    let acks = node.all(on.0);
    assert_eq!(
        acks.last().map(|last| last.method.clone()),
        Some(basic::Ack { delivery_tag: 500, multiple: true }.into())
    );
    assert!(acks.len() <= 3, "{} confirms", acks.len());
    assert!(log.syncs() - before <= 6, "{} syncs", log.syncs() - before);
}
