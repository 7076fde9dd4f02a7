// A packet's trace as stages of the switch: one row for each copy of the packet.

export const STAGES = ["in", "parser", "ingress", "replication", "egress", "deparser"];
const TITLES = {in: "Comes in", parser: "Parser", ingress: "Ingress", replication: "Queue, replication",
                egress: "Egress", deparser: "Deparser"};

/** Events of one packet, [{copy, kind, ...}], as [{copy, of, cause, stages: {name: [event]}, end}]. */
export function copiesOf(trace) {
  const copies = new Map();
  const at = number => {
    if (!copies.has(number)) copies.set(number, {copy: number, of: 0, cause: "", stages: {}, end: null, now: "in"});
    return copies.get(number);
  };
  const put = (copy, stage, event) => {
    copy.now = stage;
    (copy.stages[stage] ||= []).push(event);
  };
  for (const event of trace) {
    const copy = at(event.copy);
    if (event.kind === "received") put(copy, "in", event);
    else if (event.kind === "state" || event.kind === "extract" || event.kind === "parsed") put(copy, "parser", event);
    else if (event.kind === "control") put(copy, event.name === "egress" ? "egress" : "ingress", event);
    else if (event.kind === "queued") put(copy, "replication", event);
    else if (event.kind === "copied") {
      copy.of = event.values.of;
      copy.cause = event.values.cause;
      put(copy, "replication", event);
    } else if (event.kind === "sent") { put(copy, "deparser", event); copy.end = event; }
    else if (event.kind === "dropped") copy.end = event;
    else put(copy, copy.now === "in" ? "parser" : copy.now, event);
  }
  return [...copies.values()];
}

function element(name, text = "", className = "") {
  const made = document.createElement(name);
  made.textContent = text;
  if (className) made.className = className;
  return made;
}

const shown = value => typeof value === "number" && value > 9 ? `0x${value.toString(16)}`
  : typeof value === "object" && value !== null ? pairs(value) : String(value);
const pairs = values => Object.entries(values).map(([name, value]) => `${name}=${shown(value)}`).join(", ");

/** One step as a line, with its values. */
export function stepLine(event) {
  const {kind, name, values} = event;
  const line = element("li");
  const say = (text, className = "") => line.append(element("span", text, className));
  switch (kind) {
    case "received": say(`port ${values.port}, ${values.frame.length / 2} bytes `); say(values.frame, "value"); break;
    case "sent": say(`${values.frame.length / 2} bytes `); say(values.frame, "value"); break;
    case "state": say(`state ${name}`); break;
    case "extract": say(`${name} `); say(pairs(values), "value"); break;
    case "parsed": say(`ends: ${values.error}`); break;
    case "control": say(`${name} begins`); break;
    case "table":
      say(`${name} `); say(`[${pairs(values.key)}] `, "value"); say(values.hit ? "hit" : "miss", values.hit ? "hit" : "miss");
      if (values.matches) say(` (${values.matches.join(" ")})`, "value");
      say(` → ${values.action}(${pairs(values.arguments)})`); break;
    case "call": say(`call ${name}`); break;
    case "assign": say(`${name} = `); say(shown(values.value), "value"); break;
    case "queued": say(`to port ${values.port}${values.instance ? `, instance ${values.instance}` : ""}`); break;
    case "copied": say(`${values.cause}: a copy of ${values.of}`); break;
    default: say(`${kind} ${name} ${pairs(values)}`);
  }
  return line;
}

function stageBox(title, events, className = "") {
  const box = element("div", "", `stage ${className}`);
  box.append(element("h3", title));
  if (events.length) {
    const list = element("ol");
    list.append(...events.map(stepLine));
    box.append(list);
  }
  return box;
}

/** Draws the way of a packet into `parent`. */
export function drawWalk(parent, trace, leftOut) {
  parent.replaceChildren();
  for (const copy of copiesOf(trace)) {
    const row = element("div", "", "copy");
    row.dataset.copy = copy.copy;
    for (const stage of STAGES) {
      const events = copy.stages[stage] || [];
      if (stage === "in" && !events.length) {
        row.append(stageBox(`${copy.cause || "again"} of ${copy.of}`, [], "idle"), element("div", "→", "arrow"));
        continue;
      }
      const box = stageBox(TITLES[stage], events, events.length ? "" : "idle");
      box.dataset.stage = stage;
      row.append(box, element("div", "→", "arrow"));
    }
    row.append(endBox(copy.end));
    parent.append(row);
  }
  if (leftOut) parent.append(element("p", `${leftOut} more steps are not shown.`, "note"));
}

function endBox(end) {
  if (!end) return stageBox("Waits or ends here", [], "idle");
  if (end.kind === "sent") return stageBox(`Out by port ${end.values.port}`, [], "out");
  const where = end.values.port === undefined ? "" : ` (port ${end.values.port})`;
  return stageBox(`Dropped: ${end.values.cause}${where}`, [], "dropped");
}
