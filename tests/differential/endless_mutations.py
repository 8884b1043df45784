"""Break event time, windows and state on purpose: `python -m tests.differential.endless_mutations`.

Tests of the module or programs by chance have to see it. What is not in the list makes no difference to results: it is
looked at for speed.
"""

from __future__ import annotations

from tests.differential.mutating import run_all

__all__ = ["MUTATIONS"]

_PROGRAMS = "tests/differential/test_endless_programs.py"
_TESTS = {
    "jobs.unbounded": ["tests/jobs/unbounded/test_source_times.py"],
    "operators.columns.chain_evaluation": ["tests/engine/test_column_steps.py"],
    "plan": ["tests/engine/test_column_steps.py"],
    "operators.columns.windows": ["tests/operators/test_windows_in_columns.py"],
    "operators": ["tests/operators"],
    "windows": ["tests/windows"],
}
"""Tests of what begins so, which take less time than programs."""

MUTATIONS = [
    (f"dstream.{module}", old, new)
    for module, old, new in [
        # Windows
        ("windows.definitions", "return self.floor_frame(timestamp) + self.by", "return self.floor_frame(timestamp - 1) + self.by"),
        ("windows.definitions", "(timestamp - self.offset) % self.by", "timestamp % self.by"),
        ("operators.windows.arrivals", "[timestamp < self.time for", "[timestamp <= self.time for"),
        ("operators.windows.frames", "self.window.floor_frame(moment.old)", "moment.old"),
        ("operators.windows.frames", "self.window.floor_frame(moment.old)", "self.window.higher_frame(moment.old)"),
        ("operators.windows.buffers", "if not start <= timestamp < end:", "if not start <= timestamp <= end:"),
        ("operators.windows.frames", "yield end - 1, give(", "yield end, give("),
        ("operators.windows.frames", "yield end - 1, self._output.passing(", "yield end, self._output.passing("),
        ("operators.windows.frames", "return max(self._buffer.ends[0], self._window.higher_frame(watermark))", "return self._buffer.ends[0]"),
        ("operators.windows.frames", "self._window.higher_frame(self._watermark) - self._window.size", "self._window.higher_frame(self._watermark)"),
        ("operators.windows.frames", "self._first_window(old), new)", "self._first_window(old), new - 1)"),
        ("operators.windows.results", "            self._early.begin(moment.now)\n", "            pass\n"),
        ("operators.windows.frames", "        if not self._buffer.ends:\n            self._early.next = None\n", ""),
        ("operators.windows.frames", "        self._slide = self._new_slide()\n\n    def deadline", "\n    def deadline"),
        ("operators.windows.frames", "return self._first_window(self._watermark) if ends else None", "return None"),
        ("operators.windows.buffers", "while end <= last:", "while end < last:"),
        ("operators.windows.buffers", "self._ends[0] <= until", "self._ends[0] < until"),
        ("operators.windows.buffers", "self.leave(frames, end - self._size)", "self.leave(frames, end - self._size - self._by)"),
        ("operators.windows.buffers", "            if frames[key] == 1:\n                del", "            if frames[key] <= 2:\n                del"),
        ("operators.windows.buffers", "{**left, **right, **dict(zip(shared, map(self._collector.combined, mine, theirs)", "{**left, **right, **dict(zip(shared, map(self._collector.combined, theirs, mine)"),
        ("operators.windows.buffers", "gone = bisect_right(self.ends, until)", "gone = bisect_right(self.ends, until - 1)"),
        ("operators.windows.buffers", "held[key] = combined(before, container)", "held[key] = combined(container, before)"),
        # Sessions
        ("operators.windows.sessions", "Arrivals(items, key, moment.old,", "Arrivals(items, key, moment.old + 1,"),
        ("operators.windows.buffers", "sessions[high - 1][0] > end", "sessions[high - 1][0] >= end"),
        ("operators.windows.buffers", "sessions[low - 1][1] >= start", "sessions[low - 1][1] > start"),
        ("operators.windows.buffers", "session[0] = min(session[0], start)", "session[0] = start"),
        ("operators.windows.buffers", "session[1] = max(sessions[high - 1][1], end)", "session[1] = end"),
        ("operators.windows.sessions", "session[1] = max(session[1], timestamp + timeout)", "session[1] = timestamp + timeout"),
        ("operators.windows.sessions", "self.first_end()) is not None and end < watermark", "self.first_end()) is not None and end <= watermark"),
        ("operators.windows.sessions", "closed = sessions.pop(0)", "closed = sessions.pop()"),
        ("operators.windows.sessions", "elif (grown := self._sessions[key][0][1]) > end:", "elif (grown := end) > end:"),
        ("operators.windows.sessions", "if self._wakes.get(key, end + 1) > end:", "if key not in self._wakes:"),
        ("operators.windows.sessions", "return None if end is None else end + 1", "return None if end is None else end + 2"),
        ("operators.windows.sessions", "yield end, self._output.last(", "yield end - 1, self._output.last("),
        ("operators.windows.sessions", "        for _ in self._buffer.close(self._watermark):\n            continue", "        for _ in ():\n            continue"),
        # Early results
        ("operators.windows.results", "if moment.now < min(self.next, of_step):", "if moment.now <= min(self.next, of_step):"),
        ("operators.windows.results", "    return number * every", "    return now + every"),
        ("operators.windows.results", "moment.now < min(self.next, of_step)", "moment.now < self.next"),
        ("operators.windows.results", "        self.next = _end_of_period(moment.now, self._every)\n        return True", "        return True"),
        # Windows in columns
        ("operators.columns.windows", "if times.least < max(self.least, 1 - MOST_INSTANT)", "if times.least < max(self.least - 1, 1 - MOST_INSTANT)"),
        ("operators.columns.windows", "if times.least < max(self.least, 1 - MOST_INSTANT)", "if times.least < 1 - MOST_INSTANT"),
        ("operators.columns.windows", "(times.values - self.window.offset) % self.window.by", "times.values % self.window.by"),
        ("operators.columns.windows", "(times.values - self.window.offset) % self.window.by", "np.fmod(times.values - self.window.offset, self.window.by)"),
        ("operators.columns.windows", "% self.window.by + self.window.by", "% self.window.by + self.window.size"),
        ("operators.columns.windows", "[groups[key] if key in groups else create() for groups, key in places]", "[create() for groups, key in places]"),
        ("operators.columns.windows", "if self.is_keyed else repeat(None)", "if self.is_keyed else repeat(0)"),
        ("operators.columns.windows", "Tuples((Ints(ends, LEAST, GREATEST), keys), pairs.size)", "Tuples((keys, keys), pairs.size)"),
        ("operators.columns.chain_evaluation", "passing.timestamps = rows_of(passing.timestamps, passing.effects[-1])", "passing.timestamps = rows_of(passing.timestamps, ~passing.effects[-1])"),
        ("operators.columns.chain_evaluation", "first = 0  # From here on", "pass  # From here on"),
        ("operators.columns.chain_evaluation", "    passing.timestamps = None\n", ""),
        ("plan.steps", "    first = first[: place_of_open_pairs(first)]\n", ""),
        ("operators.windows.buffers", "            arrivals.items += size\n", "            pass\n"),
        ("operators.state.watermarks", "self.greatest, self.items = max(self.greatest, greatest), self.items + items", "self.greatest, self.items = greatest, self.items + items"),
        ("operators.state.watermarks", "max(self.greatest, greatest), self.items + items", "max(self.greatest, greatest), self.items"),
        ("operators.state.watermarks", "greatest, number = self.greatest, self.items", "greatest, number = self.greatest, 0"),
        # States, joins
        ("operators.state.keyed_operators", "timestamp - self._states[key] >= self._within", "timestamp - self._states[key] > self._within"),
        ("operators.state.keyed_operators", "int(passed) + within)", "int(passed) + within - 1)"),
        ("operators.state.keyed_operators", "self._states[key][1] < timestamp - self._ttl", "self._states[key][1] <= timestamp - self._ttl"),
        ("operators.state.keyed_operators", "int(held[1]) + ttl + 1", "int(held[1]) + ttl"),
        ("operators.state.keyed_operators", "int(held[1]) + ttl + 1", "int(held[1]) + ttl + 2"),
        ("operators.state.keyed_operators", "timestamp > held[1]:", "True:"),
        ("operators.state.keyed_operators", "max(last + self._ttl, old)", "watermark"),
        ("operators.state.keyed_operators", "self._time_to_go(key) if watermark == END_OF_TIME else watermark", "watermark"),
        ("operators.state.keyed_operators", "        self._touched[key] = None\n        held", "        held"),
        ("operators.joins.intervals", "ahead, behind = self._reaches[1 - number], self._reaches[number]", "behind, ahead = self._reaches[1 - number], self._reaches[number]"),
        ("operators.joins.intervals", "start = bisect_left(self.timestamps, first)", "start = bisect_right(self.timestamps, first)"),
        ("operators.joins.intervals", "stop = bisect_right(self.timestamps, last)", "stop = bisect_left(self.timestamps, last)"),
        ("operators.joins.intervals", "yield max(time, timestamp),", "yield timestamp,"),
        ("operators.joins.intervals", "waiting.drop(watermark - reach)", "waiting.drop(watermark - reach + 1)"),
        ("operators.joins.intervals", "self._reaches = (after, before)", "self._reaches = (before, after)"),
        ("operators.joins.intervals", "if timestamp + reaches[number] >= self.watermark:", "if timestamp + reaches[number] > self.watermark:"),
        ("operators.state.items", "late if timestamp < late_before", "late if timestamp <= late_before"),
        ("operators.state.keys", "is not None and deadline <= watermark:", "is not None and deadline < watermark:"),
        ("operators.state.keys", "        self._removed[key] = None\n", ""),
        ("operators.state.keyed_operators", "                self._touched[key] = None\n", ""),
        # Time
        ("windows.policies", "self.seen[0][0] + self.max_delay <= now", "self.seen[0][0] + self.max_delay < now"),
        ("windows.policies", "else self.greatest - self.lag", "else self.greatest - self.lag + 1"),
        ("windows.policies", "max(0, math.floor((now - self.last - self.max_lull) * 1000))", "math.floor((now - self.last - self.max_lull) * 1000)"),
        ("windows.policies", "max(_Lag.watermark(self, now), math.floor(", "(math.floor("),
        ("jobs.unbounded.watermarks", "self._now - heard_at >= self._plan", "self._now - heard_at > self._plan"),
        ("jobs.unbounded.watermarks", "self._now - self._begun_at(mark) < timeout", "self._now - self._begun_at(mark) <= timeout"),
        ("jobs.unbounded.watermarks", "return self._begun_at(source)\n", "return self._now\n"),
        ("jobs.unbounded.watermarks", "max(found.heard_at, self._started_at)", "found.heard_at"),
        ("jobs.unbounded.watermarks", "heard_at = self._now if reported.items else known.heard_at", "heard_at = self._now"),
        ("jobs.unbounded.watermarks", "return max(known.watermark, watermark_of(known.policy, self._now))", "return watermark_of(known.policy, self._now)"),
        ("jobs.unbounded.watermarks", "return max(reached, default=NO_WATERMARK)", "return min(reached, default=NO_WATERMARK)"),
        ("jobs.unbounded.watermarks", "for each in self._places_of(step) if not self._has_ended(each))", "for each in self._places_of(step))"),
        ("jobs.unbounded.watermarks", "min(reported) if before is None else max(before, min(reported))", "min(reported)"),
        ("operators.state.watermarks", "if time.counts or seen.items:", "if True:"),
        ("operators.state.watermarks", "if time.counts or seen.items:", "if time.counts:"),
        ("operators.state.watermarks", "max(time.watermark, watermark_of(seen.policy, time.now))", "watermark_of(seen.policy, time.now)"),
        ("operators.rows.operations", "return min(of_these, default=END_OF_TIME)", "return max(of_these, default=END_OF_TIME)"),
        ("operators.state.watermarks", "return max(time.old, time.minimum,", "return max(time.minimum,"),
        ("operators.state.watermarks", "least = min(time.unread_watermark, reported)", "least = reported"),
    ]
]  # fmt: skip


def _tests_of(mutation: tuple[str, str, str]) -> list[str]:
    module = mutation[0].removeprefix("dstream.")
    of_module = next(tests for begins, tests in _TESTS.items() if module.startswith(begins))
    return ["-k", "not spark", "-p", "tests.quick", *of_module, _PROGRAMS]


if __name__ == "__main__":
    run_all(MUTATIONS, _tests_of)
