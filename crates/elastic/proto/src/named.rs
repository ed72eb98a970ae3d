//! The names of enums' values, as people write them in definitions, settings, commands and programs: each
//! list stands here, and its errors are made here.

use std::fmt;

use thiserror::Error;

use crate::frame::{Acknowledge, ErrorCode, GapCause, NoticeCode, Role, SlowPolicy};

/// An enum whose values people name.
pub trait Named: Copy + PartialEq + 'static {
    /// The field that has such a value, in the words of docs/formats/elastic.md.
    const FIELD: &'static str;
    /// All values with their names, in the order in which errors and help list them.
    const NAMES: &'static [(&'static str, Self)];

    /// Returns the value's name.
    #[must_use]
    fn as_str(self) -> &'static str {
        Self::NAMES.iter().find(|(_, value)| *value == self).map_or("", |(name, _)| *name)
    }

    /// Reads a name.
    ///
    /// # Errors
    /// [`UnknownName`] lists the names that there are.
    fn parse(name: &str) -> Result<Self, UnknownName> {
        Self::parse_allowed(name, |_| true)
    }

    /// Reads a name as [`Named::parse`] does, where not all values are allowed.
    ///
    /// # Errors
    /// [`UnknownName`] lists the names that are allowed.
    fn parse_allowed(name: &str, allowed: impl Fn(Self) -> bool) -> Result<Self, UnknownName> {
        let found = Self::NAMES.iter().find(|(known, value)| *known == name && allowed(*value));
        found.map(|(_, value)| *value).ok_or_else(|| {
            let fault = format!("{name:?} is none of {}", Self::list_allowed(allowed));
            UnknownName { field: Self::FIELD, fault }
        })
    }

    /// Returns the names that are allowed, with commas between them.
    #[must_use]
    fn list_allowed(allowed: impl Fn(Self) -> bool) -> String {
        let names = Self::NAMES.iter().filter(|(_, value)| allowed(*value));
        names.map(|(name, _)| *name).collect::<Vec<_>>().join(", ")
    }

    /// Returns all names.
    #[must_use]
    fn names() -> Vec<&'static str> {
        Self::NAMES.iter().map(|(name, _)| *name).collect()
    }
}

/// A name that no value has, or one that is not allowed here.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("{field}: {fault}")]
pub struct UnknownName {
    /// [`Named::FIELD`].
    pub field: &'static str,
    /// The name, and those that are allowed.
    pub fault: String,
}

macro_rules! named {
    ($($type:ident $field:literal { $($value:ident $name:literal)* })*) => {
        $(
            impl Named for $type {
                const FIELD: &'static str = $field;
                const NAMES: &'static [(&'static str, Self)] = &[$(($name, Self::$value)),*];
            }

            impl fmt::Display for $type {
                fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                    f.write_str(self.as_str())
                }
            }
        )*
    };
}

named! {
    Role "role" { Client "client" Relay "relay" Keeper "keeper" Directory "directory" }
    ErrorCode "code" {
        Malformed "malformed" Version "version" Key "key" Queue "queue" Value "value" Limit "limit"
        Fenced "fenced" Unavailable "unavailable" Order "order" TooSlow "too_slow" Budget "budget"
    }
    NoticeCode "code" {
        BudgetSpent "budget_spent" Unsplittable "unsplittable" AtMaximum "at_maximum"
        ProviderFailing "provider_failing"
    }
    SlowPolicy "slow" {
        DropNewest "drop_newest" DropOldest "drop_oldest" Disconnect "disconnect"
        HoldProducers "hold_producers" Spill "spill"
    }
    Acknowledge "acknowledge" { Relayed "relayed" Delivered "delivered" Stored "stored" }
    GapCause "cause" {
        TooSlow "too_slow" RelayLost "relay_lost" ProducerLost "producer_lost" Deadline "deadline"
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_read_as_the_value_that_writes_it() {
        for (name, value) in SlowPolicy::NAMES {
            assert_eq!((SlowPolicy::parse(name), value.as_str()), (Ok(*value), *name));
        }
    }

    #[test]
    fn an_unknown_name_is_refused_with_the_allowed_ones() {
        let error = Acknowledge::parse("Stored").unwrap_err();
        assert_eq!(
            error.to_string(),
            "acknowledge: \"Stored\" is none of relayed, delivered, stored"
        );
        let error = Acknowledge::parse_allowed("stored", |level| level != Acknowledge::Stored);
        assert_eq!(error.unwrap_err().fault, "\"stored\" is none of relayed, delivered");
    }
}
