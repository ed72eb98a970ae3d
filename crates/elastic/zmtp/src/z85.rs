//! ZeroMQ's text form of keys (rfc.zeromq.org/spec/32): four bytes are five characters. Keys of
//! one length need so little of it that a crate would be more to look after.

/// Why a text is no key.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum KeyError {
    /// A key has 32 bytes.
    #[error("a CURVE key is 40 characters of Z85, not {0}")]
    Length(usize),
    /// A character that Z85 does not have, or five that are above 2³².
    #[error("no Z85 at character {0}")]
    Character(usize),
}

const ALPHABET: &[u8; 85] =
    b"0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ.-:+=^!/*?&<>()[]{}@%$#";

pub(crate) fn encode(key: &[u8; 32]) -> String {
    let mut text = String::with_capacity(40);
    for four in key.chunks_exact(4) {
        let value = four.iter().fold(0u32, |sum, &byte| sum << 8 | u32::from(byte));
        for power in (0..5).rev() {
            let digit = value / 85u32.pow(power) % 85;
            text.push(char::from(ALPHABET[digit as usize]));
        }
    }
    text
}

pub(crate) fn decode(text: &str) -> Result<[u8; 32], KeyError> {
    if text.len() != 40 {
        return Err(KeyError::Length(text.len()));
    }
    let mut key = [0; 32];
    for (group, five) in text.as_bytes().chunks_exact(5).enumerate() {
        let mut value = 0u64;
        for (at, character) in five.iter().enumerate() {
            let digit = ALPHABET.iter().position(|known| known == character);
            value = value * 85 + digit.ok_or(KeyError::Character(group * 5 + at))? as u64;
        }
        let value = u32::try_from(value).map_err(|_| KeyError::Character(group * 5))?;
        key[group * 4..group * 4 + 4].copy_from_slice(&value.to_be_bytes());
    }
    Ok(key)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The server's key pair of the specification's (and libzmq's) test.
    #[test]
    fn the_specifications_example_is_read_and_written() {
        let text = "Yne@$w-vo<fVvi]a<NY6T1ed:M$fCG*[IaLV{hID";
        let key = decode(text).unwrap();
        assert_eq!(key[..4], [0xbb, 0x88, 0x47, 0x1d]);
        assert_eq!(encode(&key), text);
    }

    #[test]
    fn what_is_no_key_is_refused() {
        assert_eq!(decode("short"), Err(KeyError::Length(5)));
        assert_eq!(decode(&"~".repeat(40)), Err(KeyError::Character(0)));
        assert_eq!(decode(&format!("{}#####", "0".repeat(35))), Err(KeyError::Character(35)));
    }
}
