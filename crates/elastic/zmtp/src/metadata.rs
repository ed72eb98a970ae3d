//! What peers say of themselves in READY and INITIATE (ZMTP 3.1 §3.3.2).

use bytes::{BufMut, Bytes, BytesMut};

use crate::limits::IDENTITY_BYTES_MAX;
use crate::{Error, SocketType};

/// What we use of a peer's properties.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Metadata {
    pub(crate) socket_type: SocketType,
    pub(crate) identity: Bytes,
}

impl Metadata {
    pub(crate) fn put(&self, out: &mut BytesMut) {
        put_property(out, b"Socket-Type", self.socket_type.name().as_bytes());
        put_property(out, b"Identity", &self.identity);
    }

    /// Reads the properties that the peer of a socket of type `ours` sent in `command`.
    pub(crate) fn parse(
        command: &'static str,
        mut bytes: Bytes,
        ours: SocketType,
    ) -> Result<Self, Error> {
        let (mut theirs, mut identity) = (None, Bytes::new());
        while !bytes.is_empty() {
            let (name, value) = take_property(&mut bytes).ok_or_else(|| {
                Error::malformed(command, "a property is longer than the command")
            })?;
            if name.eq_ignore_ascii_case(b"Socket-Type") {
                theirs = Some(value);
            } else if name.eq_ignore_ascii_case(b"Identity") {
                if value.len() > IDENTITY_BYTES_MAX {
                    return Err(Error::malformed(command, "the Identity has more than 255 bytes"));
                }
                identity = Bytes::copy_from_slice(&value);
            }
        }
        let theirs = theirs.ok_or_else(|| Error::malformed(command, "there is no Socket-Type"))?;
        match SocketType::parse(&theirs) {
            Some(socket_type) if socket_type.publishes() != ours.publishes() => {
                Ok(Self { socket_type, identity })
            }
            _ => Err(Error::SocketType { ours, theirs: crate::command::text(&theirs) }),
        }
    }
}

fn put_property(out: &mut BytesMut, name: &[u8], value: &[u8]) {
    out.put_u8(u8::try_from(name.len()).expect("our own names are short"));
    out.put_slice(name);
    out.put_u32(u32::try_from(value.len()).expect("our own values are short"));
    out.put_slice(value);
}

fn take_property(bytes: &mut Bytes) -> Option<(Bytes, Bytes)> {
    let name_length = usize::from(*bytes.first()?);
    let value_at = 1 + name_length + 4;
    let length = bytes.get(1 + name_length..value_at)?;
    let length = u32::from_be_bytes(length.try_into().ok()?) as usize;
    if bytes.len() - value_at < length {
        return None;
    }
    let property = bytes.split_to(value_at + length);
    Some((property.slice(1..1 + name_length), property.slice(value_at..)))
}
