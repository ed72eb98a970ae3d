//! The keys of elastic queues' tables.

use super::{DAY_MS, Field, GIB, Key, Kind};

/// `[[elastic.queue]]`.
pub(super) const ELASTIC_QUEUE_FIELDS: &[Field] = &[
    Field {
        key: Key {
            name: "elastic.queue.name",
            kind: Kind::Text,
            meaning: "Its name, as clients open it: 1 to 255 bytes.",
        },
        default: None,
    },
    Field {
        key: Key {
            name: "elastic.queue.definition",
            kind: Kind::Text,
            meaning: "Its definition, a JSON object; over `elastic.default`.",
        },
        default: Some("\"{}\""),
    },
];

/// `[[elastic.entry]]`.
pub(super) const ELASTIC_ENTRY_FIELDS: &[Field] = &[
    Field {
        key: Key {
            name: "elastic.entry.queue",
            kind: Kind::Text,
            meaning: "The elastic queue that it is for: 1 to 255 bytes.",
        },
        default: None,
    },
    Field {
        key: Key {
            name: "elastic.entry.zmtp_in",
            kind: Kind::OptionalAddress,
            meaning: "Where PUB and XPUB sockets connect, to publish to the queue; empty: nowhere.",
        },
        default: Some("\"\""),
    },
    Field {
        key: Key {
            name: "elastic.entry.zmtp_out",
            kind: Kind::OptionalAddress,
            meaning: "Where SUB and XSUB sockets connect, to listen to the queue; empty: nowhere.",
        },
        default: Some("\"\""),
    },
    Field {
        key: Key {
            name: "elastic.entry.zmtp_security",
            kind: Kind::Text,
            meaning: "The mechanism of both sides: `null`, `plain` or `curve`.",
        },
        default: Some("\"null\""),
    },
    Field {
        key: Key {
            name: "elastic.entry.zmtp_users_file",
            kind: Kind::Text,
            meaning: "PLAIN's users, a line `NAME:PASSWORD` each.",
        },
        default: Some("\"\""),
    },
    Field {
        key: Key {
            name: "elastic.entry.zmtp_secret_key_file",
            kind: Kind::Text,
            meaning: "CURVE's secret key of the entry, in Z85.",
        },
        default: Some("\"\""),
    },
    Field {
        key: Key {
            name: "elastic.entry.zmtp_clients_file",
            kind: Kind::Text,
            meaning: "CURVE's public keys of the clients that may connect, in Z85, one a line; empty: \
                      all may that know the entry's.",
        },
        default: Some("\"\""),
    },
    Field {
        key: Key {
            name: "elastic.entry.zmtp_heartbeat_ms",
            kind: Kind::Integer { min: 0, max: DAY_MS },
            meaning: "Time between two PINGs, in milliseconds; a peer that is not heard for three is \
                      given up. 0: none.",
        },
        default: Some("5000"),
    },
    Field {
        key: Key {
            name: "elastic.entry.slow",
            kind: Kind::Text,
            meaning: "What becomes of a SUB that is too slow: `drop_newest`, as in ZeroMQ; \
                      `drop_oldest`; `disconnect`; `hold_producers`, nothing is dropped here and the \
                      entry itself becomes slow.",
        },
        default: Some("\"drop_newest\""),
    },
    Field {
        key: Key {
            name: "elastic.entry.ring_bytes_max",
            kind: Kind::Size { min: 65_536, max: 4 * GIB },
            meaning: "What may wait for one SUB in the entry.",
        },
        default: Some("8388608"),
    },
];
