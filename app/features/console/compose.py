"""Pages that other rooms show to people without a session."""

from __future__ import annotations

from typing import Any

from app.features.console.handlers.responses import html
from app.features.console.rendering import render
from app.http.response import ApiResponse


def public_page(template: str, *, status: int = 200, **context: Any) -> ApiResponse[str]:
    """A page at an address whose other readers get JSON."""
    response = html(render(template, {**context, "visit": None, "calls": ()}), status=status)
    response.headers["Vary"] = "Accept"
    return response
