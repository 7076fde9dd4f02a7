// The playground: what is written on the page becomes a document, the server runs it, and the page shows what happened.
import {createEditor} from "./editor.js";
import {drawWalk} from "./walk.js";

const FORMAT = "weir-playground 1";
const RUN_AFTER_MS = 900; // without a key pressed
const find = id => document.getElementById(id);
const rows = {entries: [], registers: [], packets: []};
let program = {tables: [], registers: []};
let answer = null, chosen = 0, timer = 0, running = false, again = false;

const editor = createEditor(find("editor"), changed);

function changed() {
  clearTimeout(timer);
  timer = setTimeout(run, RUN_AFTER_MS);
}

// --- tables that people fill in ---

const COLUMNS = {
  entries: ["table", "match", "action", "arguments", "priority"],
  registers: ["name", "index", "value"],
  packets: ["port", "time_us", "text"],
};
const NAMES = {
  "entries.table": () => program.tables.map(table => table.name),
  "entries.action": row => (program.tables.find(table => table.name === row.table)?.actions || []).map(one => one.name),
  "registers.name": () => program.registers.map(register => register.name),
};

function hintOf(kind, column, row) {
  const table = program.tables.find(one => one.name === row.table);
  if (kind !== "entries" || !table) return "";
  if (column === "match") return table.keys.map(key => `${key.name} (${key.kind})`).join(" ");
  if (column === "arguments") return (table.actions.find(one => one.name === row.action)?.params || []).join(" ");
  return "";
}

function cell(kind, column, row) {
  const td = document.createElement("td");
  const names = NAMES[`${kind}.${column}`]?.(row);
  const input = document.createElement(names ? "select" : "input");
  if (names) {
    if (row[column] && !names.includes(row[column])) names.unshift(row[column]);
    input.append(...names.map(name => new Option(name, name)));
    if (!row[column] && names.length) row[column] = names[0];
  } else {
    input.placeholder = hintOf(kind, column, row);
    input.spellcheck = false;
  }
  input.value = row[column];
  input.setAttribute("aria-label", column);
  input.addEventListener("input", () => {
    row[column] = input.value;
    if (kind === "entries" && column === "table") row.action = "";
    if (names) fill(kind);
    changed();
  });
  td.append(input);
  return td;
}

function fill(kind) {
  const body = find(kind).tBodies[0];
  body.replaceChildren(...rows[kind].map((row, index) => {
    const tr = document.createElement("tr");
    const remove = document.createElement("button");
    remove.textContent = "✕";
    remove.title = "Remove";
    remove.addEventListener("click", () => { rows[kind].splice(index, 1); fill(kind); changed(); });
    const last = document.createElement("td");
    last.append(remove);
    tr.append(...COLUMNS[kind].map(column => cell(kind, column, row)), last);
    return tr;
  }));
}

function add(kind, row) {
  rows[kind].push(Object.fromEntries(COLUMNS[kind].map(column => [column, String(row[column] ?? "")])));
  fill(kind);
}

// --- documents ---

function entryCommand(row) {
  return `table_add ${row.table} ${row.action} ${row.match} => ${row.arguments} ${row.priority}`.trim();
}

function toDocument() {
  const others = find("commands").value.split("\n").filter(line => line.trim());
  return {
    format: FORMAT,
    program: editor.text(),
    commands: [...rows.entries.map(entryCommand),
               ...rows.registers.map(row => `register_write ${row.name} ${row.index} ${row.value}`), ...others],
    packets: rows.packets.map(row => ({text: row.text, port: Number(row.port) || 0, time_us: Number(row.time_us) || 0})),
  };
}

function fromDocument(given) {
  if (given?.format !== FORMAT) throw new Error(`this is no playground: its format must be "${FORMAT}"`);
  for (const kind of Object.keys(rows)) rows[kind].length = 0;
  const others = [];
  for (const command of given.commands || []) {
    const entry = /^table_add (\S+) (\S+) (.*?) ?=> ?(.*)$/.exec(command);
    const register = /^register_write (\S+) (\S+) (\S+)$/.exec(command);
    if (entry) add("entries", entryOf(entry));
    else if (register) add("registers", {name: register[1], index: register[2], value: register[3]});
    else others.push(command);
  }
  find("commands").value = others.join("\n");
  for (const packet of given.packets || []) add("packets", packet);
  editor.setText(given.program || "");
  for (const kind of Object.keys(rows)) fill(kind);
  chosen = 0;
}

// What stands behind the action's parameters is the priority.
function entryOf([, table, action, match, rest]) {
  return {table, action, match, arguments: rest, priority: ""};
}

function download(name, text) {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(new Blob([text], {type: "application/json"}));
  link.download = name;
  link.click();
  URL.revokeObjectURL(link.href);
}

// --- running ---

async function run() {
  clearTimeout(timer);
  if (running) { again = true; return; }
  running = true;
  find("status").textContent = "runs …";
  try {
    const response = await fetch("run", {method: "POST", body: JSON.stringify(toDocument())});
    if (!response.ok) throw new Error(await response.text());
    const said = await response.json();
    if (said.failure) throw new Error(said.failure);
    answer = said;
    show();
  } catch (error) {
    find("status").textContent = `did not run: ${error.message}`;
  }
  running = false;
  if (again) { again = false; run(); }
}

function show() {
  editor.show(answer.problems);
  showProblems();
  if (answer.program) {
    program = answer.program;
    if (!document.activeElement?.closest("#entries, #registers")) { fill("entries"); fill("registers"); }
  }
  const failed = answer.commands.filter(command => command.error);
  find("command-errors").replaceChildren(...failed.map(command => {
    const item = document.createElement("li");
    item.className = "error";
    item.textContent = `${toDocument().commands[command.index] ?? "command"}: ${command.error}`;
    return item;
  }));
  const errors = answer.problems.filter(problem => problem.severity === "error").length;
  find("status").textContent = errors ? `${errors} error${errors > 1 ? "s" : ""}` : `ran ${answer.packets.length} packets`;
  find("results").hidden = !answer.packets.length;
  if (answer.packets.length) { chosen = Math.min(chosen, answer.packets.length - 1); showTimeline(); }
}

function showProblems() {
  find("problems").replaceChildren(...answer.problems.map(problem => {
    const item = document.createElement("li"), button = document.createElement("button");
    button.className = problem.severity;
    const where = problem.line ? `line ${problem.line}: ` : "";
    button.textContent = `${where}${problem.message}${problem.hint ? `\n${problem.hint}` : ""}`;
    button.addEventListener("click", () => problem.line && editor.goTo(problem.line));
    item.append(button);
    return item;
  }));
}

function fate(packet) {
  if (packet.error) return packet.error;
  if (!packet.outputs.length) return "nothing comes out";
  return `out by ${packet.outputs.map(output => output.port).join(", ")}`;
}

function showTimeline() {
  const children = [];
  const packets = toDocument().packets;
  answer.packets.forEach((packet, index) => {
    const before = index ? packets[index - 1]?.time_us : undefined, now = packets[index]?.time_us ?? 0;
    if (before !== undefined && now !== before) {
      const gap = document.createElement("span");
      gap.className = "gap";
      gap.textContent = `${now > before ? "+" : "−"}${Math.abs(now - before)} µs`;
      children.push(gap);
    }
    const button = document.createElement("button");
    button.textContent = `${index + 1}: in by ${packets[index]?.port ?? "?"}, ${fate(packet)}`;
    if (packet.error) button.className = "error";
    button.setAttribute("aria-pressed", String(index === chosen));
    button.addEventListener("click", () => { chosen = index; showTimeline(); });
    children.push(button);
  });
  find("timeline").replaceChildren(...children);
  showPacket();
}

/** A button for what the packet did, and for what it would have done with each choice of a group. */
function showOutcomes(packet) {
  const buttons = [{choices: "as it was", ...packet}, ...packet.outcomes || []].map(outcome => {
    const button = document.createElement("button");
    button.textContent = outcome.choices;
    button.addEventListener("click", () => {
      drawWalk(find("walk"), outcome.trace || [], outcome.left_out || 0);
      for (const each of buttons) each.setAttribute("aria-pressed", String(each === button));
    });
    return button;
  });
  find("outcomes").replaceChildren(...packet.outcomes?.length ? buttons : []);
  buttons[0].click();
}

function showPacket() {
  const packet = answer.packets[chosen];
  showOutcomes(packet);
  if (packet.error) find("walk").textContent = packet.error;
  const before = chosen ? answer.packets.slice(0, chosen).reverse().find(one => one.state)?.state ?? {} : {};
  const state = packet.state || {}, body = find("state").tBodies[0];
  body.replaceChildren(...Object.entries(state).flatMap(([name, cells]) => Object.entries(cells).map(([index, value]) => {
    const tr = document.createElement("tr");
    tr.insertCell().textContent = `${name}[${index}]`;
    tr.insertCell().textContent = String(value);
    if (String(before[name]?.[index]) !== String(value)) tr.className = "changed";
    return tr;
  })));
  if (!body.rows.length) body.insertRow().insertCell().textContent = "all are 0";
}

// --- the page ---

async function openExample() {
  fromDocument(await (await fetch("example.json")).json());
  await run();
}

async function openFile(input, use) {
  const [file] = input.files;
  input.value = "";
  if (!file) return;
  try {
    await use(file);
  } catch (error) {
    find("status").textContent = `${file.name}: ${error.message}`;
  }
}

find("run").addEventListener("click", run);
find("example").addEventListener("click", openExample);
find("save").addEventListener("click", () => download("playground.json", JSON.stringify(toDocument(), null, 1)));
find("open").addEventListener("change", event => openFile(event.target, async file => {
  fromDocument(JSON.parse(await file.text()));
  await run();
}));
find("pcap").addEventListener("change", event => openFile(event.target, async file => {
  const said = await (await fetch("pcap", {method: "POST", body: file})).json();
  if (said.error) throw new Error(said.error);
  said.packets.forEach(packet => add("packets", packet));
  await run();
}));
find("add-entry").addEventListener("click", () => { add("entries", {}); changed(); });
find("add-register").addEventListener("click", () => { add("registers", {index: 0, value: 0}); changed(); });
find("add-packet").addEventListener("click", () => {
  const last = rows.packets.at(-1);
  add("packets", {port: last?.port ?? 1, time_us: Number(last?.time_us ?? -1000) + 1000, text: last?.text ?? "Ether()/IP()/UDP()"});
  changed();
});
find("commands").addEventListener("input", changed);
addEventListener("keydown", event => { if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) run(); });
await openExample();
