// Draws a dashboard and the answers to its queries with the components that Grafana draws with.
// The page that loads this defines `window.PICTURE`: {board, answers, chosen, start, end}.
import "uplot/dist/uPlot.min.css";
import React from "react";
import { createRoot } from "react-dom/client";
import {
  createTheme,
  dateTime,
  EventBusSrv,
  FieldColorModeId,
  FieldType,
  getDisplayProcessor,
  ThemeContext,
  toDataFrame,
} from "@grafana/data";
import {
  BigValue,
  GlobalStyles,
  PanelChrome,
  PanelContextProvider,
  Table,
  TimeSeries,
} from "@grafana/ui";

const CELL_HEIGHT = 30;
const GAP = 8;
const WIDTH = 1600;
const { board, answers, chosen, start, end } = window.PICTURE;
const theme = createTheme({ colors: { mode: "light" } });
const timeRange = {
  from: dateTime(start * 1000),
  to: dateTime(end * 1000),
  raw: { from: dateTime(start * 1000), to: dateTime(end * 1000) },
};

function legendOf(target, labels) {
  return (target.legendFormat || "").replace(/\{\{\s*(\w+)\s*\}\}/g, (_, name) => labels[name] ?? "");
}

// The defaults of the panel, with the overrides that match the field's name.
function configOf(panel, name) {
  const { defaults, overrides } = panel.fieldConfig;
  const config = { ...defaults, custom: { ...defaults.custom } };
  for (const { matcher, properties } of overrides ?? []) {
    if (matcher.id === "byName" && matcher.options === name) {
      for (const { id, value } of properties) {
        if (id.startsWith("custom.")) {
          config.custom[id.slice("custom.".length)] = value;
        } else {
          config[id] = value;
        }
      }
    }
  }
  return config;
}

function withDisplay(field) {
  field.display = getDisplayProcessor({ field, theme, timeZone: "utc" });
  return field;
}

function frameOf(panel, target, series, index) {
  const name = legendOf(target, series.metric);
  const frame = toDataFrame({
    name,
    refId: target.refId,
    fields: [
      { name: "Time", type: FieldType.time, values: series.values.map(([at]) => at * 1000) },
      {
        name,
        type: FieldType.number,
        values: series.values.map(([, value]) => (value === "NaN" ? null : Number(value))),
        config: { ...configOf(panel, name), displayName: name },
      },
    ],
  });
  frame.fields[1].config.color ??= { mode: FieldColorModeId.PaletteClassic };
  const numbers = frame.fields[1].values.filter(Number.isFinite);
  const range = { min: Math.min(...numbers), max: Math.max(...numbers) };
  range.delta = range.max - range.min;
  frame.fields[1].state = { seriesIndex: index, displayName: name, range };
  frame.fields.forEach(withDisplay);
  return frame;
}

function framesOf(panel) {
  const frames = [];
  for (const target of panel.targets) {
    for (const series of answers[panel.id][target.refId]) {
      frames.push(frameOf(panel, target, series, frames.length));
    }
  }
  return frames;
}

function Curves({ panel, width, height }) {
  const frames = framesOf(panel);
  if (frames.length === 0) {
    return <Empty text="No data" />;
  }
  return (
    <TimeSeries
      frames={frames}
      structureRev={1}
      timeRange={timeRange}
      timeZone="utc"
      width={width}
      height={height}
      legend={{ calcs: [], ...panel.options.legend }}
      options={panel.options}
    />
  );
}

function BigNumber({ panel, width, height }) {
  const [frame] = framesOf(panel);
  if (!frame) {
    return <Empty text="No data" />;
  }
  const field = frame.fields[1];
  field.config.color = { mode: FieldColorModeId.Thresholds };
  withDisplay(field);
  const value = field.display(field.values.filter(Number.isFinite).at(-1)); // lastNotNull
  return (
    <BigValue
      value={value}
      sparkline={{ x: frame.fields[0], y: field }}
      theme={theme}
      colorMode="value"
      graphMode="area"
      justifyMode="auto"
      textMode="value"
      width={width}
      height={height}
    />
  );
}

// What the transformations "merge" and "organize" make of the instant answers.
function Ranking({ panel, width, height }) {
  const organize = panel.transformations.find(({ id }) => id === "organize").options;
  const { indexByName, renameByName } = organize;
  const columns = Object.keys(indexByName).sort((a, b) => indexByName[a] - indexByName[b]);
  const keys = columns.filter((column) => !(column in renameByName));
  const rows = new Map();
  for (const target of panel.targets) {
    for (const series of answers[panel.id][target.refId]) {
      const key = keys.map((name) => series.metric[name]).join("|");
      const row = rows.get(key) ?? { ...series.metric };
      row[`Value #${target.refId}`] = Number(series.values.at(-1)[1]);
      rows.set(key, row);
    }
  }
  const first = columns.find((column) => column in renameByName);
  const sorted = [...rows.values()].sort((a, b) => (b[first] ?? 0) - (a[first] ?? 0));
  if (sorted.length === 0) {
    return <Empty text="No data" />;
  }
  const frame = toDataFrame({
    fields: columns.map((column) => {
      const name = renameByName[column] ?? column;
      const isNumber = column in renameByName;
      return {
        name,
        type: isNumber ? FieldType.number : FieldType.string,
        values: sorted.map((row) => row[column]),
        config: configOf(panel, name),
      };
    }),
  });
  frame.fields.forEach(withDisplay);
  return <Table data={frame} width={width} height={height} />;
}

function Empty({ text }) {
  return <div style={{ padding: 16, color: theme.colors.text.secondary }}>{text}</div>;
}

const KINDS = { timeseries: Curves, stat: BigNumber, table: Ranking };

function Panel({ panel }) {
  const { x, y, w, h } = panel.gridPos;
  const column = (WIDTH - GAP) / 24;
  const place = {
    position: "absolute",
    left: GAP + x * column,
    top: 48 + y * (CELL_HEIGHT + GAP),
  };
  const width = w * column - GAP;
  const height = h * (CELL_HEIGHT + GAP) - GAP;
  if (panel.type === "row") {
    return <h5 style={{ ...place, margin: 0, paddingTop: 8 }}>{panel.title}</h5>;
  }
  const Kind = KINDS[panel.type];
  return (
    <div style={place} data-panel={panel.title}>
      <PanelChrome title={panel.title} width={width} height={height} padding="sm">
        {(innerWidth, innerHeight) => (
          <Kind panel={panel} width={innerWidth} height={innerHeight} />
        )}
      </PanelChrome>
    </div>
  );
}

function Board() {
  const variables = Object.entries(chosen).map(([name, value]) => `${name}: ${value}`);
  return (
    <ThemeContext.Provider value={theme}>
      <GlobalStyles />
      <PanelContextProvider value={{ eventsScope: "global", eventBus: new EventBusSrv() }}>
        <div style={{ padding: "10px 8px", fontWeight: 500 }}>
          {board.title}
          <span style={{ color: theme.colors.text.secondary, marginLeft: 24, fontWeight: 400 }}>
            {variables.join("   ·   ")}
          </span>
        </div>
        {board.panels.map((panel) => (
          <Panel key={panel.id} panel={panel} />
        ))}
      </PanelContextProvider>
    </ThemeContext.Provider>
  );
}

createRoot(document.getElementById("root")).render(<Board />);
