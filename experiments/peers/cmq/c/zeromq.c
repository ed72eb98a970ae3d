/* ZeroMQ over TCP, as its own performance programs use it: PUSH/PULL one way, REQ/REP there and back. Options are
 * libzmq's defaults; TCP loses nothing, so a run ends when everything has arrived. */
#include "peer.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <zmq.h>

static void *context, *socket_handle;
static char buffer[MESSAGE_BYTES_MAX];

static void open_socket(int type) {
	context = zmq_ctx_new();
	socket_handle = zmq_socket(context, type);
	if (socket_handle == NULL) fail("zmq_socket");
	int linger = 0;
	zmq_setsockopt(socket_handle, ZMQ_LINGER, &linger, sizeof linger);
}

static void bind_to(int type, const char *address, char *bound, size_t bound_bytes) {
	char endpoint[128] = "", url[144];
	size_t length = sizeof endpoint;
	open_socket(type);
	snprintf(url, sizeof url, "tcp://%s", address);
	if (zmq_bind(socket_handle, url) != 0) fail("zmq_bind");
	if (zmq_getsockopt(socket_handle, ZMQ_LAST_ENDPOINT, endpoint, &length) != 0) fail("ZMQ_LAST_ENDPOINT");
	snprintf(bound, bound_bytes, "%s", endpoint + strlen("tcp://"));
}

static void connect_to(int type, const char *address) {
	char url[144];
	open_socket(type);
	snprintf(url, sizeof url, "tcp://%s", address);
	if (zmq_connect(socket_handle, url) != 0) fail("zmq_connect");
}

static void put(size_t size) {
	if (zmq_send(socket_handle, buffer, size, 0) < 0) fail("zmq_send");
}

static void take(size_t size) {
	int got = zmq_recv(socket_handle, buffer, sizeof buffer, 0);
	if (got < 0) fail("zmq_recv");
	if ((size_t)got != size) errno = EPROTO, fail("zmq_recv");
}

static void push(const struct run *run, struct result *result) {
	result->begun_ns = now_ns();
	for (uint64_t i = 0; i < run->messages; i++) put(run->size);
	result->ended_ns = now_ns();
	result->count = run->messages;
}

static void pull(const struct run *run, struct result *result) {
	take(run->size);
	result->begun_ns = now_ns();
	for (result->count = 1; result->count < run->messages; result->count++) take(run->size);
	result->ended_ns = now_ns();
}

static void request(const struct run *run, struct result *result, uint64_t *round_trips_ns) {
	uint64_t before = result->begun_ns = now_ns();
	for (uint64_t i = 0; i < run->messages; i++) {
		put(run->size);
		take(run->size);
		uint64_t now = now_ns();
		round_trips_ns[i] = now - before;
		before = now;
	}
	result->ended_ns = before;
	result->count = run->messages;
}

static void reply(const struct run *run, struct result *result) {
	for (; result->count < run->messages; result->count++) {
		take(run->size);
		if (result->count == 0) result->begun_ns = now_ns();
		put(run->size);
	}
	result->ended_ns = now_ns();
}

static void open_pull(const char *address, char *bound, size_t bytes) { bind_to(ZMQ_PULL, address, bound, bytes); }
static void open_push(const char *address) { connect_to(ZMQ_PUSH, address); }
static void open_rep(const char *address, char *bound, size_t bytes) { bind_to(ZMQ_REP, address, bound, bytes); }
static void open_req(const char *address) { connect_to(ZMQ_REQ, address); }

const struct transport zeromq_push_pull = { "zeromq-push-pull", open_pull, open_push, push, pull, NULL, NULL };
const struct transport zeromq_req_rep = { "zeromq-req-rep", open_rep, open_req, NULL, NULL, request, reply };
