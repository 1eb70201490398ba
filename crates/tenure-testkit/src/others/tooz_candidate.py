"""A candidate of tooz on ZooKeeper, for benches: tooz_candidate.py HOSTS GROUP ID TIMEOUT_MS"""

import sys
import threading
import time

from tooz import ToozError, coordination

import protocol

# As in the example of its documentation.
PAUSE = 0.1

hosts, group, name, timeout = sys.argv[1:5]
group = group.strip("/").replace("/", "-").encode()
url = f"zookeeper://{hosts}?timeout={int(timeout) // 1000}"
coordinator = coordination.get_coordinator(url, name.encode())
coordinator.start()
try:
    coordinator.create_group(group).get()
except coordination.GroupAlreadyExist:
    pass
coordinator.join_group(group).get()
elected = threading.Event()
coordinator.watch_elected_as_leader(group, lambda event: elected.set())


def claims():
    """It tells nobody that a leadership is over; this is what it goes by itself."""
    return elected.is_set() and coordinator._get_group_leader_lock(group).is_acquired


def stand():
    while True:
        while not elected.is_set():
            try:
                coordinator.run_watchers()
            except ToozError:
                pass  # it is not connected; the example would end here
            if not elected.is_set():
                time.sleep(PAUSE)
        called = protocol.lead()
        coordinator.stand_down_group_leader(group)
        elected.clear()
        protocol.resigned(called)


threading.Thread(target=stand, daemon=True).start()
protocol.serve(claims, lambda: [member.decode() for member in coordinator.get_members(group).get()])
