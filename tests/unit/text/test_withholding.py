"""A text that resembles a secret is redacted, and the rest is kept."""

from __future__ import annotations

import time

import pytest

from kit.clients.cluster import librdkafka_settings
from kit.consumer.verbs.consume_options import ConsumeOptions, Flavour, properties_of
from kit.consumer.zookeeper.config import ConsumerConfig
from kit.errors import InputError
from kit.profile import Profile
from kit.profile.security.secret import Secret, SecretReference
from kit.profile.security.settings import KafkaSecurity, Security
from kit.text.withholding import without_secrets
from tests.generators.names import SECRET_LIKE

S = "hunter2-S3cr3t"


@pytest.mark.parametrize(
    ("said", "kept"),
    [
        (f"KAFKA_PASSWORD={S} started", "KAFKA_PASSWORD=*** started"),
        (f"run --password {S} --host a", "run --password *** --host a"),
        (f"run --ssl-key-password={S}, then", "run --ssl-key-password=***, then"),
        (f"curl -H 'Authorization: Bearer {S}'\nok", "curl -H 'Authorization:***\nok"),
        (f"token is Bearer {S} here", "token is Bearer *** here"),
        (f"https://ann:{S}@host/path", "https://ann:***@host/path"),
        (f'PlainLoginModule required username="a" password="{S}";', 'username="a" password="***";'),
        (f"sasl.jaas.config=x required password={S};\nnext", "sasl.jaas.config=***\nnext"),
        (f'{{"password": "{S}", "user": "ann"}}', '{"password": "***", "user": "ann"}'),
        (f"{{'sasl.password': '{S}', 'n': 1}}", "{'sasl.password': '***', 'n': 1}"),
        (f'"msg": "{{\\"api_key\\": \\"{S}\\", \\"n\\": 1}}"', '\\"***\\", \\"n\\": 1}"'),
        (f"password: {S} and more\nhost: a", "password: ***\nhost: a"),
        (f"export API_KEY='{S} b'; go", "export API_KEY='***'; go"),
        (f'password="{S}', "password=***"),
        (f"<password>{S}</password>", "<password>***</password>"),
        (
            f"x -----BEGIN RSA PRIVATE KEY-----\n{S}\n-----END RSA PRIVATE KEY----- y",
            "***-----END RSA PRIVATE KEY----- y",
        ),
        (f"{S}\n-----END PRIVATE KEY-----\nok", "***-----END PRIVATE KEY-----\nok"),
        (f"curl -u ann:{S} https://host", "curl -u ann:*** https://host"),
        (f"+ /usr/bin/curl -sS -uann:{S} https://host", "curl -sS -uann:*** https://host"),
        (f"curl -sSu ann:{S} -X POST x", "curl -sSu ann:*** -X POST x"),
        (f"curl --user ann:{S} x", "curl --user ann:*** x"),
        (f"curl --user=ann:{S} x", "curl --user=ann:*** x"),
        (f"curl x --user 'ann:{S} and more' -v", "curl x --user 'ann:***' -v"),
        (f"curl -U p:{S} --proxy-user p:{S} --user a:{S} x", "curl -U p:*** --proxy-user p:*** --user a:*** x"),
        (
            f'curl "http://h?a=1&b=2;c" -u "ann:{S}" && docker run -u 1000:1000 x',
            '"ann:***" && docker run -u 1000:1000 x',
        ),
        (f"curl \\\n  -u ann:{S} \\\n  x", "-u ann:*** \\\n  x"),
        (f"Command '['curl', '-u', 'ann:{S}', 'x']' returned 1", "['curl', '-u', 'ann:***', 'x']' returned 1"),
        (f'"cmd": "[\\"curl\\", \\"-u\\", \\"ann:{S}\\"]"', '\\"ann:***\\"]"'),
        (f'["curl","--user","ann:{S}","x"]', '["curl","--user","ann:***","x"]'),
        (f"Command '['x', '--password', '{S}', 'y']' returned 1", "['x', '--password', '***', 'y']' returned 1"),
        (f"sshpass -p {S} ssh -p 22 host", "sshpass -p *** ssh -p 22 host"),
        (f"sshpass -p{S} ssh -p 22 host", "sshpass -p*** ssh -p 22 host"),
        (f"sshpass -v -p '{S} b' ssh -p 22 host", "sshpass -v -p '***' ssh -p 22 host"),
        (f"['sshpass', '-p', '{S}', 'ssh', '-p', '22']", "['sshpass', '-p', '***', 'ssh', '-p', '22']"),
        (f'["sshpass","-v","-p","{S}","ssh"]', '["sshpass","-v","-p","***","ssh"]'),
        (f"keytool -list -storepass {S} -keypass '{S}'", "keytool -list -storepass *** -keypass '***'"),
        (f"SSHPASS={S} sshpass -e ssh host", "SSHPASS=*** sshpass -e ssh host"),
        (f"ansible-playbook -e ansible_become_pass={S} x", "ansible_become_pass=*** x"),
        (f"vault_pass: {S}\nhost: a", "vault_pass: ***\nhost: a"),
        (f"run --become-pass {S} --check", "run --become-pass *** --check"),
        (f"db_pwd={S} db-passwd={S} x", "db_pwd=*** db-passwd=*** x"),
    ],
)
def test_a_secret_is_redacted_and_the_rest_kept(said, kept):
    found = without_secrets(said)
    assert S not in found
    assert "hunter2" not in found
    assert kept in found
    assert without_secrets(found) == found


@pytest.mark.parametrize(
    "text",
    [
        "",
        "password is wrong",
        "the token expired",
        "group=reset-password member=m-1",
        "a:b",
        "docker run -u 1000:1000 --user 1000:1000 -p 8080:80 image",
        "ssh -p 22 host; sudo -u kafka:x id",
        "curl -v https://host:8443/ -o user:1; docker run -u 1:1 x",
        "sshpass -e ssh -p 22 host",
        "sshpass: command not found",
        "give --password, then continue",
        "3 pass: all well; bypass: 4, compass=5, passed=6, two_pass_sort=7",
    ],
)
def test_text_without_one_stays(text):
    assert without_secrets(text) == text


@pytest.mark.parametrize("name", SECRET_LIKE)
def test_a_known_name_stays_and_a_secret_behind_it_does_not(name):
    text = f"group {name}: no member; '{name}', {name} PASSWORD={S}"
    assert without_secrets(text, [name]) == f"group {name}: no member; '{name}', {name} PASSWORD=***"


def test_a_name_hides_no_secret_that_it_is_only_a_part_of():
    assert without_secrets(f"KAFKA_PASSWORD={S}", ["password", "PASSWORD", "KAFKA_PASSWORD"]) == "KAFKA_PASSWORD=***"


@pytest.mark.parametrize(
    "piece",
    [
        "password",
        "://a:",
        "Bearer ",
        '"',
        "\\",
        "-",
        "A",
        "password='",
        " ",
        "-----BEGIN PRIVATE KEY-----",
        "curl ",
        "curl -u",
        "-u a",
        "sshpass -P",
        "sshpass -v ",
        'sshpass "-v",' + '"-v",' * 160,
        "_pass",
        "', '",
    ],
)
def test_no_text_takes_long(piece):
    started = time.perf_counter()
    without_secrets(piece * (64 * 1024 // len(piece)))
    assert time.perf_counter() - started < 5


def test_settings_print_no_password(monkeypatch):
    monkeypatch.setenv("KAFKA_PASSWORD", S)
    kafka = KafkaSecurity(
        protocol="SASL_SSL", mechanism="PLAIN", username="u", password=SecretReference(env="KAFKA_PASSWORD")
    )
    profile = Profile(name="p", file="/x/offramp.toml", bootstrap_servers="b:1", security=Security(kafka=kafka))
    settings = librdkafka_settings(profile)
    assert settings["sasl.password"] == S
    assert isinstance(settings["sasl.password"], Secret)
    given = {f"coordination.migration.{name}": value for name, value in settings.items()}
    properties = {"sasl.password": str(settings["sasl.password"])}
    config = ConsumerConfig.parse({"group.id": "g", "zookeeper.connect": "z:1", **given})
    assert config.kafka["sasl.password"] == S
    for each in (settings, config, ConsumeOptions(Flavour.KC, "g", properties=properties)):
        assert S not in f"{each!r} {each}"


def test_a_line_that_is_no_property_is_named_and_not_quoted(tmp_path):
    file = tmp_path / "client.properties"
    file.write_text(f"a=1\n\n# b\nsasl.password {S}\n", encoding="utf-8")
    with pytest.raises(InputError, match=r"line 4 of .* has no '='") as raised:
        properties_of((), file)
    assert S not in str(raised.value)
    with pytest.raises(InputError, match="property 2 on the command line") as raised:
        properties_of(("a=1", S), None)
    assert S not in str(raised.value)
    file.write_text("a=1\n#x\nb = 2 = 3\n", encoding="utf-8")
    assert properties_of(("a=4",), file) == {"a": "4", "b": "2 = 3"}
