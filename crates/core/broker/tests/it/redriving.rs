//! A receive that is told that there is nothing here may go by it: what it has moved to the dead-letter queue
//! is there.

use bytes::Bytes;
use quelea_broker::{
    BrokerConfig, Fifo, QueueAttributes, QueueSettings, Receive, ReceiveId, Redrive, Send,
};
use quelea_model::QueueId;

use crate::broker_test::{BrokerTest, StoreKind};

const TIMEOUT_MS: u64 = 1_000;

fn queue(test: &mut BrokerTest, name: &str, is_fifo: bool, redrive: Option<Redrive>) -> QueueId {
    let fifo = is_fifo.then_some(Fifo { deduplicates_by_group: false });
    let settings = QueueSettings { redrive, fifo, ..QueueSettings::default() };
    let attributes = QueueAttributes { settings, ..QueueAttributes::default() };
    test.broker.create_queue(test.now, "/", name, attributes).unwrap().0
}

fn receive(test: &mut BrokerTest, id: QueueId) -> ReceiveId {
    let request = Receive { max: 1, visibility_timeout_ms: TIMEOUT_MS, wait_ms: 0, attempt: None };
    test.broker.receive(test.now, id, request).unwrap()
}

/// Plays one message to its end in the dead-letter queue. Returns the turns until the second receive was answered.
fn turns_of_the_second_receive(is_fifo: bool) -> u32 {
    let mut test = BrokerTest::new(BrokerConfig::default(), StoreKind::Log(64 * 1024));
    let dlq = queue(&mut test, "dlq", is_fifo, None);
    let redrive = Redrive { receives_max: 1, target: "dlq".into() };
    let id = queue(&mut test, "q", is_fifo, Some(redrive));
    let message = Send {
        properties: Bytes::new(),
        body: Bytes::from_static(b"first"),
        delay_ms: None,
        group: is_fifo.then(|| "1".into()),
        deduplication: None,
        message_id: [0; 16],
    };
    test.broker.send(test.now, id, vec![message]).unwrap();
    test.settle();
    let first = receive(&mut test, id);
    test.settle();
    assert_eq!(test.received.remove(&first).unwrap().unwrap().len(), 1);
    // As the clock has it when the call comes, before the broker has looked at its deadlines.
    test.now = test.now.plus_ms(TIMEOUT_MS + 1);
    let second = receive(&mut test, id);
    let mut turns = 0;
    let answer = loop {
        if let Some(answer) = test.received.remove(&second) {
            break answer;
        }
        test.turn();
        turns += 1;
        assert!(turns < 20, "no answer");
    };
    assert!(answer.unwrap().is_empty());
    let backlog = test.broker.queue_backlog(test.now, dlq).unwrap();
    assert_eq!(backlog.visible, 1, "answered after {turns} turns");
    turns
}

#[test]
fn who_is_told_that_there_is_nothing_finds_it_in_the_dead_letter_queue() {
    for is_fifo in [false, true] {
        let turns = turns_of_the_second_receive(is_fifo);
        assert!(turns > 1, "its body had to be read");
    }
}
