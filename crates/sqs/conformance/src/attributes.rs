//! A queue's attributes and tags.

use std::collections::BTreeSet;

use quelea_sqs_protocol::{Consistency, Fault, NewQueue, OrderHint, QueueDurability, Queues};

use crate::suite::{Suite, map, message};

pub(crate) async fn attributes_and_tags_are_kept_as_they_were_set<Q: Queues>(suite: &Suite<Q>) {
    let queue = suite.queue_ref(&suite.name());
    let attributes = map(&[
        ("DelaySeconds", "5"),
        ("MessageRetentionPeriod", "60"),
        ("OrderHint", "7"),
        (
            "Policy",
            r#"{"Statement":{"Effect":"Deny","Principal":"*","Action":"*","Resource":"*"}}"#,
        ),
        ("KmsMasterKeyId", "ключ"),
    ]);
    let tags = map(&[("team", "storage"), ("empty", ""), ("ü", "😀")]);
    let new = NewQueue { class: suite.class, attributes, tags };
    suite.store.create(&queue, new.clone()).await.unwrap();
    let made = suite.facts(&queue).await.unwrap();
    assert_eq!((&made.attributes, &made.tags), (&new.attributes, &new.tags));
    assert_eq!((made.settings.delay_ms, made.settings.retention_ms), (5_000, 60_000));
    assert_eq!(made.settings.order_hint, OrderHint::Fixed(7));
    assert!(made.created_at_ms <= made.modified_at_ms);

    let attributes = map(&[("VisibilityTimeout", "1")]);
    suite.store.put_attributes(&made, attributes.clone()).await.unwrap();
    let set = suite.facts(&queue).await.unwrap();
    assert_eq!((&set.attributes, &set.tags), (&attributes, &new.tags));
    assert_eq!((set.key, set.created_at_ms), (made.key, made.created_at_ms));
    assert_ne!(set.revision, made.revision);
    let other_tags = map(&[("team", "queues")]);
    suite.store.put_tags(&set, other_tags.clone()).await.unwrap();
    let tagged = suite.facts(&queue).await.unwrap();
    assert_eq!((&tagged.attributes, &tagged.tags), (&attributes, &other_tags));
    assert_ne!(tagged.revision, set.revision);
}

pub(crate) async fn attributes_that_its_class_has_are_served<Q: Queues>(suite: &Suite<Q>) {
    let capabilities = suite.capabilities();
    let mut declared = Vec::new();
    if capabilities.order_hint_auto {
        declared.push(("OrderHint", "auto"));
    }
    if capabilities.durability {
        declared.extend(QueueDurability::ALL.map(|durability| ("Durability", durability.name())));
    }
    if capabilities.consistency.is_some() {
        declared.extend(Consistency::ALL.map(|consistency| ("Consistency", consistency.name())));
    }
    for (name, value) in declared {
        let queue = suite.queue(&[(name, value)]).await;
        let settings = &queue.settings;
        let is_set = match name {
            "OrderHint" => settings.order_hint == OrderHint::Auto,
            "Durability" => settings.durability.name() == value,
            _ => settings.consistency == Consistency::from_name(value),
        };
        assert!(is_set, "{name}={value}: {settings:?}");
        suite.send_bodies(&queue, &["1", "2", "3"]).await;
        if (name, value) == ("Consistency", Consistency::One.name()) {
            // The next call may ask a replica that has not heard of the last one: a message may come twice.
            let mut bodies = BTreeSet::new();
            while bodies.len() < 3 {
                bodies.extend(suite.receive_bodies(&queue, 1).await);
            }
            assert!(bodies.iter().eq(["1", "2", "3"]), "{name}={value}: {bodies:?}");
            continue;
        }
        assert_eq!(suite.receive_bodies(&queue, 3).await, ["1", "2", "3"], "{name}={value}");
        suite.expect_nothing(&queue).await;
    }
}

pub(crate) async fn a_change_of_what_was_not_seen_is_a_conflict<Q: Queues>(suite: &Suite<Q>) {
    let seen = suite.queue(&[]).await;
    let store = &suite.store;
    store.put_attributes(&seen, map(&[("DelaySeconds", "1")])).await.unwrap();
    let late = store.put_attributes(&seen, map(&[("DelaySeconds", "2")])).await;
    assert_eq!(late, Err(Fault::Conflict));
    let now = suite.facts(&seen.queue).await.unwrap();
    assert_eq!(now.attributes, map(&[("DelaySeconds", "1")]), "nothing has happened");
    store.put_tags(&now, map(&[("a", "1")])).await.unwrap();
    assert_eq!(store.put_tags(&now, map(&[("a", "2")])).await, Err(Fault::Conflict));
    assert_eq!(suite.facts(&seen.queue).await.unwrap().tags, map(&[("a", "1")]));
}

pub(crate) async fn of_two_changes_at_once_one_conflicts<Q: Queues>(suite: &Suite<Q>) {
    let seen = suite.queue(&[]).await;
    let (one, two) = (map(&[("DelaySeconds", "1")]), map(&[("DelaySeconds", "2")]));
    let (first, second) = tokio::join!(
        suite.store.put_attributes(&seen, one.clone()),
        suite.store.put_attributes(&seen, two.clone())
    );
    let now = suite.facts(&seen.queue).await.unwrap().attributes.clone();
    match (first, second) {
        (Ok(()), Err(Fault::Conflict)) => assert_eq!(now, one),
        (Err(Fault::Conflict), Ok(())) => assert_eq!(now, two),
        others => panic!("{others:?}"),
    }
}

pub(crate) async fn settings_act_from_the_next_look_up<Q: Queues>(suite: &Suite<Q>) {
    let before = suite.queue(&[("DelaySeconds", "900")]).await;
    suite.send(&before, vec![message("late")]).await;
    suite.store.put_attributes(&before, map(&[("DelaySeconds", "0")])).await.unwrap();
    let after = suite.facts(&before.queue).await.unwrap();
    suite.send(&after, vec![message("soon")]).await;
    assert_eq!(suite.receive_bodies(&after, 1).await, ["soon"]);
    suite.expect_nothing(&after).await;
}
