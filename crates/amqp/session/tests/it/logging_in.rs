//! The handshake, logins, and connection.open.

use quelea_amqp_codec::method::{Method, connection};
use quelea_amqp_session::Notice;
use quelea_broker::BrokerConfig;
use quelea_model::{Table, Value};

use crate::session_test::{SessionTest, capabilities};

const REFUSED: &str = "ACCESS_REFUSED - Login was refused using authentication mechanism PLAIN. \
                       For details see the broker logfile.";

#[test]
fn a_client_logs_in_and_opens_a_virtual_host() {
    let mut node = SessionTest::new();
    let client = node.connect();
    let (user, vhost, product) = ("guest".to_owned(), "/".to_owned(), String::new());
    assert_eq!(node.notices(client), [Notice::Opened { user, vhost, product }]);
    let [report] = &node.broker.connections()[..] else { panic!("there is one connection") };
    assert_eq!(report.name, "127.0.0.1:50000 -> 127.0.0.1:5672");
    assert_eq!((&*report.user, report.vhost.as_str()), ("guest", "/"));
    assert_eq!(report.mechanism, "PLAIN");
    assert_eq!(report.protocol, "AMQP 0-9-1");
    assert_eq!((report.frame_max, report.channel_max, report.heartbeat_s), (131_072, 2_047, 60));
    assert!(report.client_properties.get("capabilities").is_some());
}

#[test]
fn a_wrong_password_is_refused_with_rabbitmqs_words() {
    let mut node = SessionTest::new();
    let client = node.accept(true);
    node.password_is_wrong(client);
    node.log_in(client, "guest", capabilities());
    assert_eq!(node.closed(client), (403, REFUSED.to_owned(), 0, 0));
    node.send(client, connection::CloseOk {});
    node.settle();
    assert!(node.session(client).is_finished());
    assert!(
        matches!(&node.notices(client)[0], Notice::LoginRefused { user, .. } if user == "guest")
    );
}

#[test]
fn a_client_without_the_capability_is_dropped_without_a_word() {
    let mut node = SessionTest::new();
    let client = node.accept(true);
    node.password_is_wrong(client);
    node.log_in(client, "guest", Table::new());
    assert_eq!(node.all(client), []);
    assert!(node.session(client).is_finished());
}

#[test]
fn guest_may_only_come_from_loopback() {
    let mut node = SessionTest::new();
    let client = node.accept(false);
    node.log_in(client, "guest", capabilities());
    assert_eq!(node.closed(client), (403, REFUSED.to_owned(), 0, 0));
    node.add_user("alice");
    node.permit("alice", ".*");
    let client = node.accept(false);
    node.open(client, "alice", "/", capabilities());
    assert_eq!(node.methods(client), [connection::OpenOk {}.into()]);
}

#[test]
fn a_missing_virtual_host_and_a_forbidden_one_are_refused() {
    let mut node = SessionTest::new();
    node.add_vhost("private");
    node.add_user("alice");
    for (vhost, text) in [
        ("nowhere", "NOT_ALLOWED - vhost nowhere not found"),
        ("private", "NOT_ALLOWED - access to vhost 'private' refused for user 'alice'"),
    ] {
        let client = node.accept(true);
        node.open(client, "alice", vhost, capabilities());
        assert_eq!(node.closed(client), (530, text.to_owned(), 10, 40));
        assert_eq!(node.session(client).connection_id(), None);
    }
}

#[test]
fn connections_have_a_limit() {
    let limits = BrokerConfig { connections_max: 1, ..BrokerConfig::default() };
    let mut node = SessionTest::with_limits(limits);
    let first = node.connect();
    let second = node.accept(true);
    node.open(second, "guest", "/", capabilities());
    let text = "NOT_ALLOWED - access to vhost '/' refused for user 'guest': connection limit (1) is \
                reached";
    assert_eq!(node.closed(second), (530, text.to_owned(), 10, 40));
    node.disconnect(first);
    node.connect();
}

#[test]
fn a_refused_amqplain_login_names_its_mechanism() {
    let mut node = SessionTest::new();
    let client = node.accept(true);
    node.password_is_wrong(client);
    node.send_bytes(client, quelea_amqp_codec::frame::PROTOCOL_HEADER);
    let login =
        Table::from_iter([("LOGIN", Value::text("guest")), ("PASSWORD", Value::text("secret"))]);
    let mut response = bytes::BytesMut::new();
    login.encode(&mut response);
    let start_ok = connection::StartOk {
        client_properties: capabilities(),
        mechanism: "AMQPLAIN".into(),
        response: response.freeze().slice(4..),
        locale: "en_US".into(),
    };
    node.send(client, start_ok);
    node.settle();
    node.next(client);
    let text = REFUSED.replace("PLAIN", "AMQPLAIN");
    assert_eq!(node.closed(client), (403, text, 0, 0));
}

#[test]
fn a_session_reads_nothing_while_a_login_is_verified() {
    let mut node = SessionTest::new();
    let client = node.accept(true);
    node.send_bytes(client, quelea_amqp_codec::frame::PROTOCOL_HEADER);
    node.settle();
    assert!(node.session(client).wants_input());
    assert_eq!(node.methods(client).len(), 1);
    let login = connection::StartOk {
        client_properties: capabilities(),
        mechanism: "PLAIN".into(),
        response: bytes::Bytes::from_static(b"\0guest\0secret"),
        locale: "en_US".into(),
    };
    node.send(client, login);
    let requests = node.receive_only(client);
    assert_eq!(requests, 1);
    assert!(!node.session(client).wants_input());
}

#[test]
fn a_new_secret_is_accepted() {
    let mut node = SessionTest::new();
    let client = node.connect();
    let secret = connection::UpdateSecret {
        new_secret: bytes::Bytes::from_static(b"fresh"),
        reason: "it was old".into(),
    };
    node.send(client, secret);
    node.settle();
    assert_eq!(node.methods(client), [connection::UpdateSecretOk {}.into()]);
}

#[test]
fn a_handshake_that_never_ends_is_cut_off() {
    let mut node = SessionTest::new();
    let client = node.accept(true);
    node.advance(9_999);
    assert!(!node.session(client).is_finished());
    node.advance(1);
    assert!(node.session(client).is_finished());
}

#[test]
fn heartbeats_are_sent_and_missed_ones_end_the_connection() {
    let mut node = SessionTest::new();
    let client = node.connect();
    node.advance(119_000);
    assert!(node.heartbeats(client) >= 2);
    assert!(!node.session(client).is_finished());
    node.advance(1_000);
    assert!(node.session(client).is_finished());
    assert_eq!(node.session(client).connection_id(), None);
    assert_eq!(node.broker.connections().len(), 0);
}

#[test]
fn a_connection_that_has_a_name_of_its_own_reports_it() {
    let mut node = SessionTest::new();
    let client = node.accept(true);
    let mut properties = capabilities();
    properties.set("connection_name", Value::text("orders"));
    node.open(client, "guest", "/", properties);
    assert!(matches!(node.next(client).method, Method::ConnectionOpenOk(_)));
    let [report] = &node.broker.connections()[..] else { panic!("there is one connection") };
    let name = report.client_properties.get("connection_name").and_then(Value::as_text);
    assert_eq!(name, Some("orders"));
}
