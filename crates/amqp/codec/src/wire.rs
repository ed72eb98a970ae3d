//! The elementary fields of methods (AMQP 0-9-1 §4.2.5): one [`Field`] for each type of the
//! grammar, with bits packed into octets as they follow one another.

use bytes::{BufMut, Bytes, BytesMut};
use quelea_model::{Table, TableError};

use crate::short_str::ShortStr;

/// Why a payload is not a method.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum DecodeError {
    /// The payload ends inside a field.
    #[error("method ends early, in field {field}")]
    Truncated {
        /// The field that is incomplete.
        field: &'static str,
    },
    /// A short string that is not UTF-8.
    #[error("field {field} is not UTF-8")]
    NotUtf8 {
        /// The field.
        field: &'static str,
    },
    /// A field table that is malformed.
    #[error("field {field}: {source}")]
    Table {
        /// The field.
        field: &'static str,
        /// What is wrong with it.
        source: TableError,
    },
    /// Bytes are left over behind the last field.
    #[error("{count} bytes after the last field")]
    Trailing {
        /// How many.
        count: usize,
    },
    /// No method has these numbers.
    #[error("unknown method {class_id}.{method_id}")]
    UnknownMethod {
        /// Class number.
        class_id: u16,
        /// Method number.
        method_id: u16,
    },
}

/// Reads fields one after the other.
pub(crate) struct Reader<'a> {
    /// Holds the payload, up to `end`.
    bytes: &'a Bytes,
    at: usize,
    end: usize,
    /// The octet that holds the next bit, and how many of its bits were taken; 0 when the next bit
    /// begins a new octet.
    bits: u8,
    bits_taken: u8,
}

impl<'a> Reader<'a> {
    /// Returns a reader of the bytes from `at` to `end`.
    pub(crate) const fn new(bytes: &'a Bytes, at: usize, end: usize) -> Self {
        Self { bytes, at, end, bits: 0, bits_taken: 0 }
    }

    /// Checks that nothing is left. To be called at the end.
    #[inline]
    pub(crate) fn finish(self) -> Result<(), DecodeError> {
        match self.end - self.at {
            0 => Ok(()),
            count => Err(DecodeError::Trailing { count }),
        }
    }

    #[inline]
    fn array<const N: usize>(&mut self, field: &'static str) -> Result<[u8; N], DecodeError> {
        self.bits_taken = 0;
        let Some(found) = self.bytes[self.at..self.end].first_chunk::<N>() else {
            return Err(DecodeError::Truncated { field });
        };
        self.at += N;
        Ok(*found)
    }

    /// Takes the next `len` bytes and returns their offsets.
    #[inline]
    fn take(&mut self, len: usize, field: &'static str) -> Result<(usize, usize), DecodeError> {
        let from = self.at;
        match from.checked_add(len).filter(|to| *to <= self.end) {
            Some(to) => {
                self.at = to;
                Ok((from, to))
            }
            None => Err(DecodeError::Truncated { field }),
        }
    }

    fn long(&mut self, field: &'static str) -> Result<(usize, usize), DecodeError> {
        let len = u32::from_be_bytes(self.array(field)?);
        self.take(len as usize, field)
    }
}

/// Appends fields one after the other.
pub(crate) struct Writer<'a> {
    out: &'a mut BytesMut,
    /// How many bits of the last octet are used; 0 when the next bit begins a new octet.
    bits_used: u8,
}

impl<'a> Writer<'a> {
    pub(crate) const fn new(out: &'a mut BytesMut) -> Self {
        Self { out, bits_used: 0 }
    }

    fn octets(&mut self) -> &mut BytesMut {
        self.bits_used = 0;
        self.out
    }
}

/// A type of the grammar.
pub(crate) trait Field: Sized {
    fn read(reader: &mut Reader<'_>, field: &'static str) -> Result<Self, DecodeError>;
    fn write(&self, writer: &mut Writer<'_>);
}

macro_rules! integer_field {
    ($($kind:ty, $put:ident;)*) => {$(
        impl Field for $kind {
            #[inline]
            fn read(reader: &mut Reader<'_>, field: &'static str) -> Result<Self, DecodeError> {
                Ok(Self::from_be_bytes(reader.array(field)?))
            }

            #[inline]
            fn write(&self, writer: &mut Writer<'_>) {
                writer.octets().$put(*self);
            }
        }
    )*};
}

integer_field! {
    u8, put_u8;
    u16, put_u16;
    u32, put_u32;
    u64, put_u64;
}

impl Field for bool {
    #[inline]
    fn read(reader: &mut Reader<'_>, field: &'static str) -> Result<Self, DecodeError> {
        if reader.bits_taken == 0 || reader.bits_taken == 8 {
            [reader.bits] = reader.array(field)?;
        }
        let bit = reader.bits >> reader.bits_taken & 1;
        reader.bits_taken += 1;
        Ok(bit == 1)
    }

    #[inline]
    fn write(&self, writer: &mut Writer<'_>) {
        if writer.bits_used == 0 || writer.bits_used == 8 {
            writer.octets().put_u8(0);
        }
        if let Some(last) = writer.out.last_mut() {
            *last |= u8::from(*self) << writer.bits_used;
        }
        writer.bits_used += 1;
    }
}

impl Field for ShortStr {
    #[inline]
    fn read(reader: &mut Reader<'_>, field: &'static str) -> Result<Self, DecodeError> {
        let [len] = reader.array(field)?;
        let (from, to) = reader.take(usize::from(len), field)?;
        Self::from_bytes(reader.bytes.slice(from..to)).map_err(|_| DecodeError::NotUtf8 { field })
    }

    #[inline]
    fn write(&self, writer: &mut Writer<'_>) {
        let out = writer.octets();
        out.put_u8(self.as_bytes().len() as u8);
        out.put_slice(self.as_bytes());
    }
}

/// A long string: any bytes behind a 32-bit length.
impl Field for Bytes {
    fn read(reader: &mut Reader<'_>, field: &'static str) -> Result<Self, DecodeError> {
        let (from, to) = reader.long(field)?;
        Ok(reader.bytes.slice(from..to))
    }

    fn write(&self, writer: &mut Writer<'_>) {
        let out = writer.octets();
        out.put_u32(self.len() as u32);
        out.put_slice(self);
    }
}

impl Field for Table {
    fn read(reader: &mut Reader<'_>, field: &'static str) -> Result<Self, DecodeError> {
        let (from, to) = reader.long(field)?;
        Self::decode(&reader.bytes[from..to]).map_err(|source| DecodeError::Table { field, source })
    }

    fn write(&self, writer: &mut Writer<'_>) {
        self.encode(writer.octets());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bits_share_an_octet_until_something_else_follows() {
        let mut out = BytesMut::new();
        let mut writer = Writer::new(&mut out);
        for bit in [true, false, true, false, false, false, false, false, true] {
            bit.write(&mut writer);
        }
        7u16.write(&mut writer);
        true.write(&mut writer);
        assert_eq!(&out[..], [0b101, 1, 0, 7, 1]);

        let bytes = out.freeze();
        let mut reader = Reader::new(&bytes, 0, bytes.len());
        let bits: Vec<bool> = (0..9).map(|_| bool::read(&mut reader, "bit").unwrap()).collect();
        assert_eq!(bits, [true, false, true, false, false, false, false, false, true]);
        assert_eq!(u16::read(&mut reader, "number"), Ok(7));
        assert_eq!(bool::read(&mut reader, "last"), Ok(true));
        assert_eq!(reader.finish(), Ok(()));
    }
}
