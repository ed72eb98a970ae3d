//! amqp
