//! Messages that were received for a client that went away before it got them.

use quelea_broker::{Receipt, ReceiveError, ReceivedMessage};
use tokio::sync::oneshot;

/// How the core answers a receive.
pub(crate) type ReceiveAnswer = Result<Option<Vec<ReceivedMessage>>, ReceiveError>;

/// Closes the channel of an answer, and returns what was received and will not be taken. An answer
/// that is still to come finds nobody from now on, and is taken back by the core.
pub(crate) fn undelivered(answer: &mut oneshot::Receiver<ReceiveAnswer>) -> Vec<Receipt> {
    answer.close();
    let messages = answer.try_recv().ok().and_then(Result::ok).flatten();
    messages.into_iter().flatten().map(|message| message.receipt).collect()
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use quelea_model::{Message, QueueId, Seq, Timestamp};

    use super::*;

    #[test]
    fn an_answer_that_was_not_taken_is_given_back_whenever_it_comes() {
        let receipt = Receipt { queue: QueueId(1), seq: Seq(7), receive_count: 1 };
        let message = Arc::new(Message::new("", "q", &[], "x".into()));
        let first_received_at = Timestamp::from_millis(5);
        let message = ReceivedMessage { receipt, first_received_at, message };
        let (sender, mut answer) = oneshot::channel();
        sender.send(Ok(Some(vec![message.clone()]))).unwrap();
        assert_eq!(undelivered(&mut answer), [receipt]);
        let (sender, mut answer) = oneshot::channel();
        assert_eq!(undelivered(&mut answer), []);
        // So that the core knows that nobody has it.
        assert!(sender.send(Ok(Some(vec![message]))).is_err());
    }
}
