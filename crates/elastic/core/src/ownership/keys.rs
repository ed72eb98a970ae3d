//! What is called how in the metadata store. The names are part of the stored format: an older and a newer
//! directory read the same ones.
//!
//! | key | value | lives |
//! |---|---|---|
//! | `quelea/elastic/directories/ADDRESS` | the life of the directory that has this address: random, in hexadecimal digits | with the directory's lease |
//! | `quelea/elastic/shards/0000` to `4095` | the owner's address | with the owner's lease; the revision in which it was made is the fence |
//! | `quelea/elastic/queues/SHARD/NAME` | the queue's record | until the queue is deleted |
//! | `quelea/elastic/secrets/relays` | what relays' tokens are made of | for ever |

use sha2::{Digest as _, Sha256};

/// What all keys begin with.
pub const ROOT: &str = "quelea/elastic/";
const DIRECTORIES: &str = "quelea/elastic/directories/";
const SHARDS: &str = "quelea/elastic/shards/";
const QUEUES: &str = "quelea/elastic/queues/";

/// Whose value is what relays' tokens are made of.
pub const RELAY_SECRET: &str = "quelea/elastic/secrets/relays";

/// A part of all queues, which has one owner. There are so many that a hundred directories share them
/// evenly, and so few that a lease for each is no burden.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Shard(u16);

impl Shard {
    const COUNT: u16 = 4_096;

    /// Returns the shard of a queue, for ever.
    pub fn of(queue: &str) -> Self {
        let digest = Sha256::digest(queue);
        Self(u16::from_be_bytes([digest[0], digest[1]]) % Self::COUNT)
    }

    /// Returns the key whose value is the owner's address.
    pub fn key(self) -> String {
        format!("{SHARDS}{:04}", self.0)
    }

    /// Returns how much a directory is meant for this shard: the highest of all should own it
    /// (rendezvous hashing: when one goes, only its shards move).
    pub fn weight(self, directory: &str) -> u64 {
        let digest =
            Sha256::new().chain_update(self.0.to_be_bytes()).chain_update(directory).finalize();
        digest.iter().take(8).fold(0, |weight, byte| weight << 8 | u64::from(*byte))
    }
}

/// Returns the key of a directory that lives. Who made this key has the address, and nobody else
/// claims shards for it.
pub fn directory(address: &str) -> String {
    format!("{DIRECTORIES}{address}")
}

/// Returns the key of a queue's record.
pub fn queue(name: &str) -> String {
    format!("{QUEUES}{:04}/{name}", Shard::of(name).0)
}

/// What a key of ours means.
#[derive(Debug, PartialEq, Eq)]
pub enum ParsedKey<'a> {
    /// A directory's address.
    Directory(&'a str),
    /// A shard's owner.
    Shard(Shard),
    /// A queue's name.
    Queue(&'a str),
}

/// Reads a key; `None` for those of a version that this one does not know.
pub fn parse(key: &str) -> Option<ParsedKey<'_>> {
    if let Some(address) = key.strip_prefix(DIRECTORIES) {
        return Some(ParsedKey::Directory(address));
    }
    if let Some(number) = key.strip_prefix(SHARDS) {
        let number = number.parse().ok().filter(|number| *number < Shard::COUNT)?;
        return Some(ParsedKey::Shard(Shard(number)));
    }
    let (_, name) = key.strip_prefix(QUEUES)?.split_once('/')?;
    Some(ParsedKey::Queue(name))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_key_is_read_as_it_was_written() {
        let shard = Shard::of("a/b c");
        assert_eq!(parse(&shard.key()), Some(ParsedKey::Shard(shard)));
        assert_eq!(parse(&queue("a/b c")), Some(ParsedKey::Queue("a/b c")));
        assert_eq!(parse(&directory("h:1")), Some(ParsedKey::Directory("h:1")));
        assert_eq!(parse("quelea/elastic/shards/4096"), None);
        assert_eq!(parse("quelea/elastic/other"), None);
    }

    #[test]
    fn a_queues_shard_never_changes() {
        // The stored format: other numbers here would lose every queue.
        assert_eq!((Shard::of("prices"), Shard::of("a/b c").0), (Shard(3_713), 2_809));
        assert_eq!(queue("").len(), QUEUES.len() + 5);
    }
}
