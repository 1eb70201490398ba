// The page of a node. Everything that comes from the cluster is shown with textContent: it is text, whatever
// it looks like. Nothing is kept but bounded lists, and nothing is drawn more often than a person can see.
'use strict';

const SILENT_AFTER = 3000;      // ms without an answer until the page says that it is stale
const PATIENCE = 2500;          // ms for an answer
const EVENTS_KEPT = 1000, EVENTS_SHOWN = 200, NODES_SHOWN = 500, TERMS_SHOWN = 100, POINTS = 60;
const FILTERED_FROM = 8;        // nodes: fewer are found without a search

const $ = (id) => document.getElementById(id);
const make = (name, text, kind) => {
  const element = document.createElement(name);
  if (text !== undefined && text !== null) element.textContent = String(text);
  if (kind) element.className = kind;
  return element;
};
const show = (element, text) => { if (element.textContent !== text) element.textContent = text; };
// The cluster's wall clock.
const present = () => Date.now() + skew;
// Only a bare origin of http or https is ever called or linked to.
const origin = (url) => {
  try {
    const parsed = new URL(url);
    return /^https?:$/.test(parsed.protocol) && !parsed.username ? parsed.origin : null;
  } catch { return null; }
};

const HOME = location.origin;
let base = HOME;                // the node that is asked
let others = [];                // where else to ask
let heard = null;               // when it last answered (performance.now)
let status = null, health = null, leader = null;
let skew = 0;                   // the cluster's wall clock against ours: for ages that people read
let events = [], dropped = 0, lastId = 0, stream = null, streamBase = null;
let asking = false, failures = 0, begun = false;
const watchers = [];            // who else hears of events: the map
const dirty = new Set();        // what is to be drawn again

const DRAWN_EVERY = 100;        // ms: as often as a person can follow, however much is told
let drawnAt = -DRAWN_EVERY;
const draw = (part) => {
  if (dirty.size === 0) setTimeout(() => requestAnimationFrame(() => {
    const parts = [...dirty];
    dirty.clear();
    drawnAt = performance.now();
    for (const each of parts) PARTS[each]();
  }), drawnAt + DRAWN_EVERY - performance.now());
  dirty.add(part);
};

// ----- asking ------------------------------------------------------------------------------------

async function ask(path, whatever) {
  const response = await fetch(base + path, { signal: AbortSignal.timeout(PATIENCE), cache: 'no-store', credentials: 'omit' });
  if (!response.ok && !whatever) throw new Error(path + ' answers ' + response.status);
  return path === '/metrics' ? response.text() : response.json();
}

async function look() {
  if (asking) return;
  asking = true;
  const asked = base;
  try {
    const [said, well, led] = await Promise.all([ask('/cluster/status'), ask('/cluster/health', true), ask('/cluster/leader', true)]);
    if (asked !== base) return;
    heard = performance.now();
    failures = 0;
    status = said; health = well;
    signOfLife(said.lease);
    leader = led.leader_id && led.expires_in_ms !== undefined ? { ...led, at: heard } : null;
    const time = Date.parse(well.timestamp);
    if (time) skew = time - Date.now();
    const known = said.nodes.filter((n) => n.state === 'live' && n.api_url).map((n) => origin(n.api_url));
    others = [...new Set([HOME, ...known])].filter(Boolean);
    if (!begun) await begin();
    follow();
    for (const part of ['leader', 'glance', 'nodes', 'orders', 'terms']) draw(part);
  } catch {
    failures += 1;
    if (failures >= 2) elsewhere();
  } finally {
    asking = false;
    draw('link');
  }
}

// The node does not answer: the next one that is known is asked.
function elsewhere() {
  const next = others[(others.indexOf(base) + 1) % Math.max(others.length, 1)];
  failures = 0;
  if (next && next !== base) {
    base = next;
    follow();
    setTimeout(look, 0);
  }
}

// Events as they come; whoever is asked next goes on where the last one stopped.
function follow() {
  if (!begun) return;
  if (stream && streamBase === base && stream.readyState !== EventSource.CLOSED) return;
  if (stream) stream.close();
  streamBase = base;
  stream = new EventSource(base + '/cluster/events?since=' + lastId);
  for (const name of NAMES) stream.addEventListener(name, (message) => note(JSON.parse(message.data)));
  stream.onmessage = (message) => note(JSON.parse(message.data));
  // A stream that breaks is how the death of a node is noticed first.
  stream.onerror = () => setTimeout(look, 50);
}

const NAMES = ['election_started', 'leader_elected', 'leader_lost', 'leader_resigned', 'leader_changed', 'leader_down',
  'lease_renewed', 'in_jeopardy', 'node_joined', 'node_left', 'node_expired',
  'node_unhealthy', 'node_healthy', 'cluster_degraded', 'cluster_recovered',
  'transfer_requested', 'election_deleted', 'plan_published', 'partition_assigned', 'partition_revoked', 'partition_released'];

let soon = null;
function note(event) {
  if (typeof event.id !== 'number' || event.id <= lastId) return;
  lastId = event.id;
  events.push(event);
  if (events.length > 2 * EVENTS_KEPT) { dropped += EVENTS_KEPT; events = events.slice(-EVENTS_KEPT); }
  remember(event);
  for (const watcher of watchers) watcher(event);
  draw('events');
  draw('terms');
  if (soon === null) soon = setTimeout(() => { soon = null; look(); lists(); }, 30);
}

// The newest of the history, once: the stream goes on from there.
async function begin() {
  for (const event of await ask('/cluster/events?limit=' + EVENTS_KEPT)) note(event);
  begun = true;
}

let listed = -1000;
async function lists() {
  if (performance.now() - listed < 500) return;
  listed = performance.now();
  try {
    const found = await ask('/cluster/elections');
    const list = found.slice(0, 200).map((e) => {
      const item = make('li');
      item.append(make('strong', e.election), make('span', e.leader_id ? ': ' + e.leader_id + ' leads under term ' + e.term : ': nobody leads; the last term was ' + e.term));
      return item;
    });
    if (found.length > 200) list.push(make('li', 'and ' + (found.length - 200) + ' more', 'faint'));
    // This page's own is told above; what is not known yet, and is the only one, is most likely that.
    const own = found.length === 1 && (status === null || found[0].election === status.election);
    $('elections-card').hidden = found.length === 0 || own;
    $('elections').replaceChildren(...list);
  } catch { /* said elsewhere: the page is stale */ }
}

// ----- drawing -----------------------------------------------------------------------------------

const PARTS = { leader: drawLeader, glance: drawGlance, nodes: drawNodes, events: drawEvents, terms: drawTerms, link: drawLink, orders: drawOrders };

let told = null;
function drawLeader() {
  show($('election'), status.election);
  const now = leader ? leader.leader_id : null;
  // A node that does not reach the store cannot tell whether another leads.
  const words = now !== null ? now : health.store_error ? 'not known' : 'nobody leads';
  if (words !== told) {
    told = words;
    show($('leader'), words);
    $('leader').className = now !== null ? 'big good' : health.store_error ? 'big warn' : 'big bad';
    document.title = (now !== null ? now + ' leads' : health.store_error ? 'leader not known' : 'nobody leads') + ' · Tenure';
  }
  const last = (health.store_error ? 'this node does not reach the store; ' : '') + 'the last ' + (health.store_error ? 'known ' : '') + 'term was ' + status.term;
  show($('term'), now === null ? last : 'leads under term ' + leader.term + (leader.hostname ? ', on ' + leader.hostname : ''));
  drawLease();
}

function drawLease() {
  let share = 0, text = '';
  if (leader) {
    const left = leader.expires_in_ms - (performance.now() - leader.at);
    const ttl = leader.age_ms + leader.expires_in_ms;
    share = Math.max(0, Math.min(1, left / Math.max(ttl, 1)));
    text = left > 0 ? 'leads for ' + length(left) + ' more, unless it renews' : 'its lease has run out, unless it has renewed meanwhile';
  }
  $('left').style.width = (share * 100).toFixed(1) + '%';
  $('left').classList.toggle('low', share < 0.34);
  // In tens, or a screen reader would never stop.
  $('bar').setAttribute('aria-valuenow', String(Math.round(share * 10) * 10));
  show($('lease'), text);
}

function drawGlance() {
  const kind = { healthy: 'good', degraded: 'warn', unhealthy: 'bad' }[health.status], few = status.cluster_size < status.minimum_size;
  const why = health.status === 'healthy' ? '' : health.status === 'degraded' ? (few ? ': too few nodes live' : leader ? '' : ': nobody leads') : ': no answer from the store in time';
  const rows = [['health', health.status + why, kind],
    ['live nodes', status.cluster_size + (status.minimum_size > 1 ? ' (' + status.minimum_size + ' needed)' : ''), few ? 'warn' : 'good'],
    ['store', health.store_error || (status.known_ms_ago === null ? 'not reached yet' : 'reached ' + length(status.known_ms_ago) + ' ago'), health.store_error ? 'bad' : status.known_ms_ago === null ? 'warn' : 'good'],
    ['told by', status.node_id + ' (' + status.state + ')'], ['version', health.version]];
  $('glance').replaceChildren(...rows.flatMap(([name, value, mark]) => [make('dt', name), make('dd', value, mark || 'plain')]));
  show($('charts-of'), status.node_id);
}

// A node that lives, but whose health probe fails, leads nothing and is no candidate.
const unhealthy = (node) => node.problem && node.state === 'live';
const condition = (node) => (unhealthy(node) ? 'unhealthy: ' + node.problem : node.state);

const rows = new Map();         // node id -> its row: rows are changed, not made anew
function drawNodes() {
  const wanted = $('filter').value.toLowerCase();
  $('filter-label').hidden = !wanted && status.nodes.length <= FILTERED_FROM;
  const leads = leader && leader.leader_id;
  const matching = status.nodes.filter((n) => !wanted || (n.node_id + ' ' + n.hostname + ' ' + condition(n)).toLowerCase().includes(wanted));
  const rank = (n) => (n.node_id === leads ? 0 : unhealthy(n) ? 2 : { live: 1, silent: 3 }[n.state] || 4);
  matching.sort((a, b) => rank(a) - rank(b) || (a.node_id < b.node_id ? -1 : 1));
  const shown = matching.slice(0, NODES_SHOWN);
  const kept = new Set();
  const body = $('nodes');
  shown.forEach((node, index) => {
    kept.add(node.node_id);
    let row = rows.get(node.node_id);
    if (!row) {
      row = make('tr');
      for (let i = 0; i < 6; i += 1) row.append(make('td'));
      row.cells[2].className = 'fixed';
      rows.set(node.node_id, row);
    }
    const state = node.node_id === leads && node.state === 'live' ? 'leader' : condition(node);
    const age = length(Math.max(0, present() - Date.parse(node.renewed_at))) + ' ago';
    [node.node_id, state, age, node.hostname, node.version].forEach((text, i) => show(row.cells[i], text));
    row.cells[1].className = { leader: 'good', live: 'good', silent: 'warn' }[state] ?? (unhealthy(node) ? 'bad' : 'faint');
    const at = node.api_url && (node.state === 'live') ? origin(node.api_url) : null;
    if ((row.dataset.at || '') !== (at || '')) {
      row.dataset.at = at || '';
      row.cells[5].replaceChildren();
      if (at) { const link = make('a', at); link.href = at + '/'; link.rel = 'noreferrer'; row.cells[5].append(link); }
    }
    if (body.rows[index] !== row) body.insertBefore(row, body.rows[index] || null);
  });
  for (const [id, row] of rows) if (!kept.has(id)) { row.remove(); rows.delete(id); }
  show($('nodes-more'), matching.length > shown.length ? 'and ' + (matching.length - shown.length) + ' more: narrow the search' : '');
}

const KINDS = { leader_lost: 'bad', node_expired: 'bad', node_unhealthy: 'bad', leader_elected: 'good', node_healthy: 'good', cluster_recovered: 'good', cluster_degraded: 'warn' };
function drawEvents() {
  const shown = events.slice(-EVENTS_SHOWN).reverse();
  const body = $('events'), first = body.rows[0] ? Number(body.rows[0].dataset.id) : 0;
  const fresh = shown.filter((e) => e.id > first).map((event) => {
    const row = make('tr');
    row.dataset.id = event.id;
    row.append(make('td', clock(event.time), 'fixed'), make('td', event.event, 'kind ' + (KINDS[event.event] || 'plain')), make('td', sentence(event)));
    return row;
  });
  body.prepend(...fresh);
  while (body.rows.length > EVENTS_SHOWN) body.deleteRow(-1);
  const older = events.length + dropped - body.rows.length;
  show($('events-more'), events.length === 0 ? 'nothing has happened yet' : older > 0 ? 'the newest ' + body.rows.length + '; older ones: tenure events' : '');
}

function drawLink() {
  const silent = heard === null ? null : performance.now() - heard;
  const away = base !== HOME;
  show($('link'), heard === null ? 'no answer yet' : (away ? 'reading from ' + base : 'live') + (status ? ', told by ' + status.node_id : ''));
  let stale = '', age = '';
  if (silent === null ? performance.now() > SILENT_AFTER : silent > SILENT_AFTER) {
    stale = silent === null ? 'This node has not answered yet.' : 'Stale: nobody answers. What is shown was true then. Trying ' + base + '…';
    if (silent !== null) age = 'The last answer is ' + length(silent) + ' old.';
  } else if (status && health && health.store_error) {
    stale = 'Stale: ' + status.node_id + ' does not reach the store (' + health.store_error + ').';
    age = 'What is shown is ' + length(status.known_ms_ago || 0) + ' old.';
  } else if (away) {
    stale = 'The node whose page this is (' + HOME + ') does not answer. Reading from ' + base + ' instead.';
  }
  $('stale').hidden = stale === '';
  show($('stale-what'), stale);
  show($('stale-age'), age);
}

// ----- handing over ------------------------------------------------------------------------------

function drawOrders() {
  // The token is for the node whose page this is: no other may be sent it from here.
  const home = base === HOME;
  $('hand').disabled = !home || !leader;
  if (!home) show($('answer'), 'Open the page of a node that lives to hand over.');
  const to = $('to'), names = status.nodes.filter((n) => n.state === 'live' && !(leader && n.node_id === leader.leader_id)).map((n) => n.node_id).slice(0, NODES_SHOWN);
  if (to.dataset.names === JSON.stringify(names)) return;
  to.dataset.names = JSON.stringify(names);
  const chosen = to.value;
  to.replaceChildren(make('option', 'the first in line'), ...names.map((name) => make('option', name)));
  to.options[0].value = '';
  to.value = names.includes(chosen) ? chosen : '';
}

$('form').addEventListener('submit', async (submitted) => {
  submitted.preventDefault();
  const to = $('to').value, answer = $('answer');
  show(answer, 'asking…');
  try {
    const response = await fetch(HOME + (to ? '/cluster/transfer' : '/cluster/resign'), {
      method: 'POST', headers: { authorization: 'Bearer ' + $('token').value }, body: to ? JSON.stringify({ to }) : '',
      signal: AbortSignal.timeout(PATIENCE), credentials: 'omit',
    });
    const said = await response.json();
    show(answer, !response.ok ? said.title + (said.detail ? ': ' + said.detail : '')
      : to && said.leader_id === to ? to + ' already leads, under term ' + said.term
        : said.leader_id + ' was asked to give up term ' + said.term + (to ? ' for ' + to : ''));
  } catch { show(answer, 'no answer: the node may be gone'); }
});

// ----- small charts ------------------------------------------------------------------------------

const CHARTS = [
  { name: 'renewals per second', unit: '', of: (m, last, s) => last && (sum(m, 'tenure_heartbeats_total') - sum(last, 'tenure_heartbeats_total')) / s },
  { name: 'a renewal takes', unit: ' ms', of: (m, last) => mean(m, last, 'tenure_renewal_seconds') },
  { name: 'a request to the store takes', unit: ' ms', of: (m, last) => mean(m, last, 'tenure_store_request_seconds') },
  { name: 'leaders since this node started', unit: '', of: (m) => sum(m, 'tenure_leader_changes_total') },
];
const sum = (metrics, name) => metrics.filter(([n]) => n === name).reduce((total, [, value]) => total + value, 0);
function mean(now, last, name) {
  if (!last) return null;
  const count = sum(now, name + '_count') - sum(last, name + '_count');
  return count > 0 ? (sum(now, name + '_sum') - sum(last, name + '_sum')) / count * 1000 : null;
}

let before = null, beforeAt = 0, beforeBase = null;
for (const chart of CHARTS) {
  const figure = make('figure'), svg = document.createElementNS('http://www.w3.org/2000/svg', 'svg');
  chart.line = document.createElementNS('http://www.w3.org/2000/svg', 'polyline');
  svg.setAttribute('viewBox', '0 0 59 20');
  svg.setAttribute('preserveAspectRatio', 'none');
  svg.setAttribute('aria-hidden', 'true');
  svg.append(chart.line);
  chart.words = make('figcaption', chart.name);
  chart.value = make('b', '–');
  chart.words.prepend(chart.value);
  chart.points = [];
  figure.append(svg, chart.words);
  $('charts').append(figure);
}

async function measure() {
  try {
    const text = await ask('/metrics');
    const now = text.split('\n').filter((line) => line && line[0] !== '#').map((line) => {
      const value = line.lastIndexOf(' '), brace = line.indexOf('{');
      return [line.slice(0, brace < 0 ? value : brace), Number(line.slice(value + 1))];
    });
    const at = performance.now(), last = beforeBase === base ? before : null;
    for (const chart of CHARTS) {
      const point = chart.of(now, last, (at - beforeAt) / 1000);
      if (typeof point !== 'number' || !Number.isFinite(point)) continue;
      chart.points = [...chart.points, point].slice(-POINTS);
      const most = Math.max(...chart.points, 1e-9);
      chart.line.setAttribute('points', chart.points.map((p, i) => i + ',' + (19 - p / most * 17).toFixed(2)).join(' '));
      show(chart.value, (point >= 100 || Number.isInteger(point) ? point.toFixed(0) : point.toFixed(2)) + chart.unit);
    }
    before = now; beforeAt = at; beforeBase = base;
  } catch { /* said elsewhere */ }
}

$('filter').addEventListener('input', () => status && draw('nodes'));
// A short lease is looked at more often, a large cluster and a page that nobody sees less often.
const pace = () => {
  if (document.hidden) return 10000;
  if (status && status.nodes.length > 100) return 2000;
  return leader ? Math.max(250, Math.min(1000, (leader.age_ms + leader.expires_in_ms) / 4)) : 500;
};
let lookedAt = 0, listedAt = 0;
setInterval(() => {
  const now = performance.now();
  if (now - lookedAt >= pace()) { lookedAt = now; look(); }
  if (now - listedAt >= 5000 && !document.hidden) { listedAt = now; lists(); measure(); }
}, 250);
setInterval(() => { if (!document.hidden) { drawLease(); drawLink(); } }, 100);
look();
lists();
measure();
