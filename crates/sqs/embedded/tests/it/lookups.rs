//! What is remembered of queues that somebody asks for.

use quelea_model::limits::SHORT_STRING_BYTES_MAX;
use quelea_sqs_embedded::EmbeddedQueues;
use quelea_sqs_protocol::{QueueRef, Queues as _};

use crate::node::{TestNode, settings};

#[test]
fn a_name_that_no_queue_can_have_is_not_remembered() {
    let node = TestNode::start();
    let queues = EmbeddedQueues::new(node.handle().clone(), settings());
    let longest = "x".repeat(SHORT_STRING_BYTES_MAX);
    let too_long = format!("{longest}y");
    for (account, name) in [("1", &*longest), ("1", &too_long), (&too_long, "q")] {
        let queue = QueueRef { account: account.into(), name: name.into() };
        assert_eq!(node.block_on(queues.facts(&queue)).unwrap(), None);
    }
    let kept = format!("{queues:?}");
    assert!(kept.contains(&longest), "that there is none of an ordinary name is remembered");
    assert!(!kept.contains(&too_long));
}
