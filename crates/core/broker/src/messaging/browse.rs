//! Answers to those who look at a queue.

use super::Messaging;
use super::dispatch::was_delivered;
use crate::effect::Effect;
use crate::reply::{BrowsedMessage, BrowsedPage};

impl Messaging {
    /// Gives the pages that are there to whoever asked for them, unless they have gone.
    pub(crate) fn answer_browses(&mut self) {
        let maybe_delivered_below = self.queues.maybe_delivered_below();
        while let Some(page) = self.queues.next_browsed() {
            let Some(channel) = self.clients.channels.get(page.channel) else { continue };
            let connection = channel.connection;
            let messages = page.found.into_iter().filter_map(|(entry, body)| {
                let redelivered = was_delivered(&entry, maybe_delivered_below);
                body.map(|message| BrowsedMessage { redelivered, message })
            });
            let page = BrowsedPage { messages: messages.collect(), next: page.next };
            self.effects.push_back(Effect::Browsed { connection, page: Box::new(page) });
        }
    }
}
