"""The short name of `dstream.sources`: the sources of a stream's items.

A file of yours that is called `sources.py` hides this package, and `dstream.sources` has the same objects then.
"""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from dstream.sources import *
else:
    from dstream.sources import __all__, __dir__, __doc__, __getattr__
