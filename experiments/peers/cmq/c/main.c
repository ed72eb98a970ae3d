/* peer TRANSPORT receive HOST:PORT | peer TRANSPORT send HOST:PORT
 *
 * Speaks the protocol of the roles of `quelea bench cmq` (docs/benchmarks/bench.md): `run KIND SIZE MESSAGES IDLE_MS` and `cost`
 * come in, one JSON object a line goes out. */
#define _GNU_SOURCE
#include "peer.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static const struct transport *const TRANSPORTS[] = { &udp, &udp_packed, &zeromq_push_pull, &zeromq_req_rep };

static uint64_t clock_ns(clockid_t clock) {
	struct timespec time;
	if (clock_gettime(clock, &time) != 0) fail("clock_gettime");
	return (uint64_t)time.tv_sec * 1000000000ull + (uint64_t)time.tv_nsec;
}

uint64_t now_ns(void) { return clock_ns(CLOCK_MONOTONIC); }

void fail(const char *doing) {
	fprintf(stderr, "%s: %s\n", doing, strerror(errno));
	exit(1);
}

/* CPU time of a run: that of all threads since its beginning, less what this thread spent after its end on
 * reading and printing lines. Other threads may still have had work then. */
struct meter {
	uint64_t process_begin, thread_end;
};

static void meter_begin(struct meter *meter) { meter->process_begin = clock_ns(CLOCK_PROCESS_CPUTIME_ID); }
static void meter_end(struct meter *meter) { meter->thread_end = clock_ns(CLOCK_THREAD_CPUTIME_ID); }
static uint64_t meter_read(const struct meter *meter) {
	uint64_t all = clock_ns(CLOCK_PROCESS_CPUTIME_ID) - meter->process_begin;
	uint64_t lines = clock_ns(CLOCK_THREAD_CPUTIME_ID) - meter->thread_end;
	return all > lines ? all - lines : 0;
}

static int ascending(const void *left, const void *right) {
	uint64_t a = *(const uint64_t *)left, b = *(const uint64_t *)right;
	return a < b ? -1 : a > b;
}

static void print_round_trips(uint64_t *times, uint64_t count) {
	qsort(times, count, sizeof *times, ascending);
	printf(",\"p50_ns\":%" PRIu64 ",\"p99_ns\":%" PRIu64 ",\"max_ns\":%" PRIu64, times[count / 2],
	       times[count * 99 / 100], times[count - 1]);
}

static void perform(const struct transport *transport, int sends, int pings, const struct run *run,
                    struct meter *meter) {
	struct result result = { 0 };
	uint64_t *times = NULL;
	if (pings && sends) {
		times = malloc(run->messages * sizeof *times);
		if (times == NULL) fail("malloc");
	}
	if (!sends) puts("{\"armed\":true}"), fflush(stdout);
	meter_begin(meter);
	if (sends && pings) transport->ping(run, &result, times);
	else if (sends) transport->send(run, &result);
	else if (pings) transport->echo(run, &result);
	else transport->receive(run, &result);
	meter_end(meter);
	printf("{\"count\":%" PRIu64 ",\"begun_ns\":%" PRIu64 ",\"ended_ns\":%" PRIu64 ",\"repeated\":%" PRIu64,
	       result.count, result.begun_ns, result.ended_ns, result.repeated);
	if (times != NULL) print_round_trips(times, run->messages);
	free(times);
	puts("}");
}

static const struct transport *named(const char *name) {
	for (size_t i = 0; i < sizeof TRANSPORTS / sizeof *TRANSPORTS; i++)
		if (strcmp(TRANSPORTS[i]->name, name) == 0) return TRANSPORTS[i];
	fprintf(stderr, "no transport '%s'\n", name);
	exit(2);
}

int main(int argc, char **argv) {
	if (argc != 4 || (strcmp(argv[2], "send") != 0 && strcmp(argv[2], "receive") != 0)) {
		fprintf(stderr, "usage: peer TRANSPORT send|receive HOST:PORT\n");
		return 2;
	}
	const struct transport *transport = named(argv[1]);
	int sends = strcmp(argv[2], "send") == 0;
	char bound[128] = "";
	if (sends) transport->open_sender(argv[3]);
	else transport->open_receiver(argv[3], bound, sizeof bound);
	printf("{\"ready\":\"%s\"}\n", bound);
	fflush(stdout);
	struct run run = { 0 };
	struct meter meter = { 0 };
	char line[256], kind[16];
	while (fgets(line, sizeof line, stdin) != NULL) {
		uint64_t idle_ms;
		if (sscanf(line, "run %15s %zu %" SCNu64 " %" SCNu64, kind, &run.size, &run.messages, &idle_ms) == 4) {
			int pings = strcmp(kind, "ping-pong") == 0;
			if (run.size < 4 || run.size > MESSAGE_BYTES_MAX || run.messages == 0 ||
			    (pings ? transport->ping == NULL : transport->send == NULL)) {
				fprintf(stderr, "cannot: %s", line);
				return 2;
			}
			run.idle_ns = idle_ms * 1000000ull;
			perform(transport, sends, pings, &run, &meter);
			run.base += run.messages;
		} else if (strcmp(line, "cost\n") == 0) {
			printf("{\"cpu_ns\":%" PRIu64 "}\n", meter_read(&meter));
		} else {
			fprintf(stderr, "not understood: %s", line);
			return 2;
		}
		fflush(stdout);
	}
	return 0;
}
