//! The client of elastic queues over real sockets.

use std::time::Duration;

use quelea_elastic_client::{
    Client, Error, Event, Listener, MessageSeq, NoticeCode, Options, PublishError, RelayId,
};

use crate::site::Site;

fn run<F: Future>(test: F) -> F::Output {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    runtime.expect("a runtime").block_on(test)
}

async fn client(site: &Site) -> Client {
    Client::connect([site.address.clone()], Options::default()).expect("there is an address")
}

/// Takes so many messages and returns their bodies; no gap may come.
async fn bodies(listener: &mut Listener, count: usize) -> Vec<u64> {
    let mut bodies = Vec::new();
    while bodies.len() < count {
        match listener.next().await.expect("the listener goes on") {
            Event::Message(message) => {
                let body = message.body().try_into().expect("eight bytes");
                bodies.push(u64::from_le_bytes(body));
            }
            other => panic!("{other:?}"),
        }
    }
    bodies
}

#[test]
fn a_message_goes_from_a_producer_to_the_listeners_of_its_topic() {
    run(async {
        let site = Site::start(&[1]).await;
        let client = client(&site).await;
        let mut euros = client.listener("prices", ["eur."]).await.expect("it listens");
        let mut all = client.listener("prices", [""]).await.expect("it listens");
        let producer = client.producer("prices").await.expect("it produces");
        assert_eq!(producer.publish("usd.eur", "0.92").await, Ok(MessageSeq(0)));
        assert_eq!(producer.publish("eur.usd", "1.08").await, Ok(MessageSeq(1)));
        producer.acknowledged().await.expect("the relay acknowledges");
        let Event::Message(message) = euros.next().await.expect("it goes on") else {
            panic!("it is a message")
        };
        assert_eq!((message.topic(), message.body()), (&b"eur.usd"[..], &b"1.08"[..]));
        assert_eq!((message.sequence, message.producer), (MessageSeq(1), producer.id()));
        let Event::Message(first) = all.next().await.expect("it goes on") else {
            panic!("it is a message")
        };
        assert_eq!(producer.publish_framed(first.framed()).await, Ok(MessageSeq(2)));
        producer.close().await.expect("all is acknowledged");
        all.close().await;
    });
}

#[test]
fn who_tells_others_of_acknowledgements_hears_of_each() {
    run(async {
        let site = Site::start(&[1]).await;
        let client = client(&site).await;
        let producer = client.producer("prices").await.expect("it produces");
        assert_eq!(producer.done_below(), MessageSeq(0));
        let mut known = MessageSeq(0);
        for number in 1..=3 {
            producer.publish("eur.usd", "1.08").await.expect("there is room");
            known = producer.acknowledged_after(known).await.expect("the relay acknowledges");
            assert_eq!((known, producer.done_below()), (MessageSeq(number), known));
        }
        tokio::select! {
            biased;
            more = producer.acknowledged_after(known) => panic!("there is nothing more: {more:?}"),
            () = std::future::ready(()) => {}
        }
    });
}

#[test]
fn moves_under_load_lose_repeat_and_reorder_nothing() {
    run(async {
        const MOVES: u64 = 20;
        const LAST: u64 = u64::MAX;
        /// A directory says it again to a client that was away, as one that got no processor for long seems to be.
        const SAID_AGAIN_AFTER: u64 = 100_000;
        let site = Site::start(&[1, 2]).await;
        let client = client(&site).await;
        let mut listener = client.listener("prices", [""]).await.expect("it listens");
        let producer = client.producer("prices").await.expect("it produces");
        let publish = async {
            let mut next = 0_u64;
            for round in 0..MOVES {
                let began = next;
                while producer.stats().moves <= round {
                    if (next - began).is_multiple_of(SAID_AGAIN_AFTER) {
                        site.move_all(1 + (round + 1) % 2);
                    }
                    producer.publish("topic", next.to_le_bytes()).await.expect("it is taken");
                    next += 1;
                }
            }
            producer.publish("topic", LAST.to_le_bytes()).await.expect("it is taken");
            producer.acknowledged().await.expect("the relays acknowledge");
            next
        };
        let take = async {
            let mut taken = Vec::new();
            while taken.last() != Some(&LAST) {
                taken.extend(bodies(&mut listener, 1).await);
            }
            taken
        };
        let (published, taken) = tokio::join!(publish, take);
        assert!(taken.into_iter().eq((0..published).chain([LAST])));
        assert_eq!(listener.stats().gaps, 0);
    });
}

#[test]
fn a_relays_death_is_lived_through() {
    run(async {
        let site = Site::start(&[1, 2]).await;
        let client = client(&site).await;
        let mut listener = client.listener("prices", [""]).await.expect("it listens");
        let producer = client.producer("prices").await.expect("it produces");
        for number in 0..100_u64 {
            producer.publish("topic", number.to_le_bytes()).await.expect("it is taken");
        }
        assert!(bodies(&mut listener, 100).await.into_iter().eq(0..100));
        site.kill(1);
        for number in 100..200_u64 {
            producer.publish("topic", number.to_le_bytes()).await.expect("it is kept or sent");
        }
        assert!(bodies(&mut listener, 100).await.into_iter().eq(100..200));
        assert_eq!(producer.relay(), Some(RelayId(2)));
        assert_eq!(producer.stats().failovers, 1);
    });
}

#[test]
fn a_subscription_can_be_added_and_a_notice_is_heard() {
    run(async {
        let site = Site::start(&[1]).await;
        let client = client(&site).await;
        let mut listener = client.listener("prices", ["a"]).await.expect("it listens");
        listener.subscribe("b").expect("a short prefix");
        site.notice("4 relays are the most");
        let notice = listener.next().await.expect("it goes on");
        let text = "4 relays are the most".to_owned();
        assert_eq!(notice, Event::Notice { code: NoticeCode::AtMaximum, text });
        let producer = client.producer("prices").await.expect("it produces");
        producer.publish("b", 7_u64.to_le_bytes()).await.expect("it is taken");
        assert_eq!(bodies(&mut listener, 1).await, [7]);
        assert_eq!(listener.try_next(), Ok(None));
        let error = listener.unsubscribe("c").expect_err("it is not subscribed to");
        assert_eq!(error.to_string(), "prefix: it is not subscribed to");
    });
}

#[test]
fn who_has_not_the_key_is_told_so() {
    run(async {
        let site = Site::start(&[1]).await;
        site.ask_for_key(b"secret");
        let refused = client(&site).await.producer("prices").await.expect_err("it has no key");
        assert_eq!(refused.to_string(), "refused (Key): this is not the key");
        let options = Options { key: "secret".into(), ..Options::default() };
        let client = Client::connect([site.address.clone()], options).expect("an address");
        client.producer("prices").await.expect("it has the key");
        let none: [String; 0] = [];
        let error = Client::connect(none, Options::default()).expect_err("there is no address");
        assert_eq!(error, Error::NoDirectory);
    });
}

#[test]
fn a_relay_of_another_queue_ends_no_client() {
    run(async {
        let site = Site::start(&[1]).await;
        let client = client(&site).await;
        site.refuse_attach(1, 2);
        let mut listener = client.listener("prices", [""]).await.expect("it tries again");
        site.refuse_attach(1, 1);
        let producer = client.producer("prices").await.expect("it tries again");
        producer.publish("topic", 7_u64.to_le_bytes()).await.expect("it is taken");
        assert_eq!(bodies(&mut listener, 1).await, [7]);
        assert_eq!(producer.last_error().as_deref(), Some("this relay serves \"others\""));
    });
}

#[test]
fn a_queues_name_that_a_directory_refuses_is_final() {
    run(async {
        let site = Site::start(&[1]).await;
        site.refuse_opens();
        let client = client(&site).await;
        let error = client.listener("prices", [""]).await.expect_err("it is refused");
        assert_eq!(error.to_string(), "refused (Queue): it is no queue");
    });
}

#[test]
fn what_cannot_be_a_message_is_refused_and_a_full_window_said() {
    run(async {
        let site = Site::start(&[1]).await;
        let producer = client(&site).await.producer("prices").await.expect("it produces");
        let error = producer.publish_parts::<&[u8]>(&[]).await.expect_err("it has no part");
        assert_eq!(error.to_string(), "message: has no part");
        let message = [vec![0; 1 << 20]];
        let full = loop {
            if let Err(error) = producer.try_publish(&message) {
                break error;
            }
        };
        assert!(matches!(full, Error::Publish(PublishError::Full { .. })), "{full}");
        producer.publish_parts(&message).await.expect("it waits for room");
        producer.flush().await.expect("all is sent");
    });
}

#[test]
fn what_cannot_be_opened_is_refused_with_its_field_limit_and_value() {
    run(async {
        let address = ["127.0.0.1:1"];
        let made =
            |options| Client::connect(address, options).map(|_| ()).map_err(|e| e.to_string());
        let name = Options { name: "x".repeat(256), ..Options::default() };
        assert_eq!(made(name), Err("name: 256 bytes are more than the limit of 255".to_owned()));
        let key = Options { key: vec![0; 1025].into(), ..Options::default() };
        assert_eq!(made(key), Err("key: 1025 bytes are more than the limit of 1024".to_owned()));
        let window = Options { window_bytes: 1, ..Options::default() };
        let least = "window_bytes: 1 is less than the limit of 65536".to_owned();
        assert_eq!(made(window), Err(least));
        for wrong in ["", "host", ":1", "host:", "host:0", "host:65536"] {
            let error = Client::connect([wrong], Options::default()).expect_err(wrong).to_string();
            assert!(error.starts_with("directory: ") && error.contains(wrong), "{error}");
        }
        let client = Client::connect(address, Options::default()).expect("an address");
        let error = client.producer("").await.expect_err("it has no name").to_string();
        assert_eq!(error, "queue: a name has from 1 to 255 bytes, this one 0");
        let error = client.listener("x".repeat(256), [""]).await.expect_err("too long");
        assert_eq!(error.to_string(), "queue: a name has from 1 to 255 bytes, this one 256");
    });
}

#[test]
fn a_timed_out_open_names_the_silent_directory() {
    run(async {
        let open_timeout = Duration::from_secs(1);
        let options = Options { open_timeout, ..Options::default() };
        let client = Client::connect(["127.0.0.1:1"], options).expect("an address");
        let error = client.producer("prices").await.expect_err("nobody is there").to_string();
        let begin = "queue \"prices\" was not opened within 1 s: directory 127.0.0.1:1: ";
        assert!(error.starts_with(begin), "{error}");
    });
}

#[test]
fn who_closes_a_listener_or_abandons_a_producer_wakes_those_who_wait() {
    run(async {
        let site = Site::start(&[1]).await;
        let client = client(&site).await;
        let mut listener = client.listener("prices", [""]).await.expect("it listens");
        let producer = client.producer("prices").await.expect("it produces");
        let control = listener.control();
        let (next, ()) = tokio::join!(listener.next(), control.close());
        assert_eq!(next, Err(Error::Closed));
        producer.publish("topic", "body").await.expect("it is taken");
        let waits = producer.acknowledged_below(MessageSeq(2)); // The second was never published.
        let (waited, ()) = tokio::join!(waits, async { producer.abandon() });
        assert_eq!(waited, Err(Error::Closed));
        assert_eq!(producer.unacknowledged().end, MessageSeq(1));
    });
}

#[test]
fn a_directory_is_found_among_addresses_that_are_given_twice() {
    run(async {
        let site = Site::start(&[1]).await;
        // Where it begins is drawn: each place once, or so.
        for _ in 0..8 {
            let addresses = ["127.0.0.1:1", "127.0.0.1:1", &site.address, "127.0.0.1:1"];
            let client = Client::connect(addresses, Options::default()).expect("addresses");
            let found = tokio::time::timeout(Duration::from_secs(60), client.producer("prices"));
            found.await.expect("it comes to the one that lives").expect("it produces");
        }
    });
}
