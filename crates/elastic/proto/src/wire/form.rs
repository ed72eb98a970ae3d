//! How the fields of frames stand on the wire: most as their type says, some in a form of their own. Reads
//! check each against its limit; writes do too, and the first field that is wrong spoils the frame.

use std::sync::Arc;

use bytes::Bytes;

use super::reader::{Read, Reader};
use super::writer::Writer;
use crate::fault::{Fault, FieldError};
use crate::frame::{Acknowledge, ErrorCode, GapCause, NoticeCode, Role, SlowPolicy};
use crate::limits::{MESSAGE_BYTES_MAX, SEQUENCE_MAX, TEXT_BYTES_MAX};
use crate::parts;
use crate::{ClientId, Epoch, Fence, MessageSeq, Named as _, RelayId, Slot};

/// A type that stands on the wire in one way only.
pub(super) trait Field: Sized {
    fn put(&self, to: &mut Writer<'_>, field: &'static str);
    fn read(from: &mut Reader, field: &'static str) -> Read<Self>;
}

/// A way to write values of a type that has several.
pub(super) trait Form<T> {
    fn put(&self, to: &mut Writer<'_>, field: &'static str, value: &T);
    fn read(&self, from: &mut Reader, field: &'static str) -> Read<T>;
}

/// As the type says.
pub(super) struct Plain;

impl<T: Field> Form<T> for Plain {
    #[inline]
    fn put(&self, to: &mut Writer<'_>, field: &'static str, value: &T) {
        value.put(to, field);
    }

    #[inline]
    fn read(&self, from: &mut Reader, field: &'static str) -> Read<T> {
        T::read(from, field)
    }
}

macro_rules! numbers {
    ($($type:ident)*) => {$(
        impl Field for $type {
            #[inline]
            fn put(&self, to: &mut Writer<'_>, _: &'static str) {
                to.put(&self.to_le_bytes());
            }

            #[inline]
            fn read(from: &mut Reader, field: &'static str) -> Read<Self> {
                from.array(field).map(Self::from_le_bytes)
            }
        }
    )*};
}

numbers! { u8 u16 u32 u64 u128 }

macro_rules! newtypes {
    ($($type:ident)*) => {$(
        impl Field for $type {
            #[inline]
            fn put(&self, to: &mut Writer<'_>, field: &'static str) {
                self.0.put(to, field);
            }

            #[inline]
            fn read(from: &mut Reader, field: &'static str) -> Read<Self> {
                Field::read(from, field).map(Self)
            }
        }
    )*};
}

newtypes! { ClientId Epoch Fence RelayId Slot }

/// Enums are the numbers of their values.
macro_rules! enums {
    ($($type:ident as $number:ident)*) => {$(
        impl Field for $type {
            fn put(&self, to: &mut Writer<'_>, field: &'static str) {
                (*self as $number).put(to, field);
            }

            fn read(from: &mut Reader, field: &'static str) -> Read<Self> {
                let number = $number::read(from, field)?;
                let mut values = Self::NAMES.iter().map(|(_, value)| *value);
                let found = values.find(|value| *value as $number == number);
                found.ok_or_else(|| unknown(field, u64::from(number)))
            }
        }
    )*};
}

enums! {
    Role as u8
    ErrorCode as u16
    NoticeCode as u16
    SlowPolicy as u8
    Acknowledge as u8
    GapCause as u8
}

const fn unknown(field: &'static str, value: u64) -> FieldError {
    FieldError { field, fault: Fault::Unknown { value } }
}

/// 0 or 1.
impl Field for bool {
    fn put(&self, to: &mut Writer<'_>, field: &'static str) {
        u8::from(*self).put(to, field);
    }

    fn read(from: &mut Reader, field: &'static str) -> Read<Self> {
        match u8::read(from, field)? {
            0 => Ok(false),
            1 => Ok(true),
            value => Err(unknown(field, u64::from(value))),
        }
    }
}

impl Field for MessageSeq {
    #[inline]
    fn put(&self, to: &mut Writer<'_>, field: &'static str) {
        self.0.put(to, field);
    }

    #[inline]
    fn read(from: &mut Reader, field: &'static str) -> Read<Self> {
        let value = u64::read(from, field)?;
        if value > SEQUENCE_MAX {
            return Err(FieldError { field, fault: Fault::Limit { limit: SEQUENCE_MAX, value } });
        }
        Ok(Self(value))
    }
}

/// 0 if there is none.
impl Field for Option<SlowPolicy> {
    fn put(&self, to: &mut Writer<'_>, field: &'static str) {
        self.map_or(0, |slow| slow as u8).put(to, field);
    }

    fn read(from: &mut Reader, field: &'static str) -> Read<Self> {
        match from.peek() {
            Some(0) => u8::read(from, field).map(|_| None),
            _ => SlowPolicy::read(from, field).map(Some),
        }
    }
}

/// Where a producer is: whether it is anywhere, then relay, epoch and next message.
impl Field for Option<(RelayId, Epoch, MessageSeq)> {
    fn put(&self, to: &mut Writer<'_>, field: &'static str) {
        self.is_some().put(to, field);
        if let Some((relay, epoch, next)) = self {
            relay.put(to, "relay");
            epoch.put(to, "epoch");
            next.put(to, "next");
        }
    }

    fn read(from: &mut Reader, field: &'static str) -> Read<Self> {
        if !bool::read(from, field)? {
            return Ok(None);
        }
        let (relay, epoch) = (Field::read(from, "relay")?, Field::read(from, "epoch")?);
        Ok(Some((relay, epoch, Field::read(from, "next")?)))
    }
}

/// A `u16` length and at most so many bytes, which are not copied when they are read.
pub(super) struct ByteString(pub(super) usize);

impl ByteString {
    fn put_slice(&self, to: &mut Writer<'_>, field: &'static str, bytes: &[u8]) {
        to.at_most(field, bytes.len(), self.0);
        // If it does not fit it is an error already.
        u16::try_from(bytes.len()).unwrap_or(u16::MAX).put(to, field);
        to.put(bytes);
    }
}

impl Form<Bytes> for ByteString {
    fn put(&self, to: &mut Writer<'_>, field: &'static str, value: &Bytes) {
        self.put_slice(to, field, value);
    }

    fn read(&self, from: &mut Reader, field: &'static str) -> Read<Bytes> {
        let length = usize::from(u16::read(from, field)?);
        from.take(field, length, self.0)
    }
}

/// As [`ByteString`] with a `u32` length.
pub(super) struct LongByteString(pub(super) usize);

impl Form<Bytes> for LongByteString {
    fn put(&self, to: &mut Writer<'_>, field: &'static str, value: &Bytes) {
        put_count(to, field, value.len(), self.0);
        to.put(value);
    }

    fn read(&self, from: &mut Reader, field: &'static str) -> Read<Bytes> {
        let length = u32::read(from, field)? as usize;
        from.take(field, length, self.0)
    }
}

/// UTF-8 in the form of a [`ByteString`].
pub(super) struct Text(pub(super) usize);

impl Form<String> for Text {
    fn put(&self, to: &mut Writer<'_>, field: &'static str, value: &String) {
        ByteString(self.0).put_slice(to, field, value.as_bytes());
    }

    fn read(&self, from: &mut Reader, field: &'static str) -> Read<String> {
        let bytes = ByteString(self.0).read(from, field)?;
        match std::str::from_utf8(&bytes) {
            Ok(text) => Ok(text.to_owned()),
            Err(error) => {
                let fault = Fault::NotUtf8 { at: error.valid_up_to() as u64 };
                Err(FieldError { field, fault })
            }
        }
    }
}

/// A [`Text`] that is not empty.
pub(super) struct Name(pub(super) usize);

impl Form<String> for Name {
    fn put(&self, to: &mut Writer<'_>, field: &'static str, value: &String) {
        if value.is_empty() {
            to.fail(field, Fault::Empty);
        }
        Text(self.0).put(to, field, value);
    }

    fn read(&self, from: &mut Reader, field: &'static str) -> Read<String> {
        let text = Text(self.0).read(from, field)?;
        if text.is_empty() {
            return Err(FieldError { field, fault: Fault::Empty });
        }
        Ok(text)
    }
}

/// For people: what is longer is cut when it is written.
pub(super) struct CutText;

impl Form<String> for CutText {
    fn put(&self, to: &mut Writer<'_>, field: &'static str, value: &String) {
        let end = value.floor_char_boundary(TEXT_BYTES_MAX);
        ByteString(TEXT_BYTES_MAX).put_slice(to, field, &value.as_bytes()[..end]);
    }

    fn read(&self, from: &mut Reader, field: &'static str) -> Read<String> {
        Text(TEXT_BYTES_MAX).read(from, field)
    }
}

/// What is left of the frame, at most so many bytes.
pub(super) struct Rest(pub(super) usize);

impl Form<Bytes> for Rest {
    #[inline]
    fn put(&self, to: &mut Writer<'_>, field: &'static str, value: &Bytes) {
        to.at_most(field, value.len(), self.0);
        to.put(value);
    }

    fn read(&self, from: &mut Reader, field: &'static str) -> Read<Bytes> {
        from.at_most(field, from.left(), self.0)?;
        Ok(from.rest())
    }
}

/// The parts of a message, to the frame's end: checked when they are read, and by who made them when they
/// are written.
pub(super) struct Parts;

impl Form<Bytes> for Parts {
    #[inline]
    fn put(&self, to: &mut Writer<'_>, field: &'static str, value: &Bytes) {
        Rest(MESSAGE_BYTES_MAX).put(to, field, value);
    }

    #[inline]
    fn read(&self, from: &mut Reader, field: &'static str) -> Read<Bytes> {
        let parts = from.rest();
        parts::check(&parts).map_err(|fault| FieldError { field, fault: Fault::Message(fault) })?;
        Ok(parts)
    }
}

/// A `u32` count, then each element.
pub(super) struct List<F> {
    /// Elements.
    pub(super) max: usize,
    /// The least that one takes: room is taken for no more than the frame's bytes can hold, whatever the
    /// count claims.
    pub(super) element_bytes_min: usize,
    /// Each element's form, and the field in its errors.
    pub(super) each: (&'static str, F),
}

impl<F> List<F> {
    fn put_all<T>(&self, to: &mut Writer<'_>, field: &'static str, list: &[T])
    where
        F: Form<T>,
    {
        put_count(to, field, list.len(), self.max);
        let (name, form) = &self.each;
        list.iter().for_each(|element| form.put(to, name, element));
    }
}

impl<T, F: Form<T>> Form<Vec<T>> for List<F> {
    fn put(&self, to: &mut Writer<'_>, field: &'static str, value: &Vec<T>) {
        self.put_all(to, field, value);
    }

    fn read(&self, from: &mut Reader, field: &'static str) -> Read<Vec<T>> {
        let count = u32::read(from, field)? as usize;
        from.at_most(field, count, self.max)?;
        from.need(field, count.saturating_mul(self.element_bytes_min))?;
        let (name, form) = &self.each;
        let mut list = Vec::with_capacity(count);
        for _ in 0..count {
            list.push(form.read(from, name)?);
        }
        Ok(list)
    }
}

impl<T, F: Form<T>> Form<Arc<[T]>> for List<F> {
    fn put(&self, to: &mut Writer<'_>, field: &'static str, value: &Arc<[T]>) {
        self.put_all(to, field, value);
    }

    fn read(&self, from: &mut Reader, field: &'static str) -> Read<Arc<[T]>> {
        Form::<Vec<T>>::read(self, from, field).map(Arc::from)
    }
}

fn put_count(to: &mut Writer<'_>, field: &'static str, count: usize, limit: usize) {
    to.at_most(field, count, limit);
    u32::try_from(count).unwrap_or(u32::MAX).put(to, field); // Then it is an error already.
}

/// Two texts, each with the field in its errors.
pub(super) struct Pair(pub(super) (&'static str, Text), pub(super) (&'static str, Text));

impl Form<(String, String)> for Pair {
    fn put(&self, to: &mut Writer<'_>, _: &'static str, value: &(String, String)) {
        self.0.1.put(to, self.0.0, &value.0);
        self.1.1.put(to, self.1.0, &value.1);
    }

    fn read(&self, from: &mut Reader, _: &'static str) -> Read<(String, String)> {
        Ok((self.0.1.read(from, self.0.0)?, self.1.1.read(from, self.1.0)?))
    }
}
