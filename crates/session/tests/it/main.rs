//! What clients see of sessions over a whole broker, in virtual time and without sockets.

mod acknowledging;
mod blocking;
mod closing;
mod confirming;
mod consuming;
mod declaring;
mod durability;
mod limits;
mod logging_in;
mod node;
mod publishing;
mod refusals;
mod splitting;
mod store;
mod transactions;
