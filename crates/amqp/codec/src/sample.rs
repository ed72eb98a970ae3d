//! Methods and fields with any values, made from bytes: for fuzzing, and for tests over all methods.

use bytes::Bytes;
use quelea_model::{Table, Value};

use crate::short_str::ShortStr;

/// What can be made from bytes.
pub(crate) trait Sample {
    fn sample(entropy: &mut Entropy<'_>) -> Self;
}

/// Values made from bytes; zeros when they are used up.
pub(crate) struct Entropy<'a> {
    bytes: &'a [u8],
}

impl<'a> Entropy<'a> {
    /// Returns a source of values from these bytes.
    pub(crate) const fn new(bytes: &'a [u8]) -> Self {
        Self { bytes }
    }

    /// Returns the next octet.
    fn octet(&mut self) -> u8 {
        match self.bytes {
            [first, rest @ ..] => {
                self.bytes = rest;
                *first
            }
            [] => 0,
        }
    }

    fn array<const N: usize>(&mut self) -> [u8; N] {
        std::array::from_fn(|_| self.octet())
    }

    /// Returns up to 39 characters, ASCII and not.
    fn text(&mut self) -> String {
        let len = usize::from(self.octet()) % 40;
        (0..len).map(|_| char::from(self.octet())).collect()
    }

    fn table(&mut self) -> Table {
        let len = self.octet() % 4;
        (0..len).map(|_| (ShortStr::cut(&self.text()), self.value(3))).collect()
    }

    fn value(&mut self, depth: u8) -> Value {
        match self.octet() % 12 {
            0 => Value::Bool(self.octet() & 1 == 1),
            1 => Value::I8(self.octet() as i8),
            2 => Value::I16(i16::from_be_bytes(self.array())),
            3 => Value::I32(i32::from_be_bytes(self.array())),
            4 => Value::U32(u32::from_be_bytes(self.array())),
            5 => Value::I64(i64::from_be_bytes(self.array())),
            6 => Value::Timestamp(u64::from_be_bytes(self.array())),
            7 => Value::F64(f64::from(self.octet())),
            8 => Value::text(&self.text()),
            9 if depth > 0 => {
                let len = self.octet() % 3;
                Value::Array((0..len).map(|_| self.value(depth - 1)).collect())
            }
            10 if depth > 0 => Value::Table(Table::from_iter([("inner", self.value(depth - 1))])),
            _ => Value::Void,
        }
    }
}

macro_rules! integer_samples {
    ($($kind:ty)*) => {$(
        impl Sample for $kind {
            fn sample(entropy: &mut Entropy<'_>) -> Self {
                Self::from_be_bytes(entropy.array())
            }
        }
    )*};
}

integer_samples!(u8 u16 u32 u64);

impl Sample for bool {
    fn sample(entropy: &mut Entropy<'_>) -> Self {
        entropy.octet() & 1 == 1
    }
}

impl Sample for ShortStr {
    fn sample(entropy: &mut Entropy<'_>) -> Self {
        Self::cut(&entropy.text())
    }
}

impl Sample for Bytes {
    fn sample(entropy: &mut Entropy<'_>) -> Self {
        Self::from(entropy.text())
    }
}

impl Sample for Table {
    fn sample(entropy: &mut Entropy<'_>) -> Self {
        entropy.table()
    }
}
