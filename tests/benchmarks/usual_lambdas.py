"""A script of 150 functions as data engineers write them, by kind and by the items that they take.

`tests.benchmarks.usual_functions` executes it as a script of its own and counts how tasks evaluate the functions.
"""

import dataclasses
import json
import math
import re
from collections import namedtuple
from collections.abc import Callable
from dataclasses import dataclass
from datetime import date, datetime, timedelta, timezone
from decimal import Decimal
from enum import Enum, IntEnum
from operator import attrgetter, itemgetter
from typing import Any


@dataclass(frozen=True)
class Sale:
    id: int
    shop: str
    city: str
    country: str
    amount: int
    price: float
    quantity: int
    email: str
    sku: str
    status: str
    tags: str
    note: str | None
    discount: float | None
    paid: bool
    day: date
    at: datetime
    total: Decimal


@dataclass
class Summary:
    shop: str
    total: float


@dataclass(frozen=True)
class Order:
    number: int
    customer: str
    amount: float
    day: str


Pair = namedtuple("Pair", "shop amount")


class Status(Enum):
    OPEN = "open"
    PAID = "paid"
    LOST = "lost"


class Level(IntEnum):
    LOW = 1
    HIGH = 100


COUNTRY = {"Berlin": "de", "Paris": "fr", "Zürich": "ch", "Lyon": "fr"}
RATES = {"de": 0.19, "fr": 0.2, "ch": 0.077}
STOP = {"the", "a", "of", "and"}
CLOSED = frozenset({"lost", "void"})
OPEN_STATES = ["open", "paid"]
REGIONS = ("de", "fr")
NAMES = {1: "one", 2: "two", 3: "three"}
MONTHS = ["jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"]
SKU = re.compile(r"([A-Z]{2})-(\d+)")
LOG = re.compile(r"(\S+) \[(\w+)\] (\w+)=(\d+)")
WORD = re.compile(r"\w+")
DIGITS = re.compile(r"\d+")
START = date(2024, 1, 1)
VAT = 0.19
CENT = Decimal("0.01")


def band(amount: int) -> str:
    if amount < 500:
        return "small"
    if amount < 2000:
        return "medium"
    return "large"


def clean(text: str) -> str:
    text = text.strip().lower()
    return " ".join(text.split())


def domain(email: str) -> str:
    name, _, host = email.partition("@")
    return host or name


def is_valid(sale: Sale) -> bool:
    if not sale.shop:
        return False
    if sale.quantity <= 0:
        return False
    return sale.price > 0


def net(sale: Sale) -> float:
    gross = sale.price * sale.quantity
    if sale.discount is not None:
        gross = gross * (1 - sale.discount)
    return round(gross, 2)


def as_int(text: str) -> int:
    try:
        return int(text)
    except ValueError:
        return 0


def score(n: int) -> int:
    total = 0
    for weight in (3, 5, 7):
        total += n % weight
    return total


def level_of(line: str) -> str:
    for word in ("ERROR", "WARN"):
        if word in line:
            return word
    return "INFO"


def kind_of(sale: Sale) -> str:
    if sale.status in CLOSED:
        return "closed"
    elif sale.country in REGIONS:
        return "inner"
    else:
        return "outer"


FUNCTIONS: dict[str, dict[str, list[Callable[[Any], Any]]]] = {
    "regex": {
        "lines": [
            lambda line: re.findall(r"\w+", line.lower()),
            lambda line: LOG.match(line).group(2),
            lambda line: re.sub(r"\d+", "#", line),
            lambda line: bool(re.search(r"code=5\d\d", line)),
            lambda line: re.split(r"[\s=]+", line),
            lambda line: (m := DIGITS.search(line)) and int(m.group()),
            lambda line: len(WORD.findall(line)),
            lambda line: LOG.match(line).groups(),
        ],
        "sales": [
            lambda s: SKU.match(s.sku).group(1),
            lambda s: int(SKU.match(s.sku).group(2)),
            lambda s: re.fullmatch(r"[\w.]+@[\w.]+", s.email) is not None,
            lambda s: re.sub(r"[^a-z]", "", s.shop.lower()),
            lambda s: re.search(r"@(.+)$", s.email)[1],
        ],
        "rows": [lambda r: re.match(r"[A-Z]+", r["sku"]).group(0)],
    },
    "lookups": {
        "sales": [
            lambda s: COUNTRY.get(s.city),
            lambda s: COUNTRY.get(s.city, "other"),
            lambda s: RATES[s.country],
            lambda s: s.status in CLOSED,
            lambda s: s.status in OPEN_STATES,
            lambda s: s.country not in REGIONS,
            lambda s: s.price * (1 + RATES[s.country]),
            lambda s: (COUNTRY.get(s.city, "other"), s.amount),
            lambda s: MONTHS[s.day.month - 1],
        ],
        "words": [lambda w: w in STOP, lambda w: w.lower() not in STOP, lambda w: {"the": "det"}.get(w, "noun")],
        "numbers": [lambda n: NAMES.get(n % 5, "many"), lambda n: MONTHS[n % 12]],
    },
    "helpers": {
        "sales": [
            lambda s: band(s.amount),
            lambda s: clean(s.shop),
            lambda s: domain(s.email),
            is_valid,
            net,
            lambda s: (kind_of(s), s.amount),
            lambda s: band(int(s.price * s.quantity)),
            lambda s: s.shop if is_valid(s) else "invalid",
        ],
        "words": [as_int, lambda w: clean(w) or "empty"],
        "lines": [level_of, lambda line: clean(line).split(" ")[0]],
        "numbers": [score, lambda n: band(n * 7)],
    },
    "formats": {
        "sales": [
            lambda s: f"{s.shop}/{s.city}",
            lambda s: f"{s.shop}-{s.id:06d}",
            lambda s: f"{s.price:.2f}",
            lambda s: f"{s.shop:<12}|{s.amount:>8}",
            lambda s: f"{s.amount:,}",
            lambda s: "%s:%d" % (s.shop, s.quantity),
            lambda s: "{}-{}".format(s.country, s.sku),
            lambda s: f"{s.shop!r}",
            lambda s: str(s.id).zfill(8),
            lambda s: f"{s.discount or 0:.1%}",
        ],
        "numbers": [lambda n: f"{n:08x}", lambda n: f"id-{n}"],
    },
    "strings": {
        "words": [
            lambda w: w.ljust(10),
            lambda w: w.center(9, "*"),
            lambda w: w.isdigit(),
            lambda w: w.startswith(("a", "b")),
            lambda w: w.endswith((".", "!")),
            lambda w: w[0].upper() + w[1:] if w else w,
            lambda w: w[::-1],
            lambda w: w.encode("utf-8"),
        ],
        "lines": [
            lambda line: " ".join(line.split()),
            lambda line: line.rsplit("=", 1)[1],
            lambda line: line.partition(" ")[0],
            lambda line: line.count("="),
            lambda line: line.split(" ", 1)[1],
            lambda line: line.strip().lower().replace("[", ""),
            lambda line: "error" in line.lower(),
        ],
        "sales": [lambda s: s.email.split("@")[1], lambda s: s.tags.split(",")[0].strip().title()],
        "orders": [lambda o: o.customer.upper()],
    },
    "dates": {
        "sales": [
            lambda s: s.day.year,
            lambda s: s.day.isoformat(),
            lambda s: s.day.weekday() >= 5,
            lambda s: s.day >= START,
            lambda s: s.at.strftime("%Y-%m"),
            lambda s: s.at.hour,
            lambda s: (s.day - START).days,
            lambda s: s.at + timedelta(hours=2),
            lambda s: s.at.replace(minute=0, second=0, microsecond=0),
            lambda s: s.day.replace(day=1),
            lambda s: s.at.date(),
        ],
        "orders": [
            lambda o: date.fromisoformat(o.day),
            lambda o: datetime.strptime(o.day, "%Y-%m-%d").year,
            lambda o: datetime.fromisoformat(o.day).month,
        ],
        "numbers": [lambda n: datetime.fromtimestamp(n * 86_400, tz=timezone.utc).year],
    },
    "displays": {
        "sales": [
            lambda s: {"shop": s.shop, "amount": s.amount},
            lambda s: (s.shop, s.amount * s.quantity),
            lambda s: [s.shop, s.city],
            lambda s: Summary(s.shop, s.price * s.quantity),
            lambda s: dataclasses.replace(s, city=s.city.upper()),
            lambda s: Pair(s.shop, s.amount),
        ],
        "rows": [lambda r: {**r, "gross": r["price"] * 1.19}, lambda r: dict(shop=r["shop"], n=1)],
        "orders": [lambda o: {"customer": o.customer, "amount": o.amount}],
        "numbers": [lambda n: {n % 3, n % 5}],
    },
    "comprehensions": {
        "lines": [
            lambda line: [w for w in line.split() if len(w) > 3],
            lambda line: [w.lower() for w in line.split(" ")],
            lambda line: {w: 1 for w in line.split()},
            lambda line: sum(len(w) for w in line.split()),
            lambda line: any(w.isupper() for w in line.split()),
            lambda line: dict(p.split("=") for p in line.split() if "=" in p),
            lambda line: ",".join(sorted(set(line.split()))),
        ],
        "sales": [lambda s: [(t, s.amount) for t in s.tags.split(",")], lambda s: max(s.tags.split(","), key=len)],
        "numbers": [lambda n: sum(d * d for d in range(n % 7))],
    },
    "json": {
        "jsons": [
            json.loads,
            lambda t: json.loads(t)["host"]["dc"],
            lambda t: json.loads(t).get("ms", 0),
            lambda t: (json.loads(t)["user"], 1),
        ],
        "sales": [lambda s: json.dumps({"shop": s.shop, "amount": s.amount})],
        "events": [
            lambda e: e["host"]["dc"],
            lambda e: e.get("ms", 0) > 100,
            lambda e: e["user"].lower(),
            lambda e: (e["host"]["dc"], e["ms"]),
        ],
    },
    "decimals": {
        "sales": [
            lambda s: s.total * 2,
            lambda s: s.total > Decimal("10"),
            lambda s: s.total.quantize(CENT),
            lambda s: float(s.total),
            lambda s: Decimal(s.amount) / 100,
        ]
    },
    "enums": {
        "sales": [
            lambda s: Status(s.status),
            lambda s: s.status == Status.PAID.value,
            lambda s: Status(s.status).name,
            lambda s: s.amount > Level.HIGH,
            lambda s: "top" if s.quantity > Level.LOW.value else Level.LOW.name,
        ]
    },
    "types": {
        "sales": [
            lambda s: isinstance(s.discount, float),
            lambda s: s.note if isinstance(s.note, str) else "",
            lambda s: type(s.amount) is int,
        ],
        "numbers": [lambda n: isinstance(n, int) and n > 5],
    },
    "arithmetic": {
        "sales": [
            lambda s: s.price * s.quantity,
            lambda s: s.amount // 100,
            lambda s: round(s.price * (1 + VAT), 2),
            lambda s: min(s.quantity, 5),
            lambda s: s.amount / s.quantity,
            lambda s: -s.amount if s.status == "lost" else s.amount,
            lambda s: divmod(s.amount, 100)[0],
        ],
        "rows": [lambda r: r["price"] * r["quantity"], itemgetter("amount")],
        "numbers": [lambda n: n * 3 + 1, lambda n: math.sqrt(n)],
        "orders": [attrgetter("amount")],
    },
    "optional": {
        "sales": [
            lambda s: s.note or "none",
            lambda s: s.note is not None,
            lambda s: len(s.note) if s.note else 0,
            lambda s: s.discount is None or s.discount < 0.1,
            lambda s: s.price * (1 - (s.discount or 0)),
            lambda s: s.note.upper() if s.note is not None else None,
        ],
        "rows": [lambda r: r.get("note") or "?", lambda r: r.get("missing", 0)],
    },
}
"""Functions by kind, and by the name of the items that they take (`usual_functions.SOURCES`)."""
