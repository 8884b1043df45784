"""Starting and stopping Spark: Java and what it writes, a session in this process, a session on a server."""
