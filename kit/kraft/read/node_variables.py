"""Settings of nodes out of what containers get: variables of an image, of a Compose file, of an env file.

Sources: ``KafkaDockerWrapper`` and ``configure`` of Kafka 3.9's image, read alike by Confluent's, and the scripts of
Bitnami's. Settings that such an image adds by other variables (users, key stores) are not in the settings.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

import yaml

from kit.errors import InputError
from kit.text.properties import parse_properties

_VARIABLE = re.compile(r"\s*(?:export\s+)?(KAFKA_\w+)=(.*?)\s*")
_OF_THE_IMAGE = re.compile(
    r"KAFKA_(?:VERSION|OPTS|HEAP_OPTS|LOG4J_\w+|TOOLS_LOG4J_\w+|JMX_\w+|JVM_PERFORMANCE_OPTS|GC_LOG_OPTS)"
)
_BITNAMI = "KAFKA_CFG_"
_HOST = re.compile(r"://[^:]*:")
_OF_ANSIBLE = re.compile(r"kafka_(?:broker|controller)(?:_\w+)?")
_STRIMZI = (
    "{} is a resource of Strimzi. Strimzi's operator writes the nodes' settings and makes the move itself. Annotate "
    "the resource (strimzi.io/kraft), or lint the file that the operator wrote: kubectl exec POD -- cat "
    "/tmp/strimzi.properties"
)
_ANSIBLE = (
    "{} contains variables of Ansible, from which a role makes the settings of a node. On the node, lint the file "
    "that the role wrote: server.properties"
)


def nodes_in(name: str, text: str) -> dict[str, dict[str, str]]:
    """Settings of each node in a file, by a name to show; none if no node is in it.

    Raises:
        InputError: it is no YAML, or the settings of its nodes are made elsewhere. The message reports where.
    """
    if name.lower().endswith((".yml", ".yaml")):
        return _in_yaml(name, text)
    lines = [match for line in text.splitlines() if (match := _VARIABLE.fullmatch(line))]
    if lines:
        return {name: settings_of({match[1]: _unquoted(match[2]) for match in lines})}
    return {name: parse_properties(text)}


def settings_of(variables: Mapping[str, str]) -> dict[str, str]:
    """Settings that an image makes of its variables, with the listeners that it adds.

    >>> settings_of({"KAFKA_NODE_ID": "1", "KAFKA_HEAP_OPTS": "-Xmx1g", "KAFKA_A__B___C": "x"})
    {'node.id': '1', 'a_b-c': 'x'}
    >>> settings_of({"KAFKA_CFG_BROKER_ID": "1", "KAFKA_CFG_LISTENER_NAME_SASL_SSL_SSL_CLIENT_AUTH": "none"})
    {'broker.id': '1', 'listener.name.sasl_ssl.ssl.client.auth': 'none'}
    """
    if any(each.startswith(_BITNAMI) for each in variables):
        return {_bitnami_key(each): value for each, value in variables.items() if each.startswith(_BITNAMI)}
    own = {each: value for each, value in variables.items() if not _OF_THE_IMAGE.fullmatch(each)}
    settings = {_key(each): value for each, value in own.items() if each.startswith("KAFKA_")}
    if "advertised.listeners" in settings and settings.get("process.roles") != "controller":
        settings.setdefault("listeners", _HOST.sub("://0.0.0.0:", settings["advertised.listeners"]))
    return settings


def _key(variable: str) -> str:
    name = variable.removeprefix("KAFKA_").lower().replace("_", ".")
    return name.replace("...", "-").replace("..", "_")


def _bitnami_key(variable: str) -> str:
    name = variable.removeprefix(_BITNAMI).lower().replace("_", ".")
    if name == "zookeeper.clientcnxnsocket":
        return "zookeeper.clientCnxnSocket"
    return name.replace("sasl.ssl", "sasl_ssl").replace("sasl.plaintext", "sasl_plaintext")


def _unquoted(value: str) -> str:
    return value[1:-1] if len(value) > 1 and value[0] == value[-1] and value[0] in "'\"" else value


def _in_yaml(name: str, text: str) -> dict[str, dict[str, str]]:
    try:
        documents = [each for each in yaml.safe_load_all(text) if isinstance(each, dict)]
    except (yaml.YAMLError, RecursionError, ValueError) as error:
        raise InputError(f"{name} is no YAML: {error}") from error
    if any("strimzi.io" in str(each.get("apiVersion")) for each in documents):
        raise InputError(_STRIMZI.format(name))
    found = {f"{name}: {service}": settings for each in documents for service, settings in _services(each).items()}
    if not found and any(_OF_ANSIBLE.fullmatch(str(key)) for each in documents for key in _keys(each)):
        raise InputError(_ANSIBLE.format(name))
    return found


def _services(document: Mapping[Any, Any]) -> dict[str, dict[str, str]]:
    services = document.get("services")
    found = {}
    for service, held in services.items() if isinstance(services, dict) else ():
        variables = _variables(held.get("environment")) if isinstance(held, dict) else {}
        settings = settings_of({each: value for each, value in variables.items() if each.startswith("KAFKA_")})
        if settings:
            found[str(service)] = settings
    return found


def _variables(environment: Any) -> dict[str, str]:
    """A mapping, or a list of ``NAME=value``; a name without a value is taken from the shell, so it is not known."""
    if isinstance(environment, dict):
        return {str(name): _text(str(name), value) for name, value in environment.items()}
    pairs = [str(each).partition("=") for each in environment] if isinstance(environment, list) else []
    return {name: value if equals else f"${{{name}}}" for name, equals, value in pairs}


def _text(name: str, value: Any) -> str:
    """A value as Compose passes it on."""
    if value is None:
        return f"${{{name}}}"
    return str(value).lower() if isinstance(value, bool) else str(value)


def _keys(held: Mapping[Any, Any]) -> Iterator[Any]:
    """Every key of nested mappings: an inventory has them under ``all: vars:``. An alias is examined once."""
    waiting, seen = [held], {id(held)}
    while waiting:
        mapping = waiting.pop()
        yield from mapping
        inner = [each for each in mapping.values() if isinstance(each, dict) and id(each) not in seen]
        waiting += inner
        seen |= {id(each) for each in inner}
