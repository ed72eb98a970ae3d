mod against_naive;
mod headers_limits;

use bytes::BytesMut;
use quelea_model::limits::{EXCHANGE_HOPS_MAX, ROUTE_STEPS_MAX, TOPIC_STEPS_MAX};
use quelea_model::{Properties, PropertyView};

use super::*;
use crate::routing::binding::Removed;
use crate::routing::exchange::RouteError;

const PLAIN: [u8; 2] = [0, 0];

impl Router {
    fn exchanges(&self) -> impl Iterator<Item = &ExchangeSpec> {
        self.exchanges_at(0..self.exchange_places() as u32).map(|(spec, ..)| spec)
    }

    fn bindings(&self) -> impl Iterator<Item = Binding> {
        self.bindings_at(0..self.binding_places() as u32)
    }
}

fn router() -> Router {
    Router::new(VhostName::parse("/").unwrap())
}

fn exchange_name(name: &str) -> ExchangeName {
    ExchangeName::parse(name).unwrap()
}

fn spec(name: &str, kind: ExchangeKind) -> ExchangeSpec {
    ExchangeSpec {
        name: exchange_name(name),
        kind,
        durable: true,
        auto_delete: false,
        internal: false,
        arguments: Table::new(),
    }
}

fn with_alternate(name: &str, kind: ExchangeKind, alternate: &str) -> ExchangeSpec {
    let arguments = Table::from_iter([(ALTERNATE_EXCHANGE, Value::text(alternate))]);
    ExchangeSpec { arguments, ..spec(name, kind) }
}

fn queue(id: u32) -> Destination {
    Destination::Queue(QueueId(id), QueueName::parse(&format!("q{id}")).unwrap())
}

fn to_exchange(name: &str) -> Destination {
    Destination::Exchange(exchange_name(name))
}

fn add_queues(router: &mut Router, ids: Range<u32>) {
    for id in ids {
        router.add_queue(&QueueName::parse(&format!("q{id}")).unwrap(), QueueId(id), true);
    }
}

fn bind(router: &mut Router, source: &str, destination: &Destination, key: &str) {
    let bound = router.bind(source, destination, key, &Table::new()).unwrap();
    assert!(bound.is_some(), "{source} -{key}-> {destination:?} is new");
}

fn route(router: &mut Router, exchange: &str, key: &str) -> Vec<u32> {
    route_with(router, exchange, key, &PLAIN)
}

fn route_with(router: &mut Router, exchange: &str, key: &str, properties: &[u8]) -> Vec<u32> {
    let route = router.route(exchange, key, PropertyView::new(properties)).unwrap();
    route.queues.iter().map(|queue| queue.0).collect()
}

fn headers(entries: &[(&str, Value)]) -> BytesMut {
    let headers = Some(entries.iter().cloned().collect());
    let mut bytes = BytesMut::new();
    Properties { headers, ..Properties::default() }.encode(&mut bytes);
    bytes
}

fn keys(keys: &[&str]) -> Value {
    Value::Array(keys.iter().map(|key| Value::text(key)).collect())
}

#[test]
fn a_vhost_begins_with_the_exchanges_that_clients_expect() {
    let router = router();
    let names: Vec<_> = router.exchanges().map(|exchange| exchange.name.to_string()).collect();
    let expected = [
        "",
        "amq.direct",
        "amq.fanout",
        "amq.topic",
        "amq.headers",
        "amq.match",
        "amq.rabbitmq.trace",
    ];
    assert_eq!(names, expected);
    assert_eq!(router.exchange("amq.match").unwrap().kind, ExchangeKind::Headers);
    assert!(router.exchange("amq.rabbitmq.trace").unwrap().internal);
}

#[test]
fn the_default_exchange_reaches_every_queue_by_its_name() {
    let mut router = router();
    assert!(route(&mut router, "", "q1").is_empty());
    add_queues(&mut router, 1..3);
    assert_eq!(route(&mut router, "", "q1"), [1]);
    assert_eq!(route(&mut router, "", "q2"), [2]);
    router.remove_queue(QueueId(1));
    assert!(route(&mut router, "", "q1").is_empty());
}

#[test]
fn a_queue_that_is_bound_in_several_ways_gets_a_message_once() {
    let mut router = router();
    add_queues(&mut router, 1..3);
    for (source, key) in [("amq.topic", "a.*"), ("amq.topic", "#"), ("amq.fanout", "")] {
        bind(&mut router, source, &queue(1), key);
    }
    bind(&mut router, "amq.topic", &to_exchange("amq.fanout"), "a.#");
    bind(&mut router, "amq.fanout", &queue(2), "");
    assert_eq!(route(&mut router, "amq.topic", "a.b"), [1, 2]);
    assert_eq!(route(&mut router, "amq.topic", "b"), [1]);
}

#[test]
fn binding_the_same_twice_changes_nothing_but_other_arguments_are_another_binding() {
    let mut router = router();
    add_queues(&mut router, 1..2);
    bind(&mut router, "amq.direct", &queue(1), "k");
    let epoch = router.epoch();
    let arguments = Table::from_iter([("b", Value::I32(1)), ("a", Value::F64(f64::NAN))]);
    let same = Table::from_iter([("a", Value::F64(f64::NAN)), ("b", Value::I32(1))]);
    let again = router.bind("amq.direct", &queue(1), "k", &Table::new()).unwrap();
    assert!(again.is_none());
    assert_eq!(router.epoch(), epoch);
    let binding = router.bind("amq.direct", &queue(1), "k", &arguments).unwrap().unwrap();
    let names: Vec<_> = binding.arguments.iter().map(|(name, _)| name).collect();
    assert_eq!(names, ["a", "b"], "sorted by name");
    assert!(router.bind("amq.direct", &queue(1), "k", &same).unwrap().is_none());
    assert_eq!(router.binding_count(), 2);
    router.unbind("amq.direct", &queue(1), "k", &Table::new()).unwrap();
    assert_eq!(route(&mut router, "amq.direct", "k"), [1]);
    router.unbind("amq.direct", &queue(1), "k", &same).unwrap();
    assert!(route(&mut router, "amq.direct", "k").is_empty());
    let removed = router.unbind("amq.direct", &queue(1), "k", &same).unwrap();
    assert_eq!(removed, Removed::default(), "not there: no error");
}

#[test]
fn a_cycle_of_exchanges_is_cut() {
    let mut router = router();
    add_queues(&mut router, 1..4);
    for (at, name) in ["a", "b", "c"].into_iter().enumerate() {
        router.declare(spec(name, ExchangeKind::Fanout)).unwrap();
        bind(&mut router, name, &queue(at as u32 + 1), "");
    }
    for (source, destination) in [("a", "b"), ("b", "c"), ("c", "a"), ("a", "a")] {
        bind(&mut router, source, &to_exchange(destination), "");
    }
    assert_eq!(route(&mut router, "b", "k"), [1, 2, 3]);
}

#[test]
fn a_chain_of_exchanges_ends_at_the_limit_of_hops() {
    let mut router = router();
    add_queues(&mut router, 0..EXCHANGE_HOPS_MAX as u32 + 2);
    for at in 0..EXCHANGE_HOPS_MAX as u32 + 2 {
        router.declare(spec(&format!("x{at}"), ExchangeKind::Fanout)).unwrap();
        bind(&mut router, &format!("x{at}"), &queue(at), "");
        if at > 0 {
            bind(&mut router, &format!("x{}", at - 1), &to_exchange(&format!("x{at}")), "");
        }
    }
    assert_eq!(route(&mut router, "x0", "k").len(), EXCHANGE_HOPS_MAX + 1);
    assert_eq!(route(&mut router, "x1", "k").len(), EXCHANGE_HOPS_MAX + 1);
    assert_eq!(route(&mut router, "x2", "k").len(), EXCHANGE_HOPS_MAX);
}

#[test]
fn an_equivalent_declaration_is_answered_at_the_limit_of_exchanges() {
    let mut router = router();
    for at in router.exchange_count()..EXCHANGES_PER_VHOST_MAX {
        router.declare(spec(&format!("x{at}"), ExchangeKind::Direct)).unwrap();
    }
    let error = router.declare(spec("one more", ExchangeKind::Direct)).unwrap_err();
    assert!(matches!(error, ExchangeError::TooMany { .. }), "{error}");
    assert!(!router.declare(spec("x10", ExchangeKind::Direct)).unwrap());
    router.delete("x10", true).unwrap();
    assert!(router.declare(spec("one more", ExchangeKind::Direct)).unwrap());
}

#[test]
fn an_alternate_exchange_takes_what_its_exchange_cannot_route() {
    let mut router = router();
    add_queues(&mut router, 1..4);
    for (name, alternate) in [("first", "second"), ("second", "third"), ("third", "first")] {
        router.declare(with_alternate(name, ExchangeKind::Direct, alternate)).unwrap();
    }
    bind(&mut router, "first", &queue(1), "k1");
    bind(&mut router, "second", &queue(2), "k2");
    bind(&mut router, "third", &queue(3), "k3");
    assert_eq!(route(&mut router, "first", "k1"), [1]);
    assert_eq!(route(&mut router, "first", "k2"), [2]);
    assert_eq!(route(&mut router, "first", "k3"), [3]);
    assert_eq!(route(&mut router, "third", "k2"), [2]);
    assert!(route(&mut router, "first", "none").is_empty(), "the chain's loop is cut");
}

#[test]
fn an_alternate_counts_only_when_no_binding_fits() {
    let mut router = router();
    add_queues(&mut router, 1..2);
    router.declare(with_alternate("x", ExchangeKind::Direct, "later")).unwrap();
    router.declare(spec("empty", ExchangeKind::Fanout)).unwrap();
    assert!(route(&mut router, "x", "k").is_empty());
    router.declare(spec("later", ExchangeKind::Fanout)).unwrap();
    bind(&mut router, "later", &queue(1), "");
    assert_eq!(route(&mut router, "x", "k"), [1]);
    bind(&mut router, "x", &to_exchange("empty"), "k");
    assert!(route(&mut router, "x", "k").is_empty(), "a binding fits, though it leads nowhere");
    assert_eq!(route(&mut router, "x", "other"), [1]);
}

#[test]
fn cc_and_bcc_are_more_keys_for_the_same_exchange() {
    let mut router = router();
    add_queues(&mut router, 1..4);
    let copies = headers(&[("CC", keys(&["q2", "q1"])), ("BCC", keys(&["q3"]))]);
    assert_eq!(route_with(&mut router, "", "q1", &copies), [1, 2, 3]);
    assert_eq!(route(&mut router, "", "q1"), [1], "nothing of it was cached");
    bind(&mut router, "amq.direct", &queue(3), "q2");
    assert_eq!(route_with(&mut router, "amq.direct", "none", &copies), [3]);
    let wrong = headers(&[("BCC", Value::text("q1"))]);
    let error = router.route("", "q1", PropertyView::new(&wrong)).unwrap_err();
    assert!(matches!(error, RouteError::HeaderType { header: "BCC", found: "longstr" }));
}

#[test]
fn a_headers_exchange_sees_each_message_anew() {
    let mut router = router();
    add_queues(&mut router, 1..3);
    let red = Table::from_iter([("colour", Value::text("red"))]);
    let any = Table::from_iter([("x-match", Value::text("any")), ("size", Value::Void)]);
    router.bind("amq.headers", &queue(1), "", &red).unwrap();
    router.bind("amq.headers", &queue(2), "", &any).unwrap();
    bind(&mut router, "amq.fanout", &to_exchange("amq.headers"), "");
    for exchange in ["amq.headers", "amq.fanout"] {
        let message = headers(&[("colour", Value::text("red"))]);
        assert_eq!(route_with(&mut router, exchange, "k", &message), [1]);
        let message = headers(&[("size", Value::I32(1)), ("colour", Value::text("red"))]);
        assert_eq!(route_with(&mut router, exchange, "k", &message), [1, 2]);
        assert!(route(&mut router, exchange, "k").is_empty());
    }
    let wrong = Table::from_iter([("x-match", Value::text("most"))]);
    let error = router.bind("amq.headers", &queue(1), "", &wrong).unwrap_err();
    assert_eq!(error, BindingError::MatchValue { found: "most".into() });
    // Elsewhere x-match means nothing.
    assert!(router.bind("amq.direct", &queue(1), "", &wrong).is_ok());
}

#[test]
fn an_auto_delete_exchange_goes_with_its_last_binding_as_a_source() {
    let mut router = router();
    add_queues(&mut router, 1..3);
    router.declare(ExchangeSpec { auto_delete: true, ..spec("x", ExchangeKind::Fanout) }).unwrap();
    bind(&mut router, "x", &queue(1), "");
    bind(&mut router, "x", &queue(2), "");
    assert!(router.unbind("x", &queue(1), "", &Table::new()).unwrap().exchanges.is_empty());
    let removed = router.remove_queue(QueueId(2));
    assert_eq!(removed.bindings.len(), 1);
    assert_eq!(removed.exchanges[0].name, exchange_name("x"));
    assert!(router.exchange("x").is_none());
    let error = router.route("x", "k", PropertyView::new(&PLAIN)).unwrap_err();
    assert_eq!(error.to_string(), "no exchange 'x' in vhost '/'");
}

#[test]
fn auto_deletion_goes_up_a_chain_of_exchanges() {
    let mut router = router();
    add_queues(&mut router, 1..2);
    for name in ["a", "b", "c"] {
        let spec = ExchangeSpec { auto_delete: true, ..spec(name, ExchangeKind::Fanout) };
        router.declare(spec).unwrap();
    }
    bind(&mut router, "a", &to_exchange("b"), "");
    bind(&mut router, "b", &to_exchange("c"), "");
    bind(&mut router, "c", &queue(1), "");
    bind(&mut router, "amq.topic", &to_exchange("a"), "#");
    let removed = router.remove_queue(QueueId(1));
    assert_eq!(removed.exchanges.len(), 3);
    assert_eq!(removed.bindings.len(), 4);
    assert_eq!(router.binding_count(), 0);
    assert_eq!(router.exchange_count(), PREDECLARED.len());
}

#[test]
fn a_deleted_exchange_takes_the_bindings_at_both_ends_with_it() {
    let mut router = router();
    add_queues(&mut router, 1..2);
    router.declare(spec("x", ExchangeKind::Direct)).unwrap();
    bind(&mut router, "x", &queue(1), "k");
    bind(&mut router, "x", &to_exchange("x"), "self");
    bind(&mut router, "amq.fanout", &to_exchange("x"), "");
    let error = router.delete("x", true).unwrap_err();
    assert_eq!(error.to_string(), "exchange 'x' in vhost '/' in use");
    let removed = router.delete("x", false).unwrap();
    let removed = router.finish_removing(removed);
    assert_eq!((removed.bindings.len(), removed.exchanges.len()), (3, 1));
    assert!(route(&mut router, "amq.fanout", "k").is_empty());
    assert_eq!(router.binding_count(), 0);
    assert!(matches!(router.delete("x", false), Err(ExchangeError::NoSuchExchange(_))));
    // Bindings to it as a destination are no use of it.
    router.declare(spec("x", ExchangeKind::Direct)).unwrap();
    bind(&mut router, "amq.fanout", &to_exchange("x"), "");
    assert!(router.delete("x", true).is_ok());
}

#[test]
fn what_is_the_brokers_own_is_refused_in_rabbitmqs_words() {
    let mut router = router();
    add_queues(&mut router, 1..2);
    let words = |error: &dyn std::error::Error| error.to_string();
    let refused = "operation not permitted on the default exchange";
    assert_eq!(words(&router.declare(spec("", ExchangeKind::Direct)).unwrap_err()), refused);
    assert_eq!(words(&router.delete("", false).unwrap_err()), refused);
    let none = Table::new();
    assert_eq!(words(&router.bind("", &queue(1), "k", &none).unwrap_err()), refused);
    let to_default = to_exchange("");
    assert_eq!(words(&router.bind("amq.fanout", &to_default, "k", &none).unwrap_err()), refused);
    assert_eq!(words(&router.unbind("", &queue(1), "k", &none).unwrap_err()), refused);
    assert_eq!(words(&router.unbind("amq.fanout", &to_default, "k", &none).unwrap_err()), refused);
    assert_eq!(
        words(&router.declare(spec("amq.new", ExchangeKind::Direct)).unwrap_err()),
        "exchange name 'amq.new' contains reserved prefix 'amq.*'"
    );
    assert_eq!(
        words(&router.delete("amq.direct", false).unwrap_err()),
        "deletion of system exchange 'amq.direct' in vhost '/' not allowed"
    );
    assert!(!router.declare(spec("amq.direct", ExchangeKind::Direct)).unwrap());
    assert_eq!(
        words(&ExchangeKind::parse("x-random").unwrap_err()),
        "unknown exchange type 'x-random'"
    );
}

#[test]
fn a_declaration_that_differs_is_refused_in_rabbitmqs_words() {
    let mut router = router();
    assert!(router.declare(with_alternate("x", ExchangeKind::Direct, "a")).unwrap());
    assert!(!router.declare(with_alternate("x", ExchangeKind::Direct, "a")).unwrap());
    let same = with_alternate("x", ExchangeKind::Direct, "a");
    let mut other_argument = same.clone();
    other_argument.arguments.set("x-anything", Value::I32(1));
    assert!(!router.declare(other_argument).unwrap(), "only the alternate exchange counts");
    let cases = [
        (
            ExchangeSpec { kind: ExchangeKind::Topic, ..same.clone() },
            "'type' for exchange 'x' in vhost '/': received 'topic' but current is 'direct'",
        ),
        (
            ExchangeSpec { durable: false, ..same.clone() },
            "'durable' for exchange 'x' in vhost '/': received 'false' but current is 'true'",
        ),
        (
            ExchangeSpec { auto_delete: true, ..same.clone() },
            "'auto_delete' for exchange 'x' in vhost '/': received 'true' but current is 'false'",
        ),
        (
            ExchangeSpec { internal: true, ..same.clone() },
            "'internal' for exchange 'x' in vhost '/': received 'true' but current is 'false'",
        ),
        (
            with_alternate("x", ExchangeKind::Direct, "b"),
            "'alternate-exchange' for exchange 'x' in vhost '/': received 'b' but current is 'a'",
        ),
        (
            spec("x", ExchangeKind::Direct),
            "'alternate-exchange' for exchange 'x' in vhost '/': received none but current is \
             the value 'a' of type 'longstr'",
        ),
    ];
    for (declared, words) in cases {
        let error = router.declare(declared).unwrap_err();
        assert_eq!(error.to_string(), format!("inequivalent arg {words}"));
    }
    let mut wrong = spec("y", ExchangeKind::Direct);
    wrong.arguments.set(ALTERNATE_EXCHANGE, Value::I32(1));
    assert_eq!(
        router.declare(wrong).unwrap_err().to_string(),
        "invalid type 'signedint' for arg 'alternate-exchange' in exchange 'y' in vhost '/'"
    );
}

#[test]
fn missing_ends_are_named() {
    let mut router = router();
    add_queues(&mut router, 1..2);
    let mut error = |source, destination| {
        router.bind(source, &destination, "k", &Table::new()).unwrap_err().to_string()
    };
    assert_eq!(error("nope", queue(1)), "no exchange 'nope' in vhost '/'");
    assert_eq!(error("amq.direct", queue(9)), "no queue 'q9' in vhost '/'");
    assert_eq!(error("amq.direct", to_exchange("nope")), "no exchange 'nope' in vhost '/'");
    let removed = router.unbind("nope", &queue(9), "k", &Table::new()).unwrap();
    assert_eq!(removed, Removed::default());
}

#[test]
fn a_binding_is_durable_when_both_of_its_ends_are() {
    let mut router = router();
    add_queues(&mut router, 1..2);
    router.add_queue(&QueueName::parse("q2").unwrap(), QueueId(2), false);
    router.declare(ExchangeSpec { durable: false, ..spec("t", ExchangeKind::Fanout) }).unwrap();
    let mut durable = |source, destination| {
        router.bind(source, &destination, "", &Table::new()).unwrap().unwrap().durable
    };
    assert!(durable("amq.fanout", queue(1)));
    assert!(!durable("amq.fanout", queue(2)));
    assert!(!durable("t", queue(1)));
    assert!(!durable("amq.fanout", to_exchange("t")));
    assert!(durable("amq.fanout", to_exchange("amq.direct")));
    assert_eq!(router.bindings().filter(|binding| binding.durable).count(), 2);
    assert_eq!(router.bindings().count(), 5);
}

#[test]
fn a_route_that_is_cached_is_shared() {
    let mut router = router();
    add_queues(&mut router, 1..2);
    bind(&mut router, "amq.topic", &queue(1), "#");
    let first = router.route("amq.topic", "k", PropertyView::new(&PLAIN)).unwrap();
    let other_headers = headers(&[("traceparent", Value::text("00-1"))]);
    let again = router.route("amq.topic", "k", PropertyView::new(&other_headers)).unwrap();
    assert!(Arc::ptr_eq(&first.queues, &again.queues));
    add_queues(&mut router, 2..3);
    let later = router.route("amq.topic", "k", PropertyView::new(&PLAIN)).unwrap();
    assert!(!Arc::ptr_eq(&first.queues, &later.queues));
}

#[test]
fn only_a_pattern_that_could_hold_up_an_exchange_is_refused() {
    let mut router = router();
    add_queues(&mut router, 1..2);
    bind(&mut router, "amq.topic", &queue(1), "a.#");
    let epoch = router.epoch();
    let pattern = "#.a.".repeat(8) + "#";
    let error = router.bind("amq.topic", &queue(1), &pattern, &Table::new()).unwrap_err();
    assert_eq!(
        error.to_string(),
        format!(
            "a topic pattern may have 8 separate '#', this one has 9: \
             exchange 'amq.topic' in vhost '/', pattern '{pattern}'"
        )
    );
    assert_eq!((router.epoch(), router.binding_count()), (epoch, 1));
    // Of another type it is a key like any other.
    bind(&mut router, "amq.direct", &queue(1), &pattern);
    // What was stored by a version without the limit stays, and can be taken away.
    router.restore_binding("amq.topic", &queue(1), &pattern, &Table::new()).unwrap();
    assert_eq!(router.binding_count(), 3);
    assert_eq!(route(&mut router, "amq.topic", &("b.a.".repeat(8) + "b")), [1]);
    router.unbind("amq.topic", &queue(1), &pattern, &Table::new()).unwrap();
    assert!(route(&mut router, "amq.topic", &("b.a.".repeat(8) + "b")).is_empty());
}

#[test]
fn a_stored_binding_may_be_nested_more_deeply_than_today() {
    let mut router = router();
    add_queues(&mut router, 1..2);
    let deep = (0..100).fold(Value::Void, |inner, _| Value::Array(vec![inner]));
    let arguments = Table::from_iter([("deep", deep)]);
    router.restore_binding("amq.direct", &queue(1), "k", &arguments).unwrap();
    let shown: Vec<_> = router.bindings().map(|binding| binding.arguments).collect();
    assert_eq!(shown, [arguments]);
}

#[test]
fn a_message_whose_keys_take_too_many_steps_is_refused_with_the_limit() {
    let mut router = router();
    add_queues(&mut router, 1..2);
    router.declare(spec("next", ExchangeKind::Topic)).unwrap();
    bind(&mut router, "amq.topic", &to_exchange("next"), "#");
    let words: Vec<String> = (0..60).map(|n| format!("{n:02}")).collect();
    for (exchange, word) in
        ["amq.topic", "next"].iter().flat_map(|x| words.iter().map(move |w| (x, w)))
    {
        bind(&mut router, exchange, &queue(1), &format!("#.{word}.#.b.#.c.#.d.#.e.#.f.#.z"));
    }
    let key = |n: usize| format!("{}.b.c.d.e.f.n{n}", words.join("."));
    let copies = |count: usize| -> Vec<String> { (0..count).map(key).collect() };
    let route = |router: &mut Router, count: usize| {
        let copies = copies(count);
        let copies: Vec<&str> = copies.iter().map(String::as_str).collect();
        let properties = headers(&[("CC", keys(&copies))]);
        router.route("amq.topic", "key", PropertyView::new(&properties)).map(drop)
    };
    let _ = router.take_steps();
    route(&mut router, 100).unwrap();
    let steps = router.take_steps() / 100;
    let most = usize::try_from(ROUTE_STEPS_MAX / steps).unwrap();
    assert!((300..900).contains(&most), "{steps} steps for a key");
    route(&mut router, most - 20).unwrap();
    let _ = router.take_steps();
    let refused = route(&mut router, most + 20).unwrap_err();
    assert_eq!(refused, RouteError::TooManySteps { max: ROUTE_STEPS_MAX });
    // And it did not take many more to find that out.
    let steps = router.take_steps();
    let listed = most as u64 + 20;
    assert!(steps <= ROUTE_STEPS_MAX + TOPIC_STEPS_MAX + listed, "{steps} steps");
    assert!(route_with(&mut router, "amq.topic", "another", &PLAIN).is_empty(), "others go on");
}
