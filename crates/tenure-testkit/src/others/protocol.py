"""What candidates in Python say, and what they can be told: `mod.rs` has the words."""

import os
import queue
import sys
import threading
import time

orders = queue.Queue()
resignations = queue.Queue()


def now():
    return time.clock_gettime_ns(time.CLOCK_BOOTTIME)


def say(words):
    print(words, flush=True)


def lead(witness=None):
    """Until told to resign; the instant at which it was."""
    try:
        if witness:
            os.close(os.open(witness, os.O_CREAT | os.O_EXCL))
    except FileExistsError:
        say("double")
    say(f"leads {now()}")
    resignations.get()
    if witness:
        os.unlink(witness)
    return now()


def resigned(called):
    """Until told to stand again."""
    say(f"resigned {called}")
    orders.get()


def watch(claims):
    claimed = asked = now()
    say("watches")
    while claims():
        claimed = asked
        time.sleep(0.001)
        asked = now()
    say(f"ceased {claimed}")


def serve(claims, contenders):
    """Follows orders until there are none."""
    for line in sys.stdin:
        order = line.strip()
        if order == "list":
            say("list " + " ".join(contenders()))
        elif order == "watch":
            threading.Thread(target=watch, args=[claims], daemon=True).start()
        elif order == "resign":
            resignations.put(order)
        else:
            orders.put(order)
