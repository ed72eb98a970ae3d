//! The shapes that keys and values are built of. See [`super`] for their bytes.

use bytes::BytesMut;
use quelea_model::{NameError, Table};

use super::error::TopologyError;

/// Names and values.
type Pairs = Vec<(Box<str>, Box<str>)>;

/// Builds a key or a value.
pub(super) struct Writer(Vec<u8>);

impl Writer {
    /// Creates a writer that begins with `first`: a key's kind or a value's version.
    pub(super) fn new(first: u8) -> Self {
        Self(vec![first])
    }

    pub(super) fn into_bytes(self) -> Vec<u8> {
        self.0
    }

    pub(super) fn u8(&mut self, number: u8) {
        self.0.push(number);
    }

    pub(super) fn u32(&mut self, number: u32) {
        self.0.extend_from_slice(&number.to_le_bytes());
    }

    pub(super) fn u64(&mut self, number: u64) {
        self.0.extend_from_slice(&number.to_le_bytes());
    }

    pub(super) fn flags(&mut self, flags: &[(u8, bool)]) {
        let set = flags.iter().filter(|(_, set)| *set);
        self.u8(set.fold(0, |all, (bit, _)| all | bit));
    }

    /// The number of a value that `all` has one for.
    pub(super) fn one_of<T: PartialEq>(&mut self, all: &[(u8, T)], value: &T) {
        let found = all.iter().find(|(_, known)| known == value);
        self.u8(found.expect("every value that is stored has a number").0);
    }

    /// Texts come from frames and requests, which end long before 4 GiB.
    pub(super) fn text(&mut self, text: &str) {
        self.u32(text.len() as u32);
        self.0.extend_from_slice(text.as_bytes());
    }

    pub(super) fn texts(&mut self, texts: &[Box<str>]) {
        self.u32(texts.len() as u32);
        texts.iter().for_each(|text| self.text(text));
    }

    pub(super) fn pairs(&mut self, pairs: &[(Box<str>, Box<str>)]) {
        self.u32(pairs.len() as u32);
        for (name, value) in pairs {
            self.text(name);
            self.text(value);
        }
    }

    pub(super) fn table(&mut self, table: &Table) {
        let mut encoded = BytesMut::new();
        table.encode(&mut encoded);
        let content = &encoded[size_of::<u32>()..];
        self.u32(content.len() as u32);
        self.0.extend_from_slice(content);
    }
}

/// Takes a key or a value apart.
pub(super) struct Reader<'a> {
    part: &'static str,
    bytes: &'a [u8],
    at: usize,
}

impl<'a> Reader<'a> {
    pub(super) const fn new(part: &'static str, bytes: &'a [u8]) -> Self {
        Self { part, bytes, at: 0 }
    }

    pub(super) const fn at(&self) -> usize {
        self.at
    }

    pub(super) const fn error(
        &self,
        what: &'static str,
        at: usize,
        reason: String,
    ) -> TopologyError {
        TopologyError { what, part: self.part, at, reason }
    }

    pub(super) fn end(&self) -> Result<(), TopologyError> {
        match self.bytes.len() - self.at {
            0 => Ok(()),
            rest => Err(self.error("end", self.at, format!("{rest} bytes are left over"))),
        }
    }

    pub(super) fn u8(&mut self, what: &'static str) -> Result<u8, TopologyError> {
        Ok(self.array::<1>(what)?[0])
    }

    pub(super) fn u32(&mut self, what: &'static str) -> Result<u32, TopologyError> {
        Ok(u32::from_le_bytes(self.array(what)?))
    }

    pub(super) fn u64(&mut self, what: &'static str) -> Result<u64, TopologyError> {
        Ok(u64::from_le_bytes(self.array(what)?))
    }

    /// Reads a number. Returns the value that has it among `all`.
    pub(super) fn one_of<T: Clone>(
        &mut self,
        what: &'static str,
        all: &[(u8, T)],
    ) -> Result<T, TopologyError> {
        let at = self.at;
        let number = self.u8(what)?;
        let found = all.iter().find(|(known, _)| *known == number);
        found
            .map(|(_, value)| value.clone())
            .ok_or_else(|| self.error(what, at, format!("unknown number {number}")))
    }

    /// Reads a byte of flags. Returns the values of known bits; any other must be 0.
    pub(super) fn flags<const N: usize>(
        &mut self,
        what: &'static str,
        bits: [u8; N],
    ) -> Result<[bool; N], TopologyError> {
        let at = self.at;
        let flags = self.u8(what)?;
        let unknown = bits.iter().fold(flags, |rest, bit| rest & !bit);
        if unknown != 0 {
            return Err(self.error(what, at, format!("unknown bits 0x{unknown:02x}")));
        }
        Ok(bits.map(|bit| flags & bit != 0))
    }

    pub(super) fn text(&mut self, what: &'static str) -> Result<&'a str, TopologyError> {
        let at = self.at;
        let len = self.u32(what)? as usize;
        let bytes = self.slice(what, len)?;
        std::str::from_utf8(bytes).map_err(|_| self.error(what, at, "it is not UTF-8".to_owned()))
    }

    pub(super) fn boxed(&mut self, what: &'static str) -> Result<Box<str>, TopologyError> {
        self.text(what).map(Box::from)
    }

    pub(super) fn name<N>(
        &mut self,
        what: &'static str,
        parse: impl FnOnce(&str) -> Result<N, NameError>,
    ) -> Result<N, TopologyError> {
        let at = self.at;
        let text = self.text(what)?;
        parse(text).map_err(|error| self.error(what, at, error.to_string()))
    }

    /// Reads a list of texts. No space is reserved for a count that may lie: each text takes at
    /// least its length's bytes.
    pub(super) fn texts(&mut self, what: &'static str) -> Result<Vec<Box<str>>, TopologyError> {
        let count = self.u32(what)?;
        (0..count).map(|_| self.boxed(what)).collect()
    }

    pub(super) fn pairs(&mut self, what: &'static str) -> Result<Pairs, TopologyError> {
        let count = self.u32(what)?;
        (0..count).map(|_| Ok((self.boxed(what)?, self.boxed(what)?))).collect()
    }

    pub(super) fn table(&mut self, what: &'static str) -> Result<Table, TopologyError> {
        let at = self.at;
        let len = self.u32(what)? as usize;
        let content = self.slice(what, len)?;
        Table::decode_stored(content).map_err(|error| self.error(what, at, error.to_string()))
    }

    fn array<const N: usize>(&mut self, what: &'static str) -> Result<[u8; N], TopologyError> {
        let mut array = [0; N];
        array.copy_from_slice(self.slice(what, N)?);
        Ok(array)
    }

    fn slice(&mut self, what: &'static str, len: usize) -> Result<&'a [u8], TopologyError> {
        let rest = &self.bytes[self.at..];
        let Some((slice, _)) = rest.split_at_checked(len) else {
            let reason = format!("{len} bytes are needed, {} are there", rest.len());
            return Err(self.error(what, self.at, reason));
        };
        self.at += len;
        Ok(slice)
    }
}
