//! JSON, read as strictly as SQS reads it and written straight into the reply.

use bytes::{BufMut, BytesMut};
use serde::de::DeserializeSeed as _;

use super::Shape;
use super::wire::{Budget, Seed, Wire};
use crate::{Error, ErrorKind};

/// Reads a shape.
// All operations inlined into one function would take the compiler a fifth longer for this crate.
#[inline(never)]
pub(crate) fn decode<S: Shape>(body: &[u8]) -> Result<S, Error> {
    let refused = |text| Error::new(ErrorKind::SerializationException, text);
    if body.is_empty() {
        return Ok(S::default());
    }
    let budget = Budget::new();
    let mut json = serde_json::Deserializer::from_slice(body);
    let seed = Seed::<S>::new(&budget);
    let shape = seed.deserialize(&mut json).and_then(|shape| json.end().map(|()| shape));
    shape.map_err(|error| refused(text(&error)))
}

/// Returns what is wrong. Where it is interests only if it is no JSON.
fn text(error: &serde_json::Error) -> String {
    let text = error.to_string();
    if !error.is_data() {
        return format!("The request is not valid JSON: {text}");
    }
    let place = format!(" at line {} column {}", error.line(), error.column());
    text.strip_suffix(&place).unwrap_or(&text).to_owned()
}

/// Writes the members of an object.
pub(crate) struct Members<'a> {
    out: &'a mut BytesMut,
    is_first: bool,
}

impl<'a> Members<'a> {
    pub(crate) const fn new(out: &'a mut BytesMut) -> Self {
        Self { out, is_first: true }
    }

    /// What is absent is left out, unless it is always there.
    pub(crate) fn write<T: Wire>(&mut self, name: &str, value: &T, is_always: bool) {
        if value.is_absent() && !is_always {
            return;
        }
        if !self.is_first {
            self.out.put_u8(b',');
        }
        self.is_first = false;
        self.out.put_u8(b'"');
        self.out.put_slice(name.as_bytes());
        self.out.put_slice(b"\":");
        value.write_json(self.out);
    }
}

/// Text in quotes. What needs no escape is copied in one go.
pub(crate) fn write_text(text: &str, out: &mut BytesMut) {
    out.reserve(text.len() + 2);
    out.put_u8(b'"');
    let mut rest = text.as_bytes();
    while let Some(at) = escape_at(rest) {
        out.put_slice(&rest[..at]);
        match rest[at] {
            byte @ (b'"' | b'\\') => out.put_slice(&[b'\\', byte]),
            b'\n' => out.put_slice(b"\\n"),
            b'\r' => out.put_slice(b"\\r"),
            b'\t' => out.put_slice(b"\\t"),
            byte => out.put_slice(format!("\\u{byte:04x}").as_bytes()),
        }
        rest = &rest[at + 1..];
    }
    out.put_slice(rest);
    out.put_u8(b'"');
}

/// Returns where the first byte is that needs an escape. Blocks come first: the compiler looks at
/// all bytes of one in a few instructions.
fn escape_at(bytes: &[u8]) -> Option<usize> {
    const BLOCK: usize = 32;
    let needs_escape = |byte: &u8| matches!(byte, b'"' | b'\\' | 0..=0x1f);
    let is_clean = |block: &&[u8]| !block.iter().fold(false, |any, byte| any | needs_escape(byte));
    let clean = bytes.chunks_exact(BLOCK).take_while(is_clean).count() * BLOCK;
    bytes[clean..].iter().position(needs_escape).map(|at| clean + at)
}
