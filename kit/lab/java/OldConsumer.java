import java.io.BufferedReader;
import java.io.FileInputStream;
import java.io.FileOutputStream;
import java.io.InputStreamReader;
import java.io.OutputStreamWriter;
import java.io.Writer;
import java.lang.reflect.InvocationHandler;
import java.lang.reflect.Method;
import java.lang.reflect.Proxy;
import java.util.ArrayList;
import java.util.Collection;
import java.util.HashMap;
import java.util.HashSet;
import java.util.Iterator;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import java.util.Set;
import java.util.TreeMap;
import java.util.TreeSet;
import kafka.consumer.Blacklist;
import kafka.consumer.Consumer;
import kafka.consumer.ConsumerConfig;
import kafka.consumer.TopicFilter;
import kafka.consumer.Whitelist;
import kafka.javaapi.consumer.ConsumerConnector;
import kafka.message.MessageAndMetadata;

/**
 * Members of old consumer groups: {@code OldConsumer <properties file> ...}, one connector per file.
 *
 * Compiled by Janino against 1.1.1 and run on every old version, so: no lambdas, raw collections with casts, and the
 * rebalance listener, which 0.8.2 lacks, only by reflection. A file holds the consumer's configuration and
 * driver.id (the consumer id), driver.topics (t1,t2 | ~regex | !regex), driver.threads, driver.record (file of
 * consumed records), driver.delay.ms (pause after each record) and driver.limit (leave after so many; 0: never).
 *
 * Standard output has one event per line, "epoch-ms consumer-id EVENT details":
 * START, NOLISTENER, REG streams, REL {topic:[partitions]}, BEG {topic:{partition:thread id}} (the whole group's
 * assignment), OWN stream topic partition (first record of it since the last release), EOS stream, COMMITTED, ERR,
 * SHUTDOWN, STOP. Standard input takes "commit", "leave consumer-id" and "quit"; its end changes nothing.
 */
public class OldConsumer {
    private final String id;
    private final Properties properties;
    private final Writer record;
    private final long delayMs;
    private final long limit;
    private final Set seen = new HashSet();
    private ConsumerConnector connector;
    private long taken = 0;
    private boolean ended = false;

    OldConsumer(Properties properties) throws Exception {
        this.properties = properties;
        this.id = properties.getProperty("driver.id");
        this.delayMs = Long.parseLong(properties.getProperty("driver.delay.ms", "0"));
        this.limit = Long.parseLong(properties.getProperty("driver.limit", "0"));
        this.record = new OutputStreamWriter(new FileOutputStream(properties.getProperty("driver.record"), true), "UTF-8");
    }

    public static void main(String[] files) throws Exception {
        final List members = new ArrayList();
        for (int i = 0; i < files.length; i++) {
            Properties properties = new Properties();
            FileInputStream stream = new FileInputStream(files[i]);
            properties.load(stream);
            stream.close();
            members.add(new OldConsumer(properties));
        }
        Runtime.getRuntime().addShutdownHook(new Thread(new Runnable() {
            public void run() {
                shutDown(members);
            }
        }));
        // Connectors are independent: side by side they are registered sooner.
        for (Iterator each = members.iterator(); each.hasNext();) {
            final OldConsumer member = (OldConsumer) each.next();
            new Thread(new Runnable() {
                public void run() {
                    member.startOrExit();
                }
            }).start();
        }
        obey(members);
    }

    private static void obey(List members) throws Exception {
        BufferedReader commands = new BufferedReader(new InputStreamReader(System.in));
        String line = commands.readLine();
        while (line != null) {
            if (line.equals("quit")) {
                System.exit(0);
            }
            for (Iterator each = members.iterator(); each.hasNext();) {
                OldConsumer member = (OldConsumer) each.next();
                if (line.equals("commit")) {
                    member.commit();
                } else if (line.equals("leave " + member.id)) {
                    member.leave();
                }
            }
            line = commands.readLine();
        }
        Thread.currentThread().join();
    }

    private static void shutDown(List members) {
        for (Iterator each = members.iterator(); each.hasNext();) {
            ((OldConsumer) each.next()).leave();
        }
    }

    private void leave() {
        synchronized (this) {
            if (connector == null || ended) {
                return;
            }
            ended = true;
        }
        say("SHUTDOWN");
        connector.shutdown();
        say("STOP");
    }

    private void startOrExit() {
        try {
            start();
        } catch (Throwable error) {
            say("ERR " + error);
            error.printStackTrace();
            System.exit(3);
        }
    }

    private void start() throws Exception {
        say("START");
        connector = Consumer.createJavaConsumerConnector(new ConsumerConfig(properties));
        listen();
        Collection streams = streams();
        say("REG " + streams.size());
        int number = 0;
        for (Iterator each = streams.iterator(); each.hasNext();) {
            read((Iterable) each.next(), number++);
        }
    }

    private Collection streams() {
        String topics = properties.getProperty("driver.topics");
        int threads = Integer.parseInt(properties.getProperty("driver.threads"));
        if (topics.startsWith("~") || topics.startsWith("!")) {
            String pattern = topics.substring(1);
            TopicFilter filter = topics.startsWith("~") ? (TopicFilter) new Whitelist(pattern) : (TopicFilter) new Blacklist(pattern);
            return connector.createMessageStreamsByFilter(filter, threads);
        }
        Map wanted = new HashMap();
        String[] names = topics.split(",");
        for (int i = 0; i < names.length; i++) {
            wanted.put(names[i], Integer.valueOf(threads));
        }
        Collection all = new ArrayList();
        for (Iterator each = connector.createMessageStreams(wanted).values().iterator(); each.hasNext();) {
            all.addAll((Collection) each.next());
        }
        return all;
    }

    private void read(final Iterable stream, final int number) {
        Thread reader = new Thread(new Runnable() {
            public void run() {
                try {
                    for (Iterator records = stream.iterator(); records.hasNext();) {
                        take((MessageAndMetadata) records.next(), number);
                        if (limit > 0 && count() >= limit) {
                            leaveSoon();
                            return;
                        }
                    }
                    say("EOS " + number);
                } catch (Exception error) {
                    say("ERR " + error);
                }
            }
        });
        reader.setDaemon(true);
        reader.start();
    }

    private void take(MessageAndMetadata message, int stream) throws Exception {
        String partition = message.topic() + " " + message.partition();
        write("{\"at_ms\": " + System.currentTimeMillis() + ", \"consumer\": \"" + id + "\", \"topic\": \""
            + message.topic() + "\", \"partition\": " + message.partition() + ", \"offset\": " + message.offset() + "}\n");
        boolean first;
        synchronized (seen) {
            first = seen.add(stream + " " + partition);
        }
        if (first) {
            say("OWN " + stream + " " + partition);
        }
        if (delayMs > 0) {
            Thread.sleep(delayMs);
        }
    }

    /** In a thread of its own: the connector's shutdown waits for the streams' threads. */
    private void leaveSoon() {
        new Thread(new Runnable() {
            public void run() {
                leave();
            }
        }).start();
    }

    private synchronized long count() {
        return ++taken;
    }

    private void write(String line) throws Exception {
        synchronized (record) {
            record.write(line);
            record.flush();
        }
    }

    private void commit() {
        try {
            connector.commitOffsets(true);
            say("COMMITTED");
        } catch (Exception error) {
            say("ERR " + error);
        }
    }

    private void listen() throws Exception {
        Class listener;
        try {
            listener = Class.forName("kafka.javaapi.consumer.ConsumerRebalanceListener");
        } catch (ClassNotFoundException absent) {
            say("NOLISTENER");
            return;
        }
        Object proxy = Proxy.newProxyInstance(listener.getClassLoader(), new Class[] {listener}, new InvocationHandler() {
            public Object invoke(Object self, Method method, Object[] arguments) {
                if (method.getName().equals("beforeReleasingPartitions")) {
                    synchronized (seen) {
                        seen.clear();
                    }
                    say("REL " + json(arguments[0]));
                } else if (method.getName().equals("beforeStartingFetchers")) {
                    say("BEG " + json(arguments[1]));
                }
                return null;
            }
        });
        Method setter = ConsumerConnector.class.getMethod("setConsumerRebalanceListener", new Class[] {listener});
        setter.invoke(connector, new Object[] {proxy});
    }

    /** Maps with sorted keys, sets as sorted lists, numbers bare, everything else quoted. */
    private static String json(Object value) {
        StringBuilder text = new StringBuilder();
        if (value instanceof Map) {
            for (Iterator each = new TreeMap((Map) value).entrySet().iterator(); each.hasNext();) {
                Map.Entry entry = (Map.Entry) each.next();
                text.append(text.length() == 0 ? "" : ",").append("\"" + entry.getKey() + "\":" + json(entry.getValue()));
            }
            return "{" + text + "}";
        }
        if (value instanceof Collection) {
            for (Iterator each = new TreeSet((Collection) value).iterator(); each.hasNext();) {
                text.append(text.length() == 0 ? "" : ",").append(json(each.next()));
            }
            return "[" + text + "]";
        }
        return value instanceof Number ? value.toString() : "\"" + value + "\"";
    }

    private void say(String event) {
        String line = System.currentTimeMillis() + " " + id + " " + event + "\n";
        synchronized (System.out) {
            System.out.print(line);
            System.out.flush();
        }
    }
}
