//! AMQP field tables (AMQP 0-9-1 §4.2.5.5, with the type letters that RabbitMQ really uses).

use std::fmt;

use bytes::{BufMut, Bytes, BytesMut};

use crate::limits::{SHORT_STRING_BYTES_MAX, TABLE_DEPTH_MAX, TABLE_ENTRIES_MAX};

/// A value of a field table. The letter is the type's octet on the wire.
#[derive(Clone, Debug, PartialEq)]
pub enum Value {
    /// `t`
    Bool(bool),
    /// `b`
    I8(i8),
    /// `B`
    U8(u8),
    /// `s` (and `U`, as the specification's text has it)
    I16(i16),
    /// `u`
    U16(u16),
    /// `I`
    I32(i32),
    /// `i`
    U32(u32),
    /// `l` (and `L`): both are signed in practice
    I64(i64),
    /// `f`
    F32(f32),
    /// `d`
    F64(f64),
    /// `D`: scale, then the unscaled value
    Decimal(u8, i32),
    /// `S`: bytes, most often UTF-8 text
    LongString(Bytes),
    /// `x`
    ByteArray(Bytes),
    /// `A`
    Array(Vec<Self>),
    /// `T`: seconds since the Unix epoch
    Timestamp(u64),
    /// `F`
    Table(Table),
    /// `V`
    Void,
}

/// A field table: names and values in their order on the wire. A name that occurs twice is kept
/// twice; [`Table::get`] finds the first.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Table(Vec<(Box<str>, Value)>);

/// How deep what is stored may be nested: the management API took so much before it had a limit of its own, since its
/// JSON ends there.
const STORED_DEPTH_MAX: usize = 128;

/// Why bytes are not a field table.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TableError {
    /// The bytes end inside a value.
    #[error("field table ends early, at byte {at}")]
    Truncated {
        /// Offset from the table's start.
        at: usize,
    },
    /// No such type letter.
    #[error("unknown field type 0x{octet:02x} at byte {at}")]
    UnknownType {
        /// The octet that was found.
        octet: u8,
        /// Offset from the table's start.
        at: usize,
    },
    /// A field's name is not UTF-8.
    #[error("field name at byte {at} is not UTF-8")]
    NotUtf8 {
        /// Offset from the table's start.
        at: usize,
    },
    /// Nested more deeply than [`TABLE_DEPTH_MAX`], or what is stored may be.
    #[error("field table is nested more than {limit} deep")]
    TooDeep {
        /// How deep it may be.
        limit: usize,
    },
    /// More entries than [`TABLE_ENTRIES_MAX`].
    #[error("field table has more than {TABLE_ENTRIES_MAX} entries")]
    TooManyEntries,
}

impl Table {
    /// Returns an empty table.
    #[must_use]
    pub const fn new() -> Self {
        Self(Vec::new())
    }

    /// Decodes a table from its content, that is, from what follows the 32-bit length.
    ///
    /// # Errors
    /// [`TableError`] with the offset at which the bytes stop making sense.
    pub fn decode(content: &[u8]) -> Result<Self, TableError> {
        Reader::new(content, TABLE_DEPTH_MAX).table(content.len(), 0)
    }

    /// Decodes a table that was taken once: it may be nested more deeply than one that is taken today.
    ///
    /// # Errors
    /// As [`Table::decode`]'s.
    pub fn decode_stored(content: &[u8]) -> Result<Self, TableError> {
        Reader::new(content, STORED_DEPTH_MAX).table(content.len(), 0)
    }

    /// Checks that [`Table::decode`] would take these bytes, without building what it would.
    ///
    /// # Errors
    /// The same as [`Table::decode`]'s.
    pub fn check(content: &[u8]) -> Result<(), TableError> {
        Reader::new(content, TABLE_DEPTH_MAX).check_table(content.len(), 0)
    }

    /// Appends the 32-bit length and the content.
    pub fn encode(&self, out: &mut BytesMut) {
        sized(out, |out| {
            for (name, value) in &self.0 {
                out.put_u8(name.len() as u8);
                out.put_slice(name.as_bytes());
                value.encode(out);
            }
        });
    }

    /// Returns the first value of that name.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<&Value> {
        self.0.iter().find(|(n, _)| &**n == name).map(|(_, v)| v)
    }

    /// Sets a value: replaces the first of that name, or adds one at the end.
    ///
    /// # Panics
    /// If the name is longer than a short string.
    pub fn set(&mut self, name: &str, value: Value) {
        assert!(name.len() <= SHORT_STRING_BYTES_MAX, "a field name is a short string");
        match self.0.iter_mut().find(|(n, _)| &**n == name) {
            Some((_, old)) => *old = value,
            None => self.0.push((Box::from(name), value)),
        }
    }

    /// Removes every value of that name and returns the first.
    pub fn remove(&mut self, name: &str) -> Option<Value> {
        let at = self.0.iter().position(|(n, _)| &**n == name)?;
        let (_, value) = self.0.remove(at);
        self.0.retain(|(n, _)| &**n != name);
        Some(value)
    }

    /// Keeps only the entries of which `keep` says so, in their order; a name that occurs twice is looked at twice.
    pub fn retain(&mut self, mut keep: impl FnMut(&str, &Value) -> bool) {
        self.0.retain(|(name, value)| keep(name, value));
    }

    /// Returns the names and values in order.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &Value)> {
        self.0.iter().map(|(n, v)| (&**n, v))
    }

    /// Returns the number of entries.
    #[must_use]
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Returns whether there are no entries.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

impl<N: AsRef<str>> FromIterator<(N, Value)> for Table {
    fn from_iter<I: IntoIterator<Item = (N, Value)>>(entries: I) -> Self {
        let mut table = Self::new();
        for (name, value) in entries {
            table.set(name.as_ref(), value);
        }
        table
    }
}

impl Value {
    /// Returns the text as a long string.
    #[must_use]
    pub fn text(text: &str) -> Self {
        Self::LongString(Bytes::copy_from_slice(text.as_bytes()))
    }

    /// Returns the text of a long string, if it is UTF-8.
    #[must_use]
    pub fn as_text(&self) -> Option<&str> {
        match self {
            Self::LongString(bytes) => std::str::from_utf8(bytes).ok(),
            _ => None,
        }
    }

    /// Returns the number of any integer type.
    #[must_use]
    pub const fn as_integer(&self) -> Option<i64> {
        Some(match *self {
            Self::I8(v) => v as i64,
            Self::U8(v) => v as i64,
            Self::I16(v) => v as i64,
            Self::U16(v) => v as i64,
            Self::I32(v) => v as i64,
            Self::U32(v) => v as i64,
            Self::I64(v) => v,
            _ => return None,
        })
    }

    /// Returns the name that clients know the type by, for error messages.
    #[must_use]
    pub const fn type_name(&self) -> &'static str {
        match self {
            Self::Bool(_) => "bool",
            Self::I8(_) => "byte",
            Self::U8(_) => "unsignedbyte",
            Self::I16(_) => "short",
            Self::U16(_) => "unsignedshort",
            Self::I32(_) => "signedint",
            Self::U32(_) => "unsignedint",
            Self::I64(_) => "long",
            Self::F32(_) => "float",
            Self::F64(_) => "double",
            Self::Decimal(..) => "decimal",
            Self::LongString(_) => "longstr",
            Self::ByteArray(_) => "binary",
            Self::Array(_) => "array",
            Self::Timestamp(_) => "timestamp",
            Self::Table(_) => "table",
            Self::Void => "void",
        }
    }

    fn encode(&self, out: &mut BytesMut) {
        match self {
            Self::Bool(v) => put(out, b't', |o| o.put_u8(u8::from(*v))),
            Self::I8(v) => put(out, b'b', |o| o.put_i8(*v)),
            Self::U8(v) => put(out, b'B', |o| o.put_u8(*v)),
            Self::I16(v) => put(out, b's', |o| o.put_i16(*v)),
            Self::U16(v) => put(out, b'u', |o| o.put_u16(*v)),
            Self::I32(v) => put(out, b'I', |o| o.put_i32(*v)),
            Self::U32(v) => put(out, b'i', |o| o.put_u32(*v)),
            Self::I64(v) => put(out, b'l', |o| o.put_i64(*v)),
            Self::F32(v) => put(out, b'f', |o| o.put_f32(*v)),
            Self::F64(v) => put(out, b'd', |o| o.put_f64(*v)),
            Self::Decimal(scale, v) => put(out, b'D', |o| {
                o.put_u8(*scale);
                o.put_i32(*v);
            }),
            Self::LongString(v) => put(out, b'S', |o| sized(o, |o| o.put_slice(v))),
            Self::ByteArray(v) => put(out, b'x', |o| sized(o, |o| o.put_slice(v))),
            Self::Array(values) => {
                put(out, b'A', |o| sized(o, |o| values.iter().for_each(|v| v.encode(o))));
            }
            Self::Timestamp(v) => put(out, b'T', |o| o.put_u64(*v)),
            Self::Table(table) => put(out, b'F', |o| table.encode(o)),
            Self::Void => out.put_u8(b'V'),
        }
    }
}

/// For people, in error texts: texts and numbers as they are, what is nested in brackets.
impl fmt::Display for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Bool(value) => value.fmt(f),
            Self::F32(value) => write!(f, "{value}"),
            Self::F64(value) => write!(f, "{value}"),
            Self::Decimal(scale, unscaled) => write!(f, "{unscaled}e-{scale}"),
            Self::LongString(bytes) | Self::ByteArray(bytes) => {
                f.write_str(&String::from_utf8_lossy(bytes))
            }
            Self::Timestamp(seconds) => seconds.fmt(f),
            Self::Void => f.write_str("void"),
            Self::Array(values) => {
                f.write_str("[")?;
                for (at, value) in values.iter().enumerate() {
                    let comma = if at > 0 { ", " } else { "" };
                    write!(f, "{comma}{value}")?;
                }
                f.write_str("]")
            }
            Self::Table(table) => {
                f.write_str("{")?;
                for (at, (name, value)) in table.iter().enumerate() {
                    let comma = if at > 0 { ", " } else { "" };
                    write!(f, "{comma}{name}: {value}")?;
                }
                f.write_str("}")
            }
            integer => integer.as_integer().unwrap_or_default().fmt(f),
        }
    }
}

fn put(out: &mut BytesMut, letter: u8, value: impl FnOnce(&mut BytesMut)) {
    out.put_u8(letter);
    value(out);
}

/// Writes a 32-bit length in front of what `content` writes.
fn sized(out: &mut BytesMut, content: impl FnOnce(&mut BytesMut)) {
    let at = out.len();
    out.put_u32(0);
    content(out);
    let len = (out.len() - at - 4) as u32;
    out[at..at + 4].copy_from_slice(&len.to_be_bytes());
}

struct Reader<'a> {
    bytes: &'a [u8],
    at: usize,
    count: usize,
    depth_max: usize,
}

impl<'a> Reader<'a> {
    const fn new(bytes: &'a [u8], depth_max: usize) -> Self {
        Self { bytes, at: 0, count: 0, depth_max }
    }

    fn table(&mut self, len: usize, depth: usize) -> Result<Table, TableError> {
        self.entries(len, depth, |r| Ok((Box::from(r.name()?), r.value(depth)?))).map(Table)
    }

    fn check_table(&mut self, len: usize, depth: usize) -> Result<(), TableError> {
        self.entries(len, depth, |r| r.name().and_then(|_| r.check_value(depth))).map(drop)
    }

    /// Reads what a table or an array of `len` bytes holds. What `entry` makes of each may be
    /// nothing, which takes no memory.
    fn entries<T>(
        &mut self,
        len: usize,
        depth: usize,
        entry: impl Fn(&mut Self) -> Result<T, TableError>,
    ) -> Result<Vec<T>, TableError> {
        let end = self.enter(len, depth)?;
        let mut entries = Vec::new();
        while self.at < end {
            self.count()?;
            entries.push(entry(self)?);
        }
        self.leave(end)?;
        Ok(entries)
    }

    fn name(&mut self) -> Result<&'a str, TableError> {
        let at = self.at;
        let len = usize::from(self.take::<1>()?[0]);
        std::str::from_utf8(self.slice(len)?).map_err(|_| TableError::NotUtf8 { at })
    }

    fn value(&mut self, depth: usize) -> Result<Value, TableError> {
        let at = self.at;
        Ok(match self.take::<1>()?[0] {
            b't' => Value::Bool(self.take::<1>()?[0] != 0),
            b'b' => Value::I8(i8::from_be_bytes(self.take()?)),
            b'B' => Value::U8(u8::from_be_bytes(self.take()?)),
            b's' | b'U' => Value::I16(i16::from_be_bytes(self.take()?)),
            b'u' => Value::U16(u16::from_be_bytes(self.take()?)),
            b'I' => Value::I32(i32::from_be_bytes(self.take()?)),
            b'i' => Value::U32(u32::from_be_bytes(self.take()?)),
            b'l' | b'L' => Value::I64(i64::from_be_bytes(self.take()?)),
            b'f' => Value::F32(f32::from_be_bytes(self.take()?)),
            b'd' => Value::F64(f64::from_be_bytes(self.take()?)),
            b'D' => Value::Decimal(self.take::<1>()?[0], i32::from_be_bytes(self.take()?)),
            b'S' => Value::LongString(self.long()?),
            b'x' => Value::ByteArray(self.long()?),
            b'A' => {
                let len = self.len()?;
                Value::Array(self.entries(len, depth + 1, |r| r.value(depth + 1))?)
            }
            b'T' => Value::Timestamp(u64::from_be_bytes(self.take()?)),
            b'F' => {
                let len = self.len()?;
                Value::Table(self.table(len, depth + 1)?)
            }
            b'V' => Value::Void,
            octet => return Err(TableError::UnknownType { octet, at }),
        })
    }

    /// Steps over what [`Reader::value`] would read.
    fn check_value(&mut self, depth: usize) -> Result<(), TableError> {
        let at = self.at;
        let len = match self.take::<1>()?[0] {
            b't' | b'b' | b'B' => 1,
            b's' | b'U' | b'u' => 2,
            b'I' | b'i' | b'f' => 4,
            b'D' => 5,
            b'l' | b'L' | b'd' | b'T' => 8,
            b'S' | b'x' => self.len()?,
            b'A' => {
                let len = self.len()?;
                return self.entries(len, depth + 1, |r| r.check_value(depth + 1)).map(drop);
            }
            b'F' => {
                let len = self.len()?;
                return self.check_table(len, depth + 1);
            }
            b'V' => 0,
            octet => return Err(TableError::UnknownType { octet, at }),
        };
        self.slice(len).map(|_| ())
    }

    /// Checks a nested content's depth and length; returns the offset of its end.
    fn enter(&self, len: usize, depth: usize) -> Result<usize, TableError> {
        if depth > self.depth_max {
            return Err(TableError::TooDeep { limit: self.depth_max });
        }
        match self.at.checked_add(len) {
            Some(end) if end <= self.bytes.len() => Ok(end),
            _ => Err(TableError::Truncated { at: self.bytes.len() }),
        }
    }

    /// Checks that a nested content ends exactly where its length said.
    const fn leave(&self, end: usize) -> Result<(), TableError> {
        if self.at == end { Ok(()) } else { Err(TableError::Truncated { at: end }) }
    }

    const fn count(&mut self) -> Result<(), TableError> {
        self.count += 1;
        if self.count > TABLE_ENTRIES_MAX { Err(TableError::TooManyEntries) } else { Ok(()) }
    }

    fn len(&mut self) -> Result<usize, TableError> {
        Ok(u32::from_be_bytes(self.take()?) as usize)
    }

    fn long(&mut self) -> Result<Bytes, TableError> {
        let len = self.len()?;
        Ok(Bytes::copy_from_slice(self.slice(len)?))
    }

    fn take<const N: usize>(&mut self) -> Result<[u8; N], TableError> {
        let mut array = [0; N];
        array.copy_from_slice(self.slice(N)?);
        Ok(array)
    }

    fn slice(&mut self, len: usize) -> Result<&'a [u8], TableError> {
        let end = self.at.checked_add(len).filter(|end| *end <= self.bytes.len());
        let Some(end) = end else {
            return Err(TableError::Truncated { at: self.bytes.len() });
        };
        let slice = &self.bytes[self.at..end];
        self.at = end;
        Ok(slice)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn value() -> impl Strategy<Value = Value> {
        let leaf = prop_oneof![
            any::<bool>().prop_map(Value::Bool),
            any::<i8>().prop_map(Value::I8),
            any::<u8>().prop_map(Value::U8),
            any::<i16>().prop_map(Value::I16),
            any::<u16>().prop_map(Value::U16),
            any::<i32>().prop_map(Value::I32),
            any::<u32>().prop_map(Value::U32),
            any::<i64>().prop_map(Value::I64),
            (-1e9f32..1e9).prop_map(Value::F32),
            (-1e9f64..1e9).prop_map(Value::F64),
            (any::<u8>(), any::<i32>()).prop_map(|(s, v)| Value::Decimal(s, v)),
            any::<Vec<u8>>().prop_map(|v| Value::LongString(v.into())),
            any::<Vec<u8>>().prop_map(|v| Value::ByteArray(v.into())),
            any::<u64>().prop_map(Value::Timestamp),
            Just(Value::Void),
        ];
        leaf.prop_recursive(4, 32, 4, |inner| {
            prop_oneof![
                proptest::collection::vec(inner.clone(), 0..4).prop_map(Value::Array),
                proptest::collection::btree_map("[a-z]{1,8}", inner, 0..4)
                    .prop_map(|m| Value::Table(m.into_iter().collect())),
            ]
        })
    }

    proptest! {
        #[test]
        fn a_table_survives_the_wire(entries in proptest::collection::btree_map("[a-z-]{0,20}", value(), 0..8)) {
            let table: Table = entries.into_iter().collect();
            let mut out = BytesMut::new();
            table.encode(&mut out);
            prop_assert_eq!(Table::decode(&out[4..]).unwrap(), table);
        }

        #[test]
        fn the_check_takes_what_decodes_and_nothing_else(bytes: Vec<u8>) {
            prop_assert_eq!(Table::check(&bytes), Table::decode(&bytes).map(|_| ()));
        }

        #[test]
        fn the_check_agrees_about_a_table_with_one_wrong_byte(
            entries in proptest::collection::btree_map("[a-z-]{0,20}", value(), 1..8),
            at: proptest::sample::Index,
            octet: u8,
        ) {
            let table: Table = entries.into_iter().collect();
            let mut out = BytesMut::new();
            table.encode(&mut out);
            prop_assert_eq!(Table::check(&out[4..]), Ok(()));
            let at = 4 + at.index(out.len() - 4);
            out[at] = octet;
            prop_assert_eq!(Table::check(&out[4..]), Table::decode(&out[4..]).map(|_| ()));
        }
    }

    #[test]
    fn nesting_has_a_limit() {
        let mut value = Value::Void;
        for _ in 0..=TABLE_DEPTH_MAX {
            value = Value::Array(vec![value]);
        }
        let mut out = BytesMut::new();
        Table::from_iter([("a", value)]).encode(&mut out);
        let too_deep = TableError::TooDeep { limit: TABLE_DEPTH_MAX };
        assert_eq!(Table::decode(&out[4..]), Err(too_deep.clone()));
        assert_eq!(Table::check(&out[4..]), Err(too_deep));
    }

    #[test]
    fn what_is_stored_may_be_nested_as_deep_as_json() {
        let encoded = |levels| {
            let value = (0..levels).fold(Value::Void, |inner, _| Value::Array(vec![inner]));
            let table = Table::from_iter([("a", value)]);
            let mut out = BytesMut::new();
            table.encode(&mut out);
            (out, table)
        };
        let (deep, table) = encoded(STORED_DEPTH_MAX);
        assert_eq!(Table::decode_stored(&deep[4..]), Ok(table));
        let (deeper, _) = encoded(STORED_DEPTH_MAX + 1);
        let too_deep = TableError::TooDeep { limit: STORED_DEPTH_MAX };
        assert_eq!(Table::decode_stored(&deeper[4..]), Err(too_deep));
    }

    #[test]
    fn the_number_of_entries_has_a_limit() {
        let values = vec![Value::Void; TABLE_ENTRIES_MAX];
        let mut out = BytesMut::new();
        Table::from_iter([("a", Value::Array(values))]).encode(&mut out);
        assert_eq!(Table::decode(&out[4..]), Err(TableError::TooManyEntries));
        assert_eq!(Table::check(&out[4..]), Err(TableError::TooManyEntries));
    }

    #[test]
    fn a_nested_length_that_lies_is_refused() {
        // An array that says 3 bytes but whose one value needs 5.
        let bytes = [1, b'a', b'A', 0, 0, 0, 3, b'I', 0, 0, 0, 1];
        assert!(matches!(Table::decode(&bytes), Err(TableError::Truncated { .. })));
    }
}
