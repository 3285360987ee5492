"""Opens the store that a URL names."""

from typing import Callable, Dict, Optional
from urllib.parse import urlsplit

from .base import Store
from .file_store import FileStore, path_of_url


def _open_folder(url: str, _grant_file: Optional[str], _key_file: Optional[str]) -> Store:
    return FileStore(path_of_url(url), is_marked=True)


def _open_s3(url: str, grant_file: Optional[str], key_file: Optional[str]) -> Store:
    # Imported only when needed: TLS takes longer to load than the rest of the runner.
    from .s3.s3_store import open_s3_store

    return open_s3_store(url, grant_file, key_file)


_Opener = Callable[[str, Optional[str], Optional[str]], Store]
_SCHEMES: Dict[str, _Opener] = {"file": _open_folder, "s3": _open_s3}


def open_store(url: str, grant_file: Optional[str] = None, key_file: Optional[str] = None) -> Store:
    """Opens the store at `url`. `grant_file` holds credentials for it, sealed with the key in `key_file` if that is given. Raises
    `ValueError` that explains the error in the URL."""
    opener = _SCHEMES.get(urlsplit(url).scheme)
    if opener is None:
        known = ", ".join(scheme + "://" for scheme in sorted(_SCHEMES))
        raise ValueError("Cannot open the store %r: its URL must begin with one of: %s" % (url, known))
    return opener(url, grant_file, key_file)
