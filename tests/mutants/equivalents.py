"""Mutations that change nothing which a test could notice, each with the reason."""

from __future__ import annotations

from typing import Final

EQUIVALENTS: Final = {
    "app.kernel.commit.conflict:_Owners.of | part dropped | change.removed and change.path in self.files": (
        "A file that a commit reads is live at its read version, so its entry in the window is its removal."
    ),
}
