"""The short name of `dstream.reducers`: where a stream's result is written.

A file of yours that is called `reducers.py` hides this package, and `dstream.reducers` has the same objects then.
"""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from dstream.reducers import *
else:
    from dstream.reducers import __all__, __dir__, __doc__, __getattr__
