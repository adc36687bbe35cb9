import java.io.File;
import java.io.FileInputStream;
import java.io.FileOutputStream;
import java.io.FileWriter;
import java.io.Writer;
import java.lang.reflect.Method;
import java.security.KeyStore;
import java.security.cert.Certificate;
import java.util.Base64;

/**
 * Makes a lab's certificates: {@code Certificates <folder> <password>}.
 *
 * An authority, a server certificate for 127.0.0.1 and a client certificate, by the JDK's own key tool, called inside
 * this one process: a runtime without the tool's command has its classes. Leaves ca.pem, other-ca.pem (an authority
 * that signed nothing), client.pem, client.key, server.p12 and trust.p12.
 */
public class Certificates {
    public static void main(String[] arguments) throws Exception {
        File folder = new File(arguments[0]);
        String password = arguments[1];
        String store = new File(folder, "all.p12").getPath();
        String[] authority = {"-ext", "bc:c=ca:true", "-ext", "ku:c=keyCertSign"};
        String[] server = {"-signer", "ca", "-ext", "san=ip:127.0.0.1,dns:localhost", "-ext", "eku=serverAuth"};
        String[] client = {"-signer", "ca", "-ext", "eku=clientAuth"};
        pair(store, password, "ca", "CN=offramp lab authority", authority);
        pair(store, password, "other", "CN=another authority", authority);
        pair(store, password, "server", "CN=127.0.0.1", server);
        pair(store, password, "client", "CN=alice", client);

        KeyStore all = KeyStore.getInstance("PKCS12");
        FileInputStream stream = new FileInputStream(store);
        all.load(stream, password.toCharArray());
        stream.close();
        Certificate ca = all.getCertificate("ca");
        pem(new File(folder, "ca.pem"), "CERTIFICATE", ca.getEncoded());
        pem(new File(folder, "other-ca.pem"), "CERTIFICATE", all.getCertificate("other").getEncoded());
        pem(new File(folder, "client.pem"), "CERTIFICATE", all.getCertificate("client").getEncoded());
        pem(new File(folder, "client.key"), "PRIVATE KEY", all.getKey("client", password.toCharArray()).getEncoded());

        KeyStore own = empty();
        Certificate[] chain = {all.getCertificate("server"), ca};
        own.setKeyEntry("server", all.getKey("server", password.toCharArray()), password.toCharArray(), chain);
        save(own, new File(folder, "server.p12"), password);
        KeyStore trusted = empty();
        trusted.setCertificateEntry("ca", ca);
        save(trusted, new File(folder, "trust.p12"), password);
    }

    private static void pair(String store, String password, String alias, String name, String[] more) throws Exception {
        String[] all = {
            "-genkeypair", "-alias", alias, "-dname", name, "-keyalg", "EC", "-groupname", "secp256r1", "-validity", "30",
            "-keystore", store, "-storetype", "PKCS12", "-storepass", password
        };
        String[] arguments = new String[all.length + more.length];
        System.arraycopy(all, 0, arguments, 0, all.length);
        System.arraycopy(more, 0, arguments, all.length, more.length);
        Method main = Class.forName("sun.security.tools.keytool.Main").getMethod("main", new Class[] {String[].class});
        main.invoke(null, new Object[] {arguments});
    }

    private static KeyStore empty() throws Exception {
        KeyStore store = KeyStore.getInstance("PKCS12");
        store.load(null, null);
        return store;
    }

    private static void save(KeyStore store, File file, String password) throws Exception {
        FileOutputStream stream = new FileOutputStream(file);
        store.store(stream, password.toCharArray());
        stream.close();
    }

    private static void pem(File file, String kind, byte[] content) throws Exception {
        Writer writer = new FileWriter(file);
        String text = Base64.getMimeEncoder(64, "\n".getBytes("US-ASCII")).encodeToString(content);
        writer.write("-----BEGIN " + kind + "-----\n" + text + "\n-----END " + kind + "-----\n");
        writer.close();
    }
}
