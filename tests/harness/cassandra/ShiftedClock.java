import org.apache.cassandra.utils.Clock;

/** The clock of a node whose machine is ahead of the others, by `quelea.clock_ahead_ms`. */
public final class ShiftedClock implements Clock {
    private static final long AHEAD_MS = Long.getLong("quelea.clock_ahead_ms");

    @Override
    public long nanoTime() {
        return System.nanoTime();
    }

    @Override
    public long currentTimeMillis() {
        return System.currentTimeMillis() + AHEAD_MS;
    }
}
