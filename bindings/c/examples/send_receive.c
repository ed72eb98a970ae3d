/* A sender and a receiver of CMQ in one program.
 *
 *     send_receive                            both, in two threads, over loopback
 *     send_receive pop HOST:PORT/MAILBOX N    prints N messages, one a line
 *     send_receive push HOST:PORT/MAILBOX     sends every line of standard input, reliably
 *
 * It ends with 0 when every message arrived, else says on standard error what went wrong.
 */
#define _POSIX_C_SOURCE 200809L

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/types.h>

#include <quelea_cmq.h>

#define MESSAGES 10000
#define BATCH 64
#define PATIENCE_US (30 * 1000 * 1000)

/* Ends the program unless the call went well. */
static void check(quelea_cmq_code code, const char *call) {
  if (code != QUELEA_CMQ_CODE_OK) {
    fprintf(stderr, "%s: code %d: %s\n", call, (int)code, quelea_cmq_last_error());
    exit(1);
  }
}

/* Receives `expected` messages; prints them if `out` is not NULL. */
static void receive(quelea_cmq_queue *queue, size_t expected, FILE *out) {
  quelea_cmq_message messages[BATCH];
  size_t received = 0;
  while (received < expected) {
    size_t left = expected - received;
    size_t count = 0;
    check(quelea_cmq_pop_batch(queue, PATIENCE_US, messages, left < BATCH ? left : BATCH, &count),
          "pop_batch");
    for (size_t i = 0; i < count; i++) {
      if (out != NULL) {
        fwrite(messages[i].data, 1, messages[i].size, out);
        fputc('\n', out);
      }
      quelea_cmq_message_release(&messages[i]);
    }
    received += count;
  }
}

static void *receiver(void *queue) {
  receive(queue, MESSAGES, NULL);
  return NULL;
}

static quelea_cmq_dest *reliable(quelea_cmq_endpoint *endpoint, const quelea_cmq_key *key) {
  quelea_cmq_dest_options options = {.size = sizeof options,
                                     .mode = QUELEA_CMQ_MODE_RELIABLE_ORDERED};
  quelea_cmq_dest *dest = NULL;
  check(quelea_cmq_endpoint_dest(endpoint, key, &options, &dest), "dest");
  return dest;
}

static void both(void) {
  quelea_cmq_endpoint *there = NULL, *here = NULL;
  quelea_cmq_queue *queue = NULL;
  check(quelea_cmq_endpoint_bind("127.0.0.1:0", NULL, &there), "bind");
  check(quelea_cmq_endpoint_bind("127.0.0.1:0", NULL, &here), "bind");
  check(quelea_cmq_endpoint_queue(there, 7, NULL, &queue), "queue");
  pthread_t thread;
  if (pthread_create(&thread, NULL, receiver, queue) != 0) {
    perror("pthread_create");
    exit(1);
  }
  quelea_cmq_key key = {.mailbox = 7};
  check(quelea_cmq_endpoint_address(there, &key.address), "address");
  quelea_cmq_dest *dest = reliable(here, &key);
  for (int i = 0; i < MESSAGES; i++) {
    char text[32];
    int size = snprintf(text, sizeof text, "message %d", i);
    check(quelea_cmq_push(dest, (const uint8_t *)text, (size_t)size, PATIENCE_US), "push");
  }
  check(quelea_cmq_wait_acknowledged(dest, PATIENCE_US), "wait_acknowledged");
  pthread_join(thread, NULL);
  uint64_t datagrams = 0;
  check(quelea_cmq_endpoint_counter(here, "sent_datagrams", &datagrams), "counter");
  printf("%d messages in %llu datagrams\n", MESSAGES, (unsigned long long)datagrams);
  check(quelea_cmq_endpoint_close(here, PATIENCE_US), "close");
  check(quelea_cmq_endpoint_close(there, PATIENCE_US), "close");
  quelea_cmq_dest_free(dest);
  quelea_cmq_queue_free(queue);
  quelea_cmq_endpoint_free(here);
  quelea_cmq_endpoint_free(there);
}

static void pop(const char *where, size_t count) {
  quelea_cmq_key key;
  char address[QUELEA_CMQ_KEY_TEXT_BYTES];
  quelea_cmq_endpoint *endpoint = NULL;
  quelea_cmq_queue *queue = NULL;
  check(quelea_cmq_key_parse(where, &key), "key_parse");
  check(quelea_cmq_key_format(&key, address, sizeof address), "key_format");
  *strchr(address, '/') = '\0';
  check(quelea_cmq_endpoint_bind(address, NULL, &endpoint), "bind");
  check(quelea_cmq_endpoint_queue(endpoint, key.mailbox, NULL, &queue), "queue");
  /* Whoever started this program may send now. */
  quelea_cmq_key here = {.mailbox = key.mailbox};
  check(quelea_cmq_endpoint_address(endpoint, &here.address), "address");
  check(quelea_cmq_key_format(&here, address, sizeof address), "key_format");
  fprintf(stderr, "%s\n", address);
  receive(queue, count, stdout);
  check(quelea_cmq_endpoint_close(endpoint, PATIENCE_US), "close");
  quelea_cmq_queue_free(queue);
  quelea_cmq_endpoint_free(endpoint);
}

static void push(const char *where) {
  quelea_cmq_key key;
  quelea_cmq_endpoint *endpoint = NULL;
  check(quelea_cmq_key_parse(where, &key), "key_parse");
  const char *any = key.address.version == 6 ? "[::]:0" : "0.0.0.0:0";
  check(quelea_cmq_endpoint_bind(any, NULL, &endpoint), "bind");
  quelea_cmq_dest *dest = reliable(endpoint, &key);
  char *line = NULL;
  size_t room = 0;
  ssize_t length;
  while ((length = getline(&line, &room, stdin)) > 0) {
    size_t size = (size_t)length - (line[length - 1] == '\n' ? 1 : 0);
    check(quelea_cmq_push(dest, (const uint8_t *)line, size, PATIENCE_US), "push");
  }
  free(line);
  check(quelea_cmq_wait_acknowledged(dest, PATIENCE_US), "wait_acknowledged");
  quelea_cmq_dest_free(dest);
  check(quelea_cmq_endpoint_close(endpoint, PATIENCE_US), "close");
  quelea_cmq_endpoint_free(endpoint);
}

int main(int argc, char **argv) {
  if (argc == 1) {
    both();
  } else if (argc == 4 && strcmp(argv[1], "pop") == 0) {
    pop(argv[2], strtoul(argv[3], NULL, 10));
  } else if (argc == 3 && strcmp(argv[1], "push") == 0) {
    push(argv[2]);
  } else {
    fprintf(stderr, "usage: send_receive [pop HOST:PORT/MAILBOX N | push HOST:PORT/MAILBOX]\n");
    return 2;
  }
  return 0;
}
