import java.nio.file.Path;
import org.codelibs.opensearch.runner.OpenSearchRunner;

/** One node of the cluster of the tests. It ends when its standard input ends. */
public class Node {
    /** Takes a folder, the number of the node from 1, and the ports of all nodes: HTTP, transport. */
    public static void main(String[] arguments) throws Exception {
        String folder = arguments[0];
        int number = Integer.parseInt(arguments[1]);
        String[] http = arguments[2].split(",");
        String[] transport = arguments[3].split(",");
        StringBuilder seeds = new StringBuilder();
        StringBuilder names = new StringBuilder();
        for (int other = 0; other < http.length; other++) {
            String comma = other > 0 ? "," : "";
            seeds.append(comma).append("127.0.0.1:").append(transport[other]);
            names.append(comma).append("node-").append(other + 1);
        }
        OpenSearchRunner runner = new OpenSearchRunner();
        runner.setMaxHttpPort(65535);
        runner.onBuild((at, settings) -> {
            settings.put("node.name", "node-" + number);
            settings.put("network.host", "127.0.0.1");
            settings.put("http.port", http[number - 1]);
            settings.put("transport.port", transport[number - 1]);
            settings.put("discovery.type", "zen");
            settings.put("discovery.seed_hosts", seeds.toString());
            settings.put("cluster.initial_cluster_manager_nodes", names.toString());
            settings.put("cluster.routing.allocation.disk.threshold_enabled", "false");
            settings.put("path.data", Path.of(folder, "data-" + number).toString());
        });
        int port = Integer.parseInt(http[number - 1]);
        runner.build(OpenSearchRunner.newConfigs().basePath(folder + "/node-" + number)
            .clusterName("verbatim-tests").numOfNode(1).baseHttpPort(port - 1).build());
        while (System.in.read() >= 0) {
            // Nobody writes: the end of the input is the end of the node.
        }
        runner.close();
        System.exit(0);
    }
}
