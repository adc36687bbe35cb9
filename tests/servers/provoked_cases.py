"""Provoke each check of a move to KRaft on real servers: ``docs/evidence/kraft-preflight.md`` lists it.

Tests run all cases of a file; a unit test holds that no id of the code is without one.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from tests.servers.provoked import ALARM, BLOCK, EDITED, INFO, PREFLIGHT, STATUS, WARN, Case


def _seen(moment: str, how: str, *rows: tuple[str, ...], look: str = PREFLIGHT, test: str = "") -> list[Case]:
    """One moment of a lab: id, subject, severity, sentence, remedy of each finding."""
    made = (Case(check_id, how, look, moment, *rest) for check_id, *rest in rows)
    return [replace(each, test=test) if test else each for each in made]


def _file(
    check_id: str,
    file: str,
    changes: Mapping[str, str | None],
    subject: str,
    says: str,
    remedy: str,
    severity: str = BLOCK,
) -> Case:
    told = ", ".join(name if value is None else f"{name}={value}" for name, value in changes.items())
    how = f"the lab's {file} with {told}" if any(changes.values()) else f"the lab's {file} without {told}"
    return Case(check_id, how, EDITED, file, subject, severity, says, remedy, file=file, changes=changes)


def _facts(check_id: str, facts: str, subject: str, severity: str, says: str, remedy: str) -> Case:
    how = f"what was read of the lab, edited: {facts}"
    return Case(check_id, how, EDITED, facts, subject, severity, says, remedy, facts=facts)


_FLAG = "zookeeper.metadata.migration.enable"
_IBP = "inter.broker.protocol.version"
_MECHANISMS = "sasl.enabled.mechanisms"
_VOTERS = "controller.quorum.voters"
TRAPS = "test_kraft_traps.py"
BROKER, CONTROLLER = "broker-1/server.properties", "controller-3000/server.properties"
BROKER_META, CONTROLLER_META = "broker-1/meta.properties", "controller-3000/meta.properties"

CASES: tuple[Case, ...] = (
    *_seen(
        "before",
        "a young cluster in ZooKeeper mode with ACLs and quotas",
        ("Z16", "/controller_epoch", WARN, "/controller_epoch is only", "Start all controllers at the same time"),
        ("A04", "broker 1", WARN, "uses AclAuthorizer", "StandardAuthorizer when the broker goes to KRaft mode"),
        (
            "last_quota",
            "3 client, IP and user-client quotas",
            WARN,
            "does not report an error when the last quota",
            "Remove none of these quotas",
        ),
    ),
    Case(
        "Z20",
        "any cluster",
        PREFLIGHT,
        "before",
        "cluster",
        INFO,
        "ZooKeeper holds 1 topic with 2 partitions",
        "",
        is_met=True,
    ),
    *_seen(
        "begun wrongly",
        "two controllers without the flag, one of them alone first",
        ("L01", "controller 127.0.0.1:", BLOCK, f"runs without {_FLAG}", f"Set {_FLAG}=true on every"),
        ("L01", "the metadata log", BLOCK, "log is NONE, not PRE_MIGRATION", "wipe their metadata folders"),
        ("L02", "controllers", BLOCK, "log is NONE", "wipe their metadata folders"),
        (
            "L03",
            "controllers",
            BLOCK,
            "The controllers did not start at the same time",
            "Or continue the move: a later rollback plan raises",
        ),
        ("Z16", "/controller_epoch", WARN, "but KRaft has reached epoch", "To roll back, use a plan"),
    ),
    *_seen(
        "begun wrongly",
        "two controllers without the flag, one of them alone first",
        ("Z16", "/controller_epoch", WARN, "but KRaft has reached epoch", "To roll back, use a plan"),
        look=STATUS,
    ),
    *_seen(
        "null checkpoint",
        "/migration without data",
        ("Z02", "/migration", BLOCK, "No controller can read the value of the znode /migration", "plan kraft --repair"),
        look=STATUS,
    ),
    *_seen(
        "left-over checkpoint",
        "/migration with an offset that no log has",
        ("Z02", "/migration", BLOCK, "is left over from another attempt (offset 142)", "plan kraft --repair"),
        look=STATUS,
    ),
    *_seen(
        "one controller named",
        "a profile that names one controller of two",
        ("L01", "controllers", WARN, "The quorum has the voters 3000 and 3001", "Name every controller in the profile"),
        look=STATUS,
    ),
    *_seen(
        "ready",
        "controllers without settings for topics",
        (
            "A07",
            "controller 3000",
            WARN,
            "In KRaft mode, the controller's value applies",
            "on every controller as on the brokers",
        ),
    ),
    *_seen(
        "bad",
        "a znode with invalid content",
        (
            "Z01",
            "broker 9",
            BLOCK,
            "Broker 9 is in the replica lists of 1 partition (for example zombie-0",
            "Start that broker, or",
        ),
        (
            "Z02",
            "/migration",
            BLOCK,
            "the value is empty. No controller can read it (KAFKA-19480)",
            ("plan kraft --repair"),
        ),
        (
            "Z03",
            "/controller",
            BLOCK,
            "held by KRaft controller 3005, but no metadata log",
            "do not delete /controller",
        ),
        ("Z04", "topic idless", BLOCK, "has no topic_id, so the copy never begins", "Do not delete /controller"),
        ("Z04", "topic hollow", BLOCK, "the field partitions is empty", "Do not delete the znode"),
        ("Z05", "topic stateless", WARN, "has partitions without a leader: 0", "Do not delete /controller"),
        ("Z05", "topic zombie", WARN, "with an ISR that names a broker without a replica", "Do not delete /controller"),
        (
            "Z05",
            "topic moving",
            WARN,
            "has not finished the recovery from an unclean election",
            "Do not delete /controller",
        ),
        (
            "Z06",
            "topic moving",
            WARN,
            "The deletion of topic moving is pending",
            "Start the brokers that hold its replicas",
        ),
        ("Z06", "/admin", WARN, "A reassignment or an election", "Wait until the reassignment or election has ended"),
        ("Z07", "/config/brokers/one", BLOCK, "its name is no broker id", "delete its znode"),
        ("Z08", "/config/clients/fast", BLOCK, "producer_byte_rate is 'fast'", "Set the quota again"),
        ("Z09", "user ann", BLOCK, "is no base64", "Set the user's password again"),
        ("Z10", "ACL of TOPIC:LITERAL:orders", BLOCK, "'alice'", "Remove the ACL from the znode"),
        ("Z10", "/kafka-acl/Group/a/b", BLOCK, "dual write never begins", "name contains a slash"),
        ("Z11", "topic moving", WARN, "Kafka 3.9 knows no such setting", "Remove retention from the topic"),
        ("Z11", "topic gone", WARN, "the topic does not", "delete the znode"),
        (
            "Z12",
            "controller 3000",
            BLOCK,
            "has no password.encoder.secret",
            "and the other password.encoder settings",
        ),
        (
            "Z17",
            "/brokers/seqid",
            INFO,
            "ZooKeeper generated 1 broker ids",
            "Copy broker.id from each broker's meta.properties",
        ),
        ("Z18", "/isr_change_notification", WARN, "1 notifications of ISR", "Do not delete /controller"),
        ("Z19", "topic bad name", WARN, "KRaft does not accept the topic name 'bad name'", "Copy its records"),
        ("Z19", "/latest_producer_id_block", WARN, "is no JSON object", "Restart a broker"),
        ("A06", "topic idless", BLOCK, "has offline partitions: 0", "Start the missing brokers"),
        (
            "R01",
            "/controller_epoch",
            BLOCK,
            "/controller_epoch is 3, but epoch 12 was used",
            "To roll back, use a plan",
        ),
        (
            "deleted_user",
            "2 users with SCRAM-SHA-512",
            WARN,
            "may lose other credentials",
            ("set a random password instead"),
        ),
    ),
    Case(
        "Z14",
        "a znode with an access list",
        PREFLIGHT,
        "bad",
        "/feature",
        BLOCK,
        "/feature: world:anyone:r",
        "Give the controllers the brokers' ZooKeeper login",
        is_met=None,
    ),
    _file(
        "A01",
        BROKER,
        {_IBP: "3.8"},
        "broker 1",
        ("appear healthy, but never register"),
        "to the controllers' version",
    ),
    _file(
        "A01",
        BROKER,
        {_IBP: "3.8"},
        "brokers",
        "between the brokers: 3.8 of broker 1; 3.9 of broker 1 as it runs",
        "Set the same",
    ),
    _file("A01", BROKER, {_IBP: "3.5"}, "broker 1", "a migration needs 3.6-IV1", "Upgrade the brokers to Kafka 3.9"),
    _file("A02", BROKER, {"broker.id": None}, "broker of unknown id", "has no broker.id", "from its meta.properties"),
    _file(
        "A02",
        CONTROLLER,
        {"node.id": "1"},
        "controllers",
        "A broker and a controller have the same id: 1",
        "Give the controllers other ids",
    ),
    _file(
        "A03",
        BROKER,
        {"log.dirs": "/a,/b", _IBP: "3.6"},
        "broker 1",
        "needs inter.broker.protocol.version 3.7-IV2",
        f"Set {_IBP}=3.9",
    ),
    _facts("A03", "a failed log dir", "broker 1", BLOCK, "has failed: KAFKA_STORAGE_ERROR", "Repair the disk"),
    _file(
        "A05",
        CONTROLLER,
        {"inter.broker.listener.name": "INNER"},
        "controller 3000",
        "KAFKA-15670",
        "Set inter.broker.listener.name=PLAINTEXT",
    ),
    _file("L01", CONTROLLER, {_VOTERS: "3000@elsewhere:9093"}, "voters", f"{_VOTERS} differs", "Write the same list"),
    _facts(
        "L01",
        "a broker that does not fetch the log",
        "broker 127.0.0.1:",
        BLOCK,
        "does not fetch the metadata log",
        "check the network between both",
    ),
    _facts(
        "Z12",
        "a password among dynamic settings; files with two secrets",
        "controller 3000",
        BLOCK,
        "has another password.encoder.secret",
        "the brokers' value on every controller",
    ),
    _file(
        "Z13",
        CONTROLLER_META,
        {"cluster.id": "another"},
        CONTROLLER_META,
        "is of cluster another, but ZooKeeper is of",
        "Do not format this disk",
    ),
    _file(
        "Z15",
        CONTROLLER,
        {"zookeeper.connect": "127.0.0.1:1/kafak"},
        "controller 3000",
        "has the chroot /kafak, but the brokers have /",
        "Write the brokers' zookeeper.connect",
    ),
    _facts(
        "Z18",
        "notifications of settings, 21 minutes between the first and the last",
        "/config/changes",
        WARN,
        "the oldest 21 minutes older",
        "Search the brokers' logs",
    ),
    _facts(
        "P01",
        "a finalised log, brokers in /brokers/ids",
        "/brokers/ids",
        ALARM,
        "The migration is finalised (state 3), but",
        "Restart each of them in KRaft mode",
    ),
    _file(
        "R03",
        BROKER_META,
        {"version": "1"},
        BROKER_META,
        "ZooKeeper mode needs version 0",
        "Move its replicas to other brokers",
    ),
    _file(
        "KAFKA-16431",
        BROKER,
        {"log.dirs": "/a,/b"},
        "broker 1",
        "stops when one of them fails",
        "Check the health of the disks",
        WARN,
    ),
    _file(
        "KAFKA-19026",
        BROKER,
        {"alter.config.policy.class.name": "com.example.P"},
        "broker 1",
        "com.example.P. A KRaft controller calls it",
        "alter.config.policy.kraft.compatibility.enable",
        WARN,
    ),
    _file(
        "dynamic_quorum",
        CONTROLLER,
        {_VOTERS: None, "controller.quorum.bootstrap.servers": "c:9093"},
        "controller 3000",
        "Kafka does not detect a controller",
        f"set {_VOTERS}",
        WARN,
    ),
    _file(
        "N01",
        BROKER,
        {_FLAG: "true", "broker.id": None},
        "broker of unknown id",
        "broker.id is missing or negative",
        "Write broker.id",
    ),
    _file("N02", CONTROLLER, {_VOTERS: None}, "controller 3000", f"{_VOTERS} is missing", f"Give {_VOTERS} the same"),
    _file(
        "N03",
        CONTROLLER,
        {"listeners": "CONTROLLER://:1,PLAINTEXT://:2"},
        "controller 3000",
        "PLAINTEXT are not",
        "Remove the other listeners",
    ),
    _file(
        "N04",
        CONTROLLER,
        {"zookeeper.connect": None},
        "controller 3000",
        "is true without zookeeper.connect",
        "Do not remove the migration flag",
    ),
    _file("N05", BROKER, {_FLAG: "true", _IBP: "3.3"}, "broker 1", "a migration needs 3.4 or later", f"Set {_IBP}=3.9"),
    _file(
        "N06", CONTROLLER, {"node.id": "3005"}, "controller 3005", "the node's id 3005 is not in", ("the same value as")
    ),
    _file(
        "N07",
        BROKER,
        {"authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer"},
        "broker 1",
        "StandardAuthorizer needs KRaft mode",
        "Set authorizer.class.name=kafka.security.authorizer.AclAuthorizer",
    ),
    _file(
        "N08",
        BROKER,
        {"process.roles": "broker", "node.id": "1", "control.plane.listener.name": "PLAINTEXT"},
        "broker 1",
        "is not allowed in KRaft mode",
        "Remove control.plane.listener.name",
    ),
    _file("N09", BROKER, {"listeners": "INNER://:1"}, "broker 1", "lacks INNER", "Add INNER to"),
    _file(
        "N10",
        CONTROLLER,
        {"process.roles": "broker,controller"},
        "controller 3000",
        "in one process can't migrate",
        "Run each controller in a process of its own",
    ),
    _file(
        "N11",
        CONTROLLER,
        {"node.id": "1", _VOTERS: "1@c:9093"},
        "files",
        "Id 1 is in",
        "Give each node a different id",
    ),
    _file(
        "N12",
        CONTROLLER,
        {"node.id": "3000 # the first"},
        "controller of unknown id",
        "node.id is '3000 # the first', and must be a whole number of 32 bits",
        "a value that Kafka accepts for node.id",
    ),
    _file(
        "N13",
        BROKER,
        {"replica.lag.time.max.ms": "400"},
        "broker 1",
        "replica.fetch.wait.max.ms is above replica.lag.time.max.ms",
        "Lower replica.fetch.wait.max.ms",
    ),
    _file(
        "N14",
        BROKER,
        {"Listeners": "PLAINTEXT://:9092"},
        "broker 1",
        "Listeners is unknown to Kafka",
        "Write listeners",
        WARN,
    ),
    _file(
        "N15",
        CONTROLLER,
        {"listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,CONTROLLER:SASL_PLAINTEXT", _MECHANISMS: "PLAIN"},
        "controller 3000",
        "sasl.mechanism.controller.protocol is GSSAPI",
        "Set sasl.mechanism.controller.protocol",
    ),
    *_seen(
        "damaged",
        "a lab in dual write: edits manually, a deleted state znode, a client-metrics setting",
        (
            "R02",
            "diverged",
            BLOCK,
            "4 values with a difference",
            "Repair the differences until `offramp kraft diff` reports none",
        ),
        (
            "client_metrics",
            "client-metrics/watchers",
            WARN,
            "Dual write stalls",
            "Delete this setting with kafka-configs",
        ),
        ("no_state", "topic new", WARN, "partitions without a state znode: 1.", "create the state znode manually"),
        test="test_kraft.py",
    ),
    *_seen(
        "kraft",
        "a broker in KRaft mode, and only its file for that mode",
        (
            "R03",
            "broker 1",
            BLOCK,
            "No file starts broker 1 in ZooKeeper mode",
            "--write-settings FOLDER makes the file",
        ),
        (
            "R04",
            "broker 127.0.0.1:",
            BLOCK,
            "runs in KRaft mode, so it hangs when the controllers stop",
            "Restart this broker in migration",
        ),
        test="test_kraft.py",
    ),
    *_seen(
        "null checkpoint",
        "/migration without data, before the controllers start",
        (
            "Z02",
            "/migration",
            BLOCK,
            "the value is empty. No controller can read it (KAFKA-19480)",
            ("plan kraft --repair"),
        ),
        test=TRAPS,
    ),
    *_seen(
        "null checkpoint",
        "/migration without data, before the controllers start",
        ("Z02", "/migration", BLOCK, "No controller can read the value of the znode /migration", "plan kraft --repair"),
        look=STATUS,
        test=TRAPS,
    ),
    *_seen(
        "another chroot",
        "a controller whose zookeeper.connect has another chroot",
        (
            "Z15",
            "controller 3000",
            BLOCK,
            "has the chroot /kafak, but the brokers have /",
            "into every controller's file",
        ),
        test=TRAPS,
    ),
    *_seen(
        "another chroot",
        "a controller whose zookeeper.connect has another chroot",
        ("Z15", "/migration", BLOCK, "another chroot than the brokers", "Write the brokers' zookeeper.connect"),
        look=STATUS,
        test=TRAPS,
    ),
    *_seen(
        "half rolled",
        "one broker of two in migration mode",
        ("P03", "broker 2", WARN, "wait for broker 2, which is not in migration mode yet", "plan kraft --to zookeeper"),
        look=STATUS,
        test=TRAPS,
    ),
    *_seen(
        "another version",
        "a broker in migration mode with inter.broker.protocol.version=3.8",
        ("A01", "broker 2", BLOCK, "appear healthy, but never register", f"Set {_IBP} on the brokers"),
        test=TRAPS,
    ),
    *_seen(
        "another version",
        "a broker in migration mode with inter.broker.protocol.version=3.8",
        (
            "P03",
            "broker 2",
            WARN,
            "without a registration at the controllers",
            "offramp kraft preflight shows both, A01",
        ),
        look=STATUS,
        test=TRAPS,
    ),
    *_seen(
        "zombie",
        "a broker id in a replica list that no broker has",
        ("Z01", "broker 9", BLOCK, "(for example zombie-0)", "with kafka-reassign-partitions"),
        (
            "Z06",
            "topic doomed",
            WARN,
            "The deletion of topic doomed is pending",
            "Start the brokers that hold its replicas",
        ),
        test=TRAPS,
    ),
    *_seen(
        "zombie",
        "a broker id in a replica list that no broker has",
        (
            "P03",
            "controllers",
            WARN,
            "All brokers are registered, but nothing is copied yet",
            "To see the topic, run: offramp kraft preflight",
        ),
        look=STATUS,
        test=TRAPS,
    ),
    *_seen(
        "controller dead",
        "kill -9 of the controller that holds /controller, a quarter of a minute ago",
        ("Z03", "/controller", BLOCK, "and no controller answers", "Start the controllers"),
        ("P02", "/migration", ALARM, "Dual write is stalled", "Search the active controller's log"),
        look=STATUS,
        test="test_kraft.py",
    ),
    *_seen(
        "no checkpoint",
        "/migration deleted in dual write",
        ("P01", "/migration", ALARM, "but ZooKeeper has no /migration", "Find out which client deleted /migration"),
        look=STATUS,
        test="test_kraft.py",
    ),
)


def cases_of(file: str, *looks: str) -> list[Case]:
    """Return the cases that tests of a file have to hold, of these observations."""
    return [each for each in CASES if each.test == file and each.look in looks]
