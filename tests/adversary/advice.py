"""A person who does what the preflight advises about controllers: on clusters of every age, with facts that are hidden.

The checks are the real ones. ``Wrong``: the person wipes the only copy of the metadata.
"""

from __future__ import annotations

import random
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace

from kit.kraft.analyze import preflight_controllers
from kit.kraft.analyze.phase import MIGRATION, NONE, POST_MIGRATION, PRE_MIGRATION
from kit.kraft.analyze.preflight_checks import PreflightFacts, Problem
from tests.adversary.judge import Wrong
from tests.adversary.mistakes import Mistake
from tests.unit.kraft.analyze.preflight_facts import CONTROL, ITEMS, NODES, SOUND, items, node

WIPES = "wipe their metadata folders"
_CHECKS = (preflight_controllers.alike, preflight_controllers.disks, preflight_controllers.first_epoch)


@dataclass(frozen=True, slots=True)
class Age:
    """``mode``: of the brokers; ``has_topics``: the controllers' log holds topics that ZooKeeper may lack."""

    zk_state: str | None
    mode: str
    has_topics: bool
    checkpoint: int | None


AGES = (
    Age(PRE_MIGRATION, "zookeeper", False, None),
    Age(PRE_MIGRATION, "migration", False, None),
    Age(NONE, "zookeeper", False, None),
    Age(PRE_MIGRATION, "zookeeper", False, 142),
    Age(MIGRATION, "migration", True, 79),
    Age(MIGRATION, "kraft", True, 79),
    Age(POST_MIGRATION, "kraft", True, 79),
    Age(NONE, "kraft", True, None),
    Age(None, "kraft", True, None),
)
"""Beside the usual way: begun without the flag, a left-over ``/migration``, born in KRaft mode."""


def seen(age: Age, rng: random.Random) -> PreflightFacts:
    """Return what a preflight reads of such a cluster; each fact may be hidden, or read wrongly by half."""
    control = replace(CONTROL, checkpoint=age.checkpoint, has_migration=age.checkpoint is not None)
    modes = [age.mode, rng.choice((age.mode, "zookeeper"))]  # A broker that an operator put back.
    rng.shuffle(modes)
    brokers = [replace(each, mode=None if rng.random() < 0.2 else mode) for each, mode in zip(NODES[:2], modes)]
    controller = node("controller", 3000, leader_epoch=41, has_flag=rng.random() < 0.5)
    facts = replace(
        SOUND.facts,
        control=None if rng.random() < 0.2 else control,
        nodes=(*(each for each in brokers if rng.random() < 0.9), controller),
        zk_state=age.zk_state,
    )
    log = items(*([ITEMS[0]] if age.has_topics else []))
    return replace(SOUND, facts=facts, kraft_items=None if rng.random() < 0.2 else log)


def follow(age: Age, rng: random.Random) -> bool:
    """Do what is advised. Return whether the controllers were wiped.

    Raises:
        Wrong: they held the only copy, or fresh ones will delete what ``/migration`` says that they know.
    """
    facts = seen(age, rng)
    problems: list[Problem] = [each for check in _CHECKS for each in check(facts)]
    advised = [each for each in problems if WIPES in each.remedy]
    if advised and (age.has_topics or age.mode == "kraft" or age.checkpoint is not None):
        raise Wrong("wiped the only copy", f"{age}: {advised[0].remedy}")
    return bool(advised)


def wrongs(seeds: Iterable[int]) -> Iterator[Wrong]:
    """Yield what is wrong on these walks."""
    for seed in seeds:
        rng = random.Random(f"advice {seed}")
        try:
            follow(rng.choice(AGES), rng)
        except Wrong as error:
            yield error


WIPE_WHAT_IS_NO_MIGRATION: Mistake = {
    (preflight_controllers, "_begin_again"): lambda facts: (
        preflight_controllers._KEEP
        if facts.facts.zk_state in (MIGRATION, POST_MIGRATION)
        else preflight_controllers._WIPE
    )
}
"""Advised by the log's state alone."""
