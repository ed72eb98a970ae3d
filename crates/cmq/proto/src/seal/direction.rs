//! The keys of one direction of a flow.

use ring::aead::{AES_256_GCM, Aad, LessSafeKey, Nonce, UnboundKey};
use ring::hkdf;

use crate::seal::{KEY_DATAGRAMS, Rejected, TAG_BYTES};
use crate::wire::header::SEQUENCE_BYTES;
use crate::wire::{HEADER_BYTES, Header, NUMBER_MAX};

/// The keys by generation: [`KEY_DATAGRAMS`] numbers have one.
pub(super) struct Direction {
    secret: hkdf::Prk,
    /// Direction, session and flow.
    info: [u8; 13],
    /// Those in use: of the newest numbers, and of the ones before or of another kind of datagram.
    keys: [Option<Box<Key>>; 2],
    /// Which of them was used last; the other one makes room.
    last: usize,
}

struct Key {
    generation: u32,
    key: LessSafeKey,
}

impl Direction {
    pub(super) fn new(secret: hkdf::Prk, name: u8, session: u64, flow: u32) -> Self {
        let mut info = [name; 13];
        info[1..9].copy_from_slice(&session.to_le_bytes());
        info[9..].copy_from_slice(&flow.to_le_bytes());
        Self { secret, info, keys: [None, None], last: 0 }
    }

    /// Encrypts what stands between the header and the room for the tag, and fills in the tag. The
    /// segment has both.
    pub(super) fn seal(&mut self, header: &Header, segment: &mut [u8]) {
        let generation = generation(header);
        let key = match self.find(generation) {
            Some(at) => self.used(at),
            None => self.keep(self.derive(generation)),
        };
        let (head, rest) = segment.split_at_mut(HEADER_BYTES);
        let (body, tag) = rest.split_at_mut(rest.len() - TAG_BYTES);
        let made = key
            .seal_in_place_separate_tag(nonce(header), Aad::from(head), body)
            .expect("a datagram is far below the 64 GiB that AES-GCM encrypts at once");
        tag.copy_from_slice(made.as_ref());
    }

    /// Decrypts in place. If it fails, what is in the segment is of no use.
    pub(super) fn open(&mut self, header: &Header, segment: &mut [u8]) -> Result<(), Rejected> {
        let generation = generation(header);
        let (head, rest) = segment.split_at_mut(HEADER_BYTES);
        let open = |key: &LessSafeKey| match key.open_in_place(nonce(header), Aad::from(head), rest)
        {
            Ok(_) => Ok(()),
            Err(_) => Err(Rejected::NotAuthentic),
        };
        if let Some(at) = self.find(generation) {
            return open(self.used(at));
        }
        // A forger must not displace the keys that are in use, so this one has to prove itself.
        let key = self.derive(generation);
        open(&key.key)?;
        self.keep(key);
        Ok(())
    }

    fn find(&self, generation: u32) -> Option<usize> {
        let is = |at: &usize| matches!(&self.keys[*at], Some(key) if key.generation == generation);
        Some(self.last).filter(is).or_else(|| Some(1 - self.last).filter(is))
    }

    fn used(&mut self, at: usize) -> &LessSafeKey {
        self.last = at;
        &self.keys[at].as_ref().expect("it was found there").key
    }

    fn keep(&mut self, key: Key) -> &LessSafeKey {
        self.last = 1 - self.last;
        &self.keys[self.last].insert(Box::new(key)).key
    }

    fn derive(&self, generation: u32) -> Key {
        let info = [&b"quelea cmq 1"[..], &self.info, &generation.to_le_bytes()];
        let okm = self
            .secret
            .expand(&info, &AES_256_GCM)
            .expect("32 bytes are within what HKDF-SHA256 gives");
        Key { generation, key: LessSafeKey::new(UnboundKey::from(okm)) }
    }
}

fn generation(header: &Header) -> u32 {
    const { assert!(NUMBER_MAX / KEY_DATAGRAMS <= u32::MAX as u64) };
    (header.sequence / KEY_DATAGRAMS) as u32
}

/// Returns the nonce of a datagram: the kind, five zeros, the number. No two datagrams of a
/// direction have the same.
fn nonce(header: &Header) -> Nonce {
    let mut nonce = [0; 12];
    nonce[0] = header.kind as u8;
    nonce[6..].copy_from_slice(&header.sequence.to_le_bytes()[..SEQUENCE_BYTES]);
    Nonce::assume_unique_for_key(nonce)
}
