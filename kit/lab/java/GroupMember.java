import java.io.FileInputStream;
import java.io.FileOutputStream;
import java.io.OutputStreamWriter;
import java.io.Writer;
import java.lang.reflect.InvocationHandler;
import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Method;
import java.lang.reflect.Proxy;
import java.util.Arrays;
import java.util.Iterator;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import java.util.Set;
import java.util.TreeMap;
import java.util.TreeSet;
import org.apache.kafka.clients.consumer.ConsumerRebalanceListener;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.errors.WakeupException;

/**
 * A member of a Kafka group: {@code GroupMember <properties file>}; leaves in order on SIGTERM.
 *
 * Compiled by Janino against each release from 0.9 on, so: no lambdas, raw collections with casts, and poll, whose
 * argument changed, by reflection. The file holds the consumer's configuration, driver.topics (t1,t2), driver.record
 * (file of consumed records) and driver.listens (whether it subscribes with a listener, which changes what is logged).
 *
 * Standard output has one event per line, "epoch-ms client-id EVENT details": START, ASSIGN {topic:[partitions]} after
 * each change, its positions being known, STOP.
 */
public class GroupMember {
    private static final long POLL_MS = 100;
    private final Properties properties = new Properties();
    private final KafkaConsumer consumer;
    private final Writer record;

    GroupMember(String file) throws Exception {
        FileInputStream stream = new FileInputStream(file);
        properties.load(stream);
        stream.close();
        record = new OutputStreamWriter(new FileOutputStream(properties.getProperty("driver.record"), true), "UTF-8");
        say("START");
        consumer = new KafkaConsumer(properties);
    }

    public static void main(String[] files) throws Exception {
        final GroupMember member = new GroupMember(files[0]);
        final Thread reader = Thread.currentThread();
        Runtime.getRuntime().addShutdownHook(new Thread(new Runnable() {
            public void run() {
                member.consumer.wakeup();
                try {
                    reader.join();
                } catch (InterruptedException error) {
                    member.say("ERR " + error);
                }
            }
        }));
        member.run();
    }

    private void run() throws Exception {
        subscribe(Arrays.asList(properties.getProperty("driver.topics").split(",")));
        String told = "{}";
        try {
            while (true) {
                Iterable records = poll();
                String assigned = assigned();
                if (!assigned.equals(told)) {
                    locate();
                    say("ASSIGN " + assigned);
                    told = assigned;
                }
                for (Iterator each = records.iterator(); each.hasNext();) {
                    write((ConsumerRecord) each.next());
                }
            }
        } catch (WakeupException asked) {
            consumer.close();
            say("STOP");
        }
    }

    /** The listener's later methods have no source here: a proxy has them all. */
    private void subscribe(List topics) {
        if (!Boolean.parseBoolean(properties.getProperty("driver.listens"))) {
            consumer.subscribe(topics);
            return;
        }
        Class[] kinds = {ConsumerRebalanceListener.class};
        Object listener = Proxy.newProxyInstance(kinds[0].getClassLoader(), kinds, new InvocationHandler() {
            public Object invoke(Object self, Method method, Object[] arguments) {
                return method.getReturnType() == String.class ? "listener" : null;
            }
        });
        consumer.subscribe(topics, (ConsumerRebalanceListener) listener);
    }

    private Iterable poll() throws Exception {
        try {
            return (Iterable) POLL.invoke(consumer, new Object[] {POLL_ARGUMENT});
        } catch (InvocationTargetException error) {
            throw (Exception) error.getCause();
        }
    }

    private static final Method POLL;
    private static final Object POLL_ARGUMENT;

    static {
        Method poll = null;
        Object argument = null;
        try {
            poll = KafkaConsumer.class.getMethod("poll", new Class[] {java.time.Duration.class});
            argument = java.time.Duration.ofMillis(POLL_MS);
        } catch (NoSuchMethodException older) {
            try {
                poll = KafkaConsumer.class.getMethod("poll", new Class[] {long.class});
            } catch (NoSuchMethodException never) {
                throw new RuntimeException(never);
            }
            argument = Long.valueOf(POLL_MS);
        }
        POLL = poll;
        POLL_ARGUMENT = argument;
    }

    /** Waits until it is known where to begin: a member that goes before has asked for offsets and never used them. */
    private void locate() {
        for (Iterator each = consumer.assignment().iterator(); each.hasNext();) {
            consumer.position((TopicPartition) each.next());
        }
    }

    private String assigned() {
        Map topics = new TreeMap();
        for (Iterator each = consumer.assignment().iterator(); each.hasNext();) {
            TopicPartition partition = (TopicPartition) each.next();
            if (!topics.containsKey(partition.topic())) {
                topics.put(partition.topic(), new TreeSet());
            }
            ((Set) topics.get(partition.topic())).add(Integer.valueOf(partition.partition()));
        }
        StringBuilder text = new StringBuilder();
        for (Iterator each = topics.entrySet().iterator(); each.hasNext();) {
            Map.Entry entry = (Map.Entry) each.next();
            text.append(text.length() == 0 ? "" : ", ").append("\"" + entry.getKey() + "\": " + entry.getValue());
        }
        return "{" + text + "}";
    }

    private void write(ConsumerRecord each) throws Exception {
        record.write("{\"at_ms\": " + System.currentTimeMillis() + ", \"consumer\": \"" + properties.getProperty("client.id")
            + "\", \"topic\": \"" + each.topic() + "\", \"partition\": " + each.partition() + ", \"offset\": " + each.offset() + "}\n");
        record.flush();
    }

    private void say(String event) {
        System.out.print(System.currentTimeMillis() + " " + properties.getProperty("client.id") + " " + event + "\n");
        System.out.flush();
    }
}
