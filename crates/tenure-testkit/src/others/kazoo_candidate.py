"""A candidate of kazoo, for tests and benches: kazoo_candidate.py HOSTS PATH ID TIMEOUT_MS [WITNESS]"""

import sys
import threading

from kazoo.client import KazooClient

import protocol

hosts, path, name, timeout = sys.argv[1:5]
witness = sys.argv[5] if len(sys.argv) > 5 else None
client = KazooClient(hosts=hosts, timeout=int(timeout) / 1000)
client.start()
election = client.Election(path, name)


def stand():
    called = []
    while True:
        election.run(lambda: called.append(protocol.lead(witness)))
        protocol.resigned(called.pop())


threading.Thread(target=stand, daemon=True).start()
protocol.serve(lambda: election.lock.is_acquired, election.contenders)
