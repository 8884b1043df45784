"""The short name of `dstream.collectors`: how the items of a stream, or of any iterable, become one result.

A file of yours that is called `collectors.py` hides this package, and `dstream.collectors` has the same objects then.
"""

from typing import TYPE_CHECKING

from dstream.collectors import *

if not TYPE_CHECKING:
    from dstream.collectors import __all__, __dir__, __doc__, __getattr__
