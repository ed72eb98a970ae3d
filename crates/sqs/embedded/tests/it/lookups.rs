//! What is remembered of queues that somebody asks for.

use quelea_model::limits::SHORT_STRING_BYTES_MAX;
use quelea_sqs_embedded::EmbeddedQueues;
use quelea_sqs_protocol::{QueueRef, Queues as _};

use crate::node::{TestNode, settings};

const ATTEMPTS_MAX: usize = 1_000;

#[test]
fn a_name_that_no_queue_can_have_is_not_remembered() {
    let node = TestNode::start();
    let queues = EmbeddedQueues::new(node.handle().clone(), settings());
    let longest = "x".repeat(SHORT_STRING_BYTES_MAX);
    let too_long = format!("{longest}y");
    let look_up = |account: &str, name: &str| {
        let queue = QueueRef { account: account.into(), name: name.into() };
        assert_eq!(node.block_on(queues.facts(&queue)).unwrap(), None);
    };
    let mut kept = String::new();
    // What was looked up before the node's first turns is forgotten behind them.
    for _ in 0..ATTEMPTS_MAX {
        look_up("1", &longest);
        kept = format!("{queues:?}");
        if kept.contains(&longest) {
            break;
        }
    }
    assert!(kept.contains(&longest), "that there is none of an ordinary name is remembered");
    look_up("1", &too_long);
    look_up(&too_long, "q");
    assert!(!format!("{queues:?}").contains(&too_long));
}
