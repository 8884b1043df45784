"""Which failures of a cluster of Kafka may pass, so that to ask again, or to run again, may help."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from confluent_kafka import KafkaError

__all__ = ["may_pass"]

_PASSING = (
    # Of the client: nobody answers, or not in time.
    *("_ALL_BROKERS_DOWN", "_MSG_TIMED_OUT", "_TIMED_OUT", "_TIMED_OUT_QUEUE", "_TRANSPORT", "_WAIT_COORD"),
    # A partition that was made this moment, or whose leader changes, is known to one broker before another.
    *("_UNKNOWN_PARTITION", "UNKNOWN_TOPIC_OR_PART", "LEADER_NOT_AVAILABLE", "NOT_LEADER_FOR_PARTITION"),
    *("FENCED_LEADER_EPOCH", "UNKNOWN_LEADER_EPOCH", "OFFSET_NOT_AVAILABLE", "UNSTABLE_OFFSET_COMMIT"),
    # Of brokers that start, stop, or are alone for a while.
    *("BROKER_NOT_AVAILABLE", "REPLICA_NOT_AVAILABLE", "NOT_ENOUGH_REPLICAS", "NOT_ENOUGH_REPLICAS_AFTER_APPEND"),
    *("KAFKA_STORAGE_ERROR", "NETWORK_EXCEPTION", "REQUEST_TIMED_OUT"),
    # A client that is asked for offsets knows no broker any more, and so no leader (librdkafka 2.16).
    "_NOENT",
    *("COORDINATOR_LOAD_IN_PROGRESS", "COORDINATOR_NOT_AVAILABLE", "NOT_COORDINATOR", "CONCURRENT_TRANSACTIONS"),
    # The cluster has forgotten a producer, as one that was idle for a week: a new one can go on.
    *("INVALID_PRODUCER_ID_MAPPING", "INVALID_TXN_STATE", "UNKNOWN_PRODUCER_ID"),
)


def may_pass(error: KafkaError) -> bool:
    """Say whether a failure is one of now. `retriable()` alone does not: only producers with transactions set it."""
    return error.retriable() or any(error.code() == getattr(error, name) for name in _PASSING)
