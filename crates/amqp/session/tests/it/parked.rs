//! A declaration that waits for something that is being deleted, and what happens to the others meanwhile.

use quelea_amqp_codec::method::{Method, channel, connection, queue as queue_methods};
use quelea_model::{Table, Value};

use crate::declaring::{bind, durable_queue};
use crate::session_test::{On, SessionTest};

/// Returns a client whose declaration waits: its queue of the same name had too many bindings for one turn. The
/// deletion's answer waits for the disk.
fn waiting(node: &mut SessionTest, declare: queue_methods::Declare) -> On {
    let on = node.channel();
    node.call(on, durable_queue("q"));
    for n in 0..100 {
        node.call(on, bind("q", "amq.direct", &format!("key {n}")));
    }
    node.broker.set_steps_per_turn(1_000);
    node.turn();
    node.is_disk_slow = true;
    node.send_on(on, queue_methods::Delete { queue: "q".into(), ..Default::default() });
    node.send_on(on, declare);
    node.turn();
    node.turn();
    assert!(node.session(on.0).awaits_removal());
    on
}

/// More than the removal takes, also if the store in memory says nothing for a turn.
fn turns(node: &mut SessionTest) {
    for _ in 0..20 {
        node.turn();
    }
}

/// Returns a declaration that is refused when its turn comes.
fn wrong() -> queue_methods::Declare {
    let arguments = Table::from_iter([("x-max-length", Value::LongString("many".into()))]);
    queue_methods::Declare { arguments, ..durable_queue("q") }
}

fn close_channel() -> channel::Close {
    channel::Close { reply_code: 200, ..Default::default() }
}

fn close() -> connection::Close {
    connection::Close { reply_code: 200, ..Default::default() }
}

#[test]
fn a_refused_declaration_loses_nothing_that_waits_behind_it() {
    for is_channel in [true, false] {
        let mut node = SessionTest::new();
        let on = waiting(&mut node, wrong());
        if is_channel {
            node.send_on(on, close_channel());
        } else {
            node.send(on.0, close());
        }
        // The bindings go, and the answer to the deletion still waits for the disk.
        turns(&mut node);
        assert_eq!(node.methods(on.0), []);
        node.is_disk_slow = false;
        turns(&mut node);
        node.settle();
        // Whoever closes is owed nothing else.
        let expected: Method =
            if is_channel { channel::CloseOk {}.into() } else { connection::CloseOk {}.into() };
        assert_eq!(node.methods(on.0), [expected]);
    }
}

#[test]
fn a_broken_frame_behind_a_declaration_that_waits_ends_the_connection() {
    let mut node = SessionTest::new();
    let on = waiting(&mut node, durable_queue("q"));
    node.send_bytes(on.0, &[9; 8]);
    node.turn();
    assert_eq!(node.broker.connections().len(), 0, "nothing of it is left");
}
