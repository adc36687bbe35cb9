import java.io.File;
import java.io.FileInputStream;
import java.io.FileOutputStream;
import java.io.IOException;
import java.io.OutputStream;
import org.apache.hadoop.fs.LocalFileSystem;
import org.apache.hadoop.fs.Path;
import org.apache.hadoop.fs.RawLocalFileSystem;
import org.apache.hadoop.fs.permission.FsPermission;

/**
 * The local file system, which can stand still before each single change below one folder: a file begun, half of a
 * write, a rename, a deletion, a folder made.
 *
 * One change is made at a time. Who stands still says so on one pipe and goes on when another one is written to.
 */
public class Boundaries extends LocalFileSystem {
    private static final Object ONE_AT_A_TIME = new Object();
    private static String folder = "/nowhere/";
    private static String events;
    private static String orders;
    private static String wanted = "";
    private static int at;
    private static int count;

    public Boundaries() {
        super(new Raw());
    }

    /** Stand still before the {@code number}-th change below {@code below} that begins with {@code what}; 0: never. */
    public static void arm(String below, String what, int number, String eventsPipe, String ordersPipe) {
        synchronized (ONE_AT_A_TIME) {
            folder = below + "/";
            wanted = what;
            at = number;
            events = eventsPipe;
            orders = ordersPipe;
            count = 0;
        }
    }

    /** How many changes there were since then. */
    public static int passed() {
        synchronized (ONE_AT_A_TIME) {
            return count;
        }
    }

    private static void boundary(String what, String path) throws IOException {
        String change = path.startsWith(folder) ? what + " " + path.substring(folder.length()) : null;
        if (change == null || !change.startsWith(wanted)) {
            return;
        }
        count++;
        if (count == at) {
            tell("stopped " + change);
            awaitOrder();
        }
    }

    private static void tell(String line) throws IOException {
        FileOutputStream pipe = new FileOutputStream(events);
        pipe.write((line + "\n").getBytes("UTF-8"));
        pipe.close();
    }

    private static void awaitOrder() throws IOException {
        FileInputStream pipe = new FileInputStream(orders);
        pipe.read();
        pipe.close();
    }

    private static class Raw extends RawLocalFileSystem {
        protected OutputStream createOutputStreamWithMode(Path path, boolean append, FsPermission permission)
                throws IOException {
            synchronized (ONE_AT_A_TIME) {
                boundary("create", path.toUri().getPath());
                return new Halved(super.createOutputStreamWithMode(path, append, permission), path.toUri().getPath());
            }
        }

        protected OutputStream createOutputStream(Path path, boolean append) throws IOException {
            return createOutputStreamWithMode(path, append, null);
        }

        public boolean rename(Path source, Path target) throws IOException {
            synchronized (ONE_AT_A_TIME) {
                boundary("rename", target.toUri().getPath());
                return super.rename(source, target);
            }
        }

        public boolean delete(Path path, boolean isRecursive) throws IOException {
            File file = pathToFile(path);
            File[] inside = isRecursive && file.isDirectory() ? file.listFiles() : null;
            for (int i = 0; inside != null && i < inside.length; i++) {
                delete(new Path(path, inside[i].getName()), true);
            }
            synchronized (ONE_AT_A_TIME) {
                if (file.exists()) {
                    boundary("delete", path.toUri().getPath());
                }
                return super.delete(path, isRecursive);
            }
        }

        protected boolean mkOneDirWithMode(Path path, File file, FsPermission permission) throws IOException {
            synchronized (ONE_AT_A_TIME) {
                if (!file.exists()) {
                    boundary("mkdir", path.toUri().getPath());
                }
                return super.mkOneDirWithMode(path, file, permission);
            }
        }
    }

    /** What is written goes to the file in halves, with a boundary between them. */
    private static class Halved extends OutputStream {
        private final OutputStream file;
        private final String path;

        Halved(OutputStream file, String path) {
            this.file = file;
            this.path = path;
        }

        public void write(int value) throws IOException {
            write(new byte[] {(byte) value}, 0, 1);
        }

        public void write(byte[] bytes, int from, int length) throws IOException {
            synchronized (ONE_AT_A_TIME) {
                file.write(bytes, from, length / 2);
                boundary("write", path);
                file.write(bytes, from + length / 2, length - length / 2);
            }
        }

        public void flush() throws IOException {
            file.flush();
        }

        public void close() throws IOException {
            file.close();
        }
    }
}
