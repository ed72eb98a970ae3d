//! Looking at queues, beyond what stories can say.

use quelea_broker::{BrokerConfig, Browse, GetError};

use crate::broker_test::{BrokerTest, StoreKind};
use crate::served_in_between::{declare, publish};

const ALL: Browse = Browse { from: None, messages_max: usize::MAX, body_bytes_max: usize::MAX };

#[test]
fn a_look_is_one_turns_work_and_goes_on_where_it_ended() {
    let mut test = BrokerTest::new(BrokerConfig::default(), StoreKind::Memory);
    declare(&mut test, "me", "q", false);
    for _ in 0..500 {
        publish(&mut test, "me", "q");
    }
    test.broker.set_steps_per_turn(1_000);
    let (mut from, mut messages, mut pages) = (None, 0, 0);
    loop {
        let (channel, before) = (test.client("me").channel, test.broker.work_done());
        test.broker.browse(test.now, channel, "q", Browse { from, ..ALL }).unwrap();
        let (steps, allowed) = (test.broker.work_done() - before, test.broker.steps_per_turn());
        assert!(steps <= allowed, "{steps} of {allowed} steps");
        test.settle();
        let page = test.client("me").looked_at.pop_front().unwrap();
        messages += page.messages.len();
        pages += 1;
        from = page.next;
        if from.is_none() {
            break;
        }
    }
    assert_eq!((messages, pages), (500, 3));
}

#[test]
fn looks_that_wait_for_the_log_have_a_limit() {
    let config = BrokerConfig { resident_bytes_max: 1_000, ..BrokerConfig::default() };
    let mut test = BrokerTest::new(config, StoreKind::Log(64 * 1024));
    declare(&mut test, "me", "q", false);
    for _ in 0..100 {
        publish(&mut test, "me", "q");
        test.settle();
    }
    let channel = test.client("me").channel;
    let mut looks = 0;
    let refused = loop {
        match test.broker.browse(test.now, channel, "q", ALL) {
            Ok(()) => looks += 1,
            Err(refused) => break refused,
        }
    };
    assert!(matches!(refused, GetError::LimitReached(_)), "{refused}");
    test.settle();
    assert_eq!((looks, test.client("me").looked_at.len()), (16, 16));
    assert!(test.client("me").looked_at.iter().all(|page| page.messages.len() == 100));
    test.broker.browse(test.now, channel, "q", ALL).unwrap();
}
