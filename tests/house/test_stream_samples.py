"""The samples of unbounded data find what plain Python finds in the same events."""

from __future__ import annotations

import math
import re
from collections import Counter, defaultdict

from tests.house.test_samples import sample, stored


def ended(output_of, folder, name):
    """Run a sample in `folder`, and return what its job left: the copy of a list or a map."""
    output_of(name, folder=folder)
    with stored(folder) as ctx:
        (found,) = [each for each in (ctx.existing("list", LEFT[name]), ctx.existing("map", LEFT[name])) if each]
        return found.copy()


LEFT = {
    "sessions.py": "visits",
    "stock_exchange.py": "volumes",
    "top_stocks.py": "ranking",
    "windowed_co_group.py": "minutes",
}


def test_samples_stock_exchange_sums_each_second(output_of, tmp_path):
    """A trade counts for the five windows that hold its time; all windows up to the last whole one are there."""
    trades = sample("stock_exchange.py")["generated"]()
    volumes = Counter()
    for time, ticker, shares in trades:
        first = time // 200 * 200 + 200
        for end in range(first, first + 1000, 200):
            volumes[ticker, end] += shares

    found = ended(output_of, tmp_path, "stock_exchange.py")
    assert max(end for _, end in found) == 2800
    assert found == {key: shares for key, shares in volumes.items() if key[1] <= 2800}


def test_samples_top_stocks_ranks_each_second(output_of, tmp_path):
    """The slopes of the least squares of the last ten seconds, of shares with two prices at least."""
    trades = sample("top_stocks.py")["generated"]()
    ranks = {}
    for end in range(1, 70):
        prices = defaultdict(list)
        for trade in trades:
            if end - 10 <= trade.time / 1000 < end:
                prices[trade.ticker].append((trade.time / 1000, trade.price))
        slopes = sorted((slope(points), ticker) for ticker, points in prices.items() if len(points) > 1)
        ranks[end * 1000] = [ticker for _, ticker in [*slopes[:-3:-1], *slopes[:1]]]

    found = ended(output_of, tmp_path, "top_stocks.py")
    assert {end: [trend.key for trend in [*up, *down]] for end, (up, down) in found.items()} == {
        end: rank for end, rank in ranks.items() if rank
    }


def slope(points):
    """Return the slope of the line through points with the least squares."""
    x_mean, y_mean = (math.fsum(axis) / len(points) for axis in zip(*points, strict=True))
    return math.fsum((x - x_mean) * (y - y_mean) for x, y in points) / math.fsum((x - x_mean) ** 2 for x, _ in points)


def test_samples_sessions_are_cut_at_pauses(output_of, tmp_path):
    """Sorted by time, a click belongs to the visit before it unless more than 30 minutes lie between."""
    half_an_hour, visits = 30 * 60_000, []
    for click in sorted(sample("sessions.py")["generated"](), key=lambda click: (click.user, click.at)):
        at = math.floor(click.at.timestamp() * 1000)
        if not visits or visits[-1][0] != click.user or at > visits[-1][2]:
            visits.append([click.user, at, 0, 0, 0, set()])
        visit = visits[-1]
        visit[2:] = [at + half_an_hour, visit[3] + 1, visit[4] + click.is_purchase, visit[5] | {click.page}]

    assert sorted(ended(output_of, tmp_path, "sessions.py")) == [tuple(visit) for visit in visits]


def test_samples_windowed_co_group_counts_each_minute(output_of, tmp_path):
    """A minute of a user is there if any of the three kinds is."""
    minutes = defaultdict(lambda: [0, 0, 0])
    for kind, events in enumerate(sample("windowed_co_group.py")["generated"]().values()):
        for event in events:
            minutes[event.time // 60_000, event.user][kind] += event.amount if kind == 2 else 1

    assert sorted(ended(output_of, tmp_path, "windowed_co_group.py")) == sorted(
        (*key, *sums) for key, sums in minutes.items()
    )


def test_samples_stream_enrichment_sees_the_new_limit(output_of, tmp_path):
    """The trade that came after the change of the map is above it."""
    output = output_of("stream_enrichment.py", folder=tmp_path).splitlines()

    assert sorted(output[:3]) == ["? at 10", "Pequod Whaling at 90", "Rachel Shipping at 60, above the limit"]
    assert output[3:] == ["Pequod Whaling at 90, above the limit"]


def test_samples_access_log_stream_counts_each_second(output_of, tmp_path):
    """Of each second that is complete, whatever file its lines are in."""
    defined = sample("access_log_stream.py")
    expected = []
    for second in range(6):
        defined["serve"](tmp_path, second)
        text = (tmp_path / f"{second % 2}.log").read_text()
        found = re.findall(rf'13:55:{second:02} \+0000] "GET /shop HTTP/1.1" (\d+)', text)
        expected.append(f"13:55:{second:02}  {len(found)} requests, {found.count('500') / len(found):.0%} errors")

    assert output_of("access_log_stream.py", folder=tmp_path).splitlines() == expected
