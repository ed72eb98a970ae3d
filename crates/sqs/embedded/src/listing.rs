//! Listing queues: an account may have a hundred thousand, so the core looks at some of them in each of many
//! calls, and serves others in between.

use std::sync::Arc;

use quelea_broker::QueueNames;
use quelea_node::Core;
use quelea_sqs_protocol::Fault;

use crate::broker_calls::BrokerCalls;

/// Returns the first `max` names after `after`. `page` returns those that it finds in one call.
pub(crate) async fn names(
    calls: &BrokerCalls,
    after: Option<&str>,
    max: usize,
    page: impl Fn(&mut Core, Option<&str>) -> QueueNames + Send + Sync + 'static,
) -> Result<Vec<String>, Fault> {
    let page = Arc::new(page);
    let mut after = after.map(str::to_owned);
    let mut names = Vec::new();
    loop {
        let (page, from) = (Arc::clone(&page), after.take());
        let found = calls.call(move |core| page(core, from.as_deref())).await?;
        let wanted = max - names.len();
        names.extend(found.names.iter().take(wanted).map(ToString::to_string));
        match found.go_on_after {
            Some(last) if names.len() < max => after = Some(last.to_string()),
            _ => return Ok(names),
        }
        // A call on the core's own thread is made at once, without a turn between it and the last.
        tokio::task::yield_now().await;
    }
}
