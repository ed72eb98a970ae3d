//! How one description of a shape becomes a struct.

/// Declares shapes as `Name { field: Type = "Member" / "Item" by "Key", … }`. `Member` is the name in
/// JSON, and in Query and XML too unless the member is a list or a map: then `Item` is the name of
/// each item there. A map's item has a `Name` (or a `Key`, if that is said) and a `Value`. An empty
/// list or map is left out of JSON, unless it is `always` there.
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
    )*};
}

pub(crate) use shapes;
