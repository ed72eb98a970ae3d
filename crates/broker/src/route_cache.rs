//! Routes that were found, kept until the router changes.
