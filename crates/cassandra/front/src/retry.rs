//! What a start asks of Cassandra again, where too few replicas answer.

use std::time::Duration;

use quelea_node::Backoff;
use quelea_sqs_protocol::Fault;
use tokio::time::Instant;

/// A restarted replica answers sooner. What takes longer ends the start: the next one waits for Cassandra.
const RETRIED: Duration = Duration::from_secs(30);

/// Attempts until one gives anything but [`Fault::Unavailable`], or for half a minute.
pub(crate) async fn retried<T>(
    mut attempt: impl AsyncFnMut() -> Result<T, Fault>,
) -> Result<T, Fault> {
    let until = Instant::now() + RETRIED;
    let mut backoff = Backoff::new();
    loop {
        match attempt().await {
            Err(Fault::Unavailable(reason)) if Instant::now() < until => {
                tracing::warn!(reason, "Cassandra does not give the users yet");
                tokio::time::sleep(backoff.next_wait()).await;
            }
            done => return done,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn unavailable() -> Fault {
        Fault::Unavailable("too few replicas".to_owned())
    }

    #[tokio::test(start_paused = true)]
    async fn an_attempt_that_replicas_do_not_answer_is_made_again() {
        let mut left = 3;
        let done = retried(async || {
            left -= 1;
            if left == 0 { Ok("done") } else { Err(unavailable()) }
        });
        assert_eq!(done.await, Ok("done"));
    }

    #[tokio::test(start_paused = true)]
    async fn attempts_end_where_nothing_changes() {
        let (began, mut attempts) = (Instant::now(), 0);
        let done = retried(async || {
            attempts += 1;
            Err::<(), _>(unavailable())
        });
        assert_eq!(done.await, Err(unavailable()));
        assert!(began.elapsed() >= RETRIED && attempts > 5, "{attempts} attempts");
    }

    #[tokio::test(start_paused = true)]
    async fn a_refusal_is_final() {
        let mut attempts = 0;
        let done = retried(async || {
            attempts += 1;
            Err::<(), _>(Fault::Conflict)
        });
        assert_eq!((done.await, attempts), (Err(Fault::Conflict), 1));
    }
}
