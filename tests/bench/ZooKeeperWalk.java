import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.Semaphore;
import java.util.concurrent.atomic.AtomicInteger;
import org.apache.zookeeper.AsyncCallback;
import org.apache.zookeeper.WatchedEvent;
import org.apache.zookeeper.Watcher;
import org.apache.zookeeper.ZooKeeper;
import org.apache.zookeeper.data.Stat;

/**
 * Reads /consumers with the Java client: {@code ZooKeeperWalk <connect string> <requests in flight>}.
 *
 * <p>For every line on standard input it reads the tree once and prints "seconds znodes-read znodes-listed refused".
 * It knows the tree's layout, so it asks only for what our reader asks for, every request asynchronous. What it read
 * (data and stats) is kept in arrays until the clock was stopped; nothing is parsed.
 */
public class ZooKeeperWalk {
    private static final String ROOT = "/consumers";
    private static final String[] BRANCHES = {"ids", "migration/ids", "owners", "offsets"};

    private final ZooKeeper client;
    private final int inFlight;
    private final Semaphore window;
    private final AtomicInteger refused = new AtomicInteger();
    private int read;
    private int listed;

    private ZooKeeperWalk(ZooKeeper client, int inFlight) {
        this.client = client;
        this.inFlight = inFlight;
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
        BufferedReader lines = new BufferedReader(new InputStreamReader(System.in));
        while (lines.readLine() != null) {
            ZooKeeperWalk walk = new ZooKeeperWalk(client, Integer.parseInt(arguments[1]));
            long started = System.nanoTime();
            walk.run();
            double seconds = (System.nanoTime() - started) / 1e9;
            System.out.println(seconds + " " + walk.read + " " + walk.listed + " " + walk.refused.get());
            System.out.flush();
        }
        client.close();
    }

    private void run() throws InterruptedException {
        List<String> groups = new ArrayList<String>();
        addChildren(groups, ROOT, list(Collections.singletonList(ROOT))[0]);
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

    private static void addChildren(List<String> paths, String parent, List names) {
        for (Object name : names) {
            paths.add(parent + "/" + name);
        }
    }

    /** Raw lists, because the compiler that this is built with (Janino) knows no arrays of generic types. */
    private List[] list(List<String> paths) throws InterruptedException {
        final List[] answers = new List[paths.size()];
        AsyncCallback.ChildrenCallback answered = new AsyncCallback.ChildrenCallback() {
            public void processResult(int code, String path, Object index, List<String> names) {
                answers[((Integer) index).intValue()] = names;
                done(code);
            }
        };
        for (int i = 0; i < answers.length; i++) {
            window.acquire();
            client.getChildren((String) paths.get(i), false, answered, Integer.valueOf(i));
        }
        awaitAll();
        for (int i = 0; i < answers.length; i++) {
            listed += answers[i] == null ? 0 : 1;
        }
        return answers;
    }

    private void get(List<String> paths) throws InterruptedException {
        final byte[][] data = new byte[paths.size()][];
        final Stat[] stats = new Stat[data.length];
        AsyncCallback.DataCallback answered = new AsyncCallback.DataCallback() {
            public void processResult(int code, String path, Object index, byte[] found, Stat stat) {
                data[((Integer) index).intValue()] = found;
                stats[((Integer) index).intValue()] = stat;
                done(code);
            }
        };
        for (int i = 0; i < data.length; i++) {
            window.acquire();
            client.getData((String) paths.get(i), false, answered, Integer.valueOf(i));
        }
        awaitAll();
        for (int i = 0; i < data.length; i++) {
            read += stats[i] == null ? 0 : 1;
        }
    }

    /** A znode that isn't there (NONODE, -101) is an answer. */
    private void done(int code) {
        if (code != 0 && code != -101) {
            refused.incrementAndGet();
        }
        window.release();
    }

    private void awaitAll() throws InterruptedException {
        window.acquire(inFlight);
        window.release(inFlight);
    }
}
