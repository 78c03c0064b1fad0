"""The live page: one HTML document with inline style and script, and its content security policy.

The policy allows only the inline style and script with these hashes, and no other origins. So a
feature named `<script>` is only text.
"""

from __future__ import annotations

import base64
import hashlib
from pathlib import Path

HERE = Path(__file__).parent
SCRIPTS = ("format.js", "chart.js", "panels.js", "main.js")


def source(name: str) -> str:
    """Read a file of this directory."""
    return (HERE / name).read_text(encoding="utf-8")


def csp_hash(text: str) -> str:
    """Return the hash of a text for the content security policy."""
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"


STYLE = source("style.css")
SCRIPT = '"use strict";\n(() => {\n' + "\n".join(source(name) for name in SCRIPTS) + "})();\n"
HTML = source("index.html").replace("@style@", STYLE).replace("@script@", SCRIPT).encode()
HEADERS = {
    "Content-Security-Policy": "; ".join(
        [
            "default-src 'none'",
            f"script-src {csp_hash(SCRIPT)}",
            f"style-src {csp_hash(STYLE)}",
            "connect-src 'self'",
            "img-src data:",
            "base-uri 'none'",
            "form-action 'none'",
            "frame-ancestors 'none'",
        ]
    ),
    "X-Frame-Options": "DENY",
}
