//! The rule of the direct exchange.
