//! The name of a call.

/// One call, as its caller named it. Those that came later have larger ones.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct CallId(pub u64);
