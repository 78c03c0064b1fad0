"""The page for trying the interface: one document, which loads nothing from elsewhere."""

from __future__ import annotations

from pathlib import Path

from streamlearn.telemetry.page import csp_hash

HERE = Path(__file__).parent
STYLE = (HERE / "style.css").read_text(encoding="utf-8")
SCRIPT = (HERE / "main.js").read_text(encoding="utf-8")
HTML = (
    (HERE / "index.html")
    .read_text(encoding="utf-8")
    .replace("/*style*/", STYLE)
    .replace("/*script*/", SCRIPT)
    .encode()
)
HEADERS = {
    "content-type": "text/html; charset=utf-8",
    "content-security-policy": "; ".join(
        [
            "default-src 'none'",
            f"script-src {csp_hash(SCRIPT)}",
            f"style-src {csp_hash(STYLE)}",
            "connect-src 'self'",
            "base-uri 'none'",
            "form-action 'none'",
            "frame-ancestors 'none'",
        ]
    ),
}
