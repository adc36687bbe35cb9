import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.net.InetSocketAddress;
import java.util.ArrayList;
import java.util.Collections;
import java.util.Iterator;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import kafka.cluster.EndPoint;
import kafka.server.KafkaConfig;
import org.apache.kafka.common.config.ConfigDef;
import org.apache.kafka.common.network.ListenerName;
import org.apache.kafka.common.security.auth.SecurityProtocol;
import org.apache.kafka.common.utils.Utils;
import org.apache.kafka.raft.QuorumConfig;
import org.apache.kafka.storage.internals.log.LogConfig;

/**
 * Tells of each properties file on standard input whether Kafka refuses its settings: a line "file TAB message", where
 * an empty message means that Kafka goes on. With the argument --settings: every setting that Kafka knows, a line each.
 */
public class SettingsOracle {
    public static void main(String[] arguments) throws Exception {
        PrintStream answers = System.out;
        System.setOut(System.err);
        if (arguments.length > 0) {
            tellSettings(answers);
            return;
        }
        BufferedReader files = new BufferedReader(new InputStreamReader(System.in, "UTF-8"));
        for (String file = files.readLine(); file != null; file = files.readLine()) {
            answers.print(file + "\t" + refusal(file).replaceAll("\\s+", " ") + "\n");
            answers.flush();
        }
    }

    private static String refusal(String file) throws Exception {
        Properties settings = Utils.loadProps(file);
        try {
            goOn(KafkaConfig.fromProps(settings, false));
            return "";
        } catch (Exception error) {
            return error.getClass().getSimpleName() + ": " + error.getMessage();
        }
    }

    /** What the servers ask of the settings before they open a port or a folder. */
    private static void goOn(KafkaConfig config) throws Exception {
        config.createNewAuthorizer();
        for (scala.collection.Iterator each = config.listeners().iterator(); each.hasNext();) {
            new InetSocketAddress("localhost", ((EndPoint) each.next()).port());
        }
        if (config.requiresZookeeper() || config.processRoles().toString().toLowerCase().contains("broker")) {
            Map defaults = config.extractLogConfigMap();
            LogConfig.validateBrokerLogConfigValues(
                defaults, config.remoteLogManagerConfig().isRemoteStorageSystemEnabled());
            new LogConfig(defaults);
        }
        if (!config.requiresZookeeper() || config.migrationEnabled()) {
            QuorumConfig.parseVoterConnections(config.quorumVoters());
            QuorumConfig.parseBootstrapServers(config.quorumBootstrapServers());
            ListenerName name = new ListenerName((String) config.controllerListenerNames().head());
            if (!config.effectiveListenerSecurityProtocolMap().contains(name)) {
                SecurityProtocol.forName(name.value());
            }
        }
    }

    private static void tellSettings(PrintStream answers) {
        List names = new ArrayList(KafkaConfig.configDef().names());
        Collections.sort(names);
        for (Iterator each = names.iterator(); each.hasNext();) {
            ConfigDef.ConfigKey key = (ConfigDef.ConfigKey) KafkaConfig.configDef().configKeys().get(each.next());
            String fallback = ConfigDef.convertToString(key.defaultValue, key.type);
            answers.print(key.name + "\t" + key.type + "\t" + (fallback == null ? "-" : "=" + fallback) + "\t"
                + (key.validator == null ? "" : key.validator.toString()) + "\n");
        }
    }
}
