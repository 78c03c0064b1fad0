"""Labels as text."""

from __future__ import annotations

from typing import Any

import msgspec


def label_text(label: Any) -> str:
    """Return a label as the key of a JSON object.

    >>> label_text("spam"), label_text(True), label_text(3)
    ('spam', 'true', '3')
    """
    return label if isinstance(label, str) else msgspec.json.encode(label, enc_hook=str).decode()
