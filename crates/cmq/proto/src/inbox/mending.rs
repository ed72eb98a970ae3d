//! Parity: what is lost comes back without a repetition.

use bytes::Bytes;

use crate::inbox::Inbox;
use crate::inbox::content::{Arrived, Content};
use crate::inbox::taking::{Step, Taken};
use crate::inbox::window::Place;
use crate::repair::{Mended, Mender};
use crate::time::Time;
use crate::wire::parity::Parity;
use crate::wire::{HEADER_BYTES, Header, Malformed, flags};

/// What a mender takes beside the bytes that it holds: its places for the last datagrams.
const MENDER_BYTES: usize = 10 << 10;

impl Inbox {
    /// Takes a PARITY. It has a place in its flow as data has.
    ///
    /// # Errors
    /// What is wrong with its body, or with what it would mend.
    pub fn on_parity(&mut self, arrived: &Arrived<'_>) -> Result<Taken, Malformed> {
        let header = arrived.header;
        let body = &arrived.buffer[arrived.body.clone()];
        let (head, parity) = Parity::read(body, header.sequence)?;
        if header.count > 0 {
            return Err(Malformed::Parity);
        }
        let known = self.flows.find(&arrived.key());
        if let Some(slot) = known
            && !self.is_wanted(slot, arrived)
        {
            return Ok(Taken::Dropped);
        }
        let Some(slot) = known.or_else(|| self.admit(arrived, None)) else {
            return Ok(Taken::Dropped);
        };
        let flow = self.flows.at(slot);
        let place = flow.window.place(header.sequence, flow.mode.is_reliable());
        let messages = flow.missing_messages(header, place);
        let (Place::New { .. } | Place::Missing, Some(missing_messages)) = (place, messages) else {
            self.counters.inconsistent += 1;
            return Ok(Taken::Dropped);
        };
        let step = Step { place, missing_messages, mended: false };
        self.note_arrival(slot, header, step, arrived.now);
        let mended = self.with_mender(slot, |mender| mender.on_parity(header, head, parity));
        let mended = self.take_mended(slot, mended, arrived.now);
        self.after_arrival(slot, arrived, step);
        mended.map(|()| Taken::Taken)
    }

    /// A datagram of data that may be needed to mend another, or that makes another mendable.
    pub(super) fn keep_for_repair(&mut self, slot: u32, arrived: &Arrived<'_>) {
        let body = &arrived.buffer[arrived.body.clone()];
        let mended = self.with_mender(slot, |mender| mender.on_data(arrived.header, body));
        // Parity that is wrong was counted when it came, as far as that can be known.
        let _ = self.take_mended(slot, mended, arrived.now);
    }

    /// Has a flow's mender do something, within the memory that all flows share. A flow for which
    /// there is none goes without.
    fn with_mender(
        &mut self,
        slot: u32,
        act: impl FnOnce(&mut Mender),
    ) -> Vec<Result<Mended, Malformed>> {
        let flow = self.flows.at(slot);
        let proven = flow.proven;
        let mut mender = flow.mender.take().unwrap_or_default();
        act(&mut mender);
        let mended = core::iter::from_fn(|| mender.poll_mended()).collect();
        let (before, held) = (flow.mender_taken, mender.held_bytes() + MENDER_BYTES);
        let keeps = self.budget.take_to_mend(before, held, proven);
        let flow = self.flows.at(slot);
        flow.mender_taken = if keeps { held } else { 0 };
        flow.mender = keeps.then_some(mender);
        mended
    }

    fn take_mended(
        &mut self,
        slot: u32,
        mended: Vec<Result<Mended, Malformed>>,
        now: Time,
    ) -> Result<(), Malformed> {
        let mut wrong = Ok(());
        for mended in mended {
            match mended {
                Ok(mended) => {
                    let taken = self.take_one_mended(slot, mended, now);
                    wrong = wrong.and(taken);
                }
                Err(cause) => wrong = Err(cause),
            }
        }
        wrong
    }

    fn take_one_mended(&mut self, slot: u32, mended: Mended, now: Time) -> Result<(), Malformed> {
        let flow = self.flows.at(slot);
        // Its parity was sealed if it was.
        let header =
            Header { flags: mended.header.flags | flow.flags & flags::SEALED, ..mended.header };
        let place = flow.window.place(header.sequence, flow.mode.is_reliable());
        let (Place::Missing, Some(missing_messages)) =
            (place, flow.missing_messages(&header, place))
        else {
            return Ok(());
        };
        let buffer = Bytes::from(mended.segment);
        let body = HEADER_BYTES..buffer.len();
        let content = Content::read(&buffer[body.clone()], header.flags, header.count)?;
        let from = flow.key.from;
        let arrived =
            Arrived { from, header: &header, body, bytes: buffer.len(), buffer: &buffer, now };
        let step = Step { place, missing_messages, mended: true };
        self.take(slot, &arrived, content, step, false);
        Ok(())
    }
}
