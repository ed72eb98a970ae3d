// A program that declares a queue and sends a message with a confirm, in four languages.

export const LANGUAGES = ["Python", "JavaScript", "Go", "Java"] as const;
export type Language = (typeof LANGUAGES)[number];

interface Code {
  install: string;
  program: string;
}

/** For this host, user and virtual host. Nobody's password is written down: only that of `guest`, which everybody knows. */
export function firstMessage(language: Language, host: string, user: string, vhost: string): Code {
  const password = user === "guest" ? "guest" : "PASSWORD";
  const uri = `amqp://${encodeURIComponent(user)}:${password}@${host}:5672/${encodeURIComponent(vhost)}`;
  return PROGRAMS[language](JSON.stringify(uri));
}

const PROGRAMS: Record<Language, (uri: string) => Code> = {
  Python: (uri) => ({
    install: "pip install pika",
    program: `import pika

connection = pika.BlockingConnection(pika.URLParameters(${uri}))
channel = connection.channel()
channel.confirm_delivery()  # publish returns when the message is on disk
channel.queue_declare("hello", durable=True)
channel.basic_publish("", "hello", b"Hello!", pika.BasicProperties(delivery_mode=2))
print("sent")
connection.close()
`,
  }),
  JavaScript: (uri) => ({
    install: "npm install amqplib",
    program: `import amqp from "amqplib";

const connection = await amqp.connect(${uri});
const channel = await connection.createConfirmChannel();
await channel.assertQueue("hello", { durable: true });
channel.sendToQueue("hello", Buffer.from("Hello!"), { persistent: true });
await channel.waitForConfirms(); // the message is on disk
console.log("sent");
await connection.close();
`,
  }),
  Go: (uri) => ({
    install: "go get github.com/rabbitmq/amqp091-go",
    program: `package main

import (
	"context"
	"log"

	amqp "github.com/rabbitmq/amqp091-go"
)

func check(err error) {
	if err != nil {
		log.Fatal(err)
	}
}

func main() {
	connection, err := amqp.Dial(${uri})
	check(err)
	defer connection.Close()
	channel, err := connection.Channel()
	check(err)
	check(channel.Confirm(false))
	_, err = channel.QueueDeclare("hello", true, false, false, false, nil)
	check(err)
	message := amqp.Publishing{DeliveryMode: amqp.Persistent, Body: []byte("Hello!")}
	confirm, err := channel.PublishWithDeferredConfirm("", "hello", false, false, message)
	check(err)
	_, err = confirm.WaitContext(context.Background()) // the message is on disk
	check(err)
	log.Print("sent")
}
`,
  }),
  Java: (uri) => ({
    install: "com.rabbitmq:amqp-client from Maven Central",
    program: `import com.rabbitmq.client.*;

public class Hello {
    public static void main(String[] arguments) throws Exception {
        var factory = new ConnectionFactory();
        factory.setUri(${uri});
        try (var connection = factory.newConnection(); var channel = connection.createChannel()) {
            channel.confirmSelect();
            channel.queueDeclare("hello", true, false, false, null);
            channel.basicPublish("", "hello", MessageProperties.PERSISTENT_BASIC, "Hello!".getBytes());
            channel.waitForConfirmsOrDie(); // the message is on disk
            System.out.println("sent");
        }
    }
}
`,
  }),
};
