"""A second script of functions as data engineers write them: several statements, records as wholes, methods, zones.

`python -m tests.benchmarks.usual_functions further` executes it as a script of its own.
"""

import collections
import dataclasses
import itertools
import json
import math
import re
import string
from collections import Counter, defaultdict
from collections.abc import Callable
from dataclasses import asdict, dataclass
from datetime import date, datetime, timedelta, timezone
from decimal import Decimal, InvalidOperation
from enum import Enum
from functools import partial
from operator import attrgetter, itemgetter, methodcaller
from typing import Any
from zoneinfo import ZoneInfo


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

    def gross(self):
        return self.price * self.quantity

    @property
    def region(self):
        return self.country.upper()

    def is_large(self, limit=1000):
        return self.amount > limit


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


@dataclass(frozen=True)
class LogLine:
    day: str
    level: str
    code: int


class Status(Enum):
    OPEN = "open"
    PAID = "paid"
    LOST = "lost"

    def is_final(self):
        return self is not Status.OPEN

    @classmethod
    def parse(cls, text):
        return cls(text.strip().lower())


class Tier(Enum):
    FREE = 0
    PRO = 1


class InvalidSale(Exception):
    pass


BERLIN = ZoneInfo("Europe/Berlin")
TABLE = str.maketrans("áéü", "aeu")
PUNCTUATION = str.maketrans("", "", string.punctuation)
SKU = re.compile(r"([A-Z]{2})-(\d+)")
LOG = re.compile(r"(?P<day>\S+) \[(?P<level>\w+)\] code=(?P<code>\d+)")
RATES = {"de": 0.19, "fr": 0.2}
DISCOUNTS = [(1000, 0.1), (500, 0.05), (0, 0.0)]
STOP = {"the", "a", "of"}
EPOCH = datetime(1970, 1, 1)


def safe_float(text, default=0.0):
    try:
        return float(text.replace(",", "."))
    except (ValueError, AttributeError):
        return default


def parsed_log(line):
    try:
        day, rest = line.split(" ", 1)
        code = int(rest.split("code=")[1].split()[0])
        return {"day": day, "code": code}
    except (ValueError, IndexError):
        return None


def parsed_or_error(text):
    try:
        event = json.loads(text)
        return {"user": event["user"], "dc": event["host"]["dc"], "error": None}
    except (ValueError, KeyError) as e:
        return {"user": None, "dc": None, "error": str(e)}


def word_counts(line):
    counts = {}
    for word in line.split():
        counts[word] = counts.get(word, 0) + 1
    return counts


def default_counts(line):
    counts = defaultdict(int)
    for word in line.lower().split():
        if word not in STOP:
            counts[word] += 1
    return dict(counts)


def pairs_of_tags(sale):
    found = []
    tags = sale.tags.split(",")
    for i, a in enumerate(tags):
        for b in tags[i + 1 :]:
            found.append((a.strip(), b.strip()))
    return found


def discounted(sale):
    for limit, rate in DISCOUNTS:
        if sale.amount >= limit:
            return sale.price * (1 - rate)
    return sale.price


def checked(sale):
    assert sale.quantity > 0, "no quantity"
    return sale.price * sale.quantity


def validated(sale):
    if sale.price < 0:
        raise InvalidSale(f"price of {sale.id}")
    return sale.price


def by_status(sale):
    match sale.status:
        case "open":
            return 1
        case "paid" | "settled":
            return 2
        case _:
            return 0


def event_kind(event):
    match event:
        case {"host": {"dc": dc}, "ms": ms} if ms > 100:
            return f"slow in {dc}"
        case {"user": user}:
            return user
        case _:
            return "unknown"


def slug(text):
    def part(word):
        return word.strip().lower()

    return "-".join(part(word) for word in text.split())


def cleaned(sale):
    row = asdict(sale)
    row["shop"] = row["shop"].strip()
    row["total"] = float(row["total"])
    return row


def features(sale):
    result = {}
    result["amount"] = sale.amount
    if sale.discount is not None:
        result["discount"] = sale.discount
    if sale.note:
        result["note"] = sale.note.strip()
    return result


def parsed_decimal(sale):
    try:
        value = Decimal(sale.tags.split(",")[0])
    except InvalidOperation:
        value = Decimal(0)
    return value


def running(n):
    total, best = 0, None
    for d in str(n):
        total += int(d)
        if best is None or int(d) > best:
            best = int(d)
    return total, best


def query(text):
    params = {}
    for pair in text.split("&"):
        if "=" not in pair:
            continue
        key, value = pair.split("=", 1)
        params[key] = value
    return params


def levels(line):
    seen = set()
    for word in line.split():
        if word in seen:
            return True
        seen.add(word)
    return False


def fields_of(line):
    m = LOG.match(line)
    if m is None:
        return None
    d = m.groupdict()
    d["code"] = int(d["code"])
    return d


def as_log(line):
    m = LOG.match(line)
    if not m:
        raise ValueError(f"bad line: {line!r}")
    return LogLine(m["day"], m["level"], int(m["code"]))


def with_default(text, *, lower=True):
    return text.lower() if lower else text


def normalized(text, sep="-"):
    return sep.join(text.lower().split())


def deep3(text):
    return text.strip()


def deep2(text):
    return deep3(text).lower()


def deep1(text):
    return deep2(text).replace(" ", "")


def checksum(text):
    total = 0
    for place, digit in enumerate(reversed(text)):
        number = ord(digit)
        if place % 2:
            number *= 2
            if number > 9:
                number -= 9
        total += number
    return total % 10


def grade(sale):
    points = 0
    if sale.paid:
        points += 2
    if sale.amount > 1000:
        points += 1
    if sale.discount is None:
        points += 1
    if sale.note:
        points += 1
    if sale.country in ("de", "fr"):
        points += 1
    if sale.quantity > 3:
        points += 1
    if sale.price > 50:
        points += 1
    if sale.city == "Berlin":
        points += 1
    if sale.status == "lost":
        points -= 5
    return points


def try_finally(sale):
    value = None
    try:
        value = int(sale.sku.split("-")[1])
    except (ValueError, IndexError):
        pass
    finally:
        result = value
    return value


def first_number(sale):
    for part in sale.sku.split("-"):
        try:
            return int(part)
        except ValueError:
            continue
    return -1


def grouped_words(line):
    groups = {}
    for word in line.split():
        groups.setdefault(word[0], []).append(word)
    return groups


def errors_of(sale):
    errors = []
    if not sale.shop.strip():
        errors.append("shop")
    if sale.amount < 0:
        errors.append("amount")
    if "@" not in sale.email:
        errors.append("email")
    return errors


def event_row(event):
    host = event.get("host") or {}
    try:
        ms = float(event["ms"])
    except (KeyError, TypeError, ValueError) as error:
        raise ValueError(f"bad event {error}") from error
    return {"user": event["user"], "dc": host.get("dc"), "ms": ms}


def price_band(sale):
    bands = [("low", 10), ("mid", 60)]
    for name, limit in bands:
        if sale.price < limit:
            return name
    else:
        return "high"


def total_of(order: Order) -> float:
    tax = 0.19
    total = order.amount
    if order.amount > 100:
        total = total * 0.95
    total = total * (1 + tax)
    return round(total, 2)


def quarter(order):
    year, month, _ = map(int, order.day.split("-"))
    return f"{year}Q{(month - 1) // 3 + 1}"


FUNCTIONS: dict[str, dict[str, list[Callable[[Any], Any]]]] = {
    "try": {
        "lines": [parsed_log],
        "jsons": [parsed_or_error],
        "sales": [
            parsed_decimal,
            try_finally,
            first_number,
            lambda s: safe_float(s.tags),
            lambda s: safe_float(s.note, 1.0),
        ],
        "events": [event_row],
    },
    "counters": {
        "lines": [
            word_counts,
            default_counts,
            lambda line: Counter(line.split()),
            lambda line: Counter(line.split()).most_common(2),
            lambda line: collections.Counter(line.split()).most_common(1)[0][0],
            grouped_words,
            levels,
        ],
        "sales": [lambda s: Counter(s.tags), lambda s: max(Counter(s.shop).values())],
    },
    "loops": {
        "sales": [pairs_of_tags, discounted, price_band],
        "numbers": [running],
        "words": [checksum, query],
    },
    "statements": {
        "sales": [checked, validated, by_status, features, errors_of, grade],
        "events": [event_kind],
        "words": [slug],
        "orders": [total_of, quarter],
        "lines": [fields_of, as_log],
    },
    "records": {
        "sales": [
            asdict,
            lambda s: dict(dataclasses.asdict(s)),
            cleaned,
            lambda s: {k: v for k, v in asdict(s).items() if v is not None},
            lambda s: json.dumps(asdict(s), default=str),
            lambda s: Summary(*s.sku.split("-")[:2]),
        ],
        "rows": [
            lambda r: Sale(**r),
            lambda r: {k: v for k, v in r.items() if v is not None},
            lambda r: {**r, "shop": r["shop"].strip(), "ok": True},
            lambda r: {k: r[k] for k in ("id", "shop", "amount")},
            lambda r: tuple(r.values()),
            lambda r: {k.upper(): v for k, v in r.items()},
            lambda r: r | {"kind": "sale"},
            lambda r: list(r.keys()),
            lambda r: ",".join(str(v) for v in r.values()),
        ],
        "orders": [asdict, lambda o: tuple(asdict(o).values()), lambda o: (o.number, asdict(o))],
        "words": [lambda w: Summary(*(w, 1.0))],
    },
    "methods": {
        "sales": [
            lambda s: s.gross(),
            lambda s: s.region,
            Sale.gross,
            lambda s: s.is_large(),
            methodcaller("gross"),
            lambda s: (s.region, s.gross()),
            attrgetter("region"),
            lambda s: s.is_large(500),
        ]
    },
    "regex": {
        "lines": [
            lambda line: [m.group(1) for m in re.finditer(r"(\w+)=", line)],
            lambda line: re.sub(r"\d+", lambda m: str(int(m.group()) + 1), line),
            lambda line: LOG.match(line).groupdict(),
            lambda line: dict(re.findall(r"(\w+)=(\w+)", line)),
        ],
        "sales": [
            lambda s: re.sub(r"(\w)(\w*)", lambda m: m.group(1).upper() + m.group(2), s.shop),
            lambda s: re.split(r"(,)", s.tags),
            lambda s: SKU.sub(r"\2-\1", s.sku),
            lambda s: [m.start() for m in re.finditer("o", s.email)],
            lambda s: len(list(re.finditer(r"\w+", s.shop))),
            lambda s: SKU.match(s.sku).span(2),
        ],
    },
    "zones": {
        "sales": [
            lambda s: s.at.replace(tzinfo=timezone.utc).astimezone(BERLIN),
            lambda s: s.at.replace(tzinfo=ZoneInfo("Europe/Berlin")).hour,
            lambda s: s.at.replace(tzinfo=timezone.utc).timestamp(),
            lambda s: int((s.at - EPOCH).total_seconds()),
            lambda s: s.at.astimezone(timezone.utc).isoformat(),
            lambda s: (s.day + timedelta(days=7)).isoformat(),
            lambda s: s.day.strftime("%A"),
            lambda s: s.day.isocalendar()[1],
            lambda s: s.day.isocalendar().week,
            lambda s: (s.at.hour // 6, s.at.minute),
        ]
    },
    "enums": {
        "sales": [
            lambda s: Status(s.status).is_final(),
            lambda s: Status.parse(s.status),
            lambda s: Status(s.status) is Status.PAID,
            lambda s: Tier.PRO if s.amount > 1000 else Tier.FREE,
            lambda s: Status[s.status.upper()],
            lambda s: Status(s.status) in (Status.PAID, Status.LOST),
            lambda s: Tier(s.quantity % 2).name.lower(),
        ]
    },
    "calls": {
        "sales": [
            lambda s: s.shop.translate(TABLE),
            lambda s: s.email.translate(PUNCTUATION),
            lambda s: with_default(s.shop, lower=False),
            lambda s: normalized(s.shop),
            lambda s: normalized(s.shop, sep="_"),
            lambda s: deep1(s.shop),
            partial(lambda k, s: (k, s.amount), "x"),
            lambda s: itemgetter(1)(s.sku.split("-")),
            lambda s: min(RATES.items(), key=lambda kv: abs(kv[1] - s.price))[0],
            lambda s: sorted((s.amount, s.quantity, s.id), reverse=True)[0],
            lambda s: sorted(s.tags.split(","), key=str.lower),
            lambda s: sorted(s.tags.split(","), key=lambda t: (-len(t), t)),
            lambda s: list(zip(s.tags.split(","), range(3))),
            lambda s: {i: t for i, t in enumerate(s.tags.split(","))},
            lambda s: getattr(s, "shop"),
            lambda s: (lambda x: x * 2)(s.amount),
            lambda s: s.price if not math.isnan(s.price) else 0.0,
            lambda s: "".join(c for c in s.shop if c.isalnum()),
            lambda s: "".join(itertools.chain(s.city, s.country)),
            lambda s: s.email.split("@")[-1].rsplit(".", 1)[0],
            lambda s: int(s.sku.split("-")[1], 16),
            lambda s: s.shop.strip().split()[-1][2:],
        ],
        "words": [lambda w: w.translate(PUNCTUATION), lambda w: all(c in string.ascii_letters for c in w)],
    },
}
