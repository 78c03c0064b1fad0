"""The live page: one HTML text with its style and script inside, and the policy that it needs.

The browser runs and applies what has the hashes of this very text, and asks nobody else for
anything; so a feature named `<script>` stays a name.
"""

from __future__ import annotations

import base64
import hashlib
from pathlib import Path

HERE = Path(__file__).parent
SCRIPTS = ("format.js", "chart.js", "panels.js", "main.js")


def source(name: str) -> str:
    """The text of a file beside this one."""
    return (HERE / name).read_text(encoding="utf-8")


def hashed(text: str) -> str:
    """What a policy calls a text."""
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"


STYLE = source("style.css")
SCRIPT = '"use strict";\n(() => {\n' + "\n".join(source(name) for name in SCRIPTS) + "})();\n"
HTML = source("index.html").replace("@style@", STYLE).replace("@script@", SCRIPT).encode()
HEADERS = {
    "Content-Security-Policy": "; ".join(
        [
            "default-src 'none'",
            f"script-src {hashed(SCRIPT)}",
            f"style-src {hashed(STYLE)}",
            "connect-src 'self'",
            "img-src data:",
            "base-uri 'none'",
            "form-action 'none'",
            "frame-ancestors 'none'",
        ]
    ),
    "X-Frame-Options": "DENY",
}
