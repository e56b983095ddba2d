"""The page for people who open the exporter in a browser."""

from __future__ import annotations

from .. import __version__

HTML = f"""\
<!doctype html>
<html lang="en">
<head><meta charset="utf-8"><title>NPU fallback exporter</title></head>
<body>
<h1>NPU fallback exporter {__version__}</h1>
<p>Counts the operators that silently run on the host CPU instead of the Ascend NPU.</p>
<ul>
<li><a href="metrics">Metrics</a></li>
<li><a href="healthz">Health</a>: this process answers</li>
<li><a href="readyz">Readiness</a>: a first collection succeeded</li>
</ul>
</body>
</html>
""".encode()
