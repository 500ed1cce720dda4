"""Who may speak to whom: a certificate authority, certificates that it signs and takes back, keys of Flower's nodes."""

import ipaddress
import os
import shutil
from collections.abc import Collection, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

AUTHORITY_DAYS, CERTIFICATE_DAYS = 3650, 825
ISSUED, REVOKED = "issued", "crl.pem"  # beside ca.key: every certificate that it signed, and those taken back
PEM = serialization.Encoding.PEM


def make_authority(folder: Path) -> None:
    """ca.key, which only signs and should leave the server, and ca.crt, which everyone needs."""
    key, name = ec.generate_private_key(ec.SECP256R1()), _name("Laconic deployment")
    builder = _builder(name, name, key.public_key(), AUTHORITY_DAYS)
    builder = builder.add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
    _write_key(folder / "ca.key", key, serialization.PrivateFormat.PKCS8)
    (folder / "ca.crt").write_bytes(builder.sign(key, hashes.SHA256()).public_bytes(PEM))
    (folder / ISSUED).mkdir()
    revoke(folder, ())


def make_certificate(
    authority: Path,
    folder: Path,
    name: str,
    hosts: Sequence[str] = (),
    stem: str = "cert",
    days: int = CERTIFICATE_DAYS,
) -> None:
    """A key and a certificate in that name, good for these hosts; ca.crt beside them."""
    key = ec.generate_private_key(ec.SECP256R1())
    _write_key(folder / f"{stem}.key", key, serialization.PrivateFormat.PKCS8)
    (folder / f"{stem}.crt").write_bytes(_issue(authority, name, key.public_key(), hosts, days))
    shutil.copy(authority / "ca.crt", folder)


def sign_request(authority: Path, request: bytes, names: Collection[str]) -> tuple[str, bytes]:
    """Name and certificate of a key that never left its node. names: those that may be asked for."""
    asked = x509.load_pem_x509_csr(request)
    found = [str(each.value) for each in asked.subject.get_attributes_for_oid(NameOID.COMMON_NAME)]
    key = asked.public_key()
    if not asked.is_signature_valid or not isinstance(key, ec.EllipticCurvePublicKey):
        raise ValueError(
            "the signing request is not signed by an elliptic key of its own; make it as docs/deploy.md says"
        )
    if len(found) != 1 or found[0] not in names:
        raise ValueError(f"the signing request is for {found!r:.60}; one of {min(names)} to {max(names)} was expected")
    return found[0], _issue(authority, found[0], key, (), CERTIFICATE_DAYS)


def revoke(authority: Path, names: Sequence[str]) -> int:
    """All certificates of these names, added to the list of those taken back; how many there were."""
    key, issuer = _read_authority(authority)
    path, now = authority / REVOKED, datetime.now(UTC)
    serials = {entry.serial_number for entry in x509.load_pem_x509_crl(path.read_bytes())} if path.exists() else set()
    found = [file for name in names for file in (authority / ISSUED).glob(f"{name}-*.crt")]
    serials |= {x509.load_pem_x509_certificate(file.read_bytes()).serial_number for file in found}
    builder = x509.CertificateRevocationListBuilder().issuer_name(issuer.subject)
    builder = builder.last_update(now - timedelta(days=1)).next_update(now + timedelta(days=AUTHORITY_DAYS))
    for serial in sorted(serials):
        entry = x509.RevokedCertificateBuilder().serial_number(serial).revocation_date(now - timedelta(minutes=1))
        builder = builder.add_revoked_certificate(entry.build())
    path.write_bytes(builder.sign(key, hashes.SHA256()).public_bytes(PEM))
    return len(found)


def make_node_key(private: Path, public: Path) -> None:
    """For Flower, as ssh-keygen -t ecdsa -b 384 makes them."""
    key = ec.generate_private_key(ec.SECP384R1())
    _write_key(private, key, serialization.PrivateFormat.OpenSSH)
    encoding = (serialization.Encoding.OpenSSH, serialization.PublicFormat.OpenSSH)
    public.write_bytes(key.public_key().public_bytes(*encoding) + b"\n")


def read_public_key(path: Path) -> bytes:
    """As Flower registers it."""
    key = serialization.load_ssh_public_key(path.read_bytes())
    return bytes(key.public_bytes(PEM, serialization.PublicFormat.SubjectPublicKeyInfo))


def _issue(authority: Path, name: str, key: ec.EllipticCurvePublicKey, hosts: Sequence[str], days: int) -> bytes:
    signer, issuer = _read_authority(authority)
    builder = _builder(_name(name), issuer.subject, key, days)
    if hosts:
        names = [_alternative(host) for host in dict.fromkeys(hosts)]
        builder = builder.add_extension(x509.SubjectAlternativeName(names), critical=False)
    builder = builder.add_extension(
        x509.AuthorityKeyIdentifier.from_issuer_public_key(signer.public_key()), critical=False
    )
    signed = builder.sign(signer, hashes.SHA256())
    data = bytes(signed.public_bytes(PEM))
    (authority / ISSUED / f"{name}-{signed.serial_number:x}.crt").write_bytes(data)
    return data


def _read_authority(folder: Path) -> tuple[ec.EllipticCurvePrivateKey, x509.Certificate]:
    key = serialization.load_pem_private_key((folder / "ca.key").read_bytes(), None)
    assert isinstance(key, ec.EllipticCurvePrivateKey)
    return key, x509.load_pem_x509_certificate((folder / "ca.crt").read_bytes())


def _write_key(path: Path, key: ec.EllipticCurvePrivateKey, form: serialization.PrivateFormat) -> None:
    """Readable by its owner alone, from the first moment."""
    data = key.private_bytes(PEM, form, serialization.NoEncryption())
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
