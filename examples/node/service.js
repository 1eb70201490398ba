// A service behind `tenure node`: every copy answers reads, only the leader's gets writes.
//
//     node examples/node/service.js 9001 orders.txt
//     tenure node --listen 127.0.0.1:8001 --upstream http://127.0.0.1:9001 --leader-only forward
//
// The same with 9002 and 8002, and with 9003 and 8003. Then, to any of the nodes:
//
//     curl -d tea http://127.0.0.1:8002/orders
//     curl http://127.0.0.1:8003/orders
//
// All that it knows of Tenure is one header: `Tenure-Term` is on a request that was let through as the leader's.
// It rises with every leader, so an order with a lower term than the last one comes from a leader of the past.
// (Where copies may write at the same instant, compare and write in one transaction: docs/fencing.md.)

const fs = require("node:fs");
const http = require("node:http");

const [port, orders] = process.argv.slice(2);

const read = () => (fs.existsSync(orders) ? fs.readFileSync(orders, "utf8") : "");

function order(term, what) {
  const last = Math.max(1, ...read().split("\n").map((line) => parseInt(line) || 0));
  if (term < last) return [409, `term ${term} is over: ${last} has written here\n`];
  fs.appendFileSync(orders, `${term} ${what}\n`);
  return [200, `${term} ${what}\n`];
}

const server = http.createServer(async (request, response) => {
  let what = "";
  for await (const part of request) what += part;
  const term = Number(request.headers["tenure-term"] ?? 0);
  const [status, text] = request.method === "POST" ? order(term, what) : [200, read()];
  response.writeHead(status, { "Content-Length": Buffer.byteLength(text) }).end(text);
});

server.listen(Number(port), "127.0.0.1");
