//! Behaviour of the broker, told as stories (tests/stories/*.txt) and checked against a model.

mod memory_store;
mod model;
mod stories;
mod story;
mod world;
