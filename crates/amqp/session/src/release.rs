//! What waits for the store's progress, or for the end of the turn, and is sent then: confirms, and delayed answers.

use quelea_store::Progress;

use crate::channel::Mode;
use crate::confirm::ConfirmMeter;
use crate::session::Session;

/// What the publisher on a channel has asked for, and knows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PublisherState {
    /// It has selected confirms.
    pub confirms: bool,
    /// It has selected transactions.
    pub transactional: bool,
    /// Publishes that it knows to be accepted.
    pub confirmed: u64,
    /// Publishes of which it knows nothing yet, though it asked for confirms.
    pub unconfirmed: u64,
}

impl Session {
    /// Sends what the store's progress allows: confirms, and answers that promise durability.
    pub fn progress(&mut self, progress: Progress, meter: &mut ConfirmMeter) {
        self.release(progress, meter, false);
    }

    /// Returns what the publisher on a channel knows: nothing if the channel is not open.
    #[must_use]
    pub fn publisher_state(&self, channel: u16) -> PublisherState {
        let none = PublisherState::default();
        self.channels.get(&channel).map_or(none, |channel| match &channel.mode {
            Mode::Confirm(confirms) => PublisherState {
                confirms: true,
                confirmed: confirms.confirmed(),
                unconfirmed: confirms.unconfirmed(),
                ..none
            },
            Mode::Transactional(_) => PublisherState { transactional: true, ..none },
            Mode::Plain => none,
        })
    }

    /// Returns whether [`Session::progress`] may have something to send: the shell calls it for no
    /// others.
    #[must_use]
    pub const fn waits_for_progress(&self) -> bool {
        !self.waiting.is_empty()
    }

    /// Ends a turn, after the broker's effects are carried out: one confirm a channel for what had
    /// to wait for nothing, and answers that had to stay behind deliveries. Returns whether there were any: what is
    /// stalled may have waited for them, and goes on although none of them can be written.
    pub fn flush_confirms(&mut self, progress: Progress, meter: &mut ConfirmMeter) -> bool {
        let waited = (self.pending_replies, self.confirms_waiting);
        self.release(progress, meter, true);
        waited != (self.pending_replies, self.confirms_waiting)
    }

    /// Sends what `progress` and the end of the turn allow, of all channels that wait.
    fn release(&mut self, progress: Progress, meter: &mut ConfirmMeter, turn_ends: bool) {
        let Self { waiting, channels, wire, .. } = self;
        let (mut pending_replies, mut confirms_waiting) = (0, 0);
        waiting.retain(|number| {
            let Some(channel) = channels.get_mut(number) else { return false };
            channel.release(*number, wire, progress, meter, turn_ends);
            pending_replies += channel.pending_replies.len();
            confirms_waiting += channel.confirms_waiting();
            channel.is_listed = channel.waits();
            channel.is_listed
        });
        self.pending_replies = pending_replies;
        self.confirms_waiting = confirms_waiting;
    }
}
