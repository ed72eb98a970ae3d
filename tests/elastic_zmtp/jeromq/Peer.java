import java.nio.charset.StandardCharsets;
import java.util.Arrays;
import org.zeromq.SocketType;
import org.zeromq.ZContext;
import org.zeromq.ZMQ;

/**
 * A PUB, XPUB, SUB or XSUB of JeroMQ: `Peer KIND ENDPOINT TOPIC COUNT [plain USER PASSWORD | curve SERVER PUBLIC SECRET]`.
 * A subscriber prints the sizes and first bytes of COUNT messages, a line each. A publisher prints the first
 * subscription that it is told, sends COUNT messages of three parts, and stays until its input ends.
 */
final class Peer {
    public static void main(String[] arguments) throws Exception {
        SocketType kind = SocketType.valueOf(arguments[0]);
        byte[] topic = arguments[2].getBytes(StandardCharsets.UTF_8);
        int count = Integer.parseInt(arguments[3]);
        try (ZContext context = new ZContext()) {
            context.setLinger(0);
            ZMQ.Socket socket = context.createSocket(kind);
            socket.setHWM(0);
            socket.setHeartbeatIvl(100);
            socket.setHeartbeatTimeout(10_000);
            secure(socket, Arrays.copyOfRange(arguments, 4, arguments.length));
            if (kind == SocketType.SUB) {
                socket.subscribe(topic);
            }
            socket.connect(arguments[1]);
            if (kind == SocketType.XSUB) {
                socket.send(subscription(topic));
            }
            if (kind == SocketType.PUB || kind == SocketType.XPUB) {
                publish(socket, kind, topic, count);
            } else {
                listen(socket, count);
            }
        }
    }

    private static void secure(ZMQ.Socket socket, String[] how) {
        if (how.length == 0) {
            return;
        }
        if (how[0].equals("plain")) {
            socket.setPlainUsername(how[1]);
            socket.setPlainPassword(how[2]);
        } else {
            socket.setCurveServerKey(ZMQ.Curve.z85Decode(how[1]));
            socket.setCurvePublicKey(ZMQ.Curve.z85Decode(how[2]));
            socket.setCurveSecretKey(ZMQ.Curve.z85Decode(how[3]));
        }
    }

    private static byte[] subscription(byte[] topic) {
        byte[] message = new byte[topic.length + 1];
        message[0] = 1;
        System.arraycopy(topic, 0, message, 1, topic.length);
        return message;
    }

    private static void publish(ZMQ.Socket socket, SocketType kind, byte[] topic, int count) throws Exception {
        if (kind == SocketType.XPUB) {
            byte[] told = socket.recv();
            System.out.println(told[0] + " " + new String(told, 1, told.length - 1, StandardCharsets.UTF_8));
        } else {
            // A PUB is told nothing: it waits until whoever runs it says that it was heard.
            while (System.in.available() == 0) {
                socket.sendMore(topic);
                socket.send("hello");
                Thread.sleep(10);
            }
            System.in.read();
        }
        byte[] large = new byte[70_000];
        for (int number = 0; number < count; number++) {
            socket.sendMore(topic);
            socket.sendMore(Integer.toString(number));
            socket.send(number % 10 == 0 ? large : new byte[0]);
        }
        while (System.in.read() >= 0) {
            // Until whoever runs it has all.
        }
    }

    private static void listen(ZMQ.Socket socket, int count) {
        for (int got = 0; got < count; got++) {
            StringBuilder line = new StringBuilder();
            do {
                byte[] part = socket.recv();
                line.append(part.length).append(':').append(new String(part, 0, Math.min(part.length, 20), StandardCharsets.ISO_8859_1)).append(' ');
            } while (socket.hasReceiveMore());
            System.out.println(line.toString().trim());
        }
    }
}
