//! The rule of the topic exchange.
