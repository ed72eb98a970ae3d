//! A queue that is deleted is gone at once for everybody, though what belongs to it goes in many turns,
//! and whenever the process ends meanwhile.

use bytes::Bytes;
use quelea_broker::exchange::ExchangeKind;
use quelea_broker::{
    AdminError, BindingError, BrokerConfig, DeclareExchange, DeclareQueue, DeclareQueueError,
    ExchangeError, Publish, QueueBinding,
};
use quelea_model::{Properties, Table, Value};
use quelea_store::Durability;

use crate::broker_test::{BrokerTest, StoreKind};
use crate::served_in_between::{
    bind, bind_exchange, bind_to, declare, declare_exchange, delete, delete_exchange, fill_vhost,
};

const BINDINGS: usize = 60;

fn with_bindings() -> BrokerTest {
    let mut test = BrokerTest::new(BrokerConfig::default(), StoreKind::Log(64 * 1024));
    bind(&mut test, "q", BINDINGS);
    test.settle();
    // Ten bindings a turn.
    test.broker.set_steps_per_turn(1_000);
    test.turn();
    test
}

/// Counts the bindings but those of the default exchange.
fn bindings(test: &BrokerTest) -> usize {
    let bindings = test.broker.bindings(None);
    bindings.iter().filter(|binding| !binding.source.is_empty()).count()
}

#[test]
fn a_deleted_queue_is_gone_at_once_and_its_name_later() {
    let mut test = with_bindings();
    delete(&mut test, "q");
    assert!(test.broker.queue("/", "q").is_none());
    assert_eq!(bindings(&test), 0, "nobody sees what is left of it");
    let channel = test.client("me").channel;
    let request = DeclareQueue { name: String::from("q"), durable: true, ..Default::default() };
    let refused = test.broker.declare_queue(test.now, channel, &request);
    assert!(matches!(refused, Err(DeclareQueueError::BeingDeleted(_))), "{refused:?}");
    assert!(test.broker.is_queue_being_deleted(channel, "q"));
    assert!(test.broker.is_queue_being_deleted_in("/", "q"));
    declare(&mut test, "me", "another", false);
    let mut turns = 0;
    while test.broker.is_queue_being_deleted(channel, "q") {
        test.turn();
        turns += 1;
    }
    assert!(turns >= 4, "{turns} turns");
    declare(&mut test, "me", "q", false);
    test.settle();
    test.crash(0);
    assert!(test.broker.queue("/", "q").is_some());
    assert_eq!(bindings(&test), 0);
}

/// Whatever reached the disk: the queue with all of its bindings, or nothing of either, for good.
#[test]
fn a_crash_while_a_queue_is_removed_leaves_all_of_it_or_nothing() {
    let mut outcomes = [0, 0];
    for turns in 0..10 {
        for seed in 0..6 {
            let mut test = with_bindings();
            delete(&mut test, "q");
            for _ in 0..turns {
                test.broker.store_mut().ticket(Durability::Os);
                test.turn();
            }
            test.power_cut(seed);
            let is_there = test.broker.queue("/", "q").is_some();
            outcomes[usize::from(is_there)] += 1;
            assert_eq!(bindings(&test), if is_there { BINDINGS } else { 0 });
            if !is_there {
                // What was left of it is not taken for another queue's at the next start.
                declare(&mut test, "me", "q", false);
                test.settle();
                test.crash(0);
                assert_eq!(bindings(&test), 0);
            }
        }
    }
    assert!(outcomes.iter().all(|count| *count > 0), "both are seen: {outcomes:?}");
}

fn with_bound_exchange() -> BrokerTest {
    let mut test = BrokerTest::new(BrokerConfig::default(), StoreKind::Log(64 * 1024));
    declare(&mut test, "me", "q", false);
    declare_exchange(&mut test, "me", "x");
    bind_to(&mut test, "x", "q", BINDINGS - 1);
    bind_exchange(&mut test, "amq.fanout", "x");
    test.settle();
    test.broker.set_steps_per_turn(1_000);
    test.turn();
    test
}

fn has_exchange(test: &BrokerTest, name: &str) -> bool {
    test.broker.exchanges(None).iter().any(|exchange| exchange.name.as_str() == name)
}

#[test]
fn a_deleted_exchange_is_gone_at_once_and_its_name_later() {
    let mut test = with_bound_exchange();
    delete_exchange(&mut test, "x");
    assert!(!has_exchange(&test, "x"));
    assert_eq!(bindings(&test), 0, "nobody sees what is left of it");
    let channel = test.client("me").channel;
    let request = DeclareExchange {
        name: String::from("x"),
        kind: String::from("direct"),
        durable: true,
        ..DeclareExchange::default()
    };
    let refused = test.broker.declare_exchange(test.now, channel, &request);
    assert!(matches!(refused, Err(ExchangeError::BeingDeleted(_))), "{refused:?}");
    let freed = test.broker.names_freed();
    let mut turns = 0;
    while test.broker.is_exchange_being_deleted_in("/", "x") {
        test.turn();
        turns += 1;
    }
    assert!(turns >= 4, "{turns} turns");
    assert_ne!(test.broker.names_freed(), freed, "a waiting client is notified");
    declare_exchange(&mut test, "me", "x");
    test.settle();
    test.crash(0);
    assert!(has_exchange(&test, "x"));
    assert_eq!(bindings(&test), 0);
}

/// Whatever reached the disk: the exchange with all of its bindings, or nothing of either, for good.
#[test]
fn a_crash_while_an_exchange_is_removed_leaves_all_of_it_or_nothing() {
    let mut outcomes = [0, 0];
    for turns in 0..10 {
        for seed in 0..6 {
            let mut test = with_bound_exchange();
            delete_exchange(&mut test, "x");
            for _ in 0..turns {
                test.broker.store_mut().ticket(Durability::Os);
                test.turn();
            }
            test.power_cut(seed);
            let is_there = has_exchange(&test, "x");
            outcomes[usize::from(is_there)] += 1;
            assert_eq!(bindings(&test), if is_there { BINDINGS } else { 0 });
            if !is_there {
                // What was left of it is not taken for another one's at the next start.
                declare_exchange(&mut test, "me", "x");
                test.settle();
                test.crash(0);
                assert_eq!(bindings(&test), 0);
            }
        }
    }
    assert!(outcomes.iter().all(|count| *count > 0), "both are seen: {outcomes:?}");
}

#[test]
fn if_unused_does_not_count_what_leads_to_a_deleted_queue() {
    let mut test = with_bound_exchange();
    delete(&mut test, "q");
    assert!(test.broker.run(test.now), "its bindings are still there");
    let channel = test.client("me").channel;
    test.broker.delete_exchange(test.now, channel, "x", true).unwrap();
    test.settle();
    assert_eq!(test.broker.overview().bindings, 0);
    assert!(!has_exchange(&test, "x"));
}

/// A limit that what was deleted still counts for is one to wait for, not one that is reached.
#[test]
fn a_limit_that_is_reached_by_what_is_deleted_is_waited_for() {
    let mut test = BrokerTest::new(BrokerConfig::default(), StoreKind::Memory);
    declare(&mut test, "me", "q", false);
    let channel = test.client("me").channel;
    // Each of them has steps of its own for any key.
    let bind_until_refused = |test: &mut BrokerTest, queue: &str| {
        for n in 0.. {
            let request = QueueBinding {
                queue: queue.to_owned(),
                exchange: String::from("amq.topic"),
                routing_key: format!("#.a{n}.#.b.#.c.#.d.#.e.#.f.#.{queue}"),
                arguments: Table::new(),
            };
            if let Err(error) = test.broker.bind_queue(test.now, channel, &request) {
                return (n, error);
            }
        }
        unreachable!("there is a limit");
    };
    let (bound, refused) = bind_until_refused(&mut test, "q");
    assert!(matches!(refused, BindingError::Topic { .. }), "{refused:?}");
    test.settle();
    test.broker.set_steps_per_turn(1_000);
    test.turn();
    delete(&mut test, "q");
    declare(&mut test, "me", "another", false);
    let (early, waits) = bind_until_refused(&mut test, "another");
    assert!(matches!(waits, BindingError::MakingRoom(_)), "{waits:?}");
    assert!(early < bound, "{early} of {bound}");
    let freed = test.broker.names_freed();
    while test.broker.names_freed() == freed {
        assert!(test.turn());
    }
    let (_, refused) = bind_until_refused(&mut test, "another");
    assert!(matches!(refused, BindingError::Topic { .. }), "{refused:?}");
    assert_eq!(bindings(&test), bound);
}

#[test]
fn an_auto_delete_exchange_goes_with_its_queue_whenever_the_process_ends() {
    let mut test = with_bindings();
    let channel = test.client("me").channel;
    let request = DeclareExchange {
        name: String::from("ends"),
        kind: ExchangeKind::Fanout.as_str().into(),
        durable: true,
        auto_delete: true,
        ..DeclareExchange::default()
    };
    test.broker.declare_exchange(test.now, channel, &request).unwrap();
    let request = QueueBinding {
        queue: String::from("q"),
        exchange: String::from("ends"),
        routing_key: String::new(),
        arguments: Table::new(),
    };
    test.broker.bind_queue(test.now, channel, &request).unwrap();
    test.settle();
    delete(&mut test, "q");
    test.crash(0);
    assert!(test.broker.exchanges(None).iter().all(|exchange| exchange.name.as_str() != "ends"));
    assert_eq!(bindings(&test), 0);
}

#[test]
fn an_exclusive_queue_is_gone_for_clients_when_its_connection_is() {
    let mut test = BrokerTest::new(BrokerConfig::default(), StoreKind::Memory);
    (0..100).for_each(|n| declare(&mut test, "owner", &format!("own {n}"), true));
    test.broker.set_steps_per_turn(1_000);
    test.settle();
    let connection = test.client("owner").connection;
    test.broker.close_connection(test.now, connection);
    assert!(test.broker.queues(None).len() > 50, "most are left for later turns");
    // One that is left still can be declared by somebody else, and is empty and whole.
    declare(&mut test, "other", "own 99", true);
    let channel = test.client("other").channel;
    assert!(test.broker.purge_queue(test.now, channel, "own 98").is_err(), "it is not there");
    test.settle();
    let left: Vec<_> = test.broker.queues(None).iter().map(|q| q.name.to_string()).collect();
    assert_eq!(left, ["own 99"]);
}

/// Whatever reached the disk: the virtual host with all that was in it, or nothing.
#[test]
fn a_crash_while_a_virtual_host_is_removed_leaves_all_of_it_or_nothing() {
    let mut outcomes = [0, 0];
    for turns in 0..12 {
        for seed in 0..4 {
            let mut test = BrokerTest::new(BrokerConfig::default(), StoreKind::Log(64 * 1024));
            fill_vhost(&mut test, 20);
            test.settle();
            test.broker.set_steps_per_turn(1_000);
            test.turn();
            test.broker.delete_vhost(test.now, "full").unwrap();
            assert!(test.broker.vhosts().iter().all(|vhost| vhost.name.as_str() != "full"));
            let again = test.broker.put_vhost(test.now, "full");
            assert!(matches!(again, Err(AdminError::VhostBeingDeleted { .. })), "{again:?}");
            assert!(test.broker.is_vhost_being_deleted("full"));
            for _ in 0..turns {
                test.broker.store_mut().ticket(Durability::Os);
                test.turn();
            }
            test.power_cut(seed);
            let is_there = test.broker.vhosts().iter().any(|vhost| vhost.name.as_str() == "full");
            outcomes[usize::from(is_there)] += 1;
            if !is_there {
                // What was left of it is not taken for another one's, now or at the next start.
                test.broker.put_vhost(test.now, "full").unwrap();
                test.settle();
                test.crash(0);
            }
            let expected = if is_there { 20 } else { 0 };
            assert_eq!(test.broker.queues(Some("full")).len(), expected);
            assert_eq!(bindings(&test), expected);
            assert_eq!(test.broker.exchanges(Some("full")).len(), 7 + expected);
        }
    }
    assert!(outcomes.iter().all(|count| *count > 0), "both are seen: {outcomes:?}");
}

#[test]
fn a_stop_does_not_wait_for_what_is_being_removed() {
    let mut test = with_bindings();
    delete(&mut test, "q");
    let done = test.broker.work_done();
    test.broker.begin_shutdown(test.now);
    test.settle();
    assert_eq!(test.broker.work_done(), done, "the next start does it");
    test.shut_down();
    assert!(test.broker.queue("/", "q").is_none());
    assert_eq!(bindings(&test), 0);
    declare(&mut test, "me", "q", false);
    test.settle();
    test.crash(0);
    assert_eq!(bindings(&test), 0);
}

#[test]
fn a_queue_deleted_on_a_full_disk_makes_room_and_frees_its_name() {
    let mut test = BrokerTest::new(BrokerConfig::default(), StoreKind::Log(64 * 1024));
    declare(&mut test, "me", "q", false);
    test.settle();
    test.set_disk_capacity(8 * 64 * 1024);
    let channel = test.client("me").channel;
    let properties = Properties { delivery_mode: Some(2), ..Properties::default() }.to_bytes();
    test.append_until_full(1_000, |test| {
        let publish = Publish {
            exchange: "",
            routing_key: "q",
            properties: &properties,
            body: Bytes::from(vec![7; 1_000]),
            mandatory: false,
            confirm: false,
        };
        test.broker.publish(test.now, channel, publish).unwrap();
    });
    assert!(test.broker.overview().store.live > 100);
    delete(&mut test, "q");
    for _ in 0..20 {
        test.settle();
        test.now = test.now.plus_ms(1_000);
    }
    assert!(!test.broker.is_queue_being_deleted(channel, "q"));
    assert!(test.broker.accepts_publishes(), "what it held is free");
    assert_eq!(test.broker.overview().store.live, 0);
}

/// Whatever of a dead letter's way is behind it: its body has to be read, which takes some turns.
#[test]
fn dead_letters_are_moved_on_whenever_their_queue_goes() {
    const LETTERS: u64 = 20;
    for turns in 0..8 {
        let mut test = BrokerTest::new(BrokerConfig::default(), StoreKind::Log(64 * 1024));
        declare(&mut test, "me", "dead", false);
        let channel = test.client("me").channel;
        let mut arguments = Table::new();
        arguments.set("x-dead-letter-exchange", Value::text(""));
        arguments.set("x-dead-letter-routing-key", Value::text("dead"));
        let request = DeclareQueue {
            name: String::from("q"),
            durable: true,
            arguments,
            ..DeclareQueue::default()
        };
        test.broker.declare_queue(test.now, channel, &request).unwrap();
        test.fill("me", "q", LETTERS);
        test.settle();
        (0..LETTERS).for_each(|_| test.broker.get(test.now, channel, "q", false).unwrap());
        test.settle();
        // Each turn moves some of them.
        test.broker.set_steps_per_turn(1_000);
        test.broker.nack(test.now, channel, 0, true, false).unwrap();
        (0..turns).for_each(|_| _ = test.turn());
        delete(&mut test, "q");
        test.settle();
        let moved = test.broker.queue("/", "dead").unwrap().messages_ready;
        assert_eq!(moved, LETTERS, "after {turns} turns");
        let overview = test.broker.overview();
        assert_eq!((overview.counters.dead_lettered, overview.store.live), (LETTERS, LETTERS));
        test.crash(0);
        assert_eq!(test.broker.queue("/", "dead").unwrap().messages_ready, LETTERS);
    }
}
