//! A client of the SQS interface: requests over kept connections, and the worker loop that receives,
//! processes, extends visibility and deletes. It must never need a broker's crate.
