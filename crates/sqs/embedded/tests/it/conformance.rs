//! The embedded log as a store of queues.

use quelea_sqs_conformance::Suite;
use quelea_sqs_embedded::{EmbeddedQueues, EmbeddedSettings};
use quelea_sqs_protocol::QueueClass;

use crate::node::TestNode;

/// The account that the virtual host `/` is.
const ACCOUNT: &str = "000000000000";

/// How long names and purges rest here.
const COOLDOWN_MS: u64 = 300;

fn run(case: &str) {
    let node = TestNode::start();
    let settings = EmbeddedSettings { account_id: ACCOUNT.into(), cooldown_ms: COOLDOWN_MS };
    let queues = EmbeddedQueues::new(node.handle().clone(), settings);
    let suite = Suite::new(queues, QueueClass::Ordered, ACCOUNT, "case", COOLDOWN_MS);
    node.block_on(quelea_sqs_conformance::run(case, &suite));
}

quelea_sqs_conformance::tests!(run);
