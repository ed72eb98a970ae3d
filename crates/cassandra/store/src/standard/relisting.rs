//! What is listed again after this machine's clock was behind by a lot, as after it was suspended. Meanwhile others may have taken
//! old, empty partitions of messages off the list that the sweep goes by, into which this front-end then put messages at a
//! time that had passed: behind the head, where the sweep alone finds them.

use quelea_sqs_protocol::{Consistency, Fault};

use crate::standard::Standard;
use crate::standard::tables::{List, Of};

impl Standard {
    /// What was listed by the clock that was wrong may be listed no more.
    pub(crate) fn suspect_listings(&self) {
        self.served.all().iter().for_each(|queue| queue.suspect_listings());
    }

    /// Lists what is suspected, at the present time.
    ///
    /// # Errors
    /// [`Fault::Unavailable`]; what is left is still suspected.
    pub(crate) async fn list_bodies_again(&self) -> Result<(), Fault> {
        let mut listed = Ok(());
        for queue in self.served.all() {
            let suspected = queue.suspected_listings();
            if suspected.is_empty() {
                continue;
            }
            let (generation, consistency) = (queue.generation, Consistency::LocalQuorum);
            let (of, now_us) = (Of { generation, consistency }, self.clock.now_us());
            match self.tables.list(of, List::Messages, suspected.clone(), now_us).await {
                Ok(()) => queue.listed_again(suspected),
                Err(fault) => listed = Err(fault),
            }
        }
        listed
    }
}
