//! Whether a queue's name is one of another store's queues, for fronts that can wait for the answer.

use std::any::Any;

use super::Broker;
use crate::clients::reply_to::{REPLY_KEY_PREFIX, REPLY_TO};
use crate::error::{DeclareQueueError, NameBeingChecked, NameUnknown, ReplicatedQueue};
use crate::ids::ChannelId;
use crate::name_checks::{NameQuestion, NameVerdict};
use crate::request::DeclareQueue;
use crate::routing::exchange::RESERVED_PREFIX;

impl Broker {
    /// From now on there is another store that has names of queues: [`Broker::check_queue_name`] asks.
    pub const fn check_names(&mut self) {
        self.name_checks.turn_on();
    }

    /// Returns whether [`Broker::check_queue_name`] may have somebody wait.
    #[must_use]
    pub const fn checks_names(&self) -> bool {
        self.name_checks.is_on()
    }

    /// Checks whether a queue may be declared as far as the other store is concerned; to be called
    /// before [`Broker::declare_queue`]. Does not ask for queues that are here.
    ///
    /// # Errors
    /// [`DeclareQueueError::ReplicatedQueue`]; [`DeclareQueueError::NameBeingChecked`] until there is an answer.
    pub fn check_queue_name(
        &mut self,
        channel: ChannelId,
        request: &DeclareQueue,
    ) -> Result<(), DeclareQueueError> {
        let name = request.name.as_str();
        let is_own = name.starts_with(RESERVED_PREFIX)
            || name == REPLY_TO
            || name.starts_with(REPLY_KEY_PREFIX);
        if is_own || !self.name_checks.may_be_elsewhere(name) {
            return Ok(());
        }
        let state = self.messaging.clients.channel(channel)?;
        let (vhost_id, vhost) = (state.vhost, state.vhost_name.clone());
        if self.find_live_queue(vhost_id, name).is_some() {
            return Ok(());
        }
        if !request.passive {
            // Who may not make it does not learn what there is.
            self.permit_declare(channel, name, &request.arguments)?;
        }
        match self.name_checks.take(&vhost, name) {
            Some(NameVerdict::Free) => Ok(()),
            Some(NameVerdict::Replicated) => {
                Err(ReplicatedQueue { vhost, name: name.to_owned() }.into())
            }
            Some(NameVerdict::Unknown(reason)) => {
                Err(NameUnknown { vhost, name: name.to_owned(), reason }.into())
            }
            None => Err(NameBeingChecked { vhost, name: name.to_owned() }.into()),
        }
    }

    /// Takes the next name to ask the other store for. The answer comes by
    /// [`Broker::name_checked`].
    pub fn poll_name_question(&mut self) -> Option<NameQuestion> {
        self.name_checks.next_question()
    }

    /// The other store has answered: who waits tries again. `held` is dropped when the answer has been used.
    pub fn name_checked(
        &mut self,
        question: NameQuestion,
        verdict: NameVerdict,
        held: Box<dyn Any + Send>,
    ) {
        self.name_checks.answer(question, verdict, held);
        self.removals.note_change();
    }

    /// An answer that nobody has used for long will not be.
    pub fn forget_name_check(&mut self, question: &NameQuestion) {
        self.name_checks.forget(question);
        self.removals.note_change();
    }
}
