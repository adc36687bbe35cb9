import java.io.PrintStream;
import java.util.Map;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.common.MessageFormatter;

/** Makes the console consumer print each record as the lab's JSON line; property "consumer" is the name in it. */
public class RecordLines implements MessageFormatter {
    private String consumer = "";

    public void configure(Map settings) {
        consumer = String.valueOf(settings.get("consumer"));
    }

    public void writeTo(ConsumerRecord record, PrintStream output) {
        output.print("{\"at_ms\": " + System.currentTimeMillis() + ", \"consumer\": \"" + consumer + "\", \"topic\": \""
            + record.topic() + "\", \"partition\": " + record.partition() + ", \"offset\": " + record.offset() + "}\n");
    }

    public void close() {
    }
}
