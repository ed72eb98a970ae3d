//! CMQ, a message queue without a broker (Fritsch and Walker, 2012): `new_rq`, `cw_push`, `cw_pop`.
//! The rules are in `quelea-cmq-proto`; this crate gives them a socket, threads and types, and knows
//! nothing of the wire. Start reading at `endpoint`.

pub use quelea_cmq_proto as proto;
