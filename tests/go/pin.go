// Package pin keeps the version and the checksum of the Go client whose integration tests run against Quelea.
package pin

import _ "github.com/rabbitmq/amqp091-go" // the module whose tests are run
