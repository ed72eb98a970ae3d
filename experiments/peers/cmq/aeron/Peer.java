import io.aeron.Aeron;
import io.aeron.FragmentAssembler;
import io.aeron.Publication;
import io.aeron.Subscription;
import io.aeron.driver.MediaDriver;
import io.aeron.driver.ThreadingMode;
import io.aeron.logbuffer.FragmentHandler;
import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.lang.management.ManagementFactory;
import java.net.DatagramSocket;
import java.net.InetSocketAddress;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Arrays;
import org.agrona.BufferUtil;
import org.agrona.concurrent.BackoffIdleStrategy;
import org.agrona.concurrent.IdleStrategy;
import org.agrona.concurrent.UnsafeBuffer;

/**
 * Aeron over UDP as a peer of `quelea bench cmq`: java Peer.java send|receive HOST:PORT DIRECTORY.
 *
 * Each end embeds a media driver with one thread (SHARED) that backs off when idle, which is Aeron's choice for a
 * machine with few cores; answers to pings go to the port above. The protocol of the roles is in docs/benchmarks/bench.md.
 */
public final class Peer {
    private static final int STREAM = 1;
    private static final int FRAGMENTS_A_POLL = 256;
    private static final int MESSAGE_BYTES_MAX = 1 << 20;

    private final IdleStrategy idle = new BackoffIdleStrategy();
    private final UnsafeBuffer buffer = new UnsafeBuffer(BufferUtil.allocateDirectAligned(MESSAGE_BYTES_MAX, 64));
    private final Publication publication;
    private final Subscription subscription;
    private final boolean sends;
    private long arrived;
    private long firstNs;
    private long processNs;
    private long threadNs;

    private Peer(final Aeron aeron, final boolean sends, final String publish, final String subscribe) {
        this.sends = sends;
        subscription = aeron.addSubscription("aeron:udp?endpoint=" + subscribe, STREAM);
        publication = aeron.addPublication("aeron:udp?endpoint=" + publish, STREAM);
    }

    public static void main(final String[] args) throws IOException {
        final boolean sends = args[0].equals("send");
        final int colon = args[1].lastIndexOf(':');
        final String host = args[1].substring(0, colon);
        int port = Integer.parseInt(args[1].substring(colon + 1));
        if (port == 0) {
            port = freePort(host);
        }
        final String here = args.length > 3 ? args[3] : host;
        final String forward = host + ":" + port;
        final String back = here + ":" + (port + 1);
        final Path directory = Files.createTempDirectory(Path.of(args[2]), "aeron-");
        final MediaDriver.Context context = new MediaDriver.Context()
            .aeronDirectoryName(directory.resolve("driver").toString())
            .dirDeleteOnStart(true)
            .dirDeleteOnShutdown(true)
            .threadingMode(ThreadingMode.SHARED);
        try (MediaDriver driver = MediaDriver.launchEmbedded(context);
            Aeron aeron = Aeron.connect(new Aeron.Context().aeronDirectoryName(driver.aeronDirectoryName()))) {
            new Peer(aeron, sends, sends ? forward : back, sends ? back : forward).serve(forward);
        } finally {
            Files.deleteIfExists(directory);
        }
    }

    /** A port of the host that is free together with the one above it. */
    private static int freePort(final String host) throws IOException {
        while (true) {
            try (DatagramSocket one = new DatagramSocket(new InetSocketAddress(host, 0));
                DatagramSocket other = new DatagramSocket(new InetSocketAddress(host, one.getLocalPort() + 1))) {
                return other.getLocalPort() - 1;
            } catch (final IOException taken) {
                // Another one, then.
            }
        }
    }

    private void serve(final String bound) throws IOException {
        say("{\"ready\":\"" + bound + "\"}");
        final BufferedReader lines = new BufferedReader(new InputStreamReader(System.in));
        for (String line = lines.readLine(); line != null; line = lines.readLine()) {
            final String[] words = line.split(" ");
            if (words[0].equals("cost")) {
                final long cpu = processCpuNs() - processNs - (threadCpuNs() - threadNs);
                say("{\"cpu_ns\":" + Math.max(cpu, 0) + "}");
            } else {
                run(words[1].equals("ping-pong"), Integer.parseInt(words[2]), Integer.parseInt(words[3]));
            }
        }
    }

    private void run(final boolean pings, final int size, final int messages) {
        final long[] times = new long[pings && sends ? messages : 0];
        arrived = 0;
        if (!sends) {
            say("{\"armed\":true}");
        }
        processNs = processCpuNs();
        long begunNs = System.nanoTime();
        if (!sends) {
            receive(messages, pings);
            begunNs = firstNs;
        } else if (pings) {
            ping(size, times);
        } else {
            for (int i = 0; i < messages; i++) {
                offer(size);
            }
        }
        final long endedNs = System.nanoTime();
        threadNs = threadCpuNs();
        Arrays.sort(times);
        final String percentiles = times.length == 0 ? "" : ",\"p50_ns\":" + times[messages / 2] +
            ",\"p99_ns\":" + times[(int)(messages * 99L / 100)] + ",\"max_ns\":" + times[messages - 1];
        say("{\"count\":" + messages + ",\"begun_ns\":" + begunNs + ",\"ended_ns\":" + endedNs + percentiles + "}");
    }

    private void offer(final int size) {
        for (long at = publication.offer(buffer, 0, size); at < 0; at = publication.offer(buffer, 0, size)) {
            if (at == Publication.CLOSED || at == Publication.MAX_POSITION_EXCEEDED) {
                throw new IllegalStateException("the publication ended: " + at);
            }
            idle.idle();
        }
        idle.reset();
    }

    private void receive(final int messages, final boolean answer) {
        final FragmentHandler handler = new FragmentAssembler((data, offset, length, header) -> {
            if (arrived++ == 0) {
                firstNs = System.nanoTime();
            }
            if (answer) {
                offer(length);
            }
        });
        while (arrived < messages) {
            idle.idle(subscription.poll(handler, FRAGMENTS_A_POLL));
        }
    }

    private void ping(final int size, final long[] times) {
        final FragmentHandler handler = new FragmentAssembler((data, offset, length, header) -> arrived++);
        long before = System.nanoTime();
        for (int i = 0; i < times.length; i++) {
            offer(size);
            while (arrived <= i) {
                idle.idle(subscription.poll(handler, FRAGMENTS_A_POLL));
            }
            final long now = System.nanoTime();
            times[i] = now - before;
            before = now;
        }
    }

    private static long processCpuNs() {
        final java.lang.management.OperatingSystemMXBean system = ManagementFactory.getOperatingSystemMXBean();
        return ((com.sun.management.OperatingSystemMXBean)system).getProcessCpuTime();
    }

    private static long threadCpuNs() {
        return ManagementFactory.getThreadMXBean().getCurrentThreadCpuTime();
    }

    private static void say(final String line) {
        System.out.println(line);
        System.out.flush();
    }
}
