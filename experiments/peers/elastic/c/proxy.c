/* libzmq's own zmq_proxy between XSUB and XPUB: what the EQS paper's exchange was.
 *
 *     proxy [nodrop]
 *
 * With `nodrop` the XPUB waits for a slow subscriber (ZMQ_XPUB_NODROP), otherwise it drops at its high-water mark,
 * as by default. Prints `zmq-proxy ready in=HOST:PORT out=HOST:PORT pid=PID` when it serves; SIGTERM ends it.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <zmq.h>

static void *bound(void *context, int type, char *endpoint, size_t size) {
    void *socket = zmq_socket(context, type);
    if (!socket || zmq_bind(socket, "tcp://127.0.0.1:*") || zmq_getsockopt(socket, ZMQ_LAST_ENDPOINT, endpoint, &size)) {
        fprintf(stderr, "proxy: %s\n", zmq_strerror(zmq_errno()));
        exit(1);
    }
    return socket;
}

int main(int count, char **words) {
    int nodrop = count > 1 && strcmp(words[1], "nodrop") == 0;
    if (count > 1 + nodrop) {
        fprintf(stderr, "proxy: unknown word '%s'\n", words[1 + nodrop]);
        return 2;
    }
    char in[64], out[64];
    void *context = zmq_ctx_new();
    void *front = bound(context, ZMQ_XSUB, in, sizeof in);
    void *back = bound(context, ZMQ_XPUB, out, sizeof out);
    if (nodrop && zmq_setsockopt(back, ZMQ_XPUB_NODROP, &nodrop, sizeof nodrop)) {
        fprintf(stderr, "proxy: ZMQ_XPUB_NODROP: %s\n", zmq_strerror(zmq_errno()));
        return 1;
    }
    size_t scheme = strlen("tcp://");
    printf("zmq-proxy ready in=%s out=%s pid=%d\n", in + scheme, out + scheme, (int)getpid());
    fflush(stdout);
    zmq_proxy(front, back, NULL);
    return 0;
}
