//! The embedded log as a store of queues.

use quelea_sqs_conformance::Suite;
use quelea_sqs_embedded::EmbeddedQueues;
use quelea_sqs_protocol::QueueClass;

use crate::node::{ACCOUNT, COOLDOWN_MS, TestNode, settings};

fn run(case: &str) {
    let node = TestNode::start();
    let queues = EmbeddedQueues::new(node.handle().clone(), settings());
    let suite = Suite::new(queues, QueueClass::Ordered, ACCOUNT, "case", COOLDOWN_MS);
    node.block_on(quelea_sqs_conformance::run(case, &suite));
}

quelea_sqs_conformance::tests!(run);
