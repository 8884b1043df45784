"""Start and stop of Spark: Java, a session in this process, a session on a server.

`launch` decides which session a context gets, `settings` has its configuration, `startup` starts Spark and its Java
process, `java` finds Java.
"""

from __future__ import annotations
