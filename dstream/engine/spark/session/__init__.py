"""The Spark session itself: Java, starting it, what it writes, the code that its workers need, processes that fork."""
