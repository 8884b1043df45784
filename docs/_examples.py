"""Shows what stands under `Example:` in a docstring as code, as the plural `Examples:` already is."""

from __future__ import annotations

import re
from typing import Any

import griffe

_SINGULAR = re.compile(r"^( *)Example:$", re.MULTILINE)


class Examples(griffe.Extension):
    """Reads the singular heading as the plural one."""

    def on_object(self, *, obj: griffe.Object, **kwargs: Any) -> None:
        """Rewrite the heading before the docstring is parsed."""
        if obj.docstring is not None:
            obj.docstring.value = _SINGULAR.sub(r"\1Examples:", obj.docstring.value)
