"""The project of a folder: the id by which hooks, imports and commands share what was learned in a repository."""

from __future__ import annotations

from contextlib import suppress
from hashlib import sha256
from pathlib import Path, PureWindowsPath

MOST_OF_A_NAME = 60


def project_of(folder: Path) -> str:
    """Return the id of a folder's project: a readable name, and a hash that distinguishes projects of the same name.

    It is made from the remote `origin`, so that all clones and worktrees share a memory; without a remote from the top
    folder of the repository, and without a repository from the folder itself.
    """
    top = top_of(folder.absolute())
    store = common_store(top / ".git")
    address = remote_of(store)
    if address:
        return name_with_hash(address.rpartition("/")[2], address)
    home = store.parent if store.name == ".git" else top
    return name_with_hash(home.name, str(home.resolve()))


def project_of_session(cwd: str, remote: str = "") -> str:
    """Return the project of the folder a session worked in, which may be gone by now, or lie on another machine.

    `remote` is the URL of `origin` as the session kept it; it counts where the folder is gone.
    """
    path = "".join(filter(str.isprintable, cwd))
    folder = Path(path)
    with suppress(OSError):  # nobody else may look there, or no path is so long
        if not folder.is_dir() and (address := host_and_path(remote)):
            return name_with_hash(address.rpartition("/")[2], address)
        if folder.is_absolute():  # a path of Windows is relative here, and the current folder is of another project
            return project_of(folder)
    return name_with_hash(PureWindowsPath(path).name, path)


def top_of(folder: Path) -> Path:
    return next((each for each in (folder, *folder.parents) if (each / ".git").exists()), folder)


def common_store(store: Path) -> Path:
    """Return the git directory that holds a repository's config; of a worktree, that of the main repository."""
    # Of a worktree, `.git` is a file that points to its own directory, and `commondir` there to the shared one.
    if not store.is_file():
        return store
    pointed = read(store).removeprefix("gitdir:").strip()
    own = (store.parent / pointed).resolve()
    common = read(own / "commondir").strip()
    return (own / common).resolve() if common else own


def remote_of(store: Path) -> str:
    """Return host and path of the remote `origin` without user and password; empty without a remote."""
    section = ""
    for line in read(store / "config").splitlines():
        name, _, value = (part.strip() for part in line.partition("="))
        section = name if name.startswith("[") else section
        if (section, name) == ('[remote "origin"]', "url"):
            return host_and_path(value)
    return ""


def host_and_path(url: str) -> str:
    """Return host/path of a git URL, the same for ssh and https; empty for a local path."""
    scheme, _, rest = url.partition("://")
    authority, _, path = rest.partition("/") if rest else scheme.partition(":")
    host = authority.rpartition("@")[2].partition(":")[0]
    named = path.strip("/").removesuffix(".git").rstrip("/")
    return f"{host.lower()}/{named}" if host and named else ""


def name_with_hash(name: str, identity: str) -> str:
    return f"{name[:MOST_OF_A_NAME] or 'folder'}-{sha256(identity.encode()).hexdigest()[:8]}"


def read(path: Path) -> str:
    """Return the text of a file; empty if it can't be read."""
    try:
        return path.read_text("utf-8", "replace")
    except OSError:
        return ""
