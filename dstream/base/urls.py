"""URLs of storages, and the secrets in them, which messages hide.

Every message, `repr` and line of `dstream doctor` that contains a URL of the user passes through here.

A reference to a secret, `env:NAME` or `file:path`, is written where a secret would be. It is no secret: plans, pickles,
messages and pictures have it. The secret is looked up in the process that uses it, which needs the variable or file.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator
from typing import Any, TypeAlias

from dstream.errors import SetupError

__all__ = [
    "SQLITE",
    "Paths",
    "Place",
    "checked_place",
    "credentials_in",
    "has_reference",
    "is_reference",
    "looked_up",
    "resolved_url",
    "scrub",
    "shown_place",
    "shown_url",
    "without_secrets",
]


_HIDDEN = "***"
# fsspec chains filesystems so: `simplecache::s3://bucket/key`.
_CHAINED = re.compile(r"::(?=[A-Za-z][\w+.-]*://)")
# A value ends where the next parameter begins: JDBC separates them by semicolons, and some URLs have them after a #.
_PARAMETER = re.compile(r"([?&;#])([^=&;#?]*)=([^&;#?]*(?:[;#?](?![^=&;#?]*=|&|\Z)[^&;#?]*)*)")
_SECRET_NAME = re.compile(r"pass|pwd|secret|token|key|credential|sig", re.IGNORECASE)
_REDIS = frozenset({"redis", "rediss", "unix"})


def shown_url(url: str) -> str:
    """Return a URL as it may be shown: without its password, and without parameters that sound secret.

    A password with a `/`, `?` or `#` in it should have been percent-encoded. It is hidden nevertheless, if necessary
    with the host. A path is returned unchanged.

    Example:
        >>> shown_url("redis://ada:secret@host:6379/0?ssl_password=secret")
        'redis://ada:***@host:6379/0?ssl_password=***'
    """
    return "::".join(map(_shown_link, _CHAINED.split(url)))


def _shown_link(url: str) -> str:
    scheme, found, rest = url.partition("://")
    if not found:
        return url
    credentials = credentials_in(url)
    if credentials is not None:
        rest = f"{_shown_credentials(scheme.lower(), credentials)}@{rest[len(credentials) + 1 :]}"
    return f"{scheme}://{_BEHIND_HIDDEN.sub('', _PARAMETER.sub(_shown_parameter, rest))}"


# What looks like another parameter may be the rest of a secret that was not percent-encoded.
_BEHIND_HIDDEN = re.compile(r"(?<==\*\*\*)[;#?][^&]*")


def credentials_in(url: str) -> str | None:
    """Return the part before the @ that ends the user information of a URL; None if there is none."""
    scheme, _, rest = url.partition("://")
    place = re.split(r"[/?#]", rest, maxsplit=1)[0]
    if "@" in place and scheme.lower() not in _REDIS:
        return place.rpartition("@")[0]
    return rest.rpartition("@")[0] if "@" in rest and _is_torn(scheme.lower(), place) else None


# These have no port, so that digits after a colon are part of a password.
_WITHOUT_PORT = frozenset({"s3", "s3a", "gs", "az", "abfs", "abfss", "file"})


def _is_torn(scheme: str, place: str) -> bool:
    """Return whether an @ further back ends a password that has a slash, a ? or a # in it."""
    host, colon, port = place.rpartition(":")
    is_port = not colon or (host and port.isdigit() and scheme not in _WITHOUT_PORT)
    return scheme in _REDIS or not is_port


_PLAIN_USER = re.compile(r"[\w.%+-]*")
_CONTAINER = frozenset({"abfs", "abfss"})
"""Schemes in which a name before the @ is no user: abfss://container@account."""


def _shown_credentials(scheme: str, credentials: str) -> str:
    user, colon, password = credentials.partition(":")
    if is_reference(_unquoted(password)):
        return f"{user}:{_unquoted(password)}"
    if colon:
        return f"{user if _PLAIN_USER.fullmatch(user) else _HIDDEN}:{_HIDDEN}"
    return credentials if scheme in _CONTAINER else _HIDDEN


def _unquoted(text: str) -> str:
    from urllib.parse import unquote  # imported on use: it takes a hundredth of the time of `import dstream`

    return unquote(text)


def _shown_parameter(found: re.Match[str]) -> str:
    mark, name, value = found.groups()
    if _is_secret(name):
        return f"{mark}{name}={_unquoted(value) if is_reference(_unquoted(value)) else _HIDDEN}"
    is_open = all(map(is_reference, _nested_secrets(value)))
    return found[0] if is_open else f"{mark}{name}={_HIDDEN}"


def _is_secret(name: str) -> bool:
    return _SECRET_NAME.search(_unquoted(name)) is not None


_NESTED = re.compile(r"(?:^|(?<=[;&?#]))([^=&;#?]*)=(\{(?:[^}]|\}\})*\}|[^&;#?]*)")
"""A parameter in the value of another one. ODBC writes braces around a value that has a semicolon."""


def _nested_secrets(value: str) -> Iterator[str]:
    """Yield the secrets in a value that is a URL or a connection string, such as `odbc_connect` of SQLAlchemy."""
    text = _unquoted_form(value)
    if "=" in text:
        yield from (found[2] for found in _NESTED.finditer(text) if _SECRET_NAME.search(found[1]))
    credentials = credentials_in(text) if "://" in text else None
    if credentials is not None and text.partition("://")[0].lower() not in _CONTAINER:
        user, colon, password = credentials.partition(":")
        yield password if colon else user


def _unquoted_form(value: str) -> str:
    """Return the value of a query parameter before form encoding, in which + stands for a blank."""
    return _unquoted(value.replace("+", " "))


def has_reference(url: str) -> bool:
    """Return whether a URL refers to a secret."""
    return any(is_reference(_unquoted(secret)) for secret in _places_of_secrets(url))


def resolved_url(url: str, *, quoted: bool = True) -> str:
    """Return a URL with its references replaced by secrets.

    Args:
        url: as it was written.
        quoted: its reader decodes percent signs; fsspec does not.

    Raises:
        SetupError: a secret is not in this process, or cannot be part of a URL without percent signs.

    Example:
        >>> import os
        >>> os.environ["SHOP_PASSWORD"] = "correct/horse"
        >>> resolved_url("postgresql://ada:env:SHOP_PASSWORD@host/shop")
        'postgresql://ada:correct%2Fhorse@host/shop'
    """
    if not has_reference(url):
        return url
    return "::".join(_resolved_link(link, quoted) for link in _CHAINED.split(url))


def _resolved_link(url: str, quoted: bool) -> str:
    scheme, found, rest = url.partition("://")
    if not found:
        return url
    credentials = credentials_in(url)
    if credentials is not None:
        user, _, password = credentials.partition(":")
        rest = f"{user}:{_resolved(password, quoted)}@{rest[len(credentials) + 1 :]}" if password else rest
    return f"{scheme}://{_PARAMETER.sub(lambda each: _resolved_parameter(each, quoted), rest)}"


def _resolved_parameter(found: re.Match[str], quoted: bool) -> str:
    mark, name, value = found.groups()
    if _is_secret(name):
        return f"{mark}{name}={_resolved(value, quoted)}"
    if not any(map(is_reference, _nested_secrets(value))):
        return found[0]
    text = _unquoted_form(value)
    text = _resolved_link(text, quoted) if "://" in text else _NESTED.sub(_resolved_nested, text)
    return f"{mark}{name}={_quoted(text) if quoted else text}"


def _resolved_nested(found: re.Match[str]) -> str:
    name, value = found.groups()
    if not (_SECRET_NAME.search(name) and is_reference(value)):
        return found[0]
    secret = looked_up(value)
    return f"{name}={{{secret.replace('}', '}}')}}}" if set(secret) & _SPECIAL_IN_ODBC else f"{name}={secret}"


_SPECIAL_IN_ODBC = frozenset("[]{}(),;?*=!@")


def _quoted(text: str) -> str:
    from urllib.parse import quote

    return quote(text, safe="")


def _resolved(text: str, quoted: bool) -> str:
    """Return the secret of a reference as a part of a URL; any other string unchanged."""
    reference = _unquoted(text)
    if not is_reference(reference):
        return text
    secret = looked_up(reference)
    if quoted:
        return _quoted(secret)
    if set(secret) & _DELIMITERS:
        raise SetupError(
            f"the secret {reference} has one of {' '.join(sorted(_DELIMITERS))}, which its URL cannot have"
        )
    return secret


_DELIMITERS = frozenset("/?#[]")


_IN_TEXT = re.compile(r"[A-Za-z][\w+.-]*://[^\s'\"<>]*")


def without_secrets(text: str) -> str:
    """Return a message with every URL in it as it may be shown."""
    return _IN_TEXT.sub(lambda found: shown_url(found[0]), text)


def scrub(error: BaseException, url: str = "") -> None:
    """Hide the secrets of a URL in the message of an exception, in its notes, and in its causes.

    Libraries quote their arguments, servers quote commands that they did not understand.
    """
    # The longest first: of a secret that contains another one, the rest would remain in the message.
    secrets = sorted(set(_secrets(url)), key=len, reverse=True)
    for each in _chain(error):
        each.args = tuple(_scrubbed(part, url, secrets) if isinstance(part, str) else part for part in each.args)
        if hasattr(each, "__notes__"):
            each.__notes__ = [_scrubbed(note, url, secrets) for note in each.__notes__]
        # `str` of an OSError has its file name, which is not among `args`.
        if isinstance(each, OSError) and isinstance(each.filename, str):
            each.filename = _scrubbed(each.filename, url, secrets)


def _chain(error: BaseException | None) -> Iterator[BaseException]:
    seen: set[int] = set()
    pending = [error]
    while pending:
        each = pending.pop()
        # `__context__` and `__cause__` can form a circle.
        if each is not None and id(each) not in seen:
            seen.add(id(each))
            pending += [each.__cause__, each.__context__]
            yield each


def _scrubbed(text: str, url: str, secrets: list[str]) -> str:
    text = without_secrets(text.replace(url, shown_url(url)) if url else text)
    for secret in secrets:
        text = text.replace(secret, _HIDDEN)
    return text


_SHORTEST = 3
"""A shorter string occurs in many words of a message, and is no secret."""


def _secrets(url: str) -> Iterator[str]:
    """Yield the secrets of a URL, encoded and decoded, and the values of references."""
    for secret in _places_of_secrets(url):
        meant = (secret, _unquoted(secret), secret.strip("{}"))
        if is_reference(meant[1]):
            try:
                meant = (looked_up(meant[1]), _resolved(secret, quoted=True), "")
            except SetupError:  # In that case no library has received it.
                continue
        yield from (text for text in meant if len(text) >= _SHORTEST)


def _places_of_secrets(url: str) -> Iterator[str]:
    """Yield the parts of a URL that may be secrets."""
    for link in _CHAINED.split(url):
        yield (credentials_in(link) or "").partition(":")[2]
        for found in _PARAMETER.finditer(link):
            yield from [found[3]] if _is_secret(found[2]) else _nested_secrets(found[3])


_REFERENCE = re.compile(r"env:[A-Za-z_][A-Za-z0-9_]*|file:.+")


def is_reference(text: object) -> bool:
    """Return whether a string is a reference to a secret.

    Example:
        >>> is_reference("env:DB_PASSWORD"), is_reference("file:/run/secrets/db"), is_reference("correct-horse")
        (True, True, False)
    """
    return isinstance(text, str) and _REFERENCE.fullmatch(text) is not None


def looked_up(reference: str) -> str:
    """Return the secret of a reference, without a trailing newline if it is read from a file.

    Raises:
        SetupError: it is not in this process, or its path is relative.
    """
    kind, _, place = reference.partition(":")
    secret = os.environ.get(place, "") if kind == "env" else _content(reference, os.path.expanduser(place))
    if not secret:
        raise SetupError(
            f"the secret {reference} is empty or missing on {os.uname().nodename}: set it where it is used"
            f"{_FOR_WORKERS.format(place=place) if kind == 'env' else ''}"
        )
    return secret


_FOR_WORKERS = "; on a cluster, workers of Spark get it by the setting spark.executorEnv.{place}, or use file:/path"


_LONGEST_SECRET = 1 << 16


def _content(reference: str, path: str) -> str:
    if not os.path.isabs(path):
        raise SetupError(f"the secret {reference} has a relative path, which is another one in every process")
    try:
        with open(path, encoding="utf-8") as file:
            content = file.read(_LONGEST_SECRET + 1)
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is no text in UTF-8"
        raise SetupError(f"the secret {reference} cannot be read on {os.uname().nodename}: {reason}") from error
    if len(content) > _LONGEST_SECRET:
        raise SetupError(f"the secret {reference} has more than {_LONGEST_SECRET:,} characters: it is another file")
    # Not `strip`: blanks may be part of the secret.
    return content.removesuffix("\n").removesuffix("\r")


SQLITE = "sqlite:"
"""The prefix of the path of a storage that is a file."""

Place: TypeAlias = "str | os.PathLike[str]"
Paths: TypeAlias = "Place | Iterable[Place]"


def checked_place(storage: Any) -> str | None:
    """Return the URL or the absolute path of a storage; None stays None.

    Raises:
        TypeError: it is neither a str nor a path.
        ValueError: it is empty, or a storage that no other process sees.
    """
    place = os.fspath(storage) if isinstance(storage, os.PathLike) else storage
    if place is None:
        return None
    if not isinstance(place, str):
        raise TypeError(f"storage must be a folder or a URL, not {type(place).__name__}")
    if not place:
        raise ValueError("storage must not be empty")
    if place.startswith("memory:"):
        raise ValueError("storage must be one that can be opened again, and memory: is that of one context")
    if "://" in place:
        return place
    scheme = SQLITE if place.startswith(SQLITE) else ""
    return scheme + os.path.abspath(os.path.expanduser(place.removeprefix(scheme)))


def shown_place(storage: str | None) -> str:
    """Return the argument as it is shown after others; empty for None."""
    return "" if storage is None else f", storage={shown_url(storage)!r}"
