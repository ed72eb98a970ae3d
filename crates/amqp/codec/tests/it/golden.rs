//! Frames as bytes in files, so that a change of the wire cannot pass unseen. After a
//! change that is meant, `QUELEA_BLESS=1` writes them anew; look at what it changed.

use std::path::PathBuf;

use bytes::Bytes;
use quelea_amqp_codec::method::{basic, connection, exchange, queue};
use quelea_amqp_codec::{Method, Output, server_properties};
use quelea_model::{Message, Properties, Table, Value};

fn arguments() -> Table {
    Table::from_iter([
        ("x-message-ttl", Value::I32(60_000)),
        ("x-dead-letter-exchange", Value::text("dead")),
        ("x-single-active-consumer", Value::Bool(true)),
        ("x-list", Value::Array(vec![Value::I64(-1), Value::Void, Value::F64(0.5)])),
    ])
}

fn methods() -> Vec<(&'static str, Method)> {
    let declare = queue::Declare {
        queue: "orders".into(),
        durable: true,
        auto_delete: true,
        arguments: arguments(),
        ..queue::Declare::default()
    };
    let start = connection::Start {
        version_major: 0,
        version_minor: 9,
        server_properties: server_properties("1.2.3"),
        mechanisms: Bytes::from_static(b"PLAIN AMQPLAIN"),
        locales: Bytes::from_static(b"en_US"),
    };
    let bind = exchange::Bind {
        destination: "to".into(),
        source: "from".into(),
        routing_key: "a.#".into(),
        no_wait: true,
        arguments: Table::new(),
    };
    let close = connection::Close {
        reply_code: 404,
        reply_text: "NOT_FOUND - no queue 'ü'".into(),
        class_id: 50,
        method_id: 10,
    };
    vec![
        ("connection-start", start.into()),
        ("connection-close", close.into()),
        ("queue-declare", declare.into()),
        ("exchange-bind", bind.into()),
        ("basic-nack", basic::Nack { delivery_tag: 1 << 40, multiple: true, requeue: true }.into()),
    ]
}

#[test]
fn frames_are_what_they_were() {
    for (name, method) in methods() {
        let mut output = Output::new();
        output.method(258, &method);
        check(name, &output.to_bytes());
    }
}

#[test]
fn a_delivery_is_what_it_was() {
    let properties = Properties {
        content_type: Some("text/plain".into()),
        headers: Some(arguments()),
        delivery_mode: Some(2),
        timestamp: Some(1_700_000_000),
        ..Properties::default()
    };
    let body = Bytes::from((0..100u8).collect::<Vec<u8>>());
    let message = Message::new("logs", "a.b.c", &properties.to_bytes(), body);
    let mut output = Output::new();
    output.deliver(258, "ctag-1", 7, true, &message, 48);
    check("basic-deliver", &output.to_bytes());
}

fn check(name: &str, bytes: &[u8]) {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join(format!("tests/golden/{name}.bin"));
    if std::env::var_os("QUELEA_BLESS").is_some() {
        std::fs::write(&path, bytes).expect("the directory is there");
    }
    let golden = std::fs::read(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    assert_eq!(bytes, golden, "{name} is written differently");
}
