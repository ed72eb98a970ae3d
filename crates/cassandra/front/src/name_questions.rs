//! Asks Cassandra whether a name that AMQP is to make a queue of is a replicated queue's.

use std::time::Duration;

use quelea_broker::{NameQuestion, NameVerdict};
use quelea_cassandra_store::CassandraQueues;
use quelea_node::CoreHandle;
use quelea_sqs_protocol::{AccountNames, NameLock as _, QueueRef, Queues as _};
use tokio::sync::mpsc::UnboundedReceiver;
use tokio::sync::oneshot;

use crate::name_locks::NameLocks;

/// How long an answer waits for its use. A client that is still there uses it within a turn of the core; one that does not asks
/// again. So long its name, and those that share its place, are held.
const USED_WITHIN: Duration = Duration::from_secs(1);

/// Who asks.
#[derive(Clone)]
pub(crate) struct NameQuestions {
    pub(crate) queues: CassandraQueues,
    pub(crate) core: CoreHandle,
    pub(crate) names: AccountNames,
    pub(crate) locks: NameLocks,
}

impl NameQuestions {
    /// Asks until the core stops. As many questions are under way as the broker admits.
    pub(crate) async fn serve(self, mut questions: UnboundedReceiver<NameQuestion>) {
        while let Some(question) = questions.recv().await {
            tokio::spawn(self.clone().ask(question));
        }
    }

    /// The name stays held until the broker has used the answer: no replicated queue of it is made here meanwhile.
    async fn ask(self, question: NameQuestion) {
        let (vhost, name) = &question;
        // A virtual host that is no account has the name of one, by which it asks too.
        let account = self.names.account_of(vhost.as_str()).unwrap_or(vhost.as_str());
        let queue = QueueRef { account: account.into(), name: (&**name).into() };
        let held = self.locks.hold(&queue).await;
        let verdict = match self.queues.facts_now(&queue).await {
            Ok(None) => NameVerdict::Free,
            Ok(Some(_)) => NameVerdict::Replicated,
            Err(fault) => NameVerdict::Unknown(fault.to_string()),
        };
        let (unused, used) = oneshot::channel::<()>();
        let answered = question.clone();
        let answer = move |core: &mut quelea_node::Core| {
            core.broker.name_checked(answered, verdict, Box::new((held, unused)));
        };
        if self.core.post(answer).await.is_err() {
            return;
        }
        // Resolves when what is held is dropped.
        if tokio::time::timeout(USED_WITHIN, used).await.is_err() {
            let forget =
                move |core: &mut quelea_node::Core| core.broker.forget_name_check(&question);
            let _ = self.core.post(forget).await;
        }
    }
}
