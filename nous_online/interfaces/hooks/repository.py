"""Which project a folder belongs to: the repository around it, wherever that was cloned to."""

from __future__ import annotations

import os
from hashlib import sha256
from pathlib import Path

MOST_OF_A_NAME = 60


def current_project() -> str:
    """Return the project of the folder a client works in: the one it names to what it starts, else the current one."""
    return project_of(Path(os.environ.get("CLAUDE_PROJECT_DIR") or Path.cwd()))


def project_of(folder: Path) -> str:
    """Return the id of the project a folder belongs to: a name to be read, and a hash that tells it from its namesakes.

    It is that of the remote `origin`, so that all clones and worktrees of one person share a memory; of the top folder
    where there is no remote; and of the folder itself where there is no repository.
    """
    top = top_of(folder.absolute())
    store = common_store(top / ".git")
    address = remote_of(store)
    if address:
        return name_with_hash(address.rpartition("/")[2], address)
    home = store.parent if store.name == ".git" else top
    return name_with_hash(home.name, str(home.resolve()))


def top_of(folder: Path) -> Path:
    """Return the top folder of the repository around a folder, or the folder itself."""
    return next((each for each in (folder, *folder.parents) if (each / ".git").exists()), folder)


def common_store(store: Path) -> Path:
    """Return where a repository keeps its settings: of a worktree, in the repository it belongs to."""
    if not store.is_file():
        return store
    pointed = read(store).removeprefix("gitdir:").strip()
    own = (store.parent / pointed).resolve()
    common = read(own / "commondir").strip()
    return (own / common).resolve() if common else own


def remote_of(store: Path) -> str:
    """Return host and path of the remote `origin`, without account and password; nothing where there is none."""
    section = ""
    for line in read(store / "config").splitlines():
        name, _, value = (part.strip() for part in line.partition("="))
        section = name if name.startswith("[") else section
        if (section, name) == ('[remote "origin"]', "url"):
            return host_and_path(value)
    return ""


def host_and_path(url: str) -> str:
    """Return what a URL of git names, however it is reached; nothing for a folder of this machine."""
    scheme, _, rest = url.partition("://")
    authority, _, path = rest.partition("/") if rest else scheme.partition(":")
    host = authority.rpartition("@")[2].partition(":")[0]
    named = path.strip("/").removesuffix(".git").rstrip("/")
    return f"{host.lower()}/{named}" if host and named else ""


def name_with_hash(name: str, identity: str) -> str:
    """Return a readable name with part of the SHA-256 of what it stands for."""
    return f"{name[:MOST_OF_A_NAME] or 'folder'}-{sha256(identity.encode()).hexdigest()[:8]}"


def read(path: Path) -> str:
    """Return the text of a file; nothing where it can't be read."""
    try:
        return path.read_text("utf-8", "replace")
    except OSError:
        return ""
