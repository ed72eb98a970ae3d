//! A relay's core: which listeners get a message, their rings, and what happens to slow ones.
