// Draws the charts of a page (charts.py says what they hold) as SVG. Colours, dashes and marks are those of style.py;
// they come as CSS variables and as `weirSeriesStyles`, so that a dark page is drawn with others.
const weirEscape = text => String(text).replace(/[&<>"]/g, c => ({"&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;"})[c]);
const weirNumber = v => v === 0 ? "0" : Math.abs(v) >= 1e6 ? (v / 1e6).toPrecision(3).replace(/\.?0+$/, "") + "M" :
  Math.abs(v) >= 100 ? Math.round(v).toLocaleString("en") : String(Number(v.toPrecision(Math.abs(v) < 1 ? 2 : 3)));

// Round numbers from 0 to at least `most`, about `count` of them.
function weirTicks(most, count) {
  if (!(most > 0)) return [0, 1];
  const rough = most / count, power = 10 ** Math.floor(Math.log10(rough));
  const step = power * [1, 2, 5, 10].find(times => times * power >= rough);
  const ticks = [];
  for (let at = 0; at < most + step * 0.999; at += step) ticks.push(Number(at.toPrecision(12)));
  return ticks;
}

function weirMark(kind, x, y, hollow, series) {
  const shapes = {
    circle: `<circle cx="0" cy="0" r="4"/>`, square: `<rect x="-3.5" y="-3.5" width="7" height="7"/>`,
    diamond: `<path d="M0-5 5 0 0 5-5 0Z"/>`, cross: `<path d="M-1.5-5h3v3.5H5v3H1.5V5h-3V1.5H-5v-3h3.5Z"/>`,
    "triangle-up": `<path d="M0-5 5 4H-5Z"/>`, star: `<path d="M0-5 1.5-1.5 5 0 1.5 1.5 0 5-1.5 1.5-5 0-1.5-1.5Z"/>`,
    x: `<path d="M-4-4 4 4M-4 4 4-4" stroke-width="2"/>`,
  };
  return `<g transform="translate(${x} ${y})" class="mark s${series} ${hollow ? "hollow" : ""}">${shapes[kind]}</g>`;
}

function weirLegend(series, kind) {
  if (series.length < 2) return "";
  return `<div class="legend">` + series.map((one, number) => {
    const n = one.style ?? number;  // so that a series keeps its looks where others are left out
    const style = weirSeriesStyles[n % weirSeriesStyles.length];
    const drawn = kind === "bars"
      ? `<rect width="14" height="12" class="s${n}"/><rect width="14" height="12" fill="url(#weir-${style.pattern})"/>`
      : `<path d="M0 6H26" class="line s${n}" stroke-dasharray="${style.dash}"/>`;
    return `<span><svg width="${kind === "bars" ? 14 : 26}" height="12">${drawn}</svg>${weirEscape(one.name)}</span>`;
  }).join("") + "</div>";
}

function weirLines(place, chart) {
  const width = Math.max(240, place.clientWidth), height = chart.height || Math.min(320, 130 + width / 2.4);
  const all = chart.series.flatMap(one => one.x), most = chart.most || Math.max(0, ...chart.series.flatMap(one => one.y));
  const lowest = Math.min(0, ...chart.series.flatMap(one => one.y)), yTicks = weirTicks(Math.max(most, -lowest), 5), step = yTicks[1];
  while (yTicks[yTicks.length - 2] >= most && yTicks.length > 2) yTicks.pop();
  while (yTicks[0] > lowest) yTicks.unshift(Number((yTicks[0] - step).toPrecision(12)));
  const top = chart.most || yTicks[yTicks.length - 1], bottom = yTicks[0];
  const margin = {l: 14 + 7 * Math.max(...yTicks.map(t => weirNumber(t).length)), r: 14, t: 10, b: 40};
  const least = chart.log ? Math.min(...all.filter(x => x > 0)) : Math.min(0, ...all), last = Math.max(...all);
  const place01 = chart.log ? x => (Math.log(Math.max(x, least)) - Math.log(least)) / (Math.log(last) - Math.log(least) || 1)
    : x => (x - least) / (last - least || 1);
  const px = x => +(margin.l + place01(x) * (width - margin.l - margin.r)).toFixed(1);
  const py = y => +(height - margin.b - (y - bottom) / (top - bottom || 1) * (height - margin.t - margin.b)).toFixed(1);
  let xTicks = chart.ticks;
  if (!xTicks) {
    xTicks = weirTicks(last, width / 90).filter(t => t <= last * 1.0001);
    if (chart.log) {
      const decades = Math.log10(last / least), steps = decades > 3 ? [1] : [1, 2, 5];
      xTicks = [];
      for (let power = 10 ** Math.floor(Math.log10(least)); power <= last; power *= 10)
        for (const step of steps) if (step * power >= least && step * power <= last) xTicks.push(step * power);
    }
  }
  const parts = yTicks.filter(t => t <= top).map(t =>
    `<path class="grid" d="M${margin.l} ${py(t)}H${width - margin.r}"/><text x="${margin.l - 6}" y="${py(t) + 4}" text-anchor="end">${weirNumber(t)}</text>`);
  for (const t of xTicks)
    parts.push(`<path class="tick" d="M${px(t)} ${height - margin.b}v4"/><text x="${px(t)}" y="${height - margin.b + 18}" text-anchor="middle">${weirNumber(t)}</text>`);
  parts.push(`<path class="axis" d="M${margin.l} ${margin.t}V${height - margin.b}H${width - margin.r}"/>`);
  parts.push(`<text x="${(width + margin.l) / 2}" y="${height - 4}" text-anchor="middle">${weirEscape(chart.x)}</text>`);
  chart.series.forEach((one, n) => {
    const style = weirSeriesStyles[n % weirSeriesStyles.length];
    parts.push(`<path class="line s${n}" stroke-dasharray="${style.dash}" d="${one.x.map((x, i) => (i ? "L" : "M") + px(x) + " " + py(one.y[i])).join("")}"/>`);
    if (chart.marks) one.x.forEach((x, i) => parts.push(weirMark(style.marker, px(x), py(one.y[i]), one.hollow && one.hollow[i], n)));
    for (const [x, y] of one.marked || []) parts.push(weirMark(style.marker, px(x), py(y), false, n));
  });
  const title = [chart.title, chart.y].filter(Boolean).join(", ");
  place.innerHTML = `<p class="chart-title">${weirEscape(title)}</p>${weirLegend(chart.series, "lines")}` +
    `<svg class="drawn" width="${width}" height="${height}">${parts.join("")}<path class="cursor" d=""/></svg><p class="pointed"></p>`;
  weirPoint(place, chart, px, margin, width, height);
}

// Under the pointer: the value of each line there.
function weirPoint(place, chart, px, margin, width, height) {
  const svg = place.querySelector("svg.drawn"), readout = place.querySelector(".pointed"), cursor = place.querySelector(".cursor");
  svg.addEventListener("pointermove", event => {
    const at = event.clientX - svg.getBoundingClientRect().left;
    if (at < margin.l || at > width - margin.r) return;
    const texts = chart.series.filter(one => one.x.length).map(one => {
      const near = one.x.reduce((best, x, i) => Math.abs(px(x) - at) < Math.abs(px(one.x[best]) - at) ? i : best, 0);
      return `${one.name} ${weirNumber(one.y[near])} at ${weirNumber(one.x[near])}`;
    });
    readout.textContent = texts.join("; ");
    cursor.setAttribute("d", `M${at} ${margin.t}V${height - margin.b}`);
  });
  svg.addEventListener("pointerleave", () => { readout.textContent = ""; cursor.setAttribute("d", ""); });
}

function weirBars(place, chart) {
  const width = Math.max(240, place.clientWidth), count = chart.series.length, thick = chart.stacked ? 24 : count > 3 ? 12 : 16;
  const rows = chart.labels.map((_, i) => chart.series.map(one => one.values[i]));
  const sum = values => values.reduce((all, value) => all + Math.max(0, value), 0);
  const most = Math.max(1e-12, chart.most || Math.max(...rows.map(values => chart.stacked ? sum(values) : Math.max(...values))));
  const inner = Math.max(...chart.labels.map(label => 7.2 * label.length)) + 12;
  const above = inner > 0.42 * width, left = above ? 4 : inner, right = 64;  // a long label has a line of its own
  const scale = (width - left - right) / most, gap = above ? 26 : 10, band = (chart.stacked ? thick : thick * count) + gap;
  const parts = [];
  let y = 4;
  rows.forEach((values, i) => {
    const bars = y + (above ? 18 : 0);
    parts.push(`<text x="${above ? left : left - 8}" y="${above ? y + 12 : bars + (band - gap) / 2 + 4}" text-anchor="${above ? "start" : "end"}">${weirEscape(chart.labels[i])}</text>`);
    let x = left;
    values.forEach((value, number) => {
      const n = chart.series[number].style ?? number;
      const long = Math.max(value > 0 ? 1.5 : 0, value * scale), top = bars + (chart.stacked ? 0 : number * thick);
      const from = chart.stacked ? x : left, style = weirSeriesStyles[n % weirSeriesStyles.length];
      const box = `x="${from.toFixed(1)}" y="${top}" width="${long.toFixed(1)}" height="${thick - 2}"`;
      const tooltip = chart.tooltips ? chart.tooltips[i][number] : `${chart.series[number].name}: ${weirNumber(value)}`;
      parts.push(`<g class="bar"><title>${weirEscape(tooltip)}</title><rect ${box} class="s${n}"/><rect ${box} fill="url(#weir-${style.pattern})"/></g>`);
      if (!chart.stacked) parts.push(`<text x="${left + long + 5}" y="${top + thick - 5}">${weirNumber(value)}</text>`);
      x += chart.stacked ? long : 0;
    });
    if (chart.stacked) parts.push(`<text x="${x + 5}" y="${bars + 16}">${weirNumber(sum(values))}</text>`);
    y += band;
  });
  place.innerHTML = `<p class="chart-title">${weirEscape(chart.title)}</p>${weirLegend(chart.series, "bars")}` +
    `<svg class="drawn" width="${width}" height="${y + 4}">${parts.join("")}</svg>`;
}

const weirDraw = (place, chart) => (chart.kind === "bars" ? weirBars : weirLines)(place, place.weirChart = chart);
window.addEventListener("load", () => {
  const places = [...document.querySelectorAll(".chart")];
  const drawAll = () => places.forEach(place => {
    const data = place.weirChart || (place.dataset.chart && JSON.parse(place.dataset.chart));
    if (data) weirDraw(place, data);
  });
  drawAll();
  let width = window.innerWidth;
  window.addEventListener("resize", () => { if (width !== window.innerWidth) { width = window.innerWidth; drawAll(); } });
});
