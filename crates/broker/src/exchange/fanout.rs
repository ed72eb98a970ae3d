//! The rule of the fanout exchange.
