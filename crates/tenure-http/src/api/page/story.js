// What the history tells, for people: every event as a sentence, and the terms of this page's election as a list and
// as a strip of time. It only defines functions; page.js, which is loaded next, calls them.
'use strict';

// ----- words -------------------------------------------------------------------------------------

const length = (ms) => {
  if (ms < 0) return 'now';
  if (ms < 10) return ms.toFixed(1) + ' ms';
  if (ms < 1000) return Math.round(ms) + ' ms';
  const s = ms / 1000;
  if (s < 60) return s.toFixed(1) + ' s';
  if (s < 3600) return Math.floor(s / 60) + ' min ' + Math.floor(s % 60) + ' s';
  if (s < 86400) return Math.floor(s / 3600) + ' h ' + Math.floor(s % 3600 / 60) + ' min';
  return Math.floor(s / 86400) + ' d ' + Math.floor(s % 86400 / 3600) + ' h';
};
// UTC, with the date unless it is today's.
const clock = (time) => {
  const moment = new Date(time);
  if (Number.isNaN(moment.getTime())) return String(time);
  const text = moment.toISOString();
  return (text.slice(0, 10) === new Date(present()).toISOString().slice(0, 10) ? '' : text.slice(0, 10) + ' ') + text.slice(11, 23);
};
const counting = (number, one, many) => number + ' ' + (number === 1 ? one : many);

// Why a leader lost its term. Where the store was asked for it, the data says how long it had been silent.
const REASONS = {
  lapsed: 'silent for its whole ttl',
  superseded: 'its process lost the session and opened a new one',
  program_failed: 'its program failed',
  process_ended: 'its process ended; its guardian noticed',
  store_away: 'the store was away',
  session_lost: 'its session was over on the store',
  store_changed: 'another store, or another history of it, answered',
  store_rolled_back: 'the store went back in time',
  clock_jumped: 'the clock leapt: the machine may have been paused',
  unhealthy: 'its health check failed',
  election_ended: 'the election was ended',
  closing: 'its node was stopped',
  driver_died: 'the thread that renews its session died',
  forked: 'its process was a fork of the one that was elected',
  work_failed: 'its work failed too often',
  resigned: 'resigned',
  asked: 'asked to make way',
};
const SIGNALS = { 1: 'SIGHUP', 2: 'SIGINT', 3: 'SIGQUIT', 4: 'SIGILL', 6: 'SIGABRT', 7: 'SIGBUS', 8: 'SIGFPE', 9: 'SIGKILL', 11: 'SIGSEGV', 13: 'SIGPIPE', 15: 'SIGTERM' };
// How a program ended, which is why its node gave the term up or lost it.
const program = (data) => {
  if (typeof data.exit_code === 'number') return 'its program exited with code ' + data.exit_code;
  if (typeof data.signal !== 'number') return '';
  return 'its program was killed by signal ' + data.signal + (Object.hasOwn(SIGNALS, data.signal) ? ' (' + SIGNALS[data.signal] + ')' : '');
};
// Where these keys are in the data, the sentence has used them.
const OF_A_LOSS = ['reason', 'silent_ms', 'ttl_ms', 'reopened', 'witnessed', 'exit_code', 'signal'];
const reason = (data) => {
  if (program(data)) return program(data);
  if (data.reason === 'lapsed' && data.reopened) return 'the store was away or the process was held up for longer than its ttl';
  return Object.hasOwn(REASONS, data.reason) ? REASONS[data.reason] : spaced(data.reason || 'lost');
};
const spaced = (text) => String(text).replaceAll('_', ' ');

// Data that no sentence has used: as words all the same, whoever wrote it.
const rest = (data, used) => Object.entries(data).filter(([key, value]) => !used.includes(key) && value !== null && value !== '')
  .map(([key, value]) => {
    if (key === 'reason') return reason(data);
    if (key.endsWith('_ms') && typeof value === 'number') return spaced(key.slice(0, -3)) + ' ' + length(value);
    return spaced(key) + ' ' + (typeof value === 'object' ? JSON.stringify(value) : value);
  });

// `{node: {list: [0, 1, 2, 5]}}` as `beta: billing/invoices 0–2, 5`.
function shares(of) {
  const ranges = (numbers) => {
    const found = [];
    for (const number of numbers) {
      const last = found[found.length - 1];
      if (last && last[1] === number - 1) last[1] = number; else found.push([number, number]);
    }
    const words = found.slice(0, 8).map(([from, to]) => (from === to ? '' + from : from + '–' + to)).join(', ');
    return words + (found.length > 8 ? ' and more' : '');
  };
  const nodes = Object.entries(of || {});
  const words = nodes.slice(0, 6).map(([node, lists]) => node + ': ' + Object.entries(lists).map(([list, numbers]) => list + ' ' + ranges(numbers)).join('; '));
  return words.join(' · ') + (nodes.length > 6 ? ' · and ' + (nodes.length - 6) + ' more nodes' : '');
}

// Per kind of event: the keys of the data that its sentence uses, and the sentence.
const SENTENCES = {
  election_started: [[], (e) => 'the election began: ' + e.node + ' was the first to stand'],
  leader_elected: [[], (e) => e.node + ' was elected under term ' + e.term],
  leader_lost: [OF_A_LOSS, (e) => e.node + ' lost term ' + e.term + ': ' + reason(e.data) +
    (typeof e.data.silent_ms === 'number' ? ' (no sign of life for ' + length(e.data.silent_ms) + ')' : '')],
  leader_resigned: [['to', 'reason', 'exit_code'], (e) => e.node + ' gave up term ' + e.term + (e.data.to ? ' for ' + e.data.to : '') + (e.data.reason || program(e.data) ? ': ' + reason(e.data) : '')],
  leader_changed: [['previous', 'new'], (e) => 'leadership went ' + (e.data.previous ? 'from ' + e.data.previous + ' to ' : 'to ') + (e.data.new || e.node)],
  transfer_requested: [['to'], (e) => (e.node || 'the leader') + ' was asked to make way' + (e.data.to ? ' for ' + e.data.to : '')],
  election_deleted: [[], () => 'the election was deleted'],
  node_joined: [['hostname', 'pid', 'version', 'address'], (e) => e.node + ' registered' + (e.data.hostname ? ' on ' + e.data.hostname : '') +
    (e.data.pid ? ', process ' + e.data.pid : '') + (e.data.version ? ', version ' + e.data.version : '') + (e.data.address ? ', at ' + e.data.address : '')],
  node_left: [OF_A_LOSS, (e) => e.node + ' left' + (e.data.reopened ? ': its process opened a new session' : e.data.reason || program(e.data) ? ': ' + reason(e.data) : '')],
  node_expired: [[], (e) => e.node + ' was silent for its whole ttl, and was retired'],
  node_unhealthy: [['problem'], (e) => 'the health check of ' + e.node + ' fails' + (e.data.problem ? ': ' + e.data.problem : '')],
  node_healthy: [[], (e) => 'the health check of ' + e.node + ' passes again'],
  cluster_degraded: [['live', 'minimum'], (e) => 'too few nodes: ' + enough(e.data)],
  cluster_recovered: [['live', 'minimum'], (e) => 'enough nodes again: ' + enough(e.data)],
  plan_published: [['revision', 'assigned', 'revoked'], (e) => counting(e.data.assigned, 'partition', 'partitions') + ' assigned, ' + e.data.revoked + ' revoked (revision ' + e.data.revision + ')'],
  partition_assigned: [['revision', 'to'], (e) => 'given to ' + shares(e.data.to)],
  partition_revoked: [['revision', 'from'], (e) => 'to be given up by ' + shares(e.data.from)],
  partition_released: [['revision', 'released'], (e) => e.node + ' has stopped its work on ' + counting(e.data.released, 'partition', 'partitions')],
};
const enough = (data) => (data.live === 1 ? '1 lives, ' : data.live + ' live, ') + data.minimum + ' needed';

// An event as a sentence. Another election than that of this page is named.
function sentence(event) {
  const told = { ...event, data: event.data && typeof event.data === 'object' ? event.data : {} };
  const [used, words] = Object.hasOwn(SENTENCES, event.event) ? SENTENCES[event.event] : [[], (e) => (e.node || '') + (e.term ? ', term ' + e.term : '')];
  const elsewhere = event.election && status && event.election !== status.election ? ['election ' + event.election] : [];
  return [words(told), ...rest(told.data, used), ...elsewhere].filter(Boolean).join(', ');
}

// ----- terms -------------------------------------------------------------------------------------

// Kept apart from the events: a thousand partitions that move must not make the page forget who led.
const OF_TERMS = new Set(['election_started', 'election_deleted', 'transfer_requested', 'leader_elected', 'leader_lost', 'leader_resigned']);
let story = [];
function remember(event) {
  if (!OF_TERMS.has(event.event)) return;
  story.push(event);
  if (story.length > 8 * TERMS_SHOWN) story = story.slice(-4 * TERMS_SHOWN);
}

// The terms of this page's election, since when the history tells of it, whether that is its beginning, and when there
// was no such election in between.
function terms() {
  const found = [], absent = [];
  let since = null, begins = false, asked = null;
  for (const event of story) {
    if (!status || event.election !== status.election) continue;
    const at = Date.parse(event.time), last = found[found.length - 1], data = event.data || {};
    if (since === null) { since = at; begins = event.event === 'election_started'; }
    const gone = absent[absent.length - 1];
    if (event.event === 'election_started') { if (gone && gone.until === null) gone.until = at; }
    else if (event.event === 'election_deleted') { absent.push({ from: at, until: null }); asked = ': the election was deleted'; }
    else if (event.event === 'transfer_requested') asked = ': asked to make way' + (data.to ? ' for ' + data.to : '');
    else if (event.event === 'leader_elected') { found.push({ term: event.term, node: event.node, from: at, until: null, why: '', silent: false }); asked = null; }
    else if (last && last.until === null) {
      // The node that serves this page has worked it out. Who fell silent may have led on for a while: the gap that
      // begins there is as long as it says, at most.
      const led = event.led_until || { earliest: event.time, latest: event.time };
      last.silent = led.earliest !== led.latest;
      last.until = Math.max(last.from, Date.parse(led.earliest));
      const more = rest(data, [...OF_A_LOSS, 'to']);
      last.why = event.event === 'leader_lost' ? reason(data) :
        'resigned' + (asked || (data.reason || program(data) ? ': ' + reason(data) : data.to ? ': handed over to ' + data.to : ''));
      if (more.length) last.why += ', ' + more.join(', ');
    }
  }
  // The history may not reach back to the beginning of the term that is on.
  const lease = status && status.lease;
  if (!found.length && lease && lease.acquired_at) found.push({ term: lease.term, node: lease.leader_id, from: Date.parse(lease.acquired_at), until: null, why: '', silent: false });
  if (since === null && found.length) since = found[0].from;
  // Nobody leads, and nobody has written down yet how the last term ended: its leader is silent.
  const last = found[found.length - 1];
  if (last && last.until === null && status && !status.leader_id && lastSign.term === last.term) {
    last.until = Math.max(last.from, lastSign.at);
    last.silent = true;
    last.why = REASONS.lapsed;
  }
  return { found: found.slice(-TERMS_SHOWN), since, begins, absent };
}
let lastSign = { term: 0, at: 0 };
function signOfLife(lease) {
  if (lease) lastSign = { term: lease.term, at: Date.parse(lease.renewed_at) };
}

// Nodes get their colours in the order in which they come, and neighbours differ. None is red: that is a failure.
const HUES = [255, 190, 310, 75, 225, 345, 155, 285, 110];
const hues = new Map();
const dark = matchMedia('(prefers-color-scheme: dark)');
function colour(node) {
  if (!hues.has(node)) hues.set(node, HUES[hues.size] ?? Math.round(60 + hues.size * 110.7 % 290));
  return (dark.matches ? 'oklch(76% 0.1 ' : 'oklch(52% 0.12 ') + hues.get(node) + ')';
}

// A time in which nobody led, without the times in which there was no such election.
function vacancies(from, until, absent) {
  const found = [];
  let at = from;
  for (const gone of absent) {
    const end = gone.until ?? Infinity;
    if (end <= at || gone.from >= until) continue;
    if (gone.from > at) found.push({ kind: 'nobody', from: at, until: gone.from });
    found.push({ kind: 'nothing', from: Math.max(at, gone.from), until: Math.min(end, until) });
    at = Math.min(end, until);
  }
  if (until > at) found.push({ kind: 'nobody', from: at, until });
  return found;
}
const vacancy = ({ kind, from, until }, most) => (kind === 'nothing' ? 'there was no such election' : 'nobody led') + ' for ' + (most && kind === 'nobody' ? 'at most ' : '') + length(until - from);

let drawnTerms = '';
function drawTerms() {
  const told = terms(), { found, absent } = told;
  strip(told, present());
  const key = found.map((t) => t.term + ':' + t.until + t.why).join() + absent.length + dark.matches;
  if (key === drawnTerms) return;
  drawnTerms = key;
  const items = [];
  found.forEach((term, index) => {
    const before = found[index - 1];
    for (const gap of before && before.until !== null ? vacancies(before.until, term.from, absent) : []) items.unshift(make('li', vacancy(gap, before.silent), gap.kind === 'nobody' ? 'gap' : 'faint'));
    const item = make('li'), swatch = make('span', null, 'swatch');
    swatch.style.background = colour(term.node);
    item.append(swatch, make('strong', 'term ' + term.term + ' ' + term.node), make('span', ' from ' + clock(term.from) +
      (term.until === null ? ', leads' : ' for ' + length(term.until - term.from) + ', then: ' + term.why)));
    items.unshift(item);
  });
  const last = found[found.length - 1], gone = absent.some(({ until }) => until === null);
  if (last && last.until !== null) items.unshift(make('li', (gone ? 'there is no such election now; ' : 'nobody leads; ') + last.node + (last.silent ? ' was last heard of at ' : ' led until ') + clock(last.until), gone ? 'faint' : 'gap'));
  $('terms').replaceChildren(...(items.length ? items : [make('li', 'nobody has led yet', 'faint')]));
}

// How far the strip reaches back, and how far its marks are apart, in seconds.
const SCALES = [[60, 15], [120, 30], [180, 30], [300, 60], [600, 120], [900, 180], [1200, 300], [1800, 300], [2700, 900], [3600, 900]];
const LEGEND_SHOWN = 8;

// What the strip shows: terms, times in which nobody led, and times of which there is nothing to say, because there was
// no such election or because the history does not reach back.
function chapters({ found, since, begins, absent }, start, now) {
  const parts = [];
  const add = (kind, from, until, title, node) => {
    if (Math.max(from, start) < Math.min(until, now)) parts.push({ kind, from: Math.max(from, start), until: Math.min(until, now), title, node });
  };
  const silence = (from, until, most) => {
    for (const gap of vacancies(from, until, absent)) add(gap.kind, gap.from, gap.until, gap.kind === 'nobody' ? vacancy(gap, most) : 'there was no such election');
  };
  add('nothing', start, since ?? now, begins || since === null ? 'before the election began' : 'not in the history');
  if (since !== null && begins) silence(since, found.length ? found[0].from : now, false);
  found.forEach((term, index) => {
    add('term', term.from, term.until ?? now, 'term ' + term.term + ' ' + term.node, term.node);
    if (term.until !== null) silence(term.until, found[index + 1] ? found[index + 1].from : now, term.silent);
  });
  return parts;
}

let legendDrawn = '', scaleDrawn = 0;
function strip(told, now) {
  const [reach, step] = SCALES.find(([seconds]) => now - (told.since ?? now) <= seconds * 1000) || SCALES[SCALES.length - 1];
  const span = reach * 1000, start = now - span, parts = chapters(told, start, now);
  $('strip').replaceChildren(...parts.map((part) => {
    const bar = make('span', part.node, part.kind), wide = (part.until - part.from) / span * 100;
    bar.style.left = ((part.from - start) / span * 100) + '%';
    bar.style.width = wide + '%';
    if (part.node) bar.style.background = colour(part.node);
    bar.title = part.title;
    return bar;
  }));
  if (scaleDrawn !== reach) {
    scaleDrawn = reach;
    const marks = [];
    for (let ago = reach - reach % step; ago >= 0; ago -= step) {
      const mark = make('span', ago === 0 ? 'now' : ago === 3600 ? '1 h ago' : ago % 60 ? ago + ' s ago' : ago / 60 + ' min ago');
      mark.style.left = (100 - ago / reach * 100) + '%';
      if (ago === reach) mark.className = 'first';
      if (ago === 0) mark.className = 'last';
      marks.push(mark);
    }
    $('axis').replaceChildren(...marks);
  }
  const leaders = [...new Set(parts.map((part) => part.node).filter(Boolean))], nothing = [...new Set(parts.filter((part) => part.kind === 'nothing').map((part) => part.title))];
  const key = JSON.stringify([leaders, nothing, dark.matches]);
  if (legendDrawn === key) return;
  legendDrawn = key;
  const entry = (words, kind, background) => {
    const item = make('li'), swatch = make('span', null, 'swatch ' + kind);
    if (background) swatch.style.background = background;
    item.append(swatch, make('span', words));
    return item;
  };
  $('legend').replaceChildren(...leaders.slice(-LEGEND_SHOWN).map((node) => entry(node + ' led', 'term', colour(node))),
    ...(leaders.length > LEGEND_SHOWN ? [make('li', 'and ' + (leaders.length - LEGEND_SHOWN) + ' more')] : []),
    entry('nobody led', 'nobody'), ...nothing.map((title) => entry(title, 'nothing')));
}
