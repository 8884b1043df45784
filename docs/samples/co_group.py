"""Bring three kinds of events of one user together: visits, things put into a cart, and payments.

python docs/samples/co_group.py
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from typing import NamedTuple

import dstream as ds
from collectors import co_operation, counting, summing, to_bags
from dstream import Pipeline
from reducers import replacing, to_ilist, to_imap
from sources import items


class Visit(NamedTuple):
    """Somebody looked at a page."""

    user: int
    page: str


class Added(NamedTuple):
    """Somebody put something into the cart."""

    user: int
    thing: str


class Payment(NamedTuple):
    """Somebody paid for something."""

    user: int
    thing: str
    amount: int


VISITS = [Visit(1, "/hats"), Visit(1, "/shoes"), Visit(2, "/hats"), Visit(3, "/about"), Visit(1, "/cart")]
ADDED = [Added(1, "top hat"), Added(1, "boots"), Added(2, "bowler")]
PAYMENTS = [Payment(1, "top hat", 80), Payment(1, "boots", 120), Payment(4, "gift card", 25)]


def shop(visits: Iterable[Visit], added: Iterable[Added], payments: Iterable[Payment]) -> Pipeline:
    """Return a pipeline that writes all events of a user into the map `sessions`, sums into the list `funnel`."""
    pipeline = Pipeline()
    visited = pipeline.read_from(items(*visits)).set_name("visits")
    in_cart = pipeline.read_from(items(*added)).set_name("added")
    paid = pipeline.read_from(items(*payments)).set_name("payments")

    keyed = [stage.grouping_key(lambda event: event.user) for stage in (visited, in_cart, paid)]
    keyed[0].co_aggregate(*keyed[1:], op=to_bags(3)).write_to(replacing(to_imap("sessions")))

    totals = visited.co_aggregate(in_cart, paid, op=co_operation(counting(), counting(), summing(amount)))
    totals.write_to(replacing(to_ilist("funnel")))
    return pipeline


def amount(payment: Payment) -> int:
    """Return what somebody has paid."""
    return payment.amount


def main() -> None:
    """Print what each user did, and the totals."""
    with ds.connect(engine=os.environ.get("DSTREAM_ENGINE", "local")) as ctx:
        ctx.new_job(shop(VISITS, ADDED, PAYMENTS), name="co-group").join()
        for user, (visits, added, payments) in sorted(ctx.get_map("sessions").items()):
            bought = ", ".join(payment.thing for payment in payments) or "nothing"
            print(f"user {user}: {len(visits)} visits, {len(added)} in the cart, paid for {bought}")
        visited, in_cart, paid = ctx.get_list("funnel")[0]
        print(f"{visited} visits, {in_cart} things in carts, {paid} paid")


if __name__ == "__main__":
    main()
