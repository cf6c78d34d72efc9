"""TLS to a broker that asks its clients for a certificate."""

import shutil
import socket
import ssl
import subprocess
import threading

import pytest

from models.errors import ConfigError
from streams.broker.connect import is_loopback, ssl_context
from streams.config import load_settings

NEW = "openssl req -x509 -newkey rsa:2048 -nodes -days 2 -keyout {0}.key -out {0}.pem -subj /CN=localhost"


@pytest.fixture
def files(tmp_path):
    if not shutil.which("openssl"):
        pytest.skip("needs openssl")
    for name in ("server", "client"):
        command = [*NEW.format(name).split(), "-addext", "subjectAltName=DNS:localhost"]
        subprocess.run(command, cwd=tmp_path, check=True, capture_output=True)
    return tmp_path


def test_our_certificate_is_shown_to_a_broker_that_asks_for_one_and_without_it_there_is_no_connection(files):
    server = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH, cafile=files / "client.pem")
    server.load_cert_chain(files / "server.pem", files / "server.key")
    server.verify_mode = ssl.CERT_REQUIRED
    listener = socket.create_server(("127.0.0.1", 0))

    def serve():
        for _ in range(2):
            taken, _ = listener.accept()
            try:
                with server.wrap_socket(taken, server_side=True) as secured:
                    secured.sendall(b"hello")
            except ssl.SSLError:
                taken.close()

    thread = threading.Thread(target=serve, daemon=True)
    thread.start()
    trusted = {"security": "SSL", "ca_file": files / "server.pem"}
    ours = {"cert_file": files / "client.pem", "key_file": files / "client.key"}

    def said(broker):
        with socket.create_connection(listener.getsockname()) as plain:
            with ssl_context(load_settings(broker=broker).broker).wrap_socket(plain, server_hostname="localhost") as c:
                return c.recv(5)

    assert said(trusted | ours) == b"hello"
    with pytest.raises((ssl.SSLError, ConnectionError)):
        assert said(trusted) == b"hello"
    thread.join()
    listener.close()


def test_files_that_cannot_be_used_are_named(tmp_path):
    broker = load_settings(broker={"security": "SSL", "cert_file": tmp_path / "none.pem"}).broker
    with pytest.raises(ConfigError, match=r"none\.pem"):
        ssl_context(broker)


@pytest.mark.parametrize(
    ("host", "here"), [("127.0.0.1", True), ("[::1]", True), ("localhost", True), ("kafka", False)]
)
def test_what_stays_on_this_machine(host, here):
    assert is_loopback(host) is here
