"""A service behind `tenure node`: every copy answers reads, only the leader's gets writes.

    python3 examples/python/service.py 9001 orders.txt
    tenure node --listen 127.0.0.1:8001 --upstream http://127.0.0.1:9001 --leader-only forward

The same with 9002 and 8002, and with 9003 and 8003. Then, to any of the nodes:

    curl -d tea http://127.0.0.1:8002/orders
    curl http://127.0.0.1:8003/orders

All that it knows of Tenure is one header: `Tenure-Term` is on a request that was let through as the leader's.
It rises with every leader, so an order with a lower term than the last one comes from a leader of the past.
"""

import fcntl
import http.server
import pathlib
import sys

PORT, ORDERS = int(sys.argv[1]), pathlib.Path(sys.argv[2])


class Service(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_GET(self):
        self.answer(200, ORDERS.read_text() if ORDERS.exists() else "")

    def do_POST(self):
        what = self.rfile.read(int(self.headers["Content-Length"])).decode()
        term = int(self.headers.get("Tenure-Term", 0))
        with ORDERS.open("a+") as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            file.seek(0)
            last = max((int(line.split()[0]) for line in file), default=1)
            if term < last:
                return self.answer(409, f"term {term} is over: {last} has written here\n")
            file.write(f"{term} {what}\n")
        self.answer(200, f"{term} {what}\n")

    def answer(self, status, text):
        body = text.encode()
        self.send_response(status)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *args):
        pass


http.server.ThreadingHTTPServer(("127.0.0.1", PORT), Service).serve_forever()
