import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.Semaphore;
import java.util.concurrent.atomic.AtomicInteger;
import org.apache.zookeeper.AsyncCallback;
import org.apache.zookeeper.Op;
import org.apache.zookeeper.OpResult;
import org.apache.zookeeper.WatchedEvent;
import org.apache.zookeeper.Watcher;
import org.apache.zookeeper.ZooKeeper;
import org.apache.zookeeper.data.Stat;

/**
 * Reads a tree with the Java client: {@code ZooKeeperWalk <connect string> <requests in flight> <znodes per request>
 * <partitions>}.
 *
 * <p>Without partitions the tree is /consumers; else the topics and the state of so many partitions of each. With one
 * znode per request it asks by getData and getChildren, else by multi. For every line on standard input it reads the
 * tree once and prints "seconds znodes-read znodes-listed refused". It knows the tree's layout, so it asks only for
 * what our reader asks for, every request asynchronous. What it read (data and stats) is kept in arrays until the clock
 * was stopped; nothing is parsed.
 */
public class ZooKeeperWalk {
    private static final String CONSUMERS = "/consumers";
    private static final String TOPICS = "/brokers/topics";
    private static final String[] BRANCHES = {"ids", "migration/ids", "owners", "offsets"};
    private static final int NO_NODE = -101;

    private final ZooKeeper client;
    private final int inFlight;
    private final int perRequest;
    private final Semaphore window;
    private final AtomicInteger refused = new AtomicInteger();
    private int read;
    private int listed;

    private ZooKeeperWalk(ZooKeeper client, int inFlight, int perRequest) {
        this.client = client;
        this.inFlight = inFlight;
        this.perRequest = perRequest;
        this.window = new Semaphore(inFlight);
    }

    public static void main(String[] arguments) throws Exception {
        final CountDownLatch connected = new CountDownLatch(1);
        ZooKeeper client = new ZooKeeper(arguments[0], 30000, new Watcher() {
            public void process(WatchedEvent event) {
                if (event.getState() == Watcher.Event.KeeperState.SyncConnected) {
                    connected.countDown();
                }
            }
        });
        connected.await();
        int partitions = Integer.parseInt(arguments[3]);
        BufferedReader lines = new BufferedReader(new InputStreamReader(System.in));
        while (lines.readLine() != null) {
            ZooKeeperWalk walk =
                    new ZooKeeperWalk(client, Integer.parseInt(arguments[1]), Integer.parseInt(arguments[2]));
            long started = System.nanoTime();
            if (partitions == 0) {
                walk.readConsumers();
            } else {
                walk.readTopics(partitions);
            }
            double seconds = (System.nanoTime() - started) / 1e9;
            System.out.println(seconds + " " + walk.read + " " + walk.listed + " " + walk.refused.get());
            System.out.flush();
        }
        client.close();
    }

    private void readConsumers() throws InterruptedException {
        List<String> groups = childrenOf(CONSUMERS);
        List<String> branches = new ArrayList<String>();
        List<String> modes = new ArrayList<String>();
        for (Object group : groups) {
            for (int i = 0; i < BRANCHES.length; i++) {
                branches.add(group + "/" + BRANCHES[i]);
            }
            modes.add(group + "/migration/mode");
        }
        List[] names = list(branches);
        get(modes);
        List<String> members = new ArrayList<String>();
        List<String> topics = new ArrayList<String>();
        for (int i = 0; i < names.length; i++) {
            int branch = i % BRANCHES.length;
            if (names[i] != null && branch != 1) {
                addChildren(branch == 0 ? members : topics, (String) branches.get(i), names[i]);
            }
        }
        get(members);
        List[] partitions = list(topics);
        List<String> leaves = new ArrayList<String>();
        for (int i = 0; i < partitions.length; i++) {
            if (partitions[i] != null) {
                addChildren(leaves, (String) topics.get(i), partitions[i]);
            }
        }
        get(leaves);
    }

    private void readTopics(int partitions) throws InterruptedException {
        List<String> topics = childrenOf(TOPICS);
        get(topics);
        List<String> states = new ArrayList<String>();
        for (Object topic : topics) {
            for (int i = 0; i < partitions; i++) {
                states.add(topic + "/partitions/" + i + "/state");
            }
        }
        get(states);
    }

    private List<String> childrenOf(String path) throws InterruptedException {
        List<String> paths = new ArrayList<String>();
        addChildren(paths, path, list(Collections.singletonList(path))[0]);
        return paths;
    }

    private static void addChildren(List<String> paths, String parent, List names) {
        for (Object name : names) {
            paths.add(parent + "/" + name);
        }
    }

    /** Raw lists, because the compiler that this is built with (Janino) knows no arrays of generic types. */
    private List[] list(List<String> paths) throws InterruptedException {
        final List[] answers = new List[paths.size()];
        if (perRequest > 1) {
            ask(paths, true, answers, null, null);
        } else {
            listOneByOne(paths, answers);
        }
        for (int i = 0; i < answers.length; i++) {
            listed += answers[i] == null ? 0 : 1;
        }
        return answers;
    }

    private void get(List<String> paths) throws InterruptedException {
        final byte[][] data = new byte[paths.size()][];
        final Stat[] stats = new Stat[data.length];
        if (perRequest > 1) {
            ask(paths, false, null, data, stats);
        } else {
            getOneByOne(paths, data, stats);
        }
        for (int i = 0; i < data.length; i++) {
            read += stats[i] == null ? 0 : 1;
        }
    }

    private void listOneByOne(List<String> paths, final List[] answers) throws InterruptedException {
        AsyncCallback.ChildrenCallback answered = new AsyncCallback.ChildrenCallback() {
            public void processResult(int code, String path, Object index, List<String> names) {
                answers[((Integer) index).intValue()] = names;
                count(code);
                window.release();
            }
        };
        for (int i = 0; i < answers.length; i++) {
            window.acquire();
            client.getChildren((String) paths.get(i), false, answered, Integer.valueOf(i));
        }
        awaitAll();
    }

    private void getOneByOne(List<String> paths, final byte[][] data, final Stat[] stats) throws InterruptedException {
        AsyncCallback.DataCallback answered = new AsyncCallback.DataCallback() {
            public void processResult(int code, String path, Object index, byte[] found, Stat stat) {
                data[((Integer) index).intValue()] = found;
                stats[((Integer) index).intValue()] = stat;
                count(code);
                window.release();
            }
        };
        for (int i = 0; i < data.length; i++) {
            window.acquire();
            client.getData((String) paths.get(i), false, answered, Integer.valueOf(i));
        }
        awaitAll();
    }

    /** Many znodes with each request: ZooKeeper's multi of reads. */
    private void ask(
            List<String> paths, boolean isList, final List[] names, final byte[][] data, final Stat[] stats)
            throws InterruptedException {
        AsyncCallback.MultiCallback answered = new AsyncCallback.MultiCallback() {
            public void processResult(int code, String path, Object first, List<OpResult> results) {
                if (results == null) {
                    count(code);
                } else {
                    for (int i = 0; i < results.size(); i++) {
                        take((OpResult) results.get(i), ((Integer) first).intValue() + i, names, data, stats);
                    }
                }
                window.release();
            }
        };
        for (int start = 0; start < paths.size(); start += perRequest) {
            List<Op> asked = new ArrayList<Op>();
            for (int i = start; i < Math.min(paths.size(), start + perRequest); i++) {
                String path = (String) paths.get(i);
                asked.add(isList ? Op.getChildren(path) : Op.getData(path));
            }
            window.acquire();
            client.multi(asked, answered, Integer.valueOf(start));
        }
        awaitAll();
    }

    private void take(OpResult result, int at, List[] names, byte[][] data, Stat[] stats) {
        if (result instanceof OpResult.ErrorResult) {
            count(((OpResult.ErrorResult) result).getErr());
        } else if (result instanceof OpResult.GetChildrenResult) {
            names[at] = ((OpResult.GetChildrenResult) result).getChildren();
        } else {
            data[at] = ((OpResult.GetDataResult) result).getData();
            stats[at] = ((OpResult.GetDataResult) result).getStat();
        }
    }

    /** A znode that isn't there is an answer. */
    private void count(int code) {
        if (code != 0 && code != NO_NODE) {
            refused.incrementAndGet();
        }
    }

    private void awaitAll() throws InterruptedException {
        window.acquire(inFlight);
        window.release(inFlight);
    }
}
