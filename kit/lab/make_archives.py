"""Makes the archives of the lab's Java classes, see ``class_archive``: ``python -m kit.lab.make_archives``."""

from __future__ import annotations

from kit.lab.java import class_archive, jars
from kit.lab.lab import Lab
from kit.lab.members import java as java_members
from kit.lab.members.handles import Consumer
from kit.lab.members.java import JavaMember
from kit.lab.process import wait_until

SECONDS = 120


def main() -> None:
    """Run each kind of process whose jars are here once, and end it in order; nothing when this was done before."""
    here = [jar_set for jar_set in jars.ALL_SETS if jars.is_complete(jars.folder_of(jar_set))]
    with class_archive.being_made([jars.folder_of(jar_set).name for jar_set in here]) as is_needed:
        if not is_needed:
            return
        print(
            "[setup] keeping the classes of the lab's servers and members loaded, so that they start in half the time"
        )
        with Lab(brokers=1) as lab:
            lab.create_topic("archive", 1)
            lab.produce("archive", 1)
            _end(lab, _members(lab, here))
        for version, jar_set in jars.KAFKA_SETS.items():
            if jar_set in here and jar_set is not jars.SERVERS:
                with Lab(kraft=True, kafka_version=version) as lab:
                    _end(lab, [])


def _members(lab: Lab, here: list[jars.JarSet]) -> list[Consumer]:
    old = [version for version, jar_set in jars.OLD_CONSUMERS.items() if jar_set in here]
    new = [version for version, jar_set in jars.CLIENTS.items() if jar_set in here]
    wanted = [JavaMember(f"new-{version}", ("archive",), f"member-{version}", version) for version in new]
    return [
        *(lab.start_old_consumer(f"old-{version}", "archive", version=version, wait=False) for version in old),
        *(java_members.launch(lab.supervisor, lab.bootstrap_servers, member) for member in wanted),
        lab.start_console_consumer("new-console", "archive", wait=False),
    ]


def _end(lab: Lab, members: list[Consumer]) -> None:
    wait_until(lambda: all(member.records() for member in members), "a record for each member", SECONDS)
    for process in reversed(list(lab.supervisor.processes)):  # ZooKeeper was started first
        process.stop(SECONDS)


if __name__ == "__main__":
    main()
