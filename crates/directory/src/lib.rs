//! The elastic queue's directory over sockets: metadata, ownership, providers.
