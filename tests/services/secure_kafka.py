"""One Apache Kafka that is set up as deploy/security.md says: TLS, a password for each user, and the table's rights."""

from __future__ import annotations

import contextlib
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path

from kafka.admin import (
    ACL,
    ACLOperation,
    ACLPermissionType,
    KafkaAdminClient,
    ResourcePattern,
    ResourceType,
    ScramMechanism,
    UserScramCredentialUpsertion,
)

from streams.broker.connect import admin
from streams.config import Settings, load_settings
from tests.services.certificates import Authority
from tests.services.guide import Right, broker_properties, rights, users
from tests.services.kafka import Node

__all__ = ["SecureKafka", "running_secure_kafka"]

ADMIN = "admin"
LISTENERS = """
listeners=CLIENTS://127.0.0.1:{port},BROKERS://127.0.0.1:{more},CONTROLLERS://127.0.0.1:{controller}
advertised.listeners=CLIENTS://127.0.0.1:{port},BROKERS://127.0.0.1:{more}
"""


class SecureKafka:
    """How each user reaches it. Passwords lie in files, as users are told to keep them."""

    def __init__(self, folder: Path, authority: Authority) -> None:
        self._folder, self.authority = folder, authority
        certificate, key = authority.sign("broker")
        (folder / "broker.pem").write_text(key.read_text() + certificate.read_text())
        (folder / "ca.pem").write_text(authority.ca.read_text())
        listeners = LISTENERS + broker_properties(folder)
        first_user = f"SCRAM-SHA-512=[name={ADMIN},password={self.password(ADMIN)}]"
        self.node = Node(folder, listeners, ["--add-scram", first_user])

    @staticmethod
    def password(user: str) -> str:
        """A user's."""
        return f"the secret of {user}"

    def settings(self, user: str, prefix: str = "", **sections: dict) -> Settings:
        """A user's, with his password."""
        file = self._folder / f"{user}.password"
        file.write_text(f"{self.password(user)}\n")
        who = {"security": "SASL_SSL", "username": user, "password_file": file}
        return self._settings(self.node.bootstrap, who, prefix, sections)

    def settings_with_certificate(self, user: str, prefix: str = "") -> Settings:
        """A user's, with his certificate and no password."""
        certificate, key = self.authority.sign(user)
        who = {"security": "SSL", "cert_file": certificate, "key_file": key}
        return self._settings(self.node.more, who, prefix, {})

    def _settings(self, bootstrap: str, who: dict, prefix: str, sections: dict) -> Settings:
        reached = {"bootstrap": bootstrap, "ca_file": self._folder / "ca.pem", **who}
        return load_settings(broker=reached, topics={"prefix": prefix, "partitions": 1}, **sections)

    def add_users(self) -> None:
        """Those of the guide's table."""
        new = [UserScramCredentialUpsertion(u, ScramMechanism.SCRAM_SHA_512, self.password(u)) for u in users()]
        with self.admin() as client:
            refused = {user: why for user, why in client.alter_user_scram_credentials(new).items() if why}
        assert not refused, refused

    def give_rights(self, prefix: str) -> None:
        """What the table says, for topics and groups with this prefix."""
        with self.admin() as client:
            answer = client.create_acls([_acl(right, prefix) for right in rights()])
        assert not answer["failed"], answer["failed"]

    @contextlib.contextmanager
    def admin(self) -> Iterator[KafkaAdminClient]:
        """Who may do anything."""
        with contextlib.closing(admin(self.settings(ADMIN))) as client:
            yield client


def _acl(right: Right, prefix: str) -> ACL:
    words = [f"_{letter}" if letter.isupper() else letter for letter in right.operation]
    operation = ACLOperation["".join(words).strip("_").upper()]
    what = ResourcePattern(ResourceType[right.kind.upper()], prefix + right.name)
    return ACL(f"User:{right.user}", "*", operation, ACLPermissionType.ALLOW, what)


@contextlib.contextmanager
def running_secure_kafka(prefixes: Sequence[str]) -> Iterator[SecureKafka]:
    """It, ready, with the guide's users, who have their rights under these prefixes. Raises Missing."""
    with tempfile.TemporaryDirectory(prefix="crisis-kafka-", ignore_cleanup_errors=True) as scratch:
        folder = Path(scratch)
        kafka = SecureKafka(folder, Authority(folder / "authority"))
        try:
            kafka.node.format()
            kafka.node.start()
            kafka.add_users()
            for prefix in prefixes:
                kafka.give_rights(prefix)
            yield kafka
        finally:
            kafka.node.stop()
