// A CommonJS module that Grafana's ES modules import by default: esbuild, like Node, gives them all
// of its exports in the place of the default one.
module.exports = require("./node_modules/react-custom-scrollbars-2/lib/index.js").default;
