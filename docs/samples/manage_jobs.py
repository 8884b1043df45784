"""Follow a job through its life: submit it, look at it, let it wait, change it while it runs, restart it, end it.

Everything here works from any process on the same storage, and so does the command: `dstream jobs suspend orders`.

python docs/samples/manage_jobs.py
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from tempfile import mkdtemp

import dstream as ds
from collectors import summing
from dstream import JobStatus, Pipeline
from reducers import to_imap
from sources import imap_journal


def totals(*, is_counting: bool = False) -> Pipeline:
    """Return the pipeline from orders, (customer, amount), to the map `totals`; its later version has another map."""
    pipeline = Pipeline()
    orders = pipeline.read_from(imap_journal("orders", projection=lambda event: event.new_value)).set_name("orders")
    summed = orders.grouping_key(lambda order: order[0]).rolling_aggregate(summing(lambda order: order[1]))
    summed.set_name("summed").write_to(to_imap("totals"))  # State is found again by the name of its stage.
    if is_counting:
        large = orders.filter(lambda order: order[1] >= 100).set_name("large")
        large.write_to(to_imap("large", lambda order: order[0], lambda order: order[1]))
    return pipeline


def wait_until(condition: Callable[[], bool]) -> None:
    """Return once it holds."""
    while not condition():
        time.sleep(0.02)


def main() -> None:
    """Print what the job says of itself on its way."""
    with ds.connect(engine=os.environ.get("DSTREAM_ENGINE", "local"), storage=mkdtemp()) as ctx:
        orders, sums = ctx.get_map("orders", journal=True), ctx.get_map("totals")
        job = ctx.new_job(totals(), name="orders")
        orders.put_all({1: ("Ada", 30), 2: ("Grace", 120)})
        wait_until(lambda: job.metrics().stages["orders"].items_out == 2)
        print(f"{job.name} is {job.status.name} since {job.started_at:%H:%M:%S}: {sorted(sums.items())}")
        print(f"so far it has read {job.metrics().stages['orders'].items_out} orders in {job.epoch} epochs")

        job.suspend()
        job.wait_for(JobStatus.SUSPENDED)
        orders[3] = ("Ada", 5)
        print(f"{job.name} is {job.status.name}, and Ada still has {sums['Ada']}")
        job.resume()
        wait_until(lambda: sums["Ada"] == 35)
        print(f"{job.name} is {job.status.name} again, and Ada has {sums['Ada']}")

        later = totals(is_counting=True)
        print("an update means:", ", ".join(f"{each.stage} {each.verdict}" for each in job.upgrade_plan(later)))
        job.update(later)
        orders[4] = ("Grace", 200)
        large = ctx.get_map("large")
        wait_until(
            lambda: sums["Grace"] == 320 and "Grace" in large
        )  # One sink of an epoch is published before another.
        print(f"updated, it knows what was before: {sums['Grace']}; and it writes {large.copy()}")

        job.restart()
        orders[5] = ("Ada", 15)
        wait_until(lambda: sums["Ada"] == 50)
        print(f"restarted, it goes on where it was: {sums['Ada']} in run {job.metrics().runs}")

        job.cancel()
        job.wait_for(JobStatus.CANCELLED)
        print(f"of all jobs: {[(each.name, each.status.name) for each in ctx.jobs()]}")


if __name__ == "__main__":
    main()
