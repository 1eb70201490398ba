// A candidate of Apache Curator, for tests and benches:
// java Curator.java latch|selector HOSTS PATH ID TIMEOUT_MS CLOCK_NS [WITNESS]
// `mod.rs` has what it says, and what it can be told. CLOCK_NS is how far the boot clock is ahead of Java's.

import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.nio.file.FileAlreadyExistsException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Collection;
import java.util.concurrent.SynchronousQueue;
import java.util.function.BooleanSupplier;
import java.util.stream.Collectors;
import org.apache.curator.framework.CuratorFramework;
import org.apache.curator.framework.CuratorFrameworkFactory;
import org.apache.curator.framework.recipes.leader.LeaderLatch;
import org.apache.curator.framework.recipes.leader.LeaderSelector;
import org.apache.curator.framework.recipes.leader.LeaderSelectorListenerAdapter;
import org.apache.curator.framework.recipes.leader.Participant;
import org.apache.curator.retry.RetryOneTime;

public class Curator {
    interface Listing {
        Collection<Participant> all() throws Exception;
    }

    static final SynchronousQueue<String> orders = new SynchronousQueue<>();
    static final SynchronousQueue<String> resignations = new SynchronousQueue<>();
    static volatile Listing listing;
    static volatile BooleanSupplier claim;
    static long clock;
    static Path witness;

    public static void main(String[] words) throws Exception {
        int timeout = Integer.parseInt(words[4]);
        clock = Long.parseLong(words[5]);
        witness = words.length > 6 ? Path.of(words[6]) : null;
        CuratorFramework client =
                CuratorFrameworkFactory.newClient(words[1], timeout, timeout, new RetryOneTime(100));
        client.start();
        Thread reader = new Thread(Curator::read);
        reader.setDaemon(true);
        reader.start();
        if (words[0].equals("latch")) {
            latch(client, words[2], words[3]);
        } else {
            select(client, words[2], words[3]);
        }
    }

    static void latch(CuratorFramework client, String path, String id) throws Exception {
        while (true) {
            LeaderLatch latch = new LeaderLatch(client, path, id);
            listing = latch::getParticipants;
            claim = latch::hasLeadership;
            latch.start();
            latch.await();
            long called = lead();
            latch.close();
            say("resigned " + called);
            orders.take();
        }
    }

    static void select(CuratorFramework client, String path, String id) throws Exception {
        LeaderSelector selector = new LeaderSelector(client, path, new LeaderSelectorListenerAdapter() {
            @Override
            public void takeLeadership(CuratorFramework client) throws Exception {
                say("resigned " + lead());
            }
        });
        selector.setId(id);
        listing = selector::getParticipants;
        claim = selector::hasLeadership;
        selector.start();
        while (true) {
            orders.take();
            while (!selector.requeue()) {
                Thread.sleep(1); // it still leaves its former place
            }
        }
    }

    /** Until told to resign; the instant at which it was. */
    static long lead() throws Exception {
        try {
            if (witness != null) Files.createFile(witness);
        } catch (FileAlreadyExistsException somebodyElseLeads) {
            say("double");
        }
        say("leads " + now());
        resignations.take();
        if (witness != null) Files.delete(witness);
        return now();
    }

    static void read() {
        try {
            BufferedReader lines = new BufferedReader(new InputStreamReader(System.in));
            for (String line = lines.readLine(); line != null; line = lines.readLine()) {
                switch (line) {
                    case "list":
                        say("list "
                                + listing.all().stream().map(Participant::getId).collect(Collectors.joining(" ")));
                        break;
                    case "watch":
                        new Thread(Curator::watch).start();
                        break;
                    case "resign":
                        resignations.put(line);
                        break;
                    default:
                        orders.put(line);
                }
            }
        } catch (Exception problem) {
            say("problem " + problem);
        }
        System.exit(0);
    }

    static void watch() {
        long claimed = now();
        say("watches");
        for (long asked = claimed; claim.getAsBoolean(); asked = now()) {
            claimed = asked;
            try {
                Thread.sleep(1);
            } catch (InterruptedException nobodyDoes) {
                return;
            }
        }
        say("ceased " + claimed);
    }

    static long now() {
        return System.nanoTime() + clock;
    }

    static synchronized void say(String words) {
        System.out.println(words);
        System.out.flush();
    }
}
