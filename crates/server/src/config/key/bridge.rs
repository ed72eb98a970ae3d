//! The keys of the bridges' tables.

use super::{Field, Key, Kind};

/// `[[bridge.feed]]`.
pub(super) const FEED_FIELDS: &[Field] = &[
    Field {
        key: Key {
            name: "bridge.feed.exchange",
            kind: Kind::Text,
            meaning: "Exchange whose messages are fed. Empty: nothing is bound, and what comes into \
                      `through` is fed.",
        },
        default: None,
    },
    Field {
        key: Key {
            name: "bridge.feed.binding_keys",
            kind: Kind::TextList,
            meaning: "Which of its messages: keys by which `through` is bound.",
        },
        default: Some("[\"#\"]"),
    },
    Field {
        key: Key {
            name: "bridge.feed.vhost",
            kind: Kind::Text,
            meaning: "Virtual host of the exchange and of `through`.",
        },
        default: Some("\"/\""),
    },
    Field {
        key: Key {
            name: "bridge.feed.through",
            kind: Kind::Text,
            meaning: "Durable queue in which messages wait. It is made if it is not there.",
        },
        default: None,
    },
    Field {
        key: Key {
            name: "bridge.feed.queue",
            kind: Kind::Text,
            meaning: "The elastic queue: 1 to 255 bytes.",
        },
        default: None,
    },
    Field {
        key: Key {
            name: "bridge.feed.prefetch",
            kind: Kind::Integer { min: 1, max: 65_535 },
            meaning: "Most messages that are under way to the elastic queue.",
        },
        default: Some("1000"),
    },
];

/// `[[bridge.delivery]]`.
pub(super) const DELIVERY_FIELDS: &[Field] = &[
    Field {
        key: Key {
            name: "bridge.delivery.queue",
            kind: Kind::Text,
            meaning: "The elastic queue: 1 to 255 bytes.",
        },
        default: None,
    },
    Field {
        key: Key {
            name: "bridge.delivery.prefixes",
            kind: Kind::TextList,
            meaning: "Which of its messages: those whose topic begins with one of these.",
        },
        default: Some("[\"\"]"),
    },
    Field {
        key: Key {
            name: "bridge.delivery.vhost",
            kind: Kind::Text,
            meaning: "Virtual host of the exchange.",
        },
        default: Some("\"/\""),
    },
    Field {
        key: Key {
            name: "bridge.delivery.exchange",
            kind: Kind::Text,
            meaning: "Exchange to which they are published. Empty is the default exchange, which takes \
                      them to the queue, of AMQP or SQS, that has the routing key's name.",
        },
        default: Some("\"\""),
    },
    Field {
        key: Key {
            name: "bridge.delivery.routing_key",
            kind: Kind::Text,
            meaning: "Their routing key; empty: the topic.",
        },
        default: Some("\"\""),
    },
];
