//! A headers exchange takes bounded time, in counted steps.

use quelea_model::limits::HEADERS_STEPS_MAX;

use super::*;

/// Returns arguments that no other binding has, of some 200 steps, which no message fits.
fn expensive(n: u64) -> Table {
    let long = Value::text(&"x".repeat(64 * 100));
    let any = Value::text("any");
    let terms = [("x-match", any), ("a", Value::I64(n as i64)), ("b", long.clone()), ("z", long)];
    terms.into_iter().collect()
}

/// The steps of such a binding: itself, its three terms, and two long values.
const EXPENSIVE_STEPS: u64 = 1 + 3 + 2 * 100;

#[test]
fn a_binding_beyond_the_steps_of_a_headers_exchange_is_refused() {
    let mut router = router();
    add_queues(&mut router, 1..2);
    let most = HEADERS_STEPS_MAX / EXPENSIVE_STEPS;
    for n in 0..most {
        router.bind("amq.headers", &queue(1), "", &expensive(n)).unwrap();
    }
    let refused = router.bind("amq.headers", &queue(1), "", &expensive(most)).unwrap_err();
    assert_eq!(
        refused.to_string(),
        format!(
            "a headers exchange's bindings may take 100000 steps for any one message, with this one \
             they could take {}: exchange 'amq.headers' in vhost '/'",
            (most + 1) * EXPENSIVE_STEPS
        )
    );
    let _ = router.take_steps();
    let message = headers(&[("a", Value::I64(-1)), ("c", Value::Void)]);
    assert!(route_with(&mut router, "amq.headers", "", &message).is_empty());
    assert_eq!(router.take_steps(), 2 + most * EXPENSIVE_STEPS, "each term is looked at");
    // Other exchanges go on, and what is taken away makes room.
    router.bind("amq.match", &queue(1), "", &expensive(0)).unwrap();
    router.unbind("amq.headers", &queue(1), "", &expensive(0)).unwrap();
    router.bind("amq.headers", &queue(1), "", &expensive(most)).unwrap();
}

#[test]
fn a_message_takes_bounded_steps_through_headers_bindings_of_an_older_version() {
    let mut router = router();
    add_queues(&mut router, 1..2);
    for n in 0..=ROUTE_STEPS_MAX / EXPENSIVE_STEPS {
        router.restore_binding("amq.headers", &queue(1), "", &expensive(n)).unwrap();
    }
    let _ = router.take_steps();
    let message = headers(&[("a", Value::I64(-1))]);
    let refused = router.route("amq.headers", "", PropertyView::new(&message)).map(drop);
    assert_eq!(refused, Err(RouteError::TooManySteps { max: ROUTE_STEPS_MAX }));
    let steps = router.take_steps();
    assert!(steps <= ROUTE_STEPS_MAX + EXPENSIVE_STEPS, "{steps} steps");
    assert!(route(&mut router, "amq.direct", "another").is_empty(), "others go on");
}
