//! Every refusal with its reply code, RabbitMQ's text, and the method that it is for.

use quelea_amqp_codec::method::{
    Method, basic, exchange as exchange_methods, queue as queue_methods,
};
use quelea_model::{Properties, Table, Value};

use crate::consuming::consume;
use crate::declaring::{bind, durable_queue, exchange, exclusive_queue, queue};
use crate::session_test::{On, SessionTest, capabilities, has_debug_form, to};

const LOCKED: &str = "RESOURCE_LOCKED - cannot obtain exclusive access to locked queue 'mine' in \
                      vhost '/'. It could be originally declared on another connection or the \
                      exclusive property value does not match that of the original declaration.";

/// Returns a node with a queue `q`, a durable one `d`, an exchange `e`, a queue `mine` of another
/// connection, and a queue `theirs` with an exclusive consumer.
fn populated() -> (SessionTest, On) {
    let mut node = SessionTest::new();
    let owner = node.channel();
    node.call(owner, exclusive_queue("mine"));
    node.call(owner, queue("theirs"));
    node.call(owner, basic::Consume { exclusive: true, ..consume("theirs", "only") });
    let on = node.channel();
    node.call(on, queue("q"));
    node.call(on, durable_queue("d"));
    node.call(on, exchange("e", "fanout"));
    (node, on)
}

fn with(name: &str, argument: &str, value: Value) -> queue_methods::Declare {
    let arguments = Table::from_iter([(argument, value)]);
    queue_methods::Declare { arguments, ..queue(name) }
}

fn get(queue: &str) -> Method {
    basic::Get { queue: queue.into(), no_ack: true }.into()
}

/// Sends each method to a node of its own and compares the refusal.
fn refuses<const N: usize>(cases: [(Method, u16, &str); N]) {
    for (method, code, text) in cases {
        let (mut node, on) = populated();
        let (class_id, method_id) = (method.class_id(), method.method_id());
        let refusal = node.refused(on, method.clone());
        assert_eq!(refusal, (code, text.to_owned(), class_id, method_id), "{method:?}");
        let hard = node.session(on.0).connection_id().is_none();
        assert_eq!(hard, code >= 500, "{method:?}");
    }
}

#[test]
fn what_is_not_there() {
    let no_queue = "NOT_FOUND - no queue 'x' in vhost '/'";
    let no_exchange = "NOT_FOUND - no exchange 'x' in vhost '/'";
    let passive = true;
    let (destination, source) = ("e".into(), "x".into());
    let from_nowhere = exchange_methods::Bind { destination, source, ..Default::default() };
    let (destination, source) = ("x".into(), "e".into());
    let to_nowhere = exchange_methods::Bind { destination, source, ..Default::default() };
    refuses([
        (queue_methods::Declare { passive, ..queue("x") }.into(), 404, no_queue),
        (queue_methods::Purge { queue: "x".into(), no_wait: false }.into(), 404, no_queue),
        (bind("x", "e", "").into(), 404, no_queue),
        (bind("q", "x", "").into(), 404, no_exchange),
        (consume("x", "").into(), 404, no_queue),
        (get("x"), 404, no_queue),
        (exchange_methods::Declare { passive, ..exchange("x", "fanout") }.into(), 404, no_exchange),
        (from_nowhere.into(), 404, no_exchange),
        (to_nowhere.into(), 404, no_exchange),
    ]);
}

#[test]
fn a_queue_that_the_channel_never_declared() {
    let text = "NOT_FOUND - no previously declared queue";
    for method in [
        Method::from(queue_methods::Purge::default()),
        queue_methods::Delete::default().into(),
        bind("", "e", "").into(),
        consume("", "").into(),
        get(""),
    ] {
        let mut node = SessionTest::new();
        let on = node.channel();
        let (class_id, method_id) = (method.class_id(), method.method_id());
        let refusal = node.refused(on, method);
        assert_eq!(refusal, (404, text.to_owned(), class_id, method_id));
    }
}

#[test]
fn what_belongs_to_others() {
    let in_use = "ACCESS_REFUSED - queue 'theirs' in vhost '/' in exclusive use";
    refuses([
        (exclusive_queue("mine").into(), 405, LOCKED),
        (queue("mine").into(), 405, LOCKED),
        (queue_methods::Declare { passive: true, ..queue("mine") }.into(), 405, LOCKED),
        (queue_methods::Purge { queue: "mine".into(), no_wait: false }.into(), 405, LOCKED),
        (queue_methods::Delete { queue: "mine".into(), ..Default::default() }.into(), 405, LOCKED),
        (bind("mine", "e", "").into(), 405, LOCKED),
        (consume("mine", "").into(), 405, LOCKED),
        (get("mine"), 405, LOCKED),
        (consume("theirs", "").into(), 403, in_use),
    ]);
}

#[test]
fn what_differs_from_what_is_there() {
    refuses([
        (
            durable_queue("q").into(),
            406,
            "PRECONDITION_FAILED - inequivalent arg 'durable' for queue 'q' in vhost '/': received \
             'true' but current is 'false'",
        ),
        (
            queue_methods::Declare { auto_delete: true, ..queue("q") }.into(),
            406,
            "PRECONDITION_FAILED - inequivalent arg 'auto_delete' for queue 'q' in vhost '/': \
             received 'true' but current is 'false'",
        ),
        (
            with("q", "x-message-ttl", Value::I32(1000)).into(),
            406,
            "PRECONDITION_FAILED - inequivalent arg 'x-message-ttl' for queue 'q' in vhost '/': \
             received the value '1000' of type 'signedint' but current is none",
        ),
        (
            exchange("e", "topic").into(),
            406,
            "PRECONDITION_FAILED - inequivalent arg 'type' for exchange 'e' in vhost '/': received \
             'topic' but current is 'fanout'",
        ),
        (
            exchange_methods::Declare { durable: true, ..exchange("e", "fanout") }.into(),
            406,
            "PRECONDITION_FAILED - inequivalent arg 'durable' for exchange 'e' in vhost '/': \
             received 'true' but current is 'false'",
        ),
    ]);
}

#[test]
fn names_that_are_the_brokers() {
    let default = "ACCESS_REFUSED - operation not permitted on the default exchange";
    refuses([
        (
            queue("amq.mine").into(),
            403,
            "ACCESS_REFUSED - queue name 'amq.mine' contains reserved prefix 'amq.*'",
        ),
        (
            exchange("amq.mine", "fanout").into(),
            403,
            "ACCESS_REFUSED - exchange name 'amq.mine' contains reserved prefix 'amq.*'",
        ),
        (exchange("", "direct").into(), 403, default),
        (exchange_methods::Delete::default().into(), 403, default),
        (bind("q", "", "k").into(), 403, default),
        (
            exchange_methods::Delete { exchange: "amq.topic".into(), ..Default::default() }.into(),
            403,
            "ACCESS_REFUSED - deletion of system exchange 'amq.topic' in vhost '/' not allowed",
        ),
    ]);
}

#[test]
fn what_is_still_in_use() {
    let (mut node, on) = populated();
    node.call(on, bind("q", "e", ""));
    node.publish_to(on, "q", "a");
    let queue_delete = |queue: &str, if_unused, if_empty| queue_methods::Delete {
        queue: queue.into(),
        if_unused,
        if_empty,
        no_wait: false,
    };
    let cases = [
        (Method::from(queue_delete("q", false, true)), "queue 'q' in vhost '/' not empty"),
        (queue_delete("theirs", true, false).into(), "queue 'theirs' in vhost '/' in use"),
        (
            exchange_methods::Delete { exchange: "e".into(), if_unused: true, no_wait: false }
                .into(),
            "exchange 'e' in vhost '/' in use",
        ),
    ];
    for (number, (method, text)) in (2..).zip(cases) {
        let on = node.open_channel(on.0, number);
        let (code, refusal, ..) = node.refused(on, method);
        assert_eq!((code, refusal), (406, format!("PRECONDITION_FAILED - {text}")));
    }
}

#[test]
fn arguments_that_make_no_sense() {
    for (argument, value) in [
        ("x-message-ttl", Value::text("soon")),
        ("x-expires", Value::I32(0)),
        ("x-max-length", Value::I32(-1)),
        ("x-max-priority", Value::I32(256)),
        ("x-overflow", Value::text("explode")),
        ("x-dead-letter-exchange", Value::I32(1)),
    ] {
        let (mut node, on) = populated();
        let (code, text, ..) = node.refused(on, with("new", argument, value));
        assert_eq!(code, 406, "{argument}: {text}");
        let start =
            format!("PRECONDITION_FAILED - invalid arg '{argument}' for queue 'new' in vhost '/'");
        assert!(text.starts_with(&start), "{text}");
    }
}

#[test]
fn types_tags_and_flags_that_nobody_knows_are_refused() {
    refuses([
        (
            exchange("new", "sideways").into(),
            406,
            "PRECONDITION_FAILED - unknown exchange type 'sideways'",
        ),
        (
            basic::Qos { prefetch_size: 10, ..Default::default() }.into(),
            540,
            "NOT_IMPLEMENTED - prefetch_size!=0 (10)",
        ),
        (basic::Recover { requeue: false }.into(), 540, "NOT_IMPLEMENTED - requeue=false"),
    ]);
    let (mut node, on) = populated();
    node.call(on, consume("q", "me"));
    let text = "NOT_ALLOWED - attempt to reuse consumer tag 'me'".to_owned();
    assert_eq!(node.refused(on, consume("q", "me")), (530, text, 60, 20));
}

#[test]
fn a_method_that_only_servers_send_ends_the_connection() {
    for method in [
        Method::from(basic::QosOk {}),
        basic::ConsumeOk { consumer_tag: "x".into() }.into(),
        basic::GetEmpty {}.into(),
        queue_methods::DeclareOk::default().into(),
        exchange_methods::DeclareOk {}.into(),
    ] {
        let (mut node, on) = populated();
        let name = method.name();
        let (code, ..) = node.refused(on, method);
        assert!([503, 540].contains(&code), "{name}: {code}");
        assert_eq!(node.session(on.0).connection_id(), None, "{name}");
    }
}

#[test]
fn a_method_on_a_channel_that_is_not_open_ends_the_connection() {
    let mut node = SessionTest::new();
    let client = node.connect();
    let (code, ..) = node.refused(On(client, 9), basic::Qos::default());
    assert_eq!(code, 504);
    assert_eq!(node.broker.connections().len(), 0);
}

/// Publishes and returns the close that comes of it.
fn publish_refused(publish: basic::Publish, properties: &Properties) -> (u16, String, u16, u16) {
    let (mut node, on) = populated();
    node.call(on, exchange_methods::Declare { internal: true, ..exchange("inner", "fanout") });
    node.publish(on, publish, properties, "x");
    node.settle();
    node.closed(on.0)
}

#[test]
fn publishes_are_refused_for_what_they_are() {
    let nobody = Properties { user_id: Some("nobody".into()), ..Properties::default() };
    let late = Properties { expiration: Some("soon".into()), ..Properties::default() };
    let fast =
        Properties { reply_to: Some("amq.rabbitmq.reply-to".into()), ..Properties::default() };
    let plain = Properties::default();
    let exchange = |name: &str| basic::Publish { exchange: name.into(), ..Default::default() };
    for (publish, properties, code, text) in [
        (exchange("x"), &plain, 404, "NOT_FOUND - no exchange 'x' in vhost '/'"),
        (
            exchange("inner"),
            &plain,
            403,
            "ACCESS_REFUSED - cannot publish to internal exchange 'inner' in vhost '/'",
        ),
        (
            to("q"),
            &nobody,
            406,
            "PRECONDITION_FAILED - user_id property set to 'nobody' but authenticated user was \
             'guest'",
        ),
        (to("q"), &fast, 406, "PRECONDITION_FAILED - fast reply consumer does not exist"),
        (
            basic::Publish { immediate: true, ..to("q") },
            &plain,
            540,
            "NOT_IMPLEMENTED - immediate=true",
        ),
    ] {
        assert_eq!(publish_refused(publish, properties), (code, text.to_owned(), 60, 40));
    }
    let (code, text, ..) = publish_refused(to("q"), &late);
    assert_eq!(code, 406);
    assert!(text.starts_with("PRECONDITION_FAILED - invalid expiration 'soon'"), "{text}");
}

#[test]
fn who_may_not_is_refused_with_the_permission_that_is_missing() {
    let refuse = |method: Method, text: &str| {
        let (mut node, _) = populated();
        node.add_user("alice");
        node.permit("alice", "^own");
        let client = node.accept(true);
        node.open(client, "alice", "/", capabilities());
        node.all(client);
        let on = node.open_channel(client, 1);
        let ids = (method.class_id(), method.method_id());
        let refusal = node.refused(on, method);
        let text = format!("ACCESS_REFUSED - {text} refused for user 'alice'");
        assert_eq!(refusal, (403, text, ids.0, ids.1));
    };
    refuse(queue("new").into(), "configure access to queue 'new' in vhost '/'");
    refuse(exchange("new", "fanout").into(), "configure access to exchange 'new' in vhost '/'");
    refuse(get("q"), "read access to queue 'q' in vhost '/'");
    refuse(consume("q", "").into(), "read access to queue 'q' in vhost '/'");
    refuse(bind("q", "e", "").into(), "write access to queue 'q' in vhost '/'");
    let purge = queue_methods::Purge { queue: "q".into(), no_wait: false };
    refuse(purge.into(), "read access to queue 'q' in vhost '/'");
}

#[test]
fn publishing_without_permission_names_the_exchange() {
    let (mut node, _) = populated();
    node.add_user("alice");
    node.permit("alice", "");
    for (publish, exchange) in [
        (to("q"), "amq.default"),
        (basic::Publish { exchange: "e".into(), ..Default::default() }, "e"),
    ] {
        let client = node.accept(true);
        node.open(client, "alice", "/", capabilities());
        node.all(client);
        let on = node.open_channel(client, 1);
        node.publish(on, publish, &Properties::default(), "x");
        node.settle();
        let text = format!(
            "ACCESS_REFUSED - write access to exchange '{exchange}' in vhost '/' refused for user \
             'alice'"
        );
        assert_eq!(node.closed(client), (403, text, 60, 40));
    }
}

#[test]
fn no_reply_text_shows_how_rust_prints_a_value() {
    for text in ["F64(10.0)", "the value 'F64(10.0)' of", "Some(1)", "Table { a: 1 }", "b\"x\""] {
        assert!(has_debug_form(text), "{text}");
    }
    for text in ["NOT_FOUND - no queue 'q'", "prefetch_size!=0 (10)", "limit (3) is reached"] {
        assert!(!has_debug_form(text), "{text}");
    }
    let table = Table::from_iter([("k", Value::I32(1))]);
    let values = [
        (Value::Bool(true), "true"),
        (Value::I64(1 << 40), "1099511627776"),
        (Value::F32(0.5), "0.5"),
        (Value::F64(10.25), "10.25"),
        (Value::Decimal(2, 314), "314e-2"),
        (Value::text("text"), "text"),
        (Value::ByteArray("bytes".into()), "bytes"),
        (Value::Array(vec![Value::I8(1), Value::text("a")]), "[1, a]"),
        (Value::Timestamp(7), "7"),
        (Value::Table(table), "{k: 1}"),
        (Value::Void, "void"),
    ];
    for (value, shown) in values {
        // `closed` looks at the text of each.
        for argument in ["x-message-ttl", "x-max-length", "x-overflow", "x-queue-type"] {
            let (mut node, on) = populated();
            let declare = with("new", argument, value.clone());
            node.send_on(on, declare);
            node.settle();
            if !matches!(node.next(on.0).method, Method::QueueDeclareOk(_)) {
                let (mut node, on) = populated();
                node.refused(on, with("new", argument, value.clone()));
            }
        }
        let (mut node, on) = populated();
        let arguments = Table::from_iter([("x-priority", value.clone())]);
        node.send_on(on, basic::Consume { arguments, ..consume("q", "") });
        node.settle();
        if let Method::ChannelClose(close) = node.next(on.0).method {
            assert!(!has_debug_form(&close.reply_text), "{}", close.reply_text);
        }
        let (mut node, on) = populated();
        node.call(on, with("again", "x-dead-letter-strategy", Value::text("at-most-once")));
        let inequivalent = with("again", "x-expires", value.clone());
        let (_, text, ..) = node.refused(on, inequivalent);
        assert!(text.contains(&format!("received the value '{shown}' of type")), "{text}");
    }
}
