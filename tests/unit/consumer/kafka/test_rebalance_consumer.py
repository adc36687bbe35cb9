"""The view has the methods that KAFKA-20385 lists, passes them on, and expires."""

from __future__ import annotations

import inspect
import threading

import pytest
from confluent_kafka import IllegalStateException

from kit.consumer.kafka.consumer import KafkaConsumer
from kit.consumer.kafka.rebalance_consumer import RebalanceConsumer

LISTED = {
    "commitSync", "commitAsync", "committed", "position", "seek", "seekToBeginning", "seekToEnd", "assignment", "pause",
    "resume", "paused", "clientInstanceId", "beginningOffsets", "endOffsets", "offsetsForTimes", "partitionsFor",
    "listTopics", "metrics", "currentLag", "groupMetadata",
}  # fmt: skip
"""The interface listing of the KIP and the ``metrics`` of its prose."""


def methods() -> dict[str, inspect.Signature]:
    members = inspect.getmembers(RebalanceConsumer, inspect.isfunction)
    return {name: inspect.signature(method) for name, method in members if not name.startswith("_")}


def call(view: RebalanceConsumer, name: str) -> object:
    """Call a method with one token per argument."""
    return getattr(view, name)(*[name for parameter in methods()[name].parameters if parameter != "self"])


class Recorder:
    """Any method answers with its name and arguments."""

    def __getattr__(self, name: str):
        return lambda *arguments: (name, arguments)


def snake_case(name: str) -> str:
    return "".join(f"_{letter.lower()}" if letter.isupper() else letter for letter in name)


def test_the_methods_are_those_of_the_kip():
    assert set(methods()) == {snake_case(name) for name in LISTED}


def test_methods_that_the_kip_omits_are_missing():
    view = RebalanceConsumer(Recorder())
    omitted = ("poll", "consume", "close", "subscribe", "unsubscribe", "assign", "wakeup", "enforce_rebalance",
               "set_rebalance_listener", "register_metric_for_subscription")  # fmt: skip
    for name in omitted:
        with pytest.raises(AttributeError):
            getattr(view, name)
    with pytest.raises(AttributeError):
        view.note = 1


@pytest.mark.parametrize("name", sorted(methods()))
def test_every_method_has_the_signature_of_the_consumers(name):
    assert methods()[name] == inspect.signature(getattr(KafkaConsumer, name))


@pytest.mark.parametrize("name", sorted(methods()))
def test_every_method_works_inside_and_expires_afterwards(name):
    n_arguments = len(methods()[name].parameters) - 1
    with RebalanceConsumer(Recorder()) as view:
        answer = call(view, name)
        assert answer in ((name, (name,) * n_arguments), None)
    with pytest.raises(IllegalStateException, match="until its rebalance callback returned"):
        call(view, name)


def test_methods_without_an_answer_are_passed_on_too():
    made = []

    class Noting:
        def __getattr__(self, name: str):
            return lambda *arguments: made.append((name, arguments))

    with RebalanceConsumer(Noting()) as view:
        for name in sorted(methods()):
            call(view, name)
    assert made == [(name, (name,) * (len(methods()[name].parameters) - 1)) for name in sorted(methods())]


def test_it_expires_when_the_callback_raises():
    with pytest.raises(ZeroDivisionError), RebalanceConsumer(Recorder()) as view:
        raise ZeroDivisionError
    with pytest.raises(IllegalStateException):
        view.assignment()


def test_another_thread_is_refused():
    refused = []

    def elsewhere(view: RebalanceConsumer) -> None:
        for name in sorted(methods()):
            try:
                call(view, name)
            except IllegalStateException as error:
                refused.append((name, str(error)))

    with RebalanceConsumer(Recorder()) as view:
        thread = threading.Thread(target=elsewhere, args=(view,))
        thread.start()
        thread.join()
        assert view.assignment() == ("assignment", ())
    assert [name for name, _ in refused] == sorted(methods())
    assert all("thread" in said for _, said in refused)
