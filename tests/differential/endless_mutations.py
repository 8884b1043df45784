"""Break event time, windows and state on purpose: `python -m tests.differential.endless_mutations`.

Programs by chance have to see it. What is not in the list makes no difference to results: it is looked at for speed.
"""

from __future__ import annotations

from tests.differential.mutating import run_all

__all__ = ["MUTATIONS"]

_TESTS = ["tests/differential/test_endless_programs.py", "-k", "not spark"]

MUTATIONS = [
    (f"dstream.{module}", old, new)
    for module, old, new in [
        # Windows
        ("windows.definitions", "return self.floor_frame(timestamp) + self.by", "return self.floor_frame(timestamp - 1) + self.by"),
        ("windows.definitions", "(timestamp - self.offset) % self.by", "timestamp % self.by"),
        ("operators.arrivals", "[timestamp < self._time for", "[timestamp <= self._time for"),
        ("operators.frame_windows", "self.window.floor_frame(moment.old)", "moment.old"),
        ("operators.frame_windows", "self.window.floor_frame(moment.old)", "self.window.higher_frame(moment.old)"),
        ("operators.frame_partials", "if not start <= timestamp < end:", "if not start <= timestamp <= end:"),
        ("operators.frame_state", "yield end - 1, give(", "yield end, give("),
        ("operators.frame_state", "yield end - 1, self._output.passing(", "yield end, self._output.passing("),
        ("operators.frame_state", "return max(self._frames.ends[0], self._window.higher_frame(watermark))", "return self._frames.ends[0]"),
        ("operators.frame_state", "self._window.higher_frame(self._watermark) - self._window.size", "self._window.higher_frame(self._watermark)"),
        ("operators.frame_state", "self._first_window(old), new)", "self._first_window(old), new - 1)"),
        ("operators.frame_state", "            self._early.begin(moment.now)\n", "            pass\n"),
        ("operators.frame_state", "        if not self._frames.ends:\n            self._early.next = None\n", ""),
        ("operators.frame_state", "        self._slide = self._new_slide()\n\n    def deadline", "\n    def deadline"),
        ("operators.frame_state", "return self._first_window(self._watermark) if ends else None", "return None"),
        ("operators.sliding", "while end <= last:", "while end < last:"),
        ("operators.sliding", "self._ends[0] <= until", "self._ends[0] < until"),
        ("operators.sliding", "frames.ends[ahead] <= until", "frames.ends[ahead] < until"),
        ("operators.sliding", "self.leave(frames, end - self._size)", "self.leave(frames, end - self._size - self._by)"),
        ("operators.sliding", "            if frames[key] == 1:\n                del", "            if frames[key] <= 2:\n                del"),
        ("operators.sliding", "{**left, **right, **dict(zip(shared, map(self._collector.combined, mine, theirs)", "{**left, **right, **dict(zip(shared, map(self._collector.combined, theirs, mine)"),
        ("operators.held_frames", "gone = bisect_right(self.ends, until)", "gone = bisect_right(self.ends, until - 1)"),
        ("operators.held_frames", "held[key] = combined(before, container)", "held[key] = combined(container, before)"),
        # Sessions
        ("operators.session_windows", "Arrivals(items, key, moment.old,", "Arrivals(items, key, moment.old + 1,"),
        ("operators.open_sessions", "sessions[high - 1][0] > end", "sessions[high - 1][0] >= end"),
        ("operators.open_sessions", "sessions[low - 1][1] >= start", "sessions[low - 1][1] > start"),
        ("operators.open_sessions", "session[0] = min(session[0], start)", "session[0] = start"),
        ("operators.open_sessions", "session[1] = max(sessions[high - 1][1], end)", "session[1] = end"),
        ("operators.session_partials", "session[1] = max(session[1], timestamp + timeout)", "session[1] = timestamp + timeout"),
        ("operators.held_sessions", "self.first_end()) is not None and end < watermark", "self.first_end()) is not None and end <= watermark"),
        ("operators.held_sessions", "closed = sessions.pop(0)", "closed = sessions.pop()"),
        ("operators.held_sessions", "elif (grown := self._sessions[key][0][1]) > end:", "elif (grown := end) > end:"),
        ("operators.held_sessions", "if self._wakes.get(key, end + 1) > end:", "if key not in self._wakes:"),
        ("operators.session_state", "return None if end is None else end + 1", "return None if end is None else end + 2"),
        ("operators.session_state", "yield end, self._output.last(", "yield end - 1, self._output.last("),
        ("operators.session_state", "        for _ in self._sessions.close(self._watermark):\n            continue", "        for _ in ():\n            continue"),
        # Early results
        ("operators.early_period", "if moment.now < min(self.next, of_step):", "if moment.now <= min(self.next, of_step):"),
        ("operators.early_period", "    return number * every", "    return now + every"),
        ("operators.early_period", "moment.now < min(self.next, of_step)", "moment.now < self.next"),
        ("operators.early_period", "        self.next = _end_of_period(moment.now, self._every)\n        return True", "        return True"),
        # States, joins
        ("operators.distinct_by_key", "timestamp - self._states[key] >= self._within", "timestamp - self._states[key] > self._within"),
        ("operators.distinct_by_key", "int(passed) + within)", "int(passed) + within - 1)"),
        ("operators.stateful_mapping", "self._states[key][1] < timestamp - self._ttl", "self._states[key][1] <= timestamp - self._ttl"),
        ("operators.stateful_mapping", "int(held[1]) + ttl + 1", "int(held[1]) + ttl"),
        ("operators.stateful_mapping", "int(held[1]) + ttl + 1", "int(held[1]) + ttl + 2"),
        ("operators.stateful_mapping", "timestamp > held[1]:", "True:"),
        ("operators.stateful_mapping", "max(last + self._ttl, old)", "watermark"),
        ("operators.stateful_mapping", "self._time_to_go(key) if watermark == END_OF_TIME else watermark", "watermark"),
        ("operators.stateful_mapping", "        self._touched[key] = None\n        held", "        held"),
        ("operators.interval_join", "ahead, behind = self._reaches[1 - number], self._reaches[number]", "behind, ahead = self._reaches[1 - number], self._reaches[number]"),
        ("operators.interval_join", "start = bisect_left(self.timestamps, first)", "start = bisect_right(self.timestamps, first)"),
        ("operators.interval_join", "stop = bisect_right(self.timestamps, last)", "stop = bisect_left(self.timestamps, last)"),
        ("operators.interval_join", "yield max(time, timestamp),", "yield timestamp,"),
        ("operators.interval_join", "waiting.drop(watermark - reach)", "waiting.drop(watermark - reach + 1)"),
        ("operators.interval_join", "self._reaches = (after, before)", "self._reaches = (before, after)"),
        ("operators.interval_join", "if timestamp + reaches[number] >= self.watermark:", "if timestamp + reaches[number] > self.watermark:"),
        ("operators.items_by_key", "late if timestamp < late_before", "late if timestamp <= late_before"),
        ("operators.key_deadlines", "is not None and deadline <= watermark:", "is not None and deadline < watermark:"),
        ("operators.key_states", "        self._removed[key] = None\n", ""),
        ("operators.rolling_aggregate", "                self._touched[key] = None\n", ""),
        # Time
        ("windows.watermark_policies", "self.seen[0][0] + self.max_delay <= now", "self.seen[0][0] + self.max_delay < now"),
        ("windows.watermark_policies", "else self.greatest - self.lag", "else self.greatest - self.lag + 1"),
        ("windows.watermark_policies", "max(0, math.floor((now - self.last - self.max_lull) * 1000))", "math.floor((now - self.last - self.max_lull) * 1000)"),
        ("windows.watermark_policies", "max(_Lag.watermark(self, now), math.floor(", "(math.floor("),
        ("jobs.unbounded.source_times", "self._now - heard_at >= self._plan", "self._now - heard_at > self._plan"),
        ("jobs.unbounded.source_times", "self._now - self._begun_at(mark) < timeout", "self._now - self._begun_at(mark) <= timeout"),
        ("jobs.unbounded.source_times", "return self._begun_at(source)\n", "return self._now\n"),
        ("jobs.unbounded.source_times", "max(found.heard_at, self._started_at)", "found.heard_at"),
        ("jobs.unbounded.source_times", "heard_at = self._now if told.items else known.heard_at", "heard_at = self._now"),
        ("jobs.unbounded.source_times", "return max(known.watermark, watermark_of(known.policy, self._now))", "return watermark_of(known.policy, self._now)"),
        ("jobs.unbounded.source_times", "return max(reached, default=NO_WATERMARK)", "return min(reached, default=NO_WATERMARK)"),
        ("jobs.unbounded.source_times", "for each in self._places_of(step) if not self._has_ended(each))", "for each in self._places_of(step))"),
        ("jobs.unbounded.source_times", "min(told) if before is None else max(before, min(told))", "min(told)"),
        ("engine.kernels.stamping", "if self.time.counts or seen.items:", "if True:"),
        ("engine.kernels.stamping", "if self.time.counts or seen.items:", "if self.time.counts:"),
        ("engine.kernels.stamping", "max(time.watermark, watermark_of(seen.policy, time.now))", "watermark_of(seen.policy, time.now)"),
        ("engine.kernels.watermarks", "return min(of_these, default=END_OF_TIME)", "return max(of_these, default=END_OF_TIME)"),
        ("spi.epochs", "return max(self.old, self.floor,", "return max(self.floor,"),
        ("spi.epochs", "least = min(self.standing, told)", "least = told"),
    ]
]  # fmt: skip


def _tests_of(mutation: tuple[str, str, str]) -> list[str]:
    return _TESTS


if __name__ == "__main__":
    run_all(MUTATIONS, _tests_of)
