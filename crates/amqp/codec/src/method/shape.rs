//! How a method's fields become a struct that reads and writes itself.

use crate::wire::{DecodeError, Reader, Writer};

/// The fields of one method, in the order of the wire.
pub(crate) trait Arguments: Sized {
    fn read(reader: &mut Reader<'_>) -> Result<Self, DecodeError>;
    fn write(&self, writer: &mut Writer<'_>);
}

/// Declares methods as `Name [reserved before] { field: Type, … } [reserved after]`. Reserved fields
/// are read over and written as zeros; they do not appear in the struct.
macro_rules! shapes {
    ($(
        $(#[$doc:meta])*
        $name:ident $([$($before:ty),+])? {
            $($(#[$field_doc:meta])* $field:ident: $kind:ty,)*
        } $([$($after:ty),+])?
    )*) => {$(
        $(#[$doc])*
        #[derive(Clone, Debug, Default, PartialEq)]
        pub struct $name {
            $($(#[$field_doc])* pub $field: $kind,)*
        }

        impl $crate::method::shape::Arguments for $name {
            #[inline]
            #[allow(unused_variables, reason = "a method without fields reads nothing")]
            fn read(
                reader: &mut $crate::wire::Reader<'_>,
            ) -> Result<Self, $crate::wire::DecodeError> {
                $($(<$before as $crate::wire::Field>::read(reader, "reserved")?;)+)?
                $(let $field = <$kind as $crate::wire::Field>::read(reader, stringify!($field))?;)*
                $($(<$after as $crate::wire::Field>::read(reader, "reserved")?;)+)?
                Ok(Self { $($field),* })
            }

            #[inline]
            #[allow(unused_variables, reason = "a method without fields writes nothing")]
            fn write(&self, writer: &mut $crate::wire::Writer<'_>) {
                $($(<$before as $crate::wire::Field>::write(&<$before>::default(), writer);)+)?
                $($crate::wire::Field::write(&self.$field, writer);)*
                $($(<$after as $crate::wire::Field>::write(&<$after>::default(), writer);)+)?
            }
        }

        #[cfg(feature = "fuzzing")]
        impl $crate::sample::Sample for $name {
            #[allow(unused_variables, reason = "a method without fields needs no values")]
            fn sample(entropy: &mut $crate::sample::Entropy<'_>) -> Self {
                Self { $($field: <$kind as $crate::sample::Sample>::sample(entropy)),* }
            }
        }
    )*};
}

pub(crate) use shapes;
