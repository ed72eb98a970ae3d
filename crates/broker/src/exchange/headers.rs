//! The rule of the headers exchange.
