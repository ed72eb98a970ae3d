use std::sync::Arc;

use proptest::prelude::*;
use quelea_model::Value;
use quelea_store::Durability;

use super::*;
use crate::queues::queue::attributes::{Fifo, QueueAttributes, QueueSettings, Redrive};

fn text() -> impl Strategy<Value = Box<str>> {
    "\\PC{0,20}".prop_map(String::into_boxed_str)
}

fn texts() -> impl Strategy<Value = Vec<Box<str>>> {
    proptest::collection::vec(text(), 0..4)
}

fn vhost() -> impl Strategy<Value = VhostName> {
    "[a-zé/]{1,20}".prop_map(|name| VhostName::parse(&name).unwrap())
}

fn queue_name() -> impl Strategy<Value = QueueName> {
    "[a-z0-9.ü]{1,40}".prop_map(|name| QueueName::parse(&name).unwrap())
}

fn exchange_name() -> impl Strategy<Value = ExchangeName> {
    "[a-z0-9.]{0,40}".prop_map(|name| ExchangeName::parse(&name).unwrap())
}

fn user_name() -> impl Strategy<Value = Arc<str>> {
    "[a-z]{1,10}".prop_map(Arc::from)
}

fn table() -> impl Strategy<Value = Table> {
    let value = prop_oneof![
        any::<i64>().prop_map(Value::I64),
        any::<bool>().prop_map(Value::Bool),
        "\\PC{0,8}".prop_map(|text| Value::text(&text)),
        Just(Value::Void),
        any::<i32>().prop_map(|n| Value::Table(Table::from_iter([("n", Value::I32(n))]))),
    ];
    proptest::collection::btree_map("[a-z-]{1,12}", value, 0..5)
        .prop_map(|entries| entries.into_iter().collect())
}

fn exchange() -> impl Strategy<Value = ExchangeSpec> {
    let flags = (any::<bool>(), any::<bool>());
    (exchange_name(), 0usize..4, flags, table()).prop_map(|(name, kind, flags, arguments)| {
        let (auto_delete, internal) = flags;
        let kind = ExchangeKind::ALL[kind];
        ExchangeSpec { name, kind, durable: true, auto_delete, internal, arguments }
    })
}

fn queue() -> impl Strategy<Value = StoredQueue> {
    let flags = (any::<bool>(), any::<bool>());
    (vhost(), queue_name(), any::<u32>(), flags, any::<u64>(), table()).prop_map(
        |(vhost, name, id, (auto_delete, exclusive), created_at, arguments)| StoredQueue {
            vhost,
            name,
            id: QueueId(id),
            auto_delete,
            exclusive,
            created_at: Timestamp::from_millis(created_at),
            arguments,
        },
    )
}

fn binding() -> impl Strategy<Value = StoredBinding> {
    let destination = prop_oneof![
        queue_name().prop_map(StoredDestination::Queue),
        exchange_name().prop_map(StoredDestination::Exchange),
    ];
    (vhost(), exchange_name(), destination, text(), table()).prop_map(
        |(vhost, source, destination, key, arguments)| StoredBinding {
            vhost,
            source,
            destination,
            key,
            arguments,
        },
    )
}

fn pairs() -> impl Strategy<Value = Vec<(Box<str>, Box<str>)>> {
    proptest::collection::vec((text(), text()), 0..3)
}

fn settings() -> impl Strategy<Value = QueueSettings> {
    let redrive = proptest::option::of((any::<u16>(), text()));
    let durability =
        prop::sample::select(vec![None, Some(Durability::Os), Some(Durability::Fsync)]);
    let fifo = proptest::option::of(any::<bool>());
    let times = (any::<u64>(), proptest::option::of(any::<u64>()));
    (times, any::<u16>(), redrive, fifo, any::<bool>(), durability).prop_map(
        |((delay_ms, retention_ms), order_hint, redrive, fifo, fair, durability)| QueueSettings {
            delay_ms,
            retention_ms,
            order_hint,
            redrive: redrive.map(|(receives_max, target)| Redrive { receives_max, target }),
            fifo: fifo.map(|deduplicates_by_group| Fifo { deduplicates_by_group }),
            fair,
            durability,
        },
    )
}

fn attributes() -> impl Strategy<Value = StoredAttributes> {
    (vhost(), queue_name(), settings(), pairs(), pairs(), any::<u64>()).prop_map(
        |(vhost, queue, settings, attributes, tags, modified_at)| {
            let modified_at = Timestamp::from_millis(modified_at);
            let attributes = QueueAttributes { settings, attributes, tags, modified_at };
            StoredAttributes { vhost, queue, attributes }
        },
    )
}

fn access_key() -> impl Strategy<Value = AccessKey> {
    let texts = ("[A-Z0-9]{16,20}", "[ -~]{16,40}");
    (texts, vhost(), user_name(), any::<bool>(), any::<u64>()).prop_map(
        |((id, secret), vhost, user, enabled, created_at)| AccessKey {
            id: id.into(),
            secret: secret.into(),
            user,
            vhost,
            enabled,
            created_at: Timestamp::from_millis(created_at),
        },
    )
}

fn item() -> impl Strategy<Value = Item> {
    prop_oneof![
        (vhost(), text(), texts()).prop_map(|(name, description, tags)| {
            Item::Vhost(StoredVhost { name, description, tags })
        }),
        (user_name(), text(), texts()).prop_map(|(name, password_hash, tags)| Item::User(User {
            name,
            password_hash,
            tags
        })),
        (vhost(), user_name(), text(), text(), text()).prop_map(
            |(vhost, user, configure, write, read)| {
                Item::Permission(Permission { user, vhost, configure, write, read })
            }
        ),
        (vhost(), user_name(), text(), text(), text()).prop_map(
            |(vhost, user, exchange, write, read)| {
                Item::TopicPermission(TopicPermission { user, vhost, exchange, write, read })
            }
        ),
        (vhost(), exchange()).prop_map(|(vhost, exchange)| Item::Exchange(vhost, exchange)),
        queue().prop_map(Item::Queue),
        binding().prop_map(Item::Binding),
        attributes().prop_map(Item::Attributes),
        access_key().prop_map(Item::AccessKey),
    ]
}

proptest! {
    #[test]
    fn every_item_survives_the_log(item in item()) {
        prop_assert_eq!(Item::decode(&item.key(), &item.value()).unwrap(), item);
    }

    #[test]
    fn two_items_share_a_key_only_if_they_are_the_same_thing(a in item(), b in item()) {
        if a.key() == b.key() {
            prop_assert_eq!(a.kind(), b.kind());
        }
        if a.kind() != b.kind() {
            prop_assert_eq!(a.key() < b.key(), a.kind() < b.kind(), "keys sort by kind");
        }
    }

    #[test]
    fn a_cut_or_lengthened_item_is_refused_with_its_place(item in item(), at: prop::sample::Index) {
        let (key, value) = (item.key(), item.value());
        let error = Item::decode(&key[..at.index(key.len())], &value).unwrap_err();
        prop_assert_eq!(error.part, "key");
        let error = Item::decode(&key, &value[..at.index(value.len())]).unwrap_err();
        prop_assert_eq!(error.part, "value");
        prop_assert!(error.at <= value.len());
        let longer = [&value[..], &[0]].concat();
        let error = Item::decode(&key, &longer).unwrap_err();
        prop_assert_eq!((error.what, error.at), ("end", value.len()));
    }

    #[test]
    fn any_bytes_are_decoded_or_refused(key: Vec<u8>, value: Vec<u8>, kind in 1u8..13) {
        let _ = Item::decode(&key, &value);
        let key = [&[kind], &key[..]].concat();
        let value = [&[VERSION], &value[..]].concat();
        let _ = Item::decode(&key, &value);
    }
}

/// The example of docs/formats/topology.md.
#[test]
fn a_queue_has_these_bytes() {
    let item = Item::Queue(StoredQueue {
        vhost: VhostName::parse("/").unwrap(),
        name: QueueName::parse("orders").unwrap(),
        id: QueueId(7),
        auto_delete: true,
        exclusive: false,
        created_at: Timestamp::from_millis(1_700_000_000_000),
        arguments: Table::from_iter([("x-expires", Value::I32(1000))]),
    });
    let key = b"\x06\x01\0\0\0/\x06\0\0\0orders";
    let value = b"\x01\x07\0\0\0\x01\0\x68\xe5\xcf\x8b\x01\0\0\x0f\0\0\0\x09x-expiresI\0\0\x03\xe8";
    assert_eq!(item.key(), key);
    assert_eq!(item.value(), value);
    assert_eq!(Item::decode(key, value).unwrap(), item);
}

/// The management API took such arguments once.
#[test]
fn arguments_nested_more_deeply_than_today_survive_the_log() {
    let deep = (0..100).fold(Value::Void, |inner, _| Value::Array(vec![inner]));
    let arguments = Table::from_iter([("deep", deep)]);
    let vhost = VhostName::parse("/").unwrap();
    let source = ExchangeName::parse("x").unwrap();
    for item in [
        Item::Queue(StoredQueue {
            vhost: vhost.clone(),
            name: QueueName::parse("q").unwrap(),
            id: QueueId(7),
            auto_delete: false,
            exclusive: false,
            created_at: Timestamp::from_millis(0),
            arguments: arguments.clone(),
        }),
        Item::Exchange(
            vhost.clone(),
            ExchangeSpec {
                name: source.clone(),
                kind: ExchangeKind::Topic,
                durable: true,
                auto_delete: false,
                internal: false,
                arguments: arguments.clone(),
            },
        ),
        Item::Binding(StoredBinding {
            vhost,
            destination: StoredDestination::Exchange(source.clone()),
            source,
            key: "k".into(),
            arguments,
        }),
    ] {
        assert_eq!(Item::decode(&item.key(), &item.value()).unwrap(), item);
    }
}

#[test]
fn an_access_key_has_these_bytes() {
    let item = Item::AccessKey(AccessKey {
        id: "AKIA".into(),
        secret: "hush".into(),
        user: "ada".into(),
        vhost: VhostName::parse("/").unwrap(),
        enabled: false,
        created_at: Timestamp::from_millis(1_700_000_000_000),
    });
    let key = b"\x0b\x04\0\0\0AKIA";
    let value = b"\x01\x01\0\0\0/\x03\0\0\0ada\x04\0\0\0hush\x01\0\x68\xe5\xcf\x8b\x01\0\0";
    assert_eq!(item.key(), key);
    assert_eq!(item.value(), value);
    assert_eq!(Item::decode(key, value).unwrap(), item);
}

#[test]
fn unknown_numbers_are_refused_with_what_and_where() {
    let exchange = Item::Exchange(
        VhostName::parse("/").unwrap(),
        ExchangeSpec {
            name: ExchangeName::parse("x").unwrap(),
            kind: ExchangeKind::Headers,
            durable: true,
            auto_delete: false,
            internal: true,
            arguments: Table::new(),
        },
    );
    let decode_with = |part: &str, at: usize, byte: u8| {
        let (mut key, mut value) = (exchange.key(), exchange.value());
        let bytes = if part == "key" { &mut key } else { &mut value };
        bytes[at] = byte;
        Item::decode(&key, &value).unwrap_err().to_string()
    };
    let cases = [
        ("key", 0, 0, "kind at byte 0 of the key: unknown number 0"),
        ("key", 0, 8, "kind at byte 0 of the key: unknown number 8"),
        ("key", 1, 0, "vhost name at byte 1 of the key: virtual host name is empty"),
        (
            "key",
            10,
            7,
            "exchange name at byte 6 of the key: exchange name holds a control character at byte 0",
        ),
        ("value", 0, 2, "version at byte 0 of the value: 2, this program reads 1"),
        ("value", 1, 9, "exchange type at byte 1 of the value: unknown number 9"),
        ("value", 2, 6, "flags at byte 2 of the value: unknown bits 0x04"),
        ("value", 3, 1, "arguments at byte 7 of the value: 1 bytes are needed, 0 are there"),
    ];
    for (part, at, byte, expected) in cases {
        assert_eq!(decode_with(part, at, byte), format!("stored topology: {expected}"));
    }
}
