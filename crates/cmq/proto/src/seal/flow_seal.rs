//! One end of a sealed flow.

use core::ops::Range;

use ring::hkdf;

use crate::limits::WINDOW_DATAGRAMS_MAX;
use crate::seal::direction::Direction;
use crate::seal::{Keyring, REPLAY_NUMBERS, Rejected, ReplayWindow, SealError, TAG_BYTES};
use crate::wire::handshake::SALT_BYTES;
use crate::wire::{HEADER_BYTES, Header, Kind, NUMBER_MAX, flags};

/// The names of the directions, in the derivation of their keys.
const FROM_SENDER: u8 = 1;
const FROM_RECEIVER: u8 = 2;

/// Seals what one end of a flow sends and opens what comes from the other end, both in place.
///
/// The numbers of DATA and PARITY are the flow's sequence and must rise; those of the other kinds are
/// given out here. So no number is sealed twice with a key, whatever the caller does.
pub struct FlowSeal {
    is_sender: bool,
    outgoing: Direction,
    incoming: Direction,
    /// One past the last sequence that was sealed.
    sequences_below: u64,
    /// The next number of PROBE, STATUS or REFUSAL.
    next_number: u64,
    /// Of DATA and PARITY, at the receiver.
    sequences: Option<ReplayWindow>,
    /// Of PROBE, or of STATUS and REFUSAL.
    numbers: ReplayWindow,
}

impl FlowSeal {
    /// Returns the seal of the flow's sender or receiver, when both ends know each other's salt.
    pub(super) fn of_salts(
        is_sender: bool,
        keyring: &Keyring,
        header: &Header,
        sender_salt: &[u8; SALT_BYTES],
        receiver_salt: &[u8; SALT_BYTES],
    ) -> Self {
        let secret = keyring.flow_secret(sender_salt, receiver_salt);
        Self::new(is_sender, secret, header.session, header.flow)
    }

    /// Returns the seal of a flow to a multicast group, of its sender. Nobody answers there, so the
    /// keys are the session's and the flow's alone: they prove that the sender is of the group, not
    /// who it is, and a receiver that was restarted takes what was recorded before.
    #[must_use]
    pub fn group_sender(keyring: &Keyring, session: u64, flow: u32) -> Self {
        Self::new(true, keyring.group_secret().clone(), session, flow)
    }

    /// Returns the seal of a flow to a multicast group, of a receiver. Keep it only when something
    /// was opened with it.
    #[must_use]
    pub fn group_receiver(keyring: &Keyring, session: u64, flow: u32) -> Self {
        Self::new(false, keyring.group_secret().clone(), session, flow)
    }

    /// Opens the first datagram that is seen of a flow to a group, and only then makes its seal: a
    /// forger's costs nothing but the look at its tag. Returns where in `segment` the body is.
    ///
    /// # Errors
    /// None who has the key sent it; `segment` is then of no use.
    pub fn open_of_group(
        keyring: &Keyring,
        header: &Header,
        segment: &mut [u8],
    ) -> Result<(Self, Range<usize>), Rejected> {
        let end = body_end(header, segment)?;
        if header.kind.is_answer() {
            return Err(Rejected::NotAuthentic);
        }
        let (session, flow) = (header.session, header.flow);
        let secret = keyring.group_secret().clone();
        Direction::new(secret, FROM_SENDER, session, flow).open(header, segment)?;
        let mut seal = Self::group_receiver(keyring, session, flow);
        if !has_sequence(header.kind) {
            seal.numbers.take(header.sequence);
        }
        Ok((seal, HEADER_BYTES..end))
    }

    fn new(is_sender: bool, secret: hkdf::Prk, session: u64, flow: u32) -> Self {
        let from_sender = Direction::new(secret.clone(), FROM_SENDER, session, flow);
        let from_receiver = Direction::new(secret, FROM_RECEIVER, session, flow);
        let (outgoing, incoming) =
            if is_sender { (from_sender, from_receiver) } else { (from_receiver, from_sender) };
        Self {
            is_sender,
            outgoing,
            incoming,
            sequences_below: 0,
            next_number: 0,
            sequences: (!is_sender).then(|| ReplayWindow::new(WINDOW_DATAGRAMS_MAX)),
            numbers: ReplayWindow::new(REPLAY_NUMBERS),
        }
    }

    /// Writes the header to the front of `segment`, with the flag SEALED, encrypts the body behind it
    /// and fills in the tag, for which the last [`TAG_BYTES`] of `segment` are kept free. For kinds
    /// other than DATA and PARITY the header's number is replaced by the next one.
    ///
    /// # Errors
    /// It was sealed before, or cannot be; then `segment` is as it was.
    pub fn seal(&mut self, mut header: Header, segment: &mut [u8]) -> Result<(), SealError> {
        if segment.len() < HEADER_BYTES + TAG_BYTES || !self.is_ours(header.kind) {
            return Err(SealError::Impossible);
        }
        if has_sequence(header.kind) {
            if header.sequence < self.sequences_below {
                return Err(SealError::Reused { number: header.sequence });
            }
            if header.sequence > NUMBER_MAX {
                return Err(SealError::Exhausted);
            }
            self.sequences_below = header.sequence + 1;
        } else {
            if self.next_number > NUMBER_MAX {
                return Err(SealError::Exhausted);
            }
            header.sequence = self.next_number;
            self.next_number += 1;
        }
        header.flags |= flags::SEALED;
        header.write(segment);
        self.outgoing.seal(&header, segment);
        Ok(())
    }

    /// Opens what came from the other end; `header` is the segment's. Returns where in `segment` the
    /// body is.
    ///
    /// A DATA or PARITY is not remembered by this, only by [`FlowSeal::taken`]: one for which the
    /// receiver has no room must be welcome when it is repeated.
    ///
    /// # Errors
    /// It is not what the other end sent, or was here before; `segment` is then of no use.
    pub fn open(&mut self, header: &Header, segment: &mut [u8]) -> Result<Range<usize>, Rejected> {
        let end = body_end(header, segment)?;
        if self.is_ours(header.kind) {
            return Err(Rejected::NotAuthentic);
        }
        // Before the costly part. Whether it is authentic besides is not worth knowing.
        if !self.window(header.kind).is_new(header.sequence) {
            return Err(Rejected::Replayed);
        }
        self.incoming.open(header, segment)?;
        if !has_sequence(header.kind) {
            self.numbers.take(header.sequence);
        }
        Ok(HEADER_BYTES..end)
    }

    /// The DATA or PARITY of this sequence, which was opened, has been taken: what has the same
    /// sequence is a replay from now on.
    pub fn taken(&mut self, sequence: u64) {
        if let Some(window) = &mut self.sequences {
            window.take(sequence);
        }
    }

    /// Opens what was sealed here itself, so that it can be sealed anew under other keys. Returns its
    /// header, still with the flag SEALED, and where its body is.
    ///
    /// # Errors
    /// It was not sealed here.
    pub fn recover(&mut self, segment: &mut [u8]) -> Result<(Header, Range<usize>), Rejected> {
        let header = Header::parse(segment).map_err(|_| Rejected::NotAuthentic)?;
        let end = body_end(&header, segment)?;
        self.outgoing.open(&header, segment)?;
        Ok((header, HEADER_BYTES..end))
    }

    const fn is_ours(&self, kind: Kind) -> bool {
        kind.is_answer() != self.is_sender
    }

    fn window(&self, kind: Kind) -> &ReplayWindow {
        match &self.sequences {
            Some(window) if has_sequence(kind) => window,
            _ => &self.numbers,
        }
    }
}

/// Returns whether the number of such a datagram is the flow's sequence.
const fn has_sequence(kind: Kind) -> bool {
    matches!(kind, Kind::Data | Kind::Parity)
}

fn body_end(header: &Header, segment: &[u8]) -> Result<usize, Rejected> {
    let end = segment.len().checked_sub(TAG_BYTES).filter(|end| *end >= HEADER_BYTES);
    match end {
        Some(end) if header.has(flags::SEALED) => Ok(end),
        _ => Err(Rejected::NotAuthentic),
    }
}

impl core::fmt::Debug for FlowSeal {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("FlowSeal")
            .field("is_sender", &self.is_sender)
            .field("sequences_below", &self.sequences_below)
            .field("next_number", &self.next_number)
            .finish_non_exhaustive()
    }
}
