"use strict";
// Everything that comes from the server is put in with textContent: names of operators, paths and
// versions are whatever somebody wrote into a page.

// A name and password in the address of the page must not be in this one.
const REPORT = new URL("api/v1/report", document.baseURI);
REPORT.username = REPORT.password = "";
const EVERY_MS = 5000;
const PATIENCE_MS = 15000;
const WINDOW_SECONDS = 900;
const MOST_ROWS = 50;

const TEXTS = {
  en: {
    seconds: "{0} s", minutes: "{0} min", title: "NPU fallbacks", skip: "Skip to the operators",
    chart: "NPU, CPU and fallbacks, last 15 minutes", ops: "Operators that ran on the host CPU",
    transfers: "Copies between host and device", syncs: "Waits for a value",
    workers: "Server processes", sources: "Sources of these figures", metrics: "Metrics",
    json: "Report as JSON", runbook: "Runbook", health: "Health", readiness: "Readiness",
    bad: "Act now", watch: "Look at it", fine: "All well", unknown: "No data",
    whatToDo: "What to do", updated: "updated", mode: "mode", modeName: "Mode", from: "from",
    unreachable: "The exporter does not answer. These are the figures of {0}.",
    unreachableYet: "The exporter does not answer ({0}).",
    share: "Share of server time", now: "last {0}", inAll: "{0} since start",
    eventRate: "Fallbacks per second", perThousand: "Per 1,000 operators", events: "Events",
    processes: "Server processes", ended: "{0} ended", npu: "NPU utilization",
    cpu: "Host CPU utilization", mean: "mean of {0}", hostCpu: "CPUs of the host",
    containerCpu: "CPU limit of the container", rate: "fallbacks per second",
    operator: "Operator", trend: "Trend", hostTime: "Host time", meanTime: "Mean",
    toHost: "To host", toDevice: "To device", sinceStart: "Since start", recent: "Last {0}",
    called: "First called from", given: "with", instead: "Instead:", refused: "refused {0} times",
    raised: "raised {0} times", more: "{0} more are in the JSON.",
    noOps: "None so far.", noOpsOff: "Nothing is counted yet. Start the server with NPU_FALLBACK_HOOK=1, or with: npu-fallback-exporter run -- COMMAND",
    noPoints: "The first points come after {0} seconds.", direction: "Direction", cause: "Cause",
    copies: "Copies", bytes: "Bytes", d2h: "to host", h2d: "to device",
    driver: "all, at the driver", noCopies: "None counted.",
    notTracked: "Not watched: NPU_FALLBACK_TRACK=fallbacks, or nothing armed yet.",
    times: "Times", started: "Started", npus: "NPU", pid: "pid", ago: "{0} ago",
    noWorkers: "None is alive.", source: "Source", state: "State", detail: "Detail", good: "good", failed: "fails",
    off: "off", age: "sample {0} old", unwatched: "not watched", off_npu: "npu-smi is off",
    none_npu: "npu-smi gives no sample", callsHidden: "Call sites are shown on loopback or to authenticated clients only (--web.show-call-sites).",
    causes: { fallback: "fallback", explicit_kernel: "explicit kernel", sync: "wait for a value", user: "the program" },
    kinds: { dispatcher: "no NPU kernel", explicit_kernel: "NPU kernel computes on the host" },
    sourceNames: { fallback: "pages of the servers", npu_smi: "npu-smi", npu_mapping: "chips: pages against npu-smi", host: "host", build_info: "build info", process: "this exporter", pages: "pages" },
  },
  zh: {
    seconds: "{0} 秒", minutes: "{0} 分钟", title: "NPU 回退", skip: "跳到算子列表",
    chart: "最近 15 分钟：NPU、CPU 与回退", ops: "在主机 CPU 上执行的算子",
    transfers: "主机与设备之间的拷贝", syncs: "等待设备返回值",
    workers: "服务进程", sources: "数据来源", metrics: "指标",
    json: "JSON 报告", runbook: "处理手册（英文）", health: "存活探针", readiness: "就绪探针",
    bad: "立即处理", watch: "需要关注", fine: "正常", unknown: "无数据",
    whatToDo: "如何处理", updated: "更新于", mode: "模式", modeName: "模式", from: "来自",
    unreachable: "导出器没有响应。以下是 {0} 的数据。",
    unreachableYet: "导出器没有响应（{0}）。",
    share: "占服务时间", now: "最近 {0}", inAll: "启动以来 {0}",
    eventRate: "每秒回退次数", perThousand: "每千次算子", events: "次数",
    processes: "服务进程", ended: "已结束 {0}", npu: "NPU 利用率",
    cpu: "主机 CPU 利用率", mean: "{0} 个的平均", hostCpu: "主机 CPU",
    containerCpu: "容器 CPU 限额", rate: "每秒回退次数",
    operator: "算子", trend: "趋势", hostTime: "主机耗时", meanTime: "平均",
    toHost: "到主机", toDevice: "到设备", sinceStart: "启动以来", recent: "最近 {0}",
    called: "首次调用于", given: "参数", instead: "替代方案：", refused: "被拒绝 {0} 次",
    raised: "抛出异常 {0} 次", more: "另有 {0} 个，见 JSON。",
    noOps: "目前没有。", noOpsOff: "尚无计数。请以 NPU_FALLBACK_HOOK=1 启动服务，或运行：npu-fallback-exporter run -- 命令",
    noPoints: "{0} 秒后出现第一批数据点。", direction: "方向", cause: "原因",
    copies: "拷贝次数", bytes: "字节", d2h: "到主机", h2d: "到设备",
    driver: "驱动层合计", noCopies: "没有计数。",
    notTracked: "未监视：NPU_FALLBACK_TRACK=fallbacks，或尚未启用钩子。",
    times: "次数", started: "启动", npus: "NPU", pid: "pid", ago: "{0} 前",
    noWorkers: "没有存活的进程。", source: "来源", state: "状态", detail: "说明", good: "正常", failed: "失败",
    off: "关闭", age: "采样于 {0} 前", unwatched: "未监视", off_npu: "npu-smi 已关闭",
    none_npu: "npu-smi 没有采样", callsHidden: "调用位置仅对本机或已认证的客户端显示（--web.show-call-sites）。",
    causes: { fallback: "回退", explicit_kernel: "显式内核", sync: "等待返回值", user: "程序自身" },
    kinds: { dispatcher: "没有 NPU 内核", explicit_kernel: "NPU 内核在主机上计算" },
    sourceNames: { fallback: "服务进程的计数页", npu_smi: "npu-smi", npu_mapping: "芯片：计数页与 npu-smi 对照", host: "主机", build_info: "版本信息", process: "导出器自身", pages: "计数页" },
  },
};

let language = rememberedLanguage();
let report = null;
let readAt = null;
let problem = null;
let cursor = null;
let timer = 0;

// --- Words and numbers -------------------------------------------------------------------------

function rememberedLanguage() {
  let chosen = null;
  try { chosen = localStorage.getItem("npu-fallback-language"); } catch { /* not allowed here */ }
  if (!(chosen in TEXTS)) chosen = document.documentElement.lang;
  return chosen in TEXTS ? chosen : "en";
}

function say(key, ...values) {
  return TEXTS[language][key].replace(/\{(\d)\}/g, (_, number) => values[number]);
}

function named(group, key) {
  const names = TEXTS[language][group];
  return Object.hasOwn(names, key) ? names[key] : key;
}

function count(number) {
  return number === null ? "–" : Math.round(number).toLocaleString("en-US");
}

function size(number) {
  if (number === null) return "–";
  let value = number;
  for (const unit of ["B", "KiB", "MiB", "GiB"]) {
    if (value < 1024) return unit === "B" ? `${value} B` : `${value.toFixed(1)} ${unit}`;
    value /= 1024;
  }
  return `${value.toFixed(1)} TiB`;
}

function duration(seconds) {
  if (seconds === null) return "–";
  if (seconds === 0) return "0 s";
  for (const [least, length, unit] of [[86400, 86400, "d"], [3600, 3600, "h"], [120, 60, "min"]]) {
    if (seconds >= least) return `${(seconds / length).toFixed(1)} ${unit}`;
  }
  if (seconds >= 1) return `${seconds.toFixed(2)} s`;
  return seconds >= 1e-4 ? `${(seconds * 1e3).toFixed(1)} ms` : `${(seconds * 1e6).toFixed(1)} µs`;
}

function part(ratio) {
  if (ratio === null) return "–";
  return ratio > 0 && ratio < 0.0005 ? "<0.1%" : `${(100 * ratio).toFixed(1)}%`;
}

function rate(number) {
  if (number === null) return "–";
  if (number === 0 || number >= 100) return count(number);
  const digits = 2 - Math.floor(Math.log10(number));
  return number.toFixed(Math.min(6, Math.max(0, digits)));
}

function clock(unix) {
  return new Date(unix * 1000).toLocaleTimeString(language === "zh" ? "zh-CN" : "en-GB");
}

function minutes(seconds) {
  return seconds < 90 ? say("seconds", Math.round(seconds)) : say("minutes", Math.round(seconds / 60));
}

// --- Elements ----------------------------------------------------------------------------------

function fill(target, ...children) {
  target.replaceChildren(...children.filter((child) => child !== null && child !== ""));
  return target;
}

function el(tag, css, ...children) {
  const made = document.createElement(tag);
  if (css) made.className = css;
  return fill(made, ...children);
}

function svg(tag, attributes, ...children) {
  const made = document.createElementNS("http://www.w3.org/2000/svg", tag);
  for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value);
  made.append(...children);
  return made;
}

function by(id) {
  return document.getElementById(id);
}

// Columns are [name, is words]; cells are nodes or text.
function table(columns, rows, css) {
  const head = el("tr", "", ...columns.map(([name, words]) => {
    const cell = el("th", words ? "words" : "", name);
    cell.scope = "col";
    return cell;
  }));
  const body = rows.map((row) => el("tr", "", ...row.map((content, index) => {
    const [name, words] = columns[index];
    const cell = el("td", words ? "words" : "", content);
    if (index > 0) cell.dataset.label = name;
    return cell;
  })));
  return el("table", css, el("thead", "", head), el("tbody", "", ...body));
}

function runbook(alert) {
  if (!alert) return null;
  const link = el("a", "", say("whatToDo"));
  link.href = `runbook#${alert.toLowerCase()}`;
  return link;
}

// --- The parts of the page ---------------------------------------------------------------------

function showHeader() {
  document.documentElement.lang = language;
  document.title = say("title");
  for (const one of document.querySelectorAll("[data-text]")) one.textContent = say(one.dataset.text);
  for (const one of document.querySelectorAll("[data-language]")) {
    one.setAttribute("aria-pressed", String(one.dataset.language === language));
  }
  if (!report) return;
  const modes = report.modes.map((one) => `${say("mode")} ${one.mode} (${say("from")} ${one.source})`);
  const hooks = report.hooks.map((one) =>
    `torch ${one.torch || "?"}, torch_npu ${one.torch_npu || "?"}, CANN ${one.cann || "?"}`);
  by("about").textContent = [...modes, ...hooks, `${say("updated")} ${clock(report.made_unix)}`].join(" · ");
  by("version").textContent = `npu-fallback-exporter ${report.exporter_version}`;
}

function showProblem() {
  const box = by("problem");
  box.hidden = !problem;
  document.body.classList.toggle("stale", Boolean(problem));
  if (!problem) box.textContent = "";
  else if (readAt) box.textContent = say("unreachable", clock(readAt));
  else box.textContent = say("unreachableYet", problem);
}

function showFindings() {
  const [verdict, ...others] = report.findings;
  const box = by("verdict");
  const key = `${language} ${verdict[language]}`;
  if (box.dataset.shown !== key) { // so that a screen reader is told only what is new
    box.dataset.shown = key;
    fill(box, el("span", `mark ${verdict.level}`, say(verdict.level)), verdict[language], " ",
      runbook(verdict.alert));
  }
  fill(by("notices"), ...others.map((one) => el("li", one.level, one[language], " ", runbook(one.alert))));
}

function figure(name, value, ...notes) {
  return el("div", "", el("dt", "", name), el("dd", "", value, ...notes.map((note) => el("small", "", note))));
}

function newest(line) {
  return line && line.length ? line[line.length - 1] : null;
}

function mean(values) {
  const known = values.filter((value) => value !== null);
  return known.length ? known.reduce((sum, value) => sum + value, 0) / known.length : null;
}

function recentSums() {
  const history = report.history;
  if (!history || !history.unix.length) return null;
  const sum = (name) => history.ops.reduce((total, op) => total + op[name], 0);
  const events = sum("events");
  return {
    share: history.armed_seconds > 0 ? sum("host_seconds") / history.armed_seconds : null,
    rate: history.seconds > 0 ? events / history.seconds : null,
    perThousand: history.operators ? (1000 * events) / history.operators : null,
    name: minutes(history.seconds),
  };
}

function showFigures() {
  const recent = recentSums();
  const per = report.operators ? (1000 * report.events) / report.operators : null;
  const used = report.devices.map((device) => device.utilization).filter((value) => value !== null);
  const smi = report.sources.find((source) => source.name === "npu_smi");
  const why = smi && smi.state === "off" ? say("off_npu") : say("none_npu");
  const window = recent ? [say("now", recent.name)] : [];
  fill(by("figures"),
    figure(say("share"), part(recent ? recent.share : report.share_of_armed_time), ...window,
      ...(recent ? [say("inAll", part(report.share_of_armed_time))] : [])),
    figure(say("eventRate"), rate(recent ? recent.rate : null), ...window,
      say("inAll", count(report.events))),
    figure(say("perThousand"), rate(recent ? recent.perThousand : per), ...window,
      ...(recent ? [say("inAll", rate(per))] : [])),
    figure(say("npu"), part(mean(used)), used.length > 1 ? say("mean", used.length) : used.length ? "" : why),
    figure(say("cpu"), part(newest(report.history?.host_cpu) ?? report.host_cpu)),
    figure(say("processes"), count(report.processes), say("ended", count(report.processes_finished))));
}

// --- The chart ---------------------------------------------------------------------------------

function path(values, x, y) {
  let text = "";
  let down = false;
  values.forEach((value, index) => {
    if (value !== null) text += `${down ? "L" : "M"}${x(index).toFixed(1)} ${y(value).toFixed(1)}`;
    down = value !== null;
  });
  return text;
}

function area(values, x, y, floor) {
  const runs = [];
  values.forEach((value, index) => {
    if (value === null) return;
    if (index === 0 || values[index - 1] === null) runs.push([]);
    runs[runs.length - 1].push(`${x(index).toFixed(1)} ${y(value).toFixed(1)}`);
    runs[runs.length - 1].end = x(index);
  });
  return runs.map((run) => {
    const start = run[0].split(" ")[0];
    return `M${start} ${floor}L${run.join("L")}L${run.end.toFixed(1)} ${floor}Z`;
  }).join("");
}

// A round number at or above.
function ceiling(value) {
  if (!(value > 0)) return 1;
  const power = 10 ** Math.floor(Math.log10(value));
  return power * [1, 2, 5, 10].find((step) => step * power >= value * 0.999);
}

function averageLine(lines) {
  if (!lines.length) return [];
  return lines[0].map((_, index) => mean(lines.map((line) => line[index])));
}

function showChart() {
  const history = report.history;
  const box = by("chart");
  if (!history || !history.unix.length) {
    fill(by("legend"));
    fill(box, el("p", "empty", say("noPoints", 10)));
    by("readout").textContent = "";
    return;
  }
  const width = Math.max(280, box.clientWidth);
  const left = 44, right = width - 6, top = 8, middle = 138, low = 160, floor = 226;
  const end = history.unix[history.unix.length - 1];
  const x = (index) => right - ((end - history.unix[index]) / WINDOW_SECONDS) * (right - left);
  const ratio = (value) => middle - Math.min(1, value) * (middle - top);
  const most = ceiling(Math.max(0, ...history.events_per_second.filter((value) => value !== null)));
  const events = (value) => floor - (value / most) * (floor - low);
  const npus = Object.values(history.npu);
  const average = averageLine(npus);
  const has = (line) => line.some((value) => value !== null);
  const label = (text, at, height, anchor = "end") => {
    const made = svg("text", { x: at, y: height, "text-anchor": anchor });
    made.textContent = text;
    return made;
  };
  const drawn = svg("svg", { width, height: 248, viewBox: `0 0 ${width} 248`, role: "img" },
    svg("path", { class: "grid", d: `M${left} ${top}H${right}M${left} ${(top + middle) / 2}H${right}M${left} ${middle}H${right}M${left} ${low}H${right}M${left} ${floor}H${right}` }),
    label("100%", left - 6, top + 4), label("50%", left - 6, (top + middle) / 2 + 4),
    label("0%", left - 6, middle + 4), label(rate(most), left - 6, low + 4), label("0", left - 6, floor + 4));
  drawn.setAttribute("aria-label", chartWords(history, average));
  for (const back of [900, 600, 300, 0]) {
    const at = right - (back / WINDOW_SECONDS) * (right - left);
    drawn.append(label(clock(end - back).slice(0, 5), back === 900 ? left : at, 244, back === 900 ? "start" : back ? "middle" : "end"));
  }
  if (npus.length > 1) {
    for (const line of npus) drawn.append(svg("path", { class: "npu trace faint", d: path(line, x, ratio) }));
  }
  drawn.append(
    svg("path", { class: "npu trace", d: path(average, x, ratio) }),
    svg("path", { class: "cpu trace", d: path(history.host_cpu, x, ratio) }),
    svg("path", { class: "cpu trace dashed", d: path(history.container_cpu, x, ratio) }),
    svg("path", { class: "rate area", d: area(history.events_per_second, x, events, floor) }),
    svg("path", { class: "rate trace", d: path(history.events_per_second, x, events) }),
    svg("path", { class: "cursor", d: "" }));
  fill(box, drawn);
  const smi = report.sources.find((source) => source.name === "npu_smi");
  const without = smi && smi.state === "off" ? say("off_npu") : say("none_npu");
  fill(by("legend"),
    has(average) ? el("span", "npu", npus.length > 1 ? `${say("npu")} (${say("mean", npus.length)})` : say("npu")) : el("em", "soft", without),
    el("span", "cpu", say("hostCpu")),
    has(history.container_cpu) ? el("span", "cpu dashed", say("containerCpu")) : null,
    el("span", "rate", say("rate")));
  box.points = { history, average, x, top, floor };
  showCursor();
}

function chartWords(history, average) {
  return `${say("npu")} ${part(newest(average))}, ${say("cpu")} ${part(newest(history.host_cpu))}, ${say("rate")} ${rate(newest(history.events_per_second))}`;
}

function showCursor() {
  const { points } = by("chart");
  if (!points) return;
  const { history, average, x, top, floor } = points;
  const line = by("chart").querySelector(".cursor");
  const index = cursor === null ? history.unix.length - 1 : Math.min(cursor, history.unix.length - 1);
  if (line) line.setAttribute("d", cursor === null ? "" : `M${x(index)} ${top}V${floor}`);
  // Moving along the chart is told to a screen reader, news every few seconds is not.
  by("readout").setAttribute("aria-live", cursor === null ? "off" : "polite");
  by("readout").textContent = `${clock(history.unix[index])}: ${say("npu")} ${part(average[index] ?? null)}, ${say("cpu")} ${part(history.host_cpu[index])}, ${say("rate")} ${rate(history.events_per_second[index])}`;
}

function moveCursor(event) {
  const { points } = by("chart");
  if (!points) return;
  const last = points.history.unix.length - 1;
  if (event.type === "keydown") {
    const step = { ArrowLeft: -1, ArrowRight: 1, Home: -last, End: last }[event.key];
    if (event.key === "Escape") cursor = null;
    else if (step === undefined) return;
    else cursor = Math.max(0, Math.min(last, (cursor === null ? last : cursor) + step));
    event.preventDefault();
  } else if (event.type === "pointerleave") {
    cursor = null;
  } else {
    const at = event.clientX - by("chart").getBoundingClientRect().left;
    let best = 0;
    for (let index = 0; index <= last; index += 1) {
      if (Math.abs(points.x(index) - at) < Math.abs(points.x(best) - at)) best = index;
    }
    cursor = best;
  }
  showCursor();
}

// --- Tables ------------------------------------------------------------------------------------

function trend(line) {
  if (!line) return "";
  const most = Math.max(...line.map((value) => value ?? 0)) || 1;
  const history = report.history;
  const end = history.unix[history.unix.length - 1];
  const x = (index) => 110 - ((end - history.unix[index]) / WINDOW_SECONDS) * 110;
  const y = (value) => 25 - (value / most) * 23;
  const drawn = svg("svg", { width: 110, height: 26, viewBox: "0 0 110 26", role: "img" },
    svg("path", { class: "rate area", d: area(line, x, y, 25) }),
    svg("path", { class: "rate trace", d: path(line, x, y) }));
  drawn.setAttribute("aria-label", `${say("rate")}: ${rate(newest(line))}, max ${rate(most)}`);
  return el("span", "trend", drawn);
}

function described(op) {
  const note = (...children) => el("span", "note", ...children);
  return el("div", "",
    el("code", "op", op.op),
    note(named("kinds", op.kind), op.blocked ? `, ${say("refused", count(op.blocked))}` : "", op.errors ? `, ${say("raised", count(op.errors))}` : ""),
    op.call && op.call.site ? note(`${say("called")} `, el("code", "", op.call.site)) : null,
    op.call && op.call.arguments ? note(`${say("given")} `, el("code", "", op.call.arguments)) : null,
    op.remedy ? el("span", "note remedy", el("strong", "", say("instead")), " ", op.remedy[language]) : null);
}

function shareCell(ratio) {
  if (ratio === null) return "–";
  const bar = el("progress", "");
  bar.max = 1;
  bar.value = Math.min(1, ratio);
  bar.setAttribute("aria-hidden", "true");
  return el("div", "share", part(ratio), bar);
}

function showOps() {
  const box = by("ops-table");
  if (!report.ops.length) {
    fill(box, el("p", "empty", report.processes || report.processes_finished ? say("noOps") : say("noOpsOff")));
    return;
  }
  const history = report.history && report.history.unix.length ? report.history : null;
  const key = (op) => `${op.kind} ${op.op}`;
  const recent = new Map((history ? history.ops : []).map((op) => [key(op), op]));
  const cost = (op) => recent.get(key(op))?.host_seconds ?? -1;
  const ranked = [...report.ops].sort((one, other) => cost(other) - cost(one)).slice(0, MOST_ROWS);
  const columns = [[say("operator"), true]];
  const window = history ? minutes(history.seconds) : "";
  if (history) columns.push([say("trend")], [`${say("share")}, ${say("now", window)}`], [`${say("events")}, ${say("now", window)}`]);
  columns.push([say("share")], [say("events")], [say("perThousand")], [say("hostTime")], [say("meanTime")], [say("toHost")], [say("toDevice")]);
  const rows = ranked.map((op) => {
    const now = recent.get(key(op));
    const cells = [described(op)];
    if (history) {
      cells.push(trend(now?.events_per_second),
        shareCell(now && history.armed_seconds > 0 ? now.host_seconds / history.armed_seconds : null),
        count(now ? now.events : 0));
    }
    return [...cells, part(op.share_of_armed_time), count(op.events), rate(op.per_thousand_operators),
      duration(op.host_seconds), duration(op.mean_seconds), size(op.bytes_d2h), size(op.bytes_h2d)];
  });
  const rest = report.ops.length - ranked.length;
  fill(box, table(columns, rows, "cards"),
    rest > 0 ? el("p", "soft", say("more", rest)) : null,
    report.shows_details ? null : el("p", "note", say("callsHidden")));
}

function showTransfers() {
  const rows = report.transfers.filter((one) => one.transfers).map((one) =>
    [say(one.direction), named("causes", one.cause), count(one.transfers), size(one.bytes)]);
  for (const one of report.driver) rows.push([say(one.direction), say("driver"), count(one.transfers), size(one.bytes)]);
  const columns = [[say("direction"), true], [say("cause"), true], [say("copies")], [say("bytes")]];
  const empty = report.operators === null ? say("notTracked") : say("noCopies");
  fill(by("transfers"), rows.length ? table(columns, rows) : el("p", "empty", empty));
}

function showSyncs() {
  const rows = Object.entries(report.syncs).sort((one, other) => other[1] - one[1]).slice(0, MOST_ROWS)
    .map(([op, times]) => [el("code", "", op), count(times)]);
  const empty = report.operators === null ? say("notTracked") : say("noCopies");
  fill(by("syncs"), rows.length ? table([[say("operator"), true], [say("times")]], rows) : el("p", "empty", empty));
}

function showWorkers() {
  const withPid = report.workers.some((one) => one.pid !== null);
  const columns = [[say("started"), true], ...(withPid ? [[say("pid")]] : []), [say("npus"), true], [say("modeName"), true], [say("events")], [say("hostTime")]];
  const rows = report.workers.map((one) => [
    say("ago", minutesOrMore(report.made_unix - one.started_unix)), ...(withPid ? [String(one.pid)] : []),
    one.npus.join(", ") || "–", one.mode, count(one.events), duration(one.host_seconds)]);
  fill(by("workers"), rows.length ? table(columns, rows) : el("p", "empty", say("noWorkers")));
}

function minutesOrMore(seconds) {
  return seconds < 7200 ? minutes(seconds) : duration(seconds);
}

function showSources() {
  const levels = { good: "fine", failed: "bad", off: "soft" };
  const rows = report.sources.map((one) => {
    const facts = [one.age_seconds === null ? "" : say("age", minutesOrMore(one.age_seconds)), one.detail];
    return [named("sourceNames", one.name), el("span", levels[one.state] ?? "soft", say(one.state)),
      facts.filter(Boolean).join("; ")];
  });
  fill(by("sources"), table([[say("source"), true], [say("state"), true], [say("detail"), true]], rows));
}

function show() {
  showHeader();
  showProblem();
  if (!report) return;
  showFindings();
  showFigures();
  showChart();
  showOps();
  showTransfers();
  showSyncs();
  showWorkers();
  showSources();
}

// --- Asking, again and again -------------------------------------------------------------------

async function ask() {
  clearTimeout(timer);
  if (document.hidden) return;
  const limit = AbortSignal.timeout(PATIENCE_MS);
  try {
    const answer = await fetch(REPORT, { signal: limit, cache: "no-store" });
    if (!answer.ok) throw new Error(`HTTP ${answer.status}`);
    report = await answer.json();
    readAt = report.made_unix;
    problem = null;
  } catch (error) {
    problem = error.message || String(error);
  }
  show();
  clearTimeout(timer);
  timer = setTimeout(ask, EVERY_MS);
}

function choose(event) {
  language = event.currentTarget.dataset.language;
  try { localStorage.setItem("npu-fallback-language", language); } catch { /* not allowed here */ }
  show();
}

for (const one of document.querySelectorAll("[data-language]")) one.addEventListener("click", choose);
for (const type of ["pointermove", "pointerleave", "keydown"]) by("chart").addEventListener(type, moveCursor);
document.addEventListener("visibilitychange", ask);
new ResizeObserver(() => { if (report) showChart(); }).observe(by("ops-table"));
show();
ask();
