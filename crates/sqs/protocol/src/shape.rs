//! How one description of a shape becomes a struct that reads itself from JSON and Query, and
//! writes itself in JSON and XML.

pub(crate) mod json;
pub(crate) mod query;
pub(crate) mod wire;
pub(crate) mod xml;

use bytes::BytesMut;
use serde::de::MapAccess;

use crate::Error;
use crate::shape::query::Parameters;
use crate::shape::wire::Budget;

/// The names of a member on the wire.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Names {
    /// In JSON; in Query and XML too, unless it is a list or a map.
    pub member: &'static str,
    /// Of each item of a list or a map, in Query and XML.
    pub item: &'static str,
    /// Of the key of a map's item, in Query and XML.
    pub key: &'static str,
}

/// What a value is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Text.
    String,
    /// A number without a fraction.
    Integer,
    /// True or false.
    Boolean,
    /// Bytes: in Base64 on the wire.
    Blob,
    /// Values of a kind, in order.
    List(&'static Self),
    /// Values of a kind by name.
    Map(&'static Self),
    /// A shape with members.
    Structure(&'static Description),
}

/// A shape, for whoever wants to compare it with the service model.
#[derive(Debug, PartialEq, Eq)]
pub struct Description {
    /// Its name.
    pub name: &'static str,
    /// Its members.
    pub members: &'static [Member],
}

/// A member of a shape.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Member {
    /// What it is called.
    pub names: Names,
    /// What it is.
    pub kind: Kind,
    /// Whether a reply has it in any case.
    pub is_always: bool,
}

/// A struct of the service model.
pub(crate) trait Shape: Default {
    const DESCRIPTION: Description;

    /// Reads the value of that member; `false`: there is no such member, and nothing was read.
    fn read_json<'de, A: MapAccess<'de>>(
        &mut self,
        name: &str,
        map: &mut A,
        budget: &Budget,
    ) -> Result<bool, A::Error>;

    fn read_query(&mut self, parameters: &Parameters<'_>) -> Result<(), Error>;

    /// Writes its members with a comma between them.
    fn write_json(&self, out: &mut BytesMut);

    /// Writes its members as elements.
    fn write_xml(&self, out: &mut BytesMut);
}

/// Declares shapes as `Name { field: Type = "Member" / "Item" by "Key", … }`; see [`Names`]. A map's
/// item has a `Name`, or a `Key` if that is said, and a `Value`. An empty list or map is left out of
/// JSON, unless it is `always` there.
macro_rules! shapes {
    ($(
        $(#[$doc:meta])*
        $name:ident {
            $(
                $(#[$field_doc:meta])*
                $field:ident: $kind:ty =
                    $($always:ident)? $member:literal $(/ $item:literal $(by $key:literal)?)?,
            )*
        }
    )*) => {$(
        $(#[$doc])*
        #[derive(Clone, Debug, Default, PartialEq, Eq)]
        pub struct $name {
            $($(#[$field_doc])* pub $field: $kind,)*
        }

        impl $crate::shape::Shape for $name {
            const DESCRIPTION: $crate::shape::Description = $crate::shape::Description {
                name: stringify!($name),
                members: &[$($crate::shape::Member {
                    names: $crate::shape::names!($member $(/ $item $(by $key)?)?),
                    kind: <$kind as $crate::shape::wire::Wire>::KIND,
                    is_always: <$kind as $crate::shape::wire::Wire>::IS_ALWAYS
                        || $crate::shape::is_always!($($always)?),
                },)*],
            };

            fn read_json<'de, A: ::serde::de::MapAccess<'de>>(
                &mut self,
                name: &str,
                map: &mut A,
                budget: &$crate::shape::wire::Budget,
            ) -> Result<bool, A::Error> {
                match name {
                    $($member => self.$field = budget.member(map)?,)*
                    _ => return Ok(false),
                }
                Ok(true)
            }

            fn read_query(
                &mut self,
                parameters: &$crate::shape::query::Parameters<'_>,
            ) -> Result<(), $crate::Error> {
                $(self.$field = parameters.member(
                    const { &$crate::shape::names!($member $(/ $item $(by $key)?)?) },
                )?;)*
                Ok(())
            }

            fn write_json(&self, out: &mut ::bytes::BytesMut) {
                let mut members = $crate::shape::json::Members::new(out);
                $(members.write(
                    $member,
                    &self.$field,
                    $crate::shape::is_always!($($always)?),
                );)*
            }

            fn write_xml(&self, out: &mut ::bytes::BytesMut) {
                $($crate::shape::wire::Wire::write_xml(
                    &self.$field,
                    const { &$crate::shape::names!($member $(/ $item $(by $key)?)?) },
                    out,
                );)*
            }
        }
    )*};
}

/// The names as [`shapes`] takes them.
macro_rules! names {
    ($member:literal) => {
        $crate::shape::Names { member: $member, item: $member, key: "Name" }
    };
    ($member:literal / $item:literal) => {
        $crate::shape::Names { member: $member, item: $item, key: "Name" }
    };
    ($member:literal / $item:literal by $key:literal) => {
        $crate::shape::Names { member: $member, item: $item, key: $key }
    };
}

macro_rules! is_always {
    () => {
        false
    };
    (always) => {
        true
    };
}

pub(crate) use {is_always, names, shapes};
