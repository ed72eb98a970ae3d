//! The file that holds the secret of CMQ's peers, or of elastic queues' clients: 32 bytes as they are, or as 64 hexadecimal digits.

use std::fs::File;
use std::io::Read as _;
use std::path::{Path, PathBuf};

/// Bytes of the secret.
const KEY_BYTES: usize = 32;

/// 64 digits and what an editor may leave around them; no key file is larger.
const FILE_BYTES_MAX: u64 = 256;

/// Why a file holds no key.
#[derive(Debug, thiserror::Error)]
pub(crate) enum KeyFileError {
    #[error("cannot read the key file {path}: {source}")]
    Unreadable { path: PathBuf, source: std::io::Error },
    #[error(
        "the key file {path} holds {bytes}, but a key is {KEY_BYTES} bytes, or {} hexadecimal \
         digits (make one by: head -c {KEY_BYTES} /dev/urandom > {path})",
        KEY_BYTES * 2
    )]
    NoKey { path: PathBuf, bytes: String },
}

/// Reads a key.
pub(crate) fn read(path: &Path) -> Result<[u8; KEY_BYTES], KeyFileError> {
    let unreadable = |source| KeyFileError::Unreadable { path: path.to_owned(), source };
    let mut bytes = Vec::new();
    let file = File::open(path).map_err(unreadable)?;
    file.take(FILE_BYTES_MAX + 1).read_to_end(&mut bytes).map_err(unreadable)?;
    parse(&bytes).ok_or_else(|| {
        let bytes = match bytes.len() as u64 {
            FILE_BYTES_MAX.. => format!("more than {FILE_BYTES_MAX} bytes"),
            bytes => format!("{bytes} bytes"),
        };
        KeyFileError::NoKey { path: path.to_owned(), bytes }
    })
}

/// Parses a key: 32 bytes are the key, whatever they look like; else digits with white space around
/// them.
fn parse(bytes: &[u8]) -> Option<[u8; KEY_BYTES]> {
    if let Ok(key) = bytes.try_into() {
        return Some(key);
    }
    let mut key = [0; KEY_BYTES];
    hex::decode_to_slice(bytes.trim_ascii(), &mut key).ok()?;
    Some(key)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_is_32_bytes_or_64_digits() {
        let raw: Vec<u8> = (100..132).collect();
        assert_eq!(parse(&raw).unwrap().as_slice(), raw);
        let hex = b" 000102030405060708090a0b0c0d0e0f101112131415161718191A1B1C1D1eFF\r\n";
        let key = parse(hex).unwrap();
        assert_eq!((key[1], key[26], key[31]), (1, 0x1a, 0xff));
        // 32 bytes are taken as they are, also if they could be digits.
        assert_eq!(parse(&[b'a'; 32]), Some([b'a'; 32]));
    }

    #[test]
    fn anything_else_is_no_key() {
        for wrong in [&b""[..], &[1; 31], &[1; 33], &[b'g'; 64], &[b'a'; 63], &[b'a'; 65]] {
            assert_eq!(parse(wrong), None, "{wrong:?}");
        }
    }

    #[test]
    fn the_error_names_the_file_and_what_it_holds() {
        let path = std::env::temp_dir().join(format!("quelea-key-{}", std::process::id()));
        std::fs::write(&path, "secret\n").unwrap();
        let error = read(&path).unwrap_err().to_string();
        std::fs::remove_file(&path).unwrap();
        assert!(error.contains("holds 7 bytes, but a key is 32 bytes, or 64"), "{error}");
        assert!(error.contains(path.to_str().unwrap()), "{error}");
        assert!(read(&path).unwrap_err().to_string().contains("cannot read the key file"));
    }
}
