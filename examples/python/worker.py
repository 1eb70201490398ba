"""A worker beside `tenure node`: it works on the partitions that the node owns, one thread for each.

    tenure node --listen 127.0.0.1:8001 --task-list billing/invoices=8 --work billing/invoices --token-file token
    python3 examples/python/worker.py http://127.0.0.1:8001 billing/invoices token

The same with 8002, and each has half of the partitions. The connection says that the program is there, and brings
what it may work on. Three rules keep a partition with one worker:

- It works no longer than to the deadline that it was told last, which every renewal moves.
- When a partition is revoked it stops, and says so; only then is it given to another node.
- Whatever it writes to refuses lower terms than it has seen. (Here it only prints them.)
"""

import json
import pathlib
import sys
import threading
import time
import urllib.error
import urllib.request

NODE, TASK_LIST, TOKEN = sys.argv[1], sys.argv[2], pathlib.Path(sys.argv[3]).read_text().strip()


def post(path, **body):
    headers = {"Authorization": f"Bearer {TOKEN}", "Content-Type": "application/json"}
    request = urllib.request.Request(NODE + path, json.dumps(body).encode(), headers)
    return urllib.request.urlopen(request, timeout=60)


class Work(threading.Thread):
    """The work on one partition."""

    deadline = 0  # of all of it, on the clock that node and program share

    def __init__(self, partition, term):
        super().__init__(daemon=True)
        self.partition, self.term, self.revoked = partition, term, threading.Event()

    def may_work(self):
        now = time.clock_gettime_ns(time.CLOCK_BOOTTIME) // 1_000_000
        return not self.revoked.is_set() and now < Work.deadline

    def run(self):
        while self.may_work():
            print(f"partition {self.partition}: a step under term {self.term}", flush=True)
            self.revoked.wait(0.1)


def follow(events, running):
    """Starts and stops work as the node says, until the connection ends."""
    kind = None
    for line in events:
        name, _, value = line.decode().rstrip("\r\n").partition(": ")
        if name == "event":
            kind = value
        if name != "data":
            continue
        told = json.loads(value)
        Work.deadline = max(Work.deadline, told.get("deadline_boot_ms", 0))
        key = told.get("partition"), told.get("term")
        if kind == "partition_assigned" and not (key in running and running[key].is_alive()):
            running[key] = Work(*key)
            running[key].start()
        if kind == "partition_revoked":
            if work := running.pop(key, None):
                work.revoked.set()
                work.join()
            print(f"partition {key[0]}: stopped", flush=True)
            post("/cluster/partitions/release", task_list=TASK_LIST, partition=key[0], term=key[1]).close()


running = {}
while True:
    try:
        with post("/cluster/partitions/work", task_list=TASK_LIST) as events:
            follow(events, running)
    except (OSError, urllib.error.URLError) as error:
        print(f"the node is away, or another program is there: {error}", file=sys.stderr, flush=True)
    time.sleep(1)  # what runs goes on meanwhile, to its deadline
