"""The data folder of a single machine: secret key and socket of the embedded Valkey."""

from __future__ import annotations

import hashlib
import secrets
import tempfile
from pathlib import Path

# The kernel rejects Unix socket paths longer than 107 bytes.
MAX_SOCKET_PATH = 100


def load_or_create_secret_key(data_dir: Path) -> str:
    """Return the secret key of this data folder; create it on first use, readable by its owner only."""
    path = data_dir / "secret-key"
    data_dir.mkdir(mode=0o700, parents=True, exist_ok=True)
    try:
        with path.open("x") as file:
            path.chmod(0o600)
            file.write(secrets.token_urlsafe(48))
    except FileExistsError:
        pass
    return path.read_text()


def embedded_valkey_socket(data_dir: Path) -> Path:
    """Return the socket path of the embedded Valkey of this data folder."""
    path = data_dir / "valkey.sock"
    if len(str(path)) <= MAX_SOCKET_PATH:
        return path
    digest = hashlib.sha256(str(data_dir).encode()).hexdigest()[:16]
    return Path(tempfile.gettempdir()) / f"lcm-{digest}" / "valkey.sock"
