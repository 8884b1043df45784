"""Keep the last price of each share in a map, as two topics of Kafka bring prices.

Without an address it runs against the small cluster that Kafka's own client can play, in this process.

pip install 'dstream-spark[kafka]'
python docs/samples/kafka_to_map.py
python docs/samples/kafka_to_map.py broker:9092
"""

from __future__ import annotations

import os
import random
import sys
from contextlib import suppress

from confluent_kafka import Producer

import dstream as ds
from dstream import Pipeline
from reducers import to_imap
from sources import kafka

TOPICS = ["prices-of-oslo", "prices-of-bergen"]
TICKERS = ["PQD", "RCL", "TWN"]


def last_prices(address: str) -> Pipeline:
    """Return a pipeline that keeps (price, topic) of each ticker; the last one of a key wins."""
    pipeline = Pipeline()
    prices = pipeline.read_from(kafka(TOPICS, {"bootstrap.servers": address}, key=bytes.decode, value=int))
    prices.set_name("read").write_to(
        to_imap("prices", lambda record: record.key, lambda record: (record.value, record.topic))
    )
    return pipeline


def generated(count: int = 500) -> list[tuple[str, str, int]]:
    """Return (topic, ticker, price) of so many trades; each share is traded at one place."""
    chance = random.Random(7)
    tickers = [chance.choice(TICKERS) for _ in range(count)]
    return [(TOPICS[TICKERS.index(ticker) % 2], ticker, chance.randint(50, 150)) for ticker in tickers]


def bring(producer: Producer) -> None:
    """Write the trades. Messages of one key come into one partition, and so stay in their order."""
    for topic, ticker, price in generated():
        producer.produce(topic, key=ticker, value=str(price))
    producer.flush()


def producer_to(address: str | None) -> tuple[Producer, str]:
    """Return what writes to a cluster, and the address of that: of a played one, if there is no other."""
    if address is not None:
        return Producer({"bootstrap.servers": address}), address
    producer = Producer({"test.mock.num.brokers": 1, "log_level": 3})
    [broker] = producer.list_topics(timeout=10).brokers.values()
    return producer, f"{broker.host}:{broker.port}"


def main(address: str | None = None) -> None:
    """Publish the prices while the job runs; print the last one of each share."""
    producer, address = producer_to(address)
    bring(producer)
    with ds.connect(engine=os.environ.get("DSTREAM_ENGINE", "local")) as ctx:
        job = ctx.new_job(last_prices(address), name="kafka-to-map")
        bring(producer)
        while (job.metrics().stages["read"].items_out or 0) < 2 * len(generated()):
            with suppress(TimeoutError):
                job.join(timeout=0.1)  # It raises what the job failed with, if it did.
        job.cancel()
        for ticker, (price, topic) in sorted(ctx.get_map("prices").items()):
            print(f"{ticker}: {price} at {topic}")


if __name__ == "__main__":
    main(*sys.argv[1:])
