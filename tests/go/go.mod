module quelea/tests/go

go 1.24

require github.com/rabbitmq/amqp091-go v1.16.0
