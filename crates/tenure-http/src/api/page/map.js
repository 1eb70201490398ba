// The partitions as a map: a cell each, coloured by its owner, and what is on its way from one to another. A canvas
// per task list, so that ten thousand cells are ten thousand strokes and not ten thousand elements. The ledger is
// asked for when the history says that it has changed, and not otherwise.
'use strict';

const LISTS_SHOWN = 50, CELLS_SHOWN = 20000, MOVES_SHOWN = 12, OWNERS_SHOWN = 500;
const CHANGES = new Set(['plan_published', 'partition_assigned', 'partition_revoked', 'partition_released',
  'node_joined', 'node_left', 'node_expired', 'leader_elected']);
const ANYWAY = 60000;           // ms after which it is asked for all the same: an arrangement alone is no event

let ledger = new Map();         // task list -> its rows, by number
let moved = [];                 // what changed hands between two looks, newest first
let stirred = true, reading = false, readAt = -ANYWAY, readBase = null, ledgerSize = 0;
const maps = new Map();         // task list -> its part of the page

watchers.push((event) => { if (CHANGES.has(event.event)) stirred = true; });

// A large ledger is asked for less often, one that nobody sees not at all.
async function survey() {
  const since = performance.now() - readAt;
  if (reading || document.hidden || since < (ledgerSize > 2000 ? 2000 : 250)) return;
  if (!stirred && readBase === base && since < ANYWAY) return;
  reading = true; stirred = false; readAt = performance.now(); readBase = base;
  try { take(await ask('/cluster/partitions')); } catch { stirred = true; /* said elsewhere */ } finally { reading = false; }
}

function take(rows) {
  const next = new Map();
  for (const row of rows) {
    if (!next.has(row.task_list)) next.set(row.task_list, []);
    next.get(row.task_list)[row.partition] = row;
  }
  const fresh = [];
  for (const [name, cells] of next) {
    const before = ledger.get(name);
    if (before) cells.forEach((cell, number) => {
      const old = before[number];
      if (cell.node_id && cell.state === 'owned' && old && old.owner && old.owner !== cell.node_id) fresh.push({ name, number, from: old.owner, to: cell.node_id });
      // Whose it was until it is somebody's again: a move takes more than one look.
      cell.owner = cell.node_id || (old && old.owner) || null;
    });
    else for (const cell of cells) if (cell) cell.owner = cell.node_id;
  }
  if (fresh.length) moved = [...fresh.slice(-MOVES_SHOWN).reverse(), ...moved].slice(0, MOVES_SHOWN);
  ledger = next;
  ledgerSize = rows.length;
  draw('map');
}

const counted = (cells) => {
  const count = { owned: 0, revoking: 0, vacant: 0 };
  for (const cell of cells) if (cell) count[cell.state] += 1;
  return count;
};
const inWords = (count, nodes) => (count.owned + count.revoking + count.vacant) + ' partitions: ' + count.owned + ' owned by ' + nodes + (nodes === 1 ? ' node, ' : ' nodes, ') + count.revoking + ' being given up, ' + count.vacant + ' vacant';

function drawMap() {
  const all = [...ledger.values()].flat().filter(Boolean), owners = new Map();
  for (const cell of all) if (cell.node_id) owners.set(cell.node_id, (owners.get(cell.node_id) || 0) + 1);
  show($('partitions'), all.length ? inWords(counted(all), owners.size) + ', in ' + ledger.size + (ledger.size === 1 ? ' task list' : ' task lists') : '');
  // Without partitions there is nothing to say of them.
  $('partitions-card').hidden = all.length === 0;
  $('main').classList.toggle('divided', all.length > 0);
  const wide = $('map').clientWidth, names = [...ledger.keys()].slice(0, LISTS_SHOWN);
  for (const [name, map] of maps) if (!names.includes(name)) { map.part.remove(); maps.delete(name); }
  for (const name of names) {
    if (!maps.has(name)) maps.set(name, place(name));
    const map = maps.get(name), cells = ledger.get(name);
    map.cells = cells;
    show(map.words, inWords(counted(cells), new Set(cells.map((cell) => cell && cell.node_id).filter(Boolean)).size));
    paint(map, wide);
  }
  show($('lists-more'), ledger.size > LISTS_SHOWN ? 'and ' + (ledger.size - LISTS_SHOWN) + ' more task lists: tenure partitions list' : '');
  drawMoves(all);
  drawOwners(owners);
}

// What is on its way now, then what has arrived.
function drawMoves(all) {
  const leaving = all.filter((cell) => cell.state === 'revoking');
  const items = leaving.slice(0, MOVES_SHOWN).map((cell) => make('li', cell.task_list + ' ' + cell.partition + ': ' + cell.node_id + ' is giving it up', 'warn'));
  if (leaving.length > MOVES_SHOWN) items.push(make('li', 'and ' + (leaving.length - MOVES_SHOWN) + ' more are being given up', 'warn'));
  items.push(...moved.map((move) => make('li', move.name + ' ' + move.number + ': from ' + move.from + ' to ' + move.to)));
  $('moves').replaceChildren(...(items.length ? items : [make('li', 'nothing has moved since this page was opened', 'faint')]));
}

let ownersDrawn = '';
function drawOwners(owners) {
  if (!$('owners-all').open) return;
  const list = [...owners].sort((a, b) => b[1] - a[1] || (a[0] < b[0] ? -1 : 1)), key = JSON.stringify(list);
  if (key === ownersDrawn) return;
  ownersDrawn = key;
  const items = list.slice(0, OWNERS_SHOWN).map(([node, count]) => {
    const item = make('li'), swatch = make('span', null, 'swatch');
    swatch.style.background = colour(node);
    item.append(swatch, make('span', node + ': ' + count));
    return item;
  });
  if (list.length > OWNERS_SHOWN) items.push(make('li', 'and ' + (list.length - OWNERS_SHOWN) + ' more', 'faint'));
  $('owners').replaceChildren(...items);
}

// A task list's part of the page. The canvas is a slider over its cells: that is what it is to a keyboard and to a
// screen reader, which tells the value in words.
function place(name) {
  const part = make('div', null, 'map'), words = make('p', '', 'faint'), canvas = make('canvas'), cell = make('p', '', 'cell');
  part.append(make('h4', name), words, canvas, cell);
  canvas.tabIndex = 0;
  canvas.setAttribute('role', 'slider');
  canvas.setAttribute('aria-label', 'partition of ' + name);
  canvas.setAttribute('aria-valuemin', '0');
  const map = { name, part, words, canvas, cell, cells: [], chosen: null, columns: 1, size: 1 };
  const choose = (number) => {
    map.chosen = Math.max(0, Math.min(map.cells.length - 1, number));
    paint(map, $('map').clientWidth);
  };
  canvas.addEventListener('keydown', (key) => {
    const step = { ArrowRight: 1, ArrowLeft: -1, ArrowDown: map.columns, ArrowUp: -map.columns, PageDown: 10 * map.columns, PageUp: -10 * map.columns, Home: -Infinity, End: Infinity }[key.key];
    if (step === undefined) return;
    key.preventDefault();
    choose(map.chosen === null ? 0 : map.chosen + step);
  });
  canvas.addEventListener('focus', () => { if (map.chosen === null) choose(0); });
  canvas.addEventListener('pointerdown', (at) => {
    const column = Math.floor(at.offsetX / map.size), number = Math.floor(at.offsetY / map.size) * map.columns + column;
    if (column < map.columns && number < map.cells.length) choose(number);
  });
  $('map').append(part);
  return map;
}

function inDetail(map) {
  const cell = map.chosen === null ? null : map.cells[map.chosen];
  if (!cell) return '';
  const state = { owned: 'owned by ' + cell.node_id, revoking: cell.node_id + ' is giving it up', vacant: 'vacant' }[cell.state];
  return 'partition ' + map.chosen + ': ' + state + (cell.term ? ', since revision ' + cell.term : '');
}

// Owned: full. Being given up: half. Vacant: hollow. So the state is to be seen without colours, too.
function paint(map, wide) {
  const { canvas, cells } = map, count = Math.min(cells.length, CELLS_SHOWN);
  if (wide === 0) return;
  map.size = count <= 512 ? 16 : count <= 3000 && wide > 600 ? 10 : 7;
  map.columns = Math.max(1, Math.floor(wide / map.size));
  const scale = window.devicePixelRatio || 1, high = Math.max(1, Math.ceil(count / map.columns)) * map.size;
  const across = Math.round(wide * scale), down = Math.round(high * scale);
  if (canvas.width !== across || canvas.height !== down) { canvas.width = across; canvas.height = down; canvas.style.height = high + 'px'; }
  const pen = canvas.getContext('2d'), style = getComputedStyle(document.documentElement), side = map.size - 2;
  const [ink, line] = ['--ink', '--faint'].map((name) => style.getPropertyValue(name).trim()), wanted = $('owner').value.toLowerCase();
  pen.setTransform(scale, 0, 0, scale, 0, 0);
  pen.clearRect(0, 0, wide, high);
  pen.strokeStyle = line;
  for (let number = 0; number < count; number += 1) {
    const cell = cells[number], x = number % map.columns * map.size + 1, y = Math.floor(number / map.columns) * map.size + 1;
    pen.globalAlpha = !wanted || (cell && cell.node_id || '').toLowerCase().includes(wanted) ? 1 : 0.15;
    if (!cell || cell.state === 'vacant') { pen.strokeRect(x + 0.5, y + 0.5, side - 1, side - 1); continue; }
    pen.fillStyle = colour(cell.node_id);
    if (cell.state === 'owned') { pen.fillRect(x, y, side, side); continue; }
    pen.strokeRect(x + 0.5, y + 0.5, side - 1, side - 1);
    pen.beginPath(); pen.moveTo(x, y); pen.lineTo(x + side, y); pen.lineTo(x, y + side); pen.fill();
  }
  pen.globalAlpha = 1;
  if (map.chosen !== null && map.chosen < count) {
    pen.strokeStyle = ink; pen.lineWidth = 2;
    pen.strokeRect(map.chosen % map.columns * map.size, Math.floor(map.chosen / map.columns) * map.size, map.size, map.size);
    pen.lineWidth = 1;
  }
  canvas.setAttribute('aria-valuemax', String(Math.max(0, cells.length - 1)));
  canvas.setAttribute('aria-valuenow', String(map.chosen ?? 0));
  canvas.setAttribute('aria-valuetext', inDetail(map) || map.words.textContent);
  show(map.cell, inDetail(map) || (cells.length > count ? 'the first ' + count + ' are shown' : ''));
}

PARTS.map = drawMap;
let width = 0;
new ResizeObserver(([part]) => { if (part.contentRect.width !== width) { width = part.contentRect.width; draw('map'); } }).observe($('map'));
$('owner').addEventListener('input', () => draw('map'));
$('owners-all').addEventListener('toggle', () => draw('map'));
dark.addEventListener('change', () => { ownersDrawn = ''; draw('map'); draw('terms'); });
setInterval(survey, 250);
survey();
