//! Resolution L1: a few nodes, every frame, every fault.
