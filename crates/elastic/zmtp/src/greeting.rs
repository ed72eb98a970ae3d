//! The first 64 bytes of each side (ZMTP 3.1 §3.2).

use crate::Error;
use crate::command::text;

pub(crate) const BYTES: usize = 64;

const MECHANISM_AT: usize = 12;
const MECHANISM_BYTES: usize = 20;

/// What a peer's greeting says, as far as it matters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Greeting {
    /// Below 1, subscriptions are messages and there are no heartbeats. Any higher version is spoken
    /// to as 3.1, as the specification wants it.
    pub(crate) minor: u8,
}

/// Returns our greeting. It is sent at once: who speaks ZMTP 2.0 or older does not understand it,
/// and is not spoken to anyway.
pub(crate) fn ours(mechanism: &str, as_server: bool) -> [u8; BYTES] {
    let mut bytes = [0; BYTES];
    bytes[0] = 0xff;
    bytes[9] = 0x7f;
    bytes[10] = 3;
    bytes[11] = 1;
    bytes[MECHANISM_AT..MECHANISM_AT + mechanism.len()].copy_from_slice(mechanism.as_bytes());
    bytes[32] = u8::from(as_server);
    bytes
}

/// Reads a peer's greeting: refuses as soon as a byte is wrong, `None` while it is not all there.
/// The flag as-server is not compared: libzmq leaves it 0 at both ends.
pub(crate) fn parse(bytes: &[u8], mechanism: &'static str) -> Result<Option<Greeting>, Error> {
    for (at, expected) in [(0, 0xff), (9, 0x7f)] {
        if let Some(&byte) = bytes.get(at).filter(|&&byte| byte != expected) {
            return Err(Error::Signature { at, byte, expected });
        }
    }
    let Some(&major) = bytes.get(10) else { return Ok(None) };
    if major < 3 {
        return Err(Error::Version { major });
    }
    let Some(bytes) = bytes.get(..BYTES) else { return Ok(None) };
    let theirs = &bytes[MECHANISM_AT..MECHANISM_AT + MECHANISM_BYTES];
    let length = theirs.iter().position(|&byte| byte == 0).unwrap_or(MECHANISM_BYTES);
    if &theirs[..length] != mechanism.as_bytes() {
        return Err(Error::Mechanism { ours: mechanism, theirs: text(&theirs[..length]) });
    }
    Ok(Some(Greeting { minor: if major > 3 { 1 } else { bytes[11] } }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_greeting_is_read_from_any_number_of_bytes() {
        let greeting = ours("CURVE", true);
        for cut in 0..BYTES {
            assert_eq!(parse(&greeting[..cut], "CURVE"), Ok(None));
        }
        assert_eq!(parse(&greeting, "CURVE"), Ok(Some(Greeting { minor: 1 })));
    }

    #[test]
    fn older_versions_and_other_protocols_are_refused_at_the_first_wrong_byte() {
        assert!(matches!(parse(b"GET / HTTP/1.1", "NULL"), Err(Error::Signature { at: 0, .. })));
        // ZMTP 2.0: signature, revision, socket type.
        let old = [0xff, 0, 0, 0, 0, 0, 0, 0, 1, 0x7f, 1, 1];
        assert_eq!(parse(&old, "NULL"), Err(Error::Version { major: 1 }));
        // ZMTP 1.0: length and flags of an identity.
        assert!(matches!(parse(&[1, 0], "NULL"), Err(Error::Signature { .. })));
    }

    #[test]
    fn later_versions_are_treated_as_3_1() {
        for (major, minor, expected) in [(3, 0, 0), (3, 1, 1), (3, 7, 7), (4, 0, 1)] {
            let mut greeting = ours("NULL", false);
            greeting[10..12].copy_from_slice(&[major, minor]);
            assert_eq!(parse(&greeting, "NULL"), Ok(Some(Greeting { minor: expected })));
        }
    }

    #[test]
    fn another_mechanism_is_named() {
        let error = parse(&ours("PLAIN", false), "CURVE").unwrap_err();
        assert_eq!(error.to_string(), "the mechanism is CURVE here, the peer's is \"PLAIN\"");
    }
}
