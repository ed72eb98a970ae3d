//! Message properties, wire-shaped (AMQP 0-9-1 §4.2.6.1): a flag word whose highest bits say which
//! of the 14 properties of class `basic` follow, then their values.
//!
//! [`PropertyView`] looks single properties up without decoding the others; [`Properties`] is the
//! whole set, decoded, for those who rewrite it.

use std::borrow::Cow;

use bytes::{BufMut, Bytes, BytesMut};

use crate::limits::SHORT_STRING_BYTES_MAX;
use crate::table::{Table, TableError};

const CONTENT_TYPE: u16 = 1 << 15;
const CONTENT_ENCODING: u16 = 1 << 14;
const HEADERS: u16 = 1 << 13;
const DELIVERY_MODE: u16 = 1 << 12;
const PRIORITY: u16 = 1 << 11;
const CORRELATION_ID: u16 = 1 << 10;
const REPLY_TO: u16 = 1 << 9;
const EXPIRATION: u16 = 1 << 8;
const MESSAGE_ID: u16 = 1 << 7;
const TIMESTAMP: u16 = 1 << 6;
const TYPE: u16 = 1 << 5;
const USER_ID: u16 = 1 << 4;
const APP_ID: u16 = 1 << 3;
const CLUSTER_ID: u16 = 1 << 2;
/// Another flag word would follow: no property of `basic` lives there.
const CONTINUED: u16 = 1;
const RESERVED: u16 = 1 << 1;

/// Why bytes are not the properties of a message.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PropertyError {
    /// The bytes end inside a property.
    #[error("properties end early, in {property}")]
    Truncated {
        /// The property that is incomplete.
        property: &'static str,
    },
    /// Flag bits that class `basic` does not define.
    #[error("unknown property flags 0x{flags:04x}")]
    UnknownFlags {
        /// The whole flag word.
        flags: u16,
    },
    /// A text that the broker itself reads and that is not UTF-8.
    #[error("property {property} is not UTF-8")]
    NotUtf8 {
        /// The property.
        property: &'static str,
    },
    /// The headers are not a field table.
    #[error("property headers: {0}")]
    Headers(#[from] TableError),
    /// Bytes are left over behind the last property.
    #[error("{count} bytes after the last property")]
    Trailing {
        /// How many.
        count: usize,
    },
}

/// Looks up single properties of wire-shaped bytes. Lookups on malformed bytes give `None`;
/// [`PropertyView::check`] distinguishes malformed from absent, and fronts call it once on arrival.
#[derive(Clone, Copy, Debug)]
pub struct PropertyView<'a> {
    bytes: &'a [u8],
}

impl<'a> PropertyView<'a> {
    /// Returns a view of flag word and values.
    #[must_use]
    pub const fn new(bytes: &'a [u8]) -> Self {
        Self { bytes }
    }

    /// Checks everything, the inside of the headers too, and builds nothing: receivers decode
    /// properties that they get from here, and must not be broken by what a publisher made up.
    ///
    /// Texts need not be UTF-8, as with RabbitMQ: clients put binary identifiers there. Only the
    /// user and the expiration must, because the broker reads them.
    ///
    /// # Errors
    /// [`PropertyError`] for the first thing that is wrong.
    pub fn check(self) -> Result<(), PropertyError> {
        // The common shapes of a fast publisher: nothing, or a delivery mode alone.
        match self.bytes {
            [0, 0] | [0x10, 0, _] => return Ok(()),
            _ => {}
        }
        let mut walk = Walk::new(self.bytes)?;
        while let Some((flag, kind, property)) = walk.next_present() {
            let value = walk.value(kind, property)?;
            if kind == Kind::Table {
                Table::check(value)?;
            } else if flag & (USER_ID | EXPIRATION) != 0 && std::str::from_utf8(value).is_err() {
                return Err(PropertyError::NotUtf8 { property });
            }
        }
        match walk.rest.len() {
            0 => Ok(()),
            count => Err(PropertyError::Trailing { count }),
        }
    }

    /// Returns the delivery mode: 2 is persistent, 1 (or absent) transient.
    #[must_use]
    pub fn delivery_mode(self) -> Option<u8> {
        self.find(DELIVERY_MODE).map(|v| v[0])
    }

    /// Returns whether the message asks to survive a restart.
    #[must_use]
    pub fn is_persistent(self) -> bool {
        self.delivery_mode() == Some(2)
    }

    /// Returns the message's priority.
    #[must_use]
    pub fn priority(self) -> Option<u8> {
        self.find(PRIORITY).map(|v| v[0])
    }

    /// Returns the time to live: a decimal number of milliseconds as text, as it came.
    #[must_use]
    pub fn expiration(self) -> Option<&'a str> {
        self.text(EXPIRATION)
    }

    /// Returns where replies go.
    #[must_use]
    pub fn reply_to(self) -> Option<&'a str> {
        self.text(REPLY_TO)
    }

    /// Returns who says to have sent it; checked against the connection's user.
    #[must_use]
    pub fn user_id(self) -> Option<&'a str> {
        self.text(USER_ID)
    }

    /// Returns the message's identifier.
    #[must_use]
    pub fn message_id(self) -> Option<&'a str> {
        self.text(MESSAGE_ID)
    }

    /// Returns whether there are headers at all.
    #[must_use]
    pub fn has_headers(self) -> bool {
        self.flags() & HEADERS != 0
    }

    /// Returns the headers, decoded; `None` when absent or malformed.
    #[must_use]
    pub fn headers(self) -> Option<Table> {
        Table::decode(self.find(HEADERS)?).ok()
    }

    /// Returns the headers' encoded content, without its length; `None` when absent or cut short.
    #[must_use]
    pub fn headers_content(self) -> Option<&'a [u8]> {
        self.find(HEADERS)
    }

    fn text(self, flag: u16) -> Option<&'a str> {
        std::str::from_utf8(self.find(flag)?).ok()
    }

    fn flags(self) -> u16 {
        match self.bytes {
            [high, low, ..] => u16::from_be_bytes([*high, *low]),
            _ => 0,
        }
    }

    fn find(self, wanted: u16) -> Option<&'a [u8]> {
        if self.flags() & wanted == 0 {
            return None;
        }
        let mut walk = Walk::new(self.bytes).ok()?;
        while let Some((flag, kind, property)) = walk.next_present() {
            let value = walk.value(kind, property).ok()?;
            if flag == wanted {
                return Some(value);
            }
        }
        None
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Short,
    Table,
    Octet,
    Long,
}

/// The order of the wire.
const ORDER: [(u16, Kind, &str); 14] = [
    (CONTENT_TYPE, Kind::Short, "content-type"),
    (CONTENT_ENCODING, Kind::Short, "content-encoding"),
    (HEADERS, Kind::Table, "headers"),
    (DELIVERY_MODE, Kind::Octet, "delivery-mode"),
    (PRIORITY, Kind::Octet, "priority"),
    (CORRELATION_ID, Kind::Short, "correlation-id"),
    (REPLY_TO, Kind::Short, "reply-to"),
    (EXPIRATION, Kind::Short, "expiration"),
    (MESSAGE_ID, Kind::Short, "message-id"),
    (TIMESTAMP, Kind::Long, "timestamp"),
    (TYPE, Kind::Short, "type"),
    (USER_ID, Kind::Short, "user-id"),
    (APP_ID, Kind::Short, "app-id"),
    (CLUSTER_ID, Kind::Short, "cluster-id"),
];

struct Walk<'a> {
    flags: u16,
    next: usize,
    rest: &'a [u8],
}

impl<'a> Walk<'a> {
    fn new(bytes: &'a [u8]) -> Result<Self, PropertyError> {
        let [high, low, rest @ ..] = bytes else {
            return Err(PropertyError::Truncated { property: "flags" });
        };
        let flags = u16::from_be_bytes([*high, *low]);
        if flags & (CONTINUED | RESERVED) != 0 {
            return Err(PropertyError::UnknownFlags { flags });
        }
        Ok(Self { flags, next: 0, rest })
    }

    fn next_present(&mut self) -> Option<(u16, Kind, &'static str)> {
        while self.next < ORDER.len() {
            let entry = ORDER[self.next];
            self.next += 1;
            if self.flags & entry.0 != 0 {
                return Some(entry);
            }
        }
        None
    }

    /// Takes a value and returns it without its length prefix.
    fn value(&mut self, kind: Kind, property: &'static str) -> Result<&'a [u8], PropertyError> {
        let truncated = PropertyError::Truncated { property };
        let prefix = match kind {
            Kind::Short => 1,
            Kind::Table => 4,
            Kind::Octet | Kind::Long => 0,
        };
        if self.rest.len() < prefix {
            return Err(truncated);
        }
        let (length, rest) = self.rest.split_at(prefix);
        let len = match kind {
            Kind::Octet => 1,
            Kind::Long => 8,
            Kind::Short | Kind::Table => {
                length.iter().fold(0usize, |len, byte| len << 8 | usize::from(*byte))
            }
        };
        if rest.len() < len {
            return Err(truncated);
        }
        let (value, rest) = rest.split_at(len);
        self.rest = rest;
        Ok(value)
    }
}

/// All properties of a message, decoded.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Properties {
    /// MIME type of the body.
    pub content_type: Option<Box<str>>,
    /// MIME encoding of the body.
    pub content_encoding: Option<Box<str>>,
    /// The headers.
    pub headers: Option<Table>,
    /// 1 transient, 2 persistent.
    pub delivery_mode: Option<u8>,
    /// 0 to 255, larger is earlier in a priority queue.
    pub priority: Option<u8>,
    /// For the application.
    pub correlation_id: Option<Box<str>>,
    /// Where replies go.
    pub reply_to: Option<Box<str>>,
    /// Milliseconds to live, as decimal text.
    pub expiration: Option<Box<str>>,
    /// For the application.
    pub message_id: Option<Box<str>>,
    /// Seconds since the Unix epoch.
    pub timestamp: Option<u64>,
    /// For the application.
    pub kind: Option<Box<str>>,
    /// The publisher's user name, checked by the broker.
    pub user_id: Option<Box<str>>,
    /// For the application.
    pub app_id: Option<Box<str>>,
    /// Deprecated in AMQP; carried all the same.
    pub cluster_id: Option<Box<str>>,
    /// Texts among the above that are not UTF-8, by the property's name in the specification, such
    /// as `correlation-id`. Their fields are `None`; a field that is set goes first.
    pub binary: Vec<(&'static str, Box<[u8]>)>,
}

impl Properties {
    /// Decodes flag word and values.
    ///
    /// # Errors
    /// [`PropertyError`] for the first thing that is wrong.
    pub fn decode(bytes: &[u8]) -> Result<Self, PropertyError> {
        let mut properties = Self::default();
        let mut walk = Walk::new(bytes)?;
        while let Some((flag, kind, property)) = walk.next_present() {
            let value = walk.value(kind, property)?;
            match flag {
                HEADERS => properties.headers = Some(Table::decode(value)?),
                DELIVERY_MODE => properties.delivery_mode = Some(value[0]),
                PRIORITY => properties.priority = Some(value[0]),
                TIMESTAMP => {
                    let seconds = value.iter().fold(0, |s, byte| s << 8 | u64::from(*byte));
                    properties.timestamp = Some(seconds);
                }
                _ => match std::str::from_utf8(value) {
                    Ok(text) => *properties.text_mut(flag) = Some(Box::from(text)),
                    Err(_) if flag & (USER_ID | EXPIRATION) != 0 => {
                        return Err(PropertyError::NotUtf8 { property });
                    }
                    Err(_) => properties.binary.push((property, Box::from(value))),
                },
            }
        }
        match walk.rest.len() {
            0 => Ok(properties),
            count => Err(PropertyError::Trailing { count }),
        }
    }

    /// Appends flag word and values.
    ///
    /// # Panics
    /// If a text is longer than a short string.
    pub fn encode(&self, out: &mut BytesMut) {
        let at = out.len();
        out.put_u16(0);
        let mut flags = 0;
        for (flag, kind, property) in ORDER {
            let present = match kind {
                Kind::Short => self.octets(flag, property).is_some_and(|text| {
                    assert!(text.len() <= SHORT_STRING_BYTES_MAX, "{property} is a short string");
                    out.put_u8(text.len() as u8);
                    out.put_slice(text);
                    true
                }),
                Kind::Table => self.headers.as_ref().is_some_and(|table| {
                    table.encode(out);
                    true
                }),
                Kind::Octet => {
                    let octet =
                        if flag == DELIVERY_MODE { self.delivery_mode } else { self.priority };
                    octet.is_some_and(|octet| {
                        out.put_u8(octet);
                        true
                    })
                }
                Kind::Long => self.timestamp.is_some_and(|seconds| {
                    out.put_u64(seconds);
                    true
                }),
            };
            if present {
                flags |= flag;
            }
        }
        out[at..at + 2].copy_from_slice(&flags.to_be_bytes());
    }

    /// Returns the wire shape as bytes of their own.
    #[must_use]
    pub fn to_bytes(&self) -> Bytes {
        let mut out = BytesMut::new();
        self.encode(&mut out);
        out.freeze()
    }

    fn octets(&self, flag: u16, property: &str) -> Option<&[u8]> {
        let binary = || self.binary.iter().find(|(name, _)| *name == property);
        self.text(flag).map(str::as_bytes).or_else(|| binary().map(|(_, octets)| &**octets))
    }

    fn text(&self, flag: u16) -> Option<&str> {
        match flag {
            CONTENT_TYPE => &self.content_type,
            CONTENT_ENCODING => &self.content_encoding,
            CORRELATION_ID => &self.correlation_id,
            REPLY_TO => &self.reply_to,
            EXPIRATION => &self.expiration,
            MESSAGE_ID => &self.message_id,
            TYPE => &self.kind,
            USER_ID => &self.user_id,
            APP_ID => &self.app_id,
            _ => &self.cluster_id,
        }
        .as_deref()
    }

    const fn text_mut(&mut self, flag: u16) -> &mut Option<Box<str>> {
        match flag {
            CONTENT_TYPE => &mut self.content_type,
            CONTENT_ENCODING => &mut self.content_encoding,
            CORRELATION_ID => &mut self.correlation_id,
            REPLY_TO => &mut self.reply_to,
            EXPIRATION => &mut self.expiration,
            MESSAGE_ID => &mut self.message_id,
            TYPE => &mut self.kind,
            USER_ID => &mut self.user_id,
            APP_ID => &mut self.app_id,
            _ => &mut self.cluster_id,
        }
    }
}

/// Returns the properties as those see them who get the message: without the header `BCC`, whose
/// keys are for routing alone (RabbitMQ's extension).
///
/// # Errors
/// [`PropertyError`], if `BCC` may stand in what cannot be decoded.
pub fn without_bcc(properties: &[u8]) -> Result<Cow<'_, [u8]>, PropertyError> {
    const NAME: &[u8] = b"\x03BCC";
    if !properties.windows(NAME.len()).any(|window| window == NAME) {
        return Ok(Cow::Borrowed(properties));
    }
    let mut decoded = Properties::decode(properties)?;
    let removed = decoded.headers.as_mut().and_then(|headers| headers.remove("BCC"));
    Ok(match removed {
        Some(_) => Cow::Owned(decoded.to_bytes().to_vec()),
        None => Cow::Borrowed(properties),
    })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::Value;

    fn text() -> impl Strategy<Value = Option<Box<str>>> {
        proptest::option::of("\\PC{0,40}".prop_map(|s| s.into_boxed_str()))
    }

    prop_compose! {
        fn properties()(
            texts in proptest::array::uniform10(text()),
            delivery_mode: Option<u8>,
            priority: Option<u8>,
            timestamp: Option<u64>,
            headers: Option<bool>,
        ) -> Properties {
            let [content_type, content_encoding, correlation_id, reply_to, expiration, message_id,
                kind, user_id, app_id, cluster_id] = texts;
            Properties {
                content_type, content_encoding, correlation_id, reply_to, expiration, message_id,
                kind, user_id, app_id, cluster_id, delivery_mode, priority, timestamp,
                headers: headers.map(|v| Table::from_iter([("h", Value::Bool(v))])),
                binary: Vec::new(),
            }
        }
    }

    proptest! {
        #[test]
        fn properties_survive_the_wire_and_the_view_agrees(properties in properties()) {
            let bytes = properties.to_bytes();
            let view = PropertyView::new(&bytes);
            prop_assert_eq!(view.check(), Ok(()));
            prop_assert_eq!(view.delivery_mode(), properties.delivery_mode);
            prop_assert_eq!(view.priority(), properties.priority);
            prop_assert_eq!(view.expiration(), properties.expiration.as_deref());
            prop_assert_eq!(view.user_id(), properties.user_id.as_deref());
            prop_assert_eq!(view.headers(), properties.headers.clone());
            prop_assert_eq!(Properties::decode(&bytes), Ok(properties));
        }

        #[test]
        fn the_check_takes_what_decodes_and_that_is_written_as_it_came(
            properties in properties(),
            at: proptest::sample::Index,
            octet: u8,
        ) {
            let mut bytes = BytesMut::from(&properties.to_bytes()[..]);
            let at = at.index(bytes.len());
            bytes[at] = octet;
            let decoded = Properties::decode(&bytes);
            prop_assert_eq!(PropertyView::new(&bytes).check(), decoded.clone().map(|_| ()));
            // A boolean of 2 is written as 1.
            if let Ok(decoded) = decoded && decoded.headers.is_none() {
                prop_assert_eq!(decoded.to_bytes(), bytes);
            }
        }

        #[test]
        fn any_bytes_are_checked_as_they_are_decoded(bytes: Vec<u8>) {
            let decoded = Properties::decode(&bytes).map(|_| ());
            prop_assert_eq!(PropertyView::new(&bytes).check(), decoded);
        }
    }

    #[test]
    fn a_binary_identifier_is_carried_and_a_binary_user_is_refused() {
        let bytes = [0x04, 0x10, 2, 0xff, 0xfe, 1, b'u'];
        assert_eq!(PropertyView::new(&bytes).check(), Ok(()));
        let properties = Properties::decode(&bytes).unwrap();
        assert_eq!(properties.correlation_id, None);
        assert_eq!(properties.user_id.as_deref(), Some("u"));
        assert_eq!(properties.to_bytes(), &bytes[..]);
        let user = [0x00, 0x10, 1, 0xff];
        let refused = PropertyError::NotUtf8 { property: "user-id" };
        assert_eq!(PropertyView::new(&user).check(), Err(refused.clone()));
        assert_eq!(Properties::decode(&user), Err(refused));
    }

    #[test]
    fn headers_that_are_no_table_are_refused_at_the_door() {
        let bytes = [0x20, 0, 0, 0, 0, 3, 1, b'a', b'Z'];
        let unknown = TableError::UnknownType { octet: b'Z', at: 2 };
        assert_eq!(PropertyView::new(&bytes).check(), Err(PropertyError::Headers(unknown)));
    }

    #[test]
    fn malformed_properties_say_where() {
        assert_eq!(
            PropertyView::new(&[0x80, 0, 9, b'a']).check(),
            Err(PropertyError::Truncated { property: "content-type" })
        );
        assert_eq!(
            PropertyView::new(&[0, 1]).check(),
            Err(PropertyError::UnknownFlags { flags: 1 })
        );
        assert_eq!(
            PropertyView::new(&[0, 0, 7]).check(),
            Err(PropertyError::Trailing { count: 1 })
        );
    }

    #[test]
    fn the_header_bcc_is_for_nobody_to_see() {
        let properties = |headers: &[&str]| {
            let headers = headers.iter().map(|name| (*name, Value::text("BCC"))).collect();
            Properties { headers: Some(headers), ..Properties::default() }.to_bytes().to_vec()
        };
        let seen = |headers| without_bcc(&properties(headers)).unwrap().into_owned();
        assert_eq!(seen(&["BCC", "CC", "xBCC"]), properties(&["CC", "xBCC"]));
        assert_eq!(seen(&["CC"]), properties(&["CC"]));
    }
}
