//! What waits for the store's progress, or for the end of the turn, and is sent then: confirms, and delayed answers.

use quelea_store::Progress;

use crate::channel::Mode;
use crate::confirm::ConfirmMeter;
use crate::session::Session;

impl Session {
    /// Sends what the store's progress allows: confirms, and answers that promise durability.
    pub fn progress(&mut self, progress: Progress, meter: &mut ConfirmMeter) {
        self.release(progress, meter, false);
    }

    /// Publishes that a channel's client knows to be accepted: 0 if the channel is not in confirm mode, or not open.
    #[must_use]
    pub fn confirmed(&self, channel: u16) -> u64 {
        self.channels.get(&channel).map_or(0, |channel| match &channel.mode {
            Mode::Confirm(confirms) => confirms.confirmed(),
            Mode::Plain | Mode::Transactional(_) => 0,
        })
    }

    /// Whether [`Session::progress`] may have something to send: the shell calls it for no others.
    #[must_use]
    pub const fn waits_for_progress(&self) -> bool {
        !self.waiting.is_empty()
    }

    /// Ends a turn, after the broker's effects are carried out: one confirm a channel for what had
    /// to wait for nothing, and answers that had to stay behind deliveries.
    pub fn flush_confirms(&mut self, progress: Progress, meter: &mut ConfirmMeter) {
        self.release(progress, meter, true);
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
