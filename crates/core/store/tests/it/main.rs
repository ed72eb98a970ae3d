//! Behaviour of the store: what survives a crash, what a full or failing disk does, what is
//! recycled, copied forward, paged out and read back. Everything runs in virtual time on a disk in
//! memory.

mod at_rest;
mod checkpoint;
mod crash;
mod damage;
mod faults;
mod fuzz;
mod golden;
mod harness;
mod index;
mod model;
mod paging;
mod recycling;
mod state;
mod writing;
