//! Jobs of one kind: those of several calls are carried out together.

use std::sync::Arc;

use quelea_sqs_protocol::Fault;

use crate::standard::Standard;
use crate::standard::gather::{Gatherer, Size};
use crate::standard::queue::Queue;

/// Jobs that are carried out as soon as those before them are: where a queue has them, how many may wait, and how many go
/// together.
pub(crate) struct JobKind<J> {
    pub(crate) of: fn(&Queue) -> &Gatherer<J>,
    pub(crate) waiting: Size,
    pub(crate) at_once: Size,
}

impl Standard {
    /// Adds a job to those that wait, and has them carried out if nobody does it.
    pub(crate) fn gather<J: Send + 'static, F: Future<Output = ()> + Send + 'static>(
        self: &Arc<Self>,
        queue: &Arc<Queue>,
        kind: JobKind<J>,
        job: J,
        size: Size,
        carry_out: fn(Arc<Self>, Arc<Queue>, Vec<J>) -> F,
    ) -> Result<(), Fault> {
        let JobKind { of, waiting, at_once } = kind;
        if of(queue).push(job, size, waiting)? {
            let (standard, queue) = (self.clone(), queue.clone());
            self.runtime.spawn(async move {
                let serving = of(&queue).serving();
                while let Some(jobs) = of(&queue).take(at_once) {
                    carry_out(standard.clone(), queue.clone(), jobs).await;
                }
                serving.done();
            });
        }
        Ok(())
    }
}
