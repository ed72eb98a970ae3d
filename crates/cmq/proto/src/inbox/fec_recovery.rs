//! Parity: what is lost comes back without a repetition.

use bytes::Bytes;

use crate::Time;
use crate::inbox::Inbox;
use crate::inbox::content::{Arrived, Content};
use crate::inbox::data_frames::{Step, Taken};
use crate::inbox::window::Place;
use crate::repair::{FecDecoder, Recovered};
use crate::wire::parity::Parity;
use crate::wire::{HEADER_BYTES, Header, Malformed, flags};

/// What a decoder takes beside the bytes that it holds.
const DECODER_BYTES: usize = 1 << 10;

impl Inbox {
    /// Takes a PARITY. It has a place in its flow as data has.
    ///
    /// # Errors
    /// What is wrong with its body, or with what it would recover.
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
        let step = Step { place, missing_messages, recovered: false };
        self.note_arrival(slot, header, step, arrived.now);
        let recovered = self.with_decoder(slot, |decoder| decoder.on_parity(header, head, parity));
        let recovered = self.take_recovered(slot, recovered, arrived.now);
        self.after_arrival(slot, arrived, step);
        recovered.map(|()| Taken::Taken)
    }

    /// A datagram of data that may be needed to recover another, or that makes another recoverable.
    pub(super) fn keep_for_repair(&mut self, slot: u32, arrived: &Arrived<'_>) {
        let body = &arrived.buffer[arrived.body.clone()];
        let recovered = self.with_decoder(slot, |decoder| decoder.on_data(arrived.header, body));
        // Parity that is wrong was counted when it came, as far as that can be known.
        let _ = self.take_recovered(slot, recovered, arrived.now);
    }

    /// Lets `act` use a flow's decoder, within the memory that all flows share; returns what was
    /// recovered. A flow for which there is no memory goes without.
    fn with_decoder(
        &mut self,
        slot: u32,
        act: impl FnOnce(&mut FecDecoder),
    ) -> Vec<Result<Recovered, Malformed>> {
        let flow = self.flows.at(slot);
        let proven = flow.proven;
        let mut decoder = flow.decoder.take().unwrap_or_default();
        act(&mut decoder);
        let recovered = core::iter::from_fn(|| decoder.poll_recovered()).collect();
        let (before, held) = (flow.decoder_taken, decoder.held_bytes() + DECODER_BYTES);
        let keeps = self.budget.take_to_mend(before, held, proven);
        let flow = self.flows.at(slot);
        flow.decoder_taken = if keeps { held } else { 0 };
        flow.decoder = keeps.then_some(decoder);
        recovered
    }

    fn take_recovered(
        &mut self,
        slot: u32,
        recovered: Vec<Result<Recovered, Malformed>>,
        now: Time,
    ) -> Result<(), Malformed> {
        let mut wrong = Ok(());
        for recovered in recovered {
            match recovered {
                Ok(recovered) => {
                    let taken = self.take_one_mended(slot, recovered, now);
                    wrong = wrong.and(taken);
                }
                Err(cause) => wrong = Err(cause),
            }
        }
        wrong
    }

    fn take_one_mended(
        &mut self,
        slot: u32,
        recovered: Recovered,
        now: Time,
    ) -> Result<(), Malformed> {
        let flow = self.flows.at(slot);
        // Its parity was sealed if it was.
        let header = Header {
            flags: recovered.header.flags | flow.flags & flags::SEALED,
            ..recovered.header
        };
        let place = flow.window.place(header.sequence, flow.mode.is_reliable());
        let (Place::Missing, Some(missing_messages)) =
            (place, flow.missing_messages(&header, place))
        else {
            return Ok(());
        };
        let buffer = Bytes::from(recovered.segment);
        let body = HEADER_BYTES..buffer.len();
        let content = Content::read(&buffer[body.clone()], header.flags, header.count)?;
        let from = flow.key.from;
        let arrived =
            Arrived { from, header: &header, body, bytes: buffer.len(), buffer: &buffer, now };
        let step = Step { place, missing_messages, recovered: true };
        self.take(slot, &arrived, content, step, false);
        Ok(())
    }
}
