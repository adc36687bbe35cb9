import java.io.File;
import org.codehaus.commons.compiler.util.resource.FileResource;
import org.codehaus.commons.compiler.util.resource.Resource;
import org.codehaus.janino.ClassLoaderIClassLoader;
import org.codehaus.janino.Compiler;

/** Compiles source files into a folder with Janino: {@code Compile <folder> <source> ...}. */
public class Compile {
    public static void main(String[] arguments) throws Exception {
        Resource[] sources = new Resource[arguments.length - 1];
        for (int i = 1; i < arguments.length; i++) {
            sources[i - 1] = new FileResource(new File(arguments[i]));
        }
        Compiler compiler = new Compiler();
        compiler.setIClassLoader(new ClassLoaderIClassLoader(ClassLoader.getSystemClassLoader()));
        compiler.setDestinationDirectory(new File(arguments[0]), false);
        compiler.compile(sources);
    }
}
