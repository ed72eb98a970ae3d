//! The relay's data path over sockets: native protocol and ZMTP.
