//! The channels of one connection and the content that each is in the middle of.

use bytes::Bytes;

use crate::method::basic::Publish;

/// One channel, in the states between open and close-ok.
#[derive(Debug)]
pub(super) struct Channel {
    pub(super) number: u16,
    pub(super) state: ChannelState,
}

#[derive(Debug)]
pub(super) enum ChannelState {
    /// In use.
    Open(Content),
    /// We sent close: all is swallowed until close-ok. A close of the client's that crossed ours is
    /// answered once.
    Closing { answered: bool },
    /// The client sent close; the caller owes the close-ok.
    ClosedByClient,
}

/// A message that is being published.
#[derive(Debug)]
pub(super) enum Content {
    /// A method is next.
    None,
    /// The content header is next.
    Header(Publish),
    /// Body frames are next.
    Body(Assembly),
}

/// A message whose body is not complete.
#[derive(Debug)]
pub(super) struct Assembly {
    pub(super) publish: Publish,
    pub(super) properties: Bytes,
    /// What the header promised; within the configured limit.
    pub(super) size: usize,
    /// What has come so far.
    pub(super) body: Vec<u8>,
}

impl Assembly {
    /// Returns the bytes that it holds, as the connection counts them; beside these it holds no
    /// more than its publish's names.
    pub(super) fn bytes(&self) -> usize {
        self.properties.len() + self.body.capacity()
    }

    /// Appends a part.
    pub(super) fn push(&mut self, part: &[u8]) {
        let arrived = self.body.len() + part.len();
        self.make_room(part.len(), arrived);
        self.body.extend_from_slice(part);
    }

    /// Makes room for so many bytes, if `arrived` have come with or without them. Memory doubles, and is all that was
    /// promised when a quarter of that is here, so that little is copied again; it is never more than was promised.
    pub(super) fn make_room(&mut self, bytes: usize, arrived: usize) {
        let needed = self.body.len() + bytes;
        if self.body.capacity() < needed {
            let is_credible = arrived >= self.size / 4;
            let wanted = if is_credible { self.size } else { needed.max(2 * self.body.capacity()) };
            self.body.reserve_exact(wanted - self.body.len());
        }
    }
}

impl Content {
    /// Copies what would keep a read buffer alive.
    fn detach(&mut self) {
        let publish = match self {
            Self::None => return,
            Self::Header(publish) => publish,
            Self::Body(assembly) => {
                assembly.properties = Bytes::copy_from_slice(&assembly.properties);
                &mut assembly.publish
            }
        };
        publish.exchange = publish.exchange.detached();
        publish.routing_key = publish.routing_key.detached();
    }
}

/// The channels that are not closed, sorted by number: most connections have one or two, and an idle
/// connection should pay for no more than it has.
#[derive(Debug, Default)]
pub(super) struct Channels {
    list: Vec<Channel>,
    /// Where the last one was found; frames come in runs of one channel.
    hint: usize,
    /// The one channel whose unfinished content shares the read buffer.
    attached: Option<u16>,
}

impl Channels {
    #[inline]
    pub(super) fn get_mut(&mut self, number: u16) -> Option<&mut Channel> {
        if self.list.get(self.hint).is_none_or(|channel| channel.number != number) {
            self.hint = self.position(number).ok()?;
        }
        self.list.get_mut(self.hint)
    }

    /// Returns whether the channel is in use, so that something may be sent on it.
    #[inline]
    pub(super) fn is_open(&mut self, number: u16) -> bool {
        self.get_mut(number).is_some_and(|channel| matches!(channel.state, ChannelState::Open(_)))
    }

    /// Adds a channel whose number is free.
    pub(super) fn open(&mut self, number: u16) {
        if let Err(at) = self.position(number) {
            let state = ChannelState::Open(Content::None);
            self.list.insert(at, Channel { number, state });
        }
    }

    /// Returns how many channels are not closed.
    pub(super) const fn count(&self) -> usize {
        self.list.len()
    }

    /// Frees a number.
    pub(super) fn remove(&mut self, number: u16) {
        if let Ok(at) = self.position(number) {
            self.list.remove(at);
            if self.list.capacity() > 16 && 4 * self.list.len() < self.list.capacity() {
                self.list.shrink_to(2 * self.list.len());
            }
        }
    }

    /// Forgets all of them.
    pub(super) fn clear(&mut self) {
        *self = Self::default();
    }

    /// Notes that this channel's content shares the read buffer; what another one shares is copied,
    /// so that there is one at most to copy when the buffer is used up.
    #[inline]
    pub(super) fn attach(&mut self, number: u16) {
        if self.attached.is_some_and(|other| other != number) {
            self.detach();
        }
        self.attached = Some(number);
    }

    /// This channel's message is complete. Another one's may still share the read buffer.
    #[inline]
    pub(super) fn finish_content(&mut self, number: u16) {
        if self.attached == Some(number) {
            self.attached = None;
        }
    }

    /// Copies what shares the read buffer, if anything does.
    pub(super) fn detach(&mut self) {
        let attached = self.attached.take().and_then(|number| self.get_mut(number));
        if let Some(Channel { state: ChannelState::Open(content), .. }) = attached {
            content.detach();
        }
    }

    fn position(&self, number: u16) -> Result<usize, usize> {
        self.list.binary_search_by_key(&number, |channel| channel.number)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn channels_are_found_in_any_order_and_give_their_memory_back() {
        let mut channels = Channels::default();
        for number in (1..=2_000).rev() {
            channels.open(number);
        }
        for number in [1, 2_000, 7, 7, 8] {
            assert_eq!(channels.get_mut(number).unwrap().number, number);
        }
        assert!(channels.get_mut(2_001).is_none());
        for number in 2..=2_000 {
            channels.remove(number);
        }
        assert!(channels.is_open(1) && !channels.is_open(2));
        assert!(channels.list.capacity() <= 16);
    }

    #[test]
    fn a_body_grows_with_what_arrives_and_not_with_what_was_promised() {
        let mut assembly = Assembly {
            publish: Publish::default(),
            properties: Bytes::new(),
            size: 100_000_000,
            body: Vec::new(),
        };
        assembly.push(&[0; 1_000]);
        assert!(assembly.body.capacity() < 10_000);
        assembly.size = 1_500;
        assembly.push(&[0; 500]);
        assert_eq!(assembly.bytes(), 1_500);
    }
}
