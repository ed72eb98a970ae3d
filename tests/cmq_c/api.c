/* Every function of the C library, what it refuses, and what it says then. Ends with the number of
 * checks on standard output, or with 1 at the first that does not hold. */
#define _POSIX_C_SOURCE 200809L

#include <arpa/inet.h>
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <quelea_cmq.h>

#define PATIENCE_US (30 * 1000 * 1000)
#define OK QUELEA_CMQ_CODE_OK

static int checks = 0;

#define EXPECT(condition)                                                                   \
  do {                                                                                      \
    if (!(condition)) {                                                                     \
      fprintf(stderr, "%s:%d: %s; last error: %s\n", __FILE__, __LINE__, #condition,        \
              quelea_cmq_last_error());                                                     \
      exit(1);                                                                              \
    }                                                                                       \
    checks++;                                                                               \
  } while (0)

#define SAYS(text) EXPECT(strstr(quelea_cmq_last_error(), text) != NULL)

static quelea_cmq_endpoint *bind_here(const quelea_cmq_config *config) {
  quelea_cmq_endpoint *endpoint = NULL;
  EXPECT(quelea_cmq_endpoint_bind("127.0.0.1:0", config, &endpoint) == OK);
  return endpoint;
}

static quelea_cmq_key key_of(const quelea_cmq_endpoint *endpoint, uint64_t mailbox) {
  quelea_cmq_key key = {.mailbox = mailbox};
  EXPECT(quelea_cmq_endpoint_address(endpoint, &key.address) == OK);
  return key;
}

static void keys_and_addresses(void) {
  quelea_cmq_key key;
  char text[QUELEA_CMQ_KEY_TEXT_BYTES];
  EXPECT(quelea_cmq_key_parse("127.0.0.1:4000/18446744073709551615", &key) == OK);
  EXPECT(key.mailbox == UINT64_MAX && key.address.port == 4000 && key.address.version == 4);
  EXPECT(memcmp(key.address.ip, "\x7f\0\0\1", 4) == 0);
  EXPECT(quelea_cmq_key_format(&key, text, sizeof text) == OK);
  EXPECT(strcmp(text, "127.0.0.1:4000/18446744073709551615") == 0);
  EXPECT(quelea_cmq_key_parse("::1", &key) == OK);
  EXPECT(key.address.port == QUELEA_CMQ_PORT && key.address.version == 6 && key.mailbox == 0);
  EXPECT(quelea_cmq_key_format(&key, text, 3) == QUELEA_CMQ_CODE_INVALID);
  SAYS("not 3");
  EXPECT(quelea_cmq_key_parse("127.0.0.1:1/x", &key) == QUELEA_CMQ_CODE_INVALID);
  SAYS("a mailbox is a number");
  EXPECT(quelea_cmq_key_parse("\xff", &key) == QUELEA_CMQ_CODE_INVALID);
  SAYS("UTF-8");
  key.address.version = 5;
  EXPECT(quelea_cmq_key_format(&key, text, sizeof text) == QUELEA_CMQ_CODE_INVALID);
  SAYS("not 5");
}

static void what_is_null_is_refused(void) {
  quelea_cmq_endpoint *endpoint = bind_here(NULL);
  quelea_cmq_key key = key_of(endpoint, 1);
  quelea_cmq_dest *dest = NULL;
  size_t count;
  EXPECT(quelea_cmq_endpoint_bind(NULL, NULL, &endpoint) == QUELEA_CMQ_CODE_INVALID);
  SAYS("address is NULL");
  EXPECT(quelea_cmq_endpoint_bind("127.0.0.1:0", NULL, NULL) == QUELEA_CMQ_CODE_INVALID);
  SAYS("endpoint is NULL");
  EXPECT(quelea_cmq_endpoint_dest(endpoint, NULL, NULL, &dest) == QUELEA_CMQ_CODE_INVALID);
  SAYS("key is NULL");
  EXPECT(quelea_cmq_pop(NULL, 0, NULL) == QUELEA_CMQ_CODE_INVALID);
  SAYS("queue is NULL");
  EXPECT(quelea_cmq_push(NULL, NULL, 0, 0) == QUELEA_CMQ_CODE_INVALID);
  EXPECT(quelea_cmq_endpoint_dest(endpoint, &key, NULL, &dest) == OK);
  EXPECT(quelea_cmq_push(dest, NULL, 3, 0) == QUELEA_CMQ_CODE_INVALID);
  SAYS("3 bytes at NULL");
  EXPECT(quelea_cmq_push_batch(dest, NULL, 3, 0, &count) == QUELEA_CMQ_CODE_INVALID);
  EXPECT(count == 0);
  EXPECT(quelea_cmq_endpoint_stats(endpoint, NULL, NULL) == QUELEA_CMQ_CODE_INVALID);
  quelea_cmq_dest_free(dest);
  quelea_cmq_endpoint_free(endpoint);
  quelea_cmq_endpoint_free(NULL);
  quelea_cmq_dest_free(NULL);
  quelea_cmq_queue_free(NULL);
  quelea_cmq_message_release(NULL);
}

static void options_are_checked(void) {
  quelea_cmq_endpoint *endpoint = NULL;
  quelea_cmq_config config = {.size = sizeof config, .qthresh = 7};
  EXPECT(quelea_cmq_endpoint_bind("127.0.0.1:0", &config, &endpoint) == QUELEA_CMQ_CODE_INVALID);
  SAYS("qthresh is 7, not from 128 to 65507");
  config = (quelea_cmq_config){.size = 0};
  EXPECT(quelea_cmq_endpoint_bind("127.0.0.1:0", &config, &endpoint) == QUELEA_CMQ_CODE_INVALID);
  SAYS("set it to sizeof");
  config = (quelea_cmq_config){.size = sizeof config + 8};
  EXPECT(quelea_cmq_endpoint_bind("127.0.0.1:0", &config, &endpoint) == QUELEA_CMQ_CODE_INVALID);
  SAYS("older than the header");
  config = (quelea_cmq_config){.size = sizeof config, .wire = 9};
  EXPECT(quelea_cmq_endpoint_bind("127.0.0.1:0", &config, &endpoint) == QUELEA_CMQ_CODE_INVALID);
  /* A caller that was compiled when there was less. */
  config = (quelea_cmq_config){.size = offsetof(quelea_cmq_config, timeout_us), .qthresh = 512};
  endpoint = bind_here(&config);
  quelea_cmq_key key = key_of(endpoint, 1);
  quelea_cmq_dest *dest = NULL;
  quelea_cmq_dest_options options = {.size = sizeof options, .mode = QUELEA_CMQ_MODE_RELIABLE_UNTIL};
  EXPECT(quelea_cmq_endpoint_dest(endpoint, &key, &options, &dest) == QUELEA_CMQ_CODE_INVALID);
  SAYS("needs deadline_us");
  options = (quelea_cmq_dest_options){.size = sizeof options, .repair_data = 65};
  EXPECT(quelea_cmq_endpoint_dest(endpoint, &key, &options, &dest) == QUELEA_CMQ_CODE_INVALID);
  SAYS("repair_data is 65, not from 1 to 64");
  options = (quelea_cmq_dest_options){.size = sizeof options, .when_full = 4};
  EXPECT(quelea_cmq_endpoint_dest(endpoint, &key, &options, &dest) == QUELEA_CMQ_CODE_INVALID);
  options = (quelea_cmq_dest_options){.size = sizeof options, .mode = QUELEA_CMQ_MODE_RELIABLE_ORDERED};
  EXPECT(quelea_cmq_endpoint_dest(endpoint, &key, &options, &dest) == OK);
  quelea_cmq_dest *other = NULL;
  EXPECT(quelea_cmq_endpoint_dest(endpoint, &key, NULL, &other) == QUELEA_CMQ_CODE_CONFLICT);
  quelea_cmq_key again;
  EXPECT(quelea_cmq_dest_key(dest, &again) == OK);
  EXPECT(memcmp(&again.address, &key.address, sizeof key.address) == 0 && again.mailbox == 1);
  quelea_cmq_dest_free(dest);
  quelea_cmq_endpoint_free(endpoint);
}

static void errors_of_the_system_have_their_number(void) {
  quelea_cmq_endpoint *endpoint = bind_here(NULL), *second = NULL;
  quelea_cmq_key key = key_of(endpoint, 0);
  char text[QUELEA_CMQ_KEY_TEXT_BYTES];
  EXPECT(quelea_cmq_key_format(&key, text, sizeof text) == OK);
  *strchr(text, '/') = '\0';
  EXPECT(quelea_cmq_endpoint_bind(text, NULL, &second) == QUELEA_CMQ_CODE_IO);
  EXPECT(quelea_cmq_last_errno() == EADDRINUSE);
  EXPECT(quelea_cmq_endpoint_bind("192.0.2.1:0", NULL, &second) == QUELEA_CMQ_CODE_IO);
  EXPECT(quelea_cmq_last_errno() == EADDRNOTAVAIL && second == NULL);
  quelea_cmq_endpoint_free(endpoint);
}

static void count_one(void *context, const char *name, uint64_t count) {
  (void)count;
  int *seen = context;
  *seen += strcmp(name, "sent_datagrams") == 0 || strcmp(name, "socket_kernel_drops") == 0;
}

struct sum {
  size_t messages;
  size_t bytes;
};

static void add(void *context, quelea_cmq_slice message) {
  struct sum *sum = context;
  sum->messages++;
  sum->bytes += message.size;
}

static void messages_arrive_in_each_way(void) {
  quelea_cmq_endpoint *here = bind_here(NULL), *there = bind_here(NULL);
  quelea_cmq_queue *queue = NULL, *taken = NULL;
  EXPECT(quelea_cmq_endpoint_queue(there, 5, NULL, &queue) == OK);
  EXPECT(quelea_cmq_endpoint_queue(there, 5, NULL, &taken) == QUELEA_CMQ_CODE_IN_USE);
  SAYS("5");
  quelea_cmq_key key = key_of(there, 5), from = key_of(here, 0);
  quelea_cmq_dest_options options = {.size = sizeof options, .mode = QUELEA_CMQ_MODE_RELIABLE_ORDERED};
  quelea_cmq_dest *dest = NULL;
  EXPECT(quelea_cmq_endpoint_dest(here, &key, &options, &dest) == OK);
  quelea_cmq_message message;
  EXPECT(quelea_cmq_pop(queue, 0, &message) == QUELEA_CMQ_CODE_TIMEOUT);
  EXPECT(quelea_cmq_pop(queue, 1000, &message) == QUELEA_CMQ_CODE_TIMEOUT);

  EXPECT(quelea_cmq_push(dest, (const uint8_t *)"one", 3, -1) == OK);
  EXPECT(quelea_cmq_flush(dest) == OK);
  EXPECT(quelea_cmq_pop(queue, PATIENCE_US, &message) == OK);
  EXPECT(message.size == 3 && memcmp(message.data, "one", 3) == 0 && message.mailbox == 5);
  EXPECT(memcmp(&message.from, &from.address, sizeof from.address) == 0 && message.session != 0);
  quelea_cmq_message moved = message;
  quelea_cmq_message_release(&moved);
  EXPECT(moved.data == NULL && moved.size == 0);
  quelea_cmq_message_release(&moved);

  uint8_t large[100000];
  memset(large, 'l', sizeof large);
  quelea_cmq_slice slices[] = {{(const uint8_t *)"two", 3}, {NULL, 0}, {large, sizeof large}};
  size_t count = 9;
  EXPECT(quelea_cmq_push_batch(dest, slices, 3, PATIENCE_US, &count) == OK && count == 3);
  EXPECT(quelea_cmq_endpoint_flush(here) == OK);
  struct sum sum = {0, 0};
  while (sum.messages < 3) {
    EXPECT(quelea_cmq_pop_each(queue, PATIENCE_US, 2, add, &sum, &count) == OK && count <= 2);
  }
  EXPECT(sum.messages == 3 && sum.bytes == 3 + sizeof large);
  EXPECT(quelea_cmq_pop_each(queue, 0, 2, add, &sum, &count) == QUELEA_CMQ_CODE_TIMEOUT && count == 0);

  quelea_cmq_message batch[4];
  EXPECT(quelea_cmq_push_batch(dest, slices, 2, PATIENCE_US, NULL) == OK);
  size_t received = 0;
  while (received < 2) {
    EXPECT(quelea_cmq_pop_batch(queue, PATIENCE_US, batch + received, 4 - received, &count) == OK);
    received += count;
  }
  EXPECT(batch[0].size == 3 && batch[1].size == 0);
  quelea_cmq_message_release(&batch[0]);
  quelea_cmq_message_release(&batch[1]);
  EXPECT(quelea_cmq_wait_acknowledged(dest, PATIENCE_US) == OK);

  int seen = 0;
  EXPECT(quelea_cmq_endpoint_stats(here, count_one, &seen) == OK && seen == 2);
  uint64_t datagrams = 0;
  EXPECT(quelea_cmq_endpoint_counter(here, "sent_datagrams", &datagrams) == OK && datagrams > 0);
  EXPECT(quelea_cmq_endpoint_counter(here, "no such", &datagrams) == QUELEA_CMQ_CODE_INVALID);
  quelea_cmq_event event;
  EXPECT(quelea_cmq_endpoint_next_event(here, 0, &event) == QUELEA_CMQ_CODE_TIMEOUT);
  quelea_cmq_dest_free(dest);
  quelea_cmq_queue_free(queue);
  quelea_cmq_endpoint_free(here);
  quelea_cmq_endpoint_free(there);
}

static void limits_are_told(void) {
  quelea_cmq_config config = {.size = sizeof config, .message_bytes_max = 1000};
  quelea_cmq_endpoint *endpoint = bind_here(&config);
  quelea_cmq_key key = key_of(endpoint, 1);
  quelea_cmq_dest *dest = NULL;
  EXPECT(quelea_cmq_endpoint_dest(endpoint, &key, NULL, &dest) == OK);
  uint8_t bytes[1001] = {0};
  EXPECT(quelea_cmq_push(dest, bytes, sizeof bytes, 0) == QUELEA_CMQ_CODE_TOO_LARGE);
  SAYS("the message has 1001 bytes, the limit is 1000");
  quelea_cmq_slice slices[] = {{bytes, 1}, {bytes, 1001}, {bytes, 1}};
  size_t count = 0;
  EXPECT(quelea_cmq_push_batch(dest, slices, 3, 0, &count) == QUELEA_CMQ_CODE_TOO_LARGE && count == 1);
  quelea_cmq_dest_free(dest);
  quelea_cmq_endpoint_free(endpoint);
}

static void *pop_until_closed(void *queue) {
  quelea_cmq_message message;
  quelea_cmq_code code = quelea_cmq_pop(queue, -1, &message);
  return (void *)(intptr_t)code;
}

static void closing_ends_what_waits(void) {
  quelea_cmq_endpoint *endpoint = bind_here(NULL);
  quelea_cmq_queue *first = NULL, *second = NULL;
  EXPECT(quelea_cmq_endpoint_queue(endpoint, 1, NULL, &first) == OK);
  EXPECT(quelea_cmq_endpoint_queue(endpoint, 2, NULL, &second) == OK);
  pthread_t threads[2];
  EXPECT(pthread_create(&threads[0], NULL, pop_until_closed, first) == 0);
  EXPECT(pthread_create(&threads[1], NULL, pop_until_closed, second) == 0);
  void *code = NULL;
  EXPECT(quelea_cmq_queue_close(first) == OK);
  EXPECT(pthread_join(threads[0], &code) == 0 && (intptr_t)code == QUELEA_CMQ_CODE_CLOSED);
  EXPECT(quelea_cmq_endpoint_close(endpoint, PATIENCE_US) == OK);
  EXPECT(pthread_join(threads[1], &code) == 0 && (intptr_t)code == QUELEA_CMQ_CODE_CLOSED);
  quelea_cmq_queue_free(first);
  quelea_cmq_queue_free(second);
  quelea_cmq_endpoint_free(endpoint);
}

static void a_socket_can_be_shared(void) {
  int descriptor = socket(AF_INET, SOCK_DGRAM, 0);
  struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
  EXPECT(bind(descriptor, (struct sockaddr *)&address, sizeof address) == 0);
  socklen_t length = sizeof address;
  EXPECT(getsockname(descriptor, (struct sockaddr *)&address, &length) == 0);
  quelea_cmq_endpoint *endpoint = NULL;
  EXPECT(quelea_cmq_endpoint_from_socket(-1, NULL, &endpoint) == QUELEA_CMQ_CODE_INVALID);
  EXPECT(quelea_cmq_endpoint_from_socket(descriptor, NULL, &endpoint) == OK);
  EXPECT(close(descriptor) == 0);
  EXPECT(key_of(endpoint, 0).address.port == ntohs(address.sin_port));
  quelea_cmq_endpoint_free(endpoint);
}

static void what_the_application_acknowledges_is_held_until_then(void) {
  quelea_cmq_endpoint *here = bind_here(NULL), *there = bind_here(NULL);
  quelea_cmq_queue_options queue_options = {.size = sizeof queue_options,
                                            .acknowledged_by_application = true};
  quelea_cmq_queue *queue = NULL;
  EXPECT(quelea_cmq_endpoint_queue(there, 1, &queue_options, &queue) == OK);
  quelea_cmq_dest_options options = {.size = sizeof options, .mode = QUELEA_CMQ_MODE_RELIABLE_ORDERED};
  quelea_cmq_key key = key_of(there, 1);
  quelea_cmq_dest *dest = NULL;
  EXPECT(quelea_cmq_endpoint_dest(here, &key, &options, &dest) == OK);
  EXPECT(quelea_cmq_push(dest, (const uint8_t *)"x", 1, -1) == OK);
  EXPECT(quelea_cmq_flush(dest) == OK);
  quelea_cmq_message message = {0};
  EXPECT(quelea_cmq_queue_acknowledge(queue, &message) == QUELEA_CMQ_CODE_INVALID);
  EXPECT(quelea_cmq_pop(queue, PATIENCE_US, &message) == OK);
  EXPECT(quelea_cmq_wait_acknowledged(dest, 20 * 1000) == QUELEA_CMQ_CODE_TIMEOUT);
  EXPECT(quelea_cmq_queue_acknowledge(queue, &message) == OK);
  EXPECT(quelea_cmq_wait_acknowledged(dest, PATIENCE_US) == OK);
  quelea_cmq_message_release(&message);
  EXPECT(quelea_cmq_dest_close(dest) == OK);
  EXPECT(quelea_cmq_push(dest, (const uint8_t *)"x", 1, -1) == QUELEA_CMQ_CODE_CLOSED);
  quelea_cmq_dest_free(dest);
  quelea_cmq_queue_free(queue);
  quelea_cmq_endpoint_free(here);
  quelea_cmq_endpoint_free(there);
}

static void others_are_one_queue(void) {
  quelea_cmq_endpoint *here = bind_here(NULL), *there = bind_here(NULL);
  quelea_cmq_queue *others = NULL, *again = NULL;
  EXPECT(quelea_cmq_endpoint_queue_of_others(there, NULL, &others) == OK);
  EXPECT(quelea_cmq_endpoint_queue_of_others(there, NULL, &again) == QUELEA_CMQ_CODE_IN_USE);
  for (uint64_t mailbox = 40; mailbox < 42; mailbox++) {
    quelea_cmq_key key = key_of(there, mailbox);
    quelea_cmq_dest *dest = NULL;
    EXPECT(quelea_cmq_endpoint_dest(here, &key, NULL, &dest) == OK);
    EXPECT(quelea_cmq_push(dest, (const uint8_t *)"x", 1, -1) == OK);
    EXPECT(quelea_cmq_flush(dest) == OK);
    quelea_cmq_message message;
    EXPECT(quelea_cmq_pop(others, PATIENCE_US, &message) == OK && message.mailbox == mailbox);
    quelea_cmq_message_release(&message);
    quelea_cmq_dest_free(dest);
  }
  quelea_cmq_queue_free(others);
  quelea_cmq_endpoint_free(here);
  quelea_cmq_endpoint_free(there);
}

int main(void) {
  EXPECT(strlen(quelea_cmq_last_error()) == 0 && strchr(quelea_cmq_version(), '.') != NULL);
  keys_and_addresses();
  what_is_null_is_refused();
  options_are_checked();
  errors_of_the_system_have_their_number();
  limits_are_told();
  a_socket_can_be_shared();
  closing_ends_what_waits();
  messages_arrive_in_each_way();
  others_are_one_queue();
  what_the_application_acknowledges_is_held_until_then();
  printf("%d checks\n", checks);
  return 0;
}
