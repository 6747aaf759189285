"""Small files that only their owner may read: passwords, keys, and the note of the running service."""

import os
import secrets
from pathlib import Path


def write_private(path: Path, text: str) -> None:
    """Writes a file of mode 0600 atomically: readers see the old text, the new text, or no file."""
    new_file = path.with_name(f".{path.name}.{secrets.token_hex(4)}")
    descriptor = os.open(new_file, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    try:
        with os.fdopen(descriptor, "w", encoding="utf-8") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        new_file.replace(path)
    except BaseException:
        new_file.unlink(missing_ok=True)
        raise


def kept_secret(path: Path) -> str:
    """The secret of an earlier start, or a new one of 256 random bits that is kept for later starts."""
    try:
        return path.read_text(encoding="utf-8").strip()
    except FileNotFoundError:
        secret = secrets.token_urlsafe(32)
        write_private(path, secret)
        return secret
