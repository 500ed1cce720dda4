"""Who may speak to whom: a certificate authority, the server's certificate, and a key for each node."""

import ipaddress
import os
from datetime import UTC, datetime, timedelta
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

AUTHORITY_DAYS, SERVER_DAYS = 3650, 825


def make_authority(folder: Path) -> None:
    """ca.key, which only signs and should leave the server, and ca.crt, which everyone needs."""
    key, name = ec.generate_private_key(ec.SECP256R1()), _name("Laconic deployment")
    builder = _builder(name, name, key.public_key(), AUTHORITY_DAYS)
    builder = builder.add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
    _write_key(folder / "ca.key", key, serialization.PrivateFormat.PKCS8)
    (folder / "ca.crt").write_bytes(builder.sign(key, hashes.SHA256()).public_bytes(serialization.Encoding.PEM))


def make_certificate(authority: Path, folder: Path, host: str) -> None:
    """server.key and server.crt, good for this host and for the machine itself."""
    signer = serialization.load_pem_private_key((authority / "ca.key").read_bytes(), None)
    assert isinstance(signer, ec.EllipticCurvePrivateKey)
    issuer = x509.load_pem_x509_certificate((authority / "ca.crt").read_bytes())
    key = ec.generate_private_key(ec.SECP256R1())
    names = [_alternative(each) for each in dict.fromkeys([host, "127.0.0.1", "localhost"])]
    builder = _builder(_name(host), issuer.subject, key.public_key(), SERVER_DAYS)
    builder = builder.add_extension(x509.SubjectAlternativeName(names), critical=False)
    builder = builder.add_extension(
        x509.AuthorityKeyIdentifier.from_issuer_public_key(signer.public_key()), critical=False
    )
    _write_key(folder / "server.key", key, serialization.PrivateFormat.PKCS8)
    signed = builder.sign(signer, hashes.SHA256())
    (folder / "server.crt").write_bytes(signed.public_bytes(serialization.Encoding.PEM))


def make_node_key(private: Path, public: Path) -> None:
    """As ssh-keygen -t ecdsa -b 384 makes them."""
    key = ec.generate_private_key(ec.SECP384R1())
    _write_key(private, key, serialization.PrivateFormat.OpenSSH)
    encoding = (serialization.Encoding.OpenSSH, serialization.PublicFormat.OpenSSH)
    public.write_bytes(key.public_key().public_bytes(*encoding) + b"\n")


def read_public_key(path: Path) -> bytes:
    """As Flower registers it."""
    key = serialization.load_ssh_public_key(path.read_bytes())
    encoding = (serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo)
    return bytes(key.public_bytes(*encoding))


def _write_key(path: Path, key: ec.EllipticCurvePrivateKey, form: serialization.PrivateFormat) -> None:
    """Readable by its owner alone, from the first moment."""
    data = key.private_bytes(serialization.Encoding.PEM, form, serialization.NoEncryption())
    with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
        file.write(data)


def _builder(
    subject: x509.Name, issuer: x509.Name, key: ec.EllipticCurvePublicKey, days: int
) -> x509.CertificateBuilder:
    now = datetime.now(UTC)
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key)
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - timedelta(days=1))  # clocks differ
        .not_valid_after(now + timedelta(days=days))
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key), critical=False)
    )


def _name(text: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, text)])


def _alternative(host: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ipaddress.ip_address(host))
    except ValueError:
        return x509.DNSName(host)
