"""A development PKI: one certificate authority in a folder, and certificates for both sides.

`init` writes ca.pem, ca.key, exporter.pem, exporter.key, collector.pem and collector.key; `issue`
adds NAME.pem and NAME.key. Keys are EC P-256 and readable by their owner only; names are in the
subject alternative names (RFC 6125). The authority's key lies unencrypted beside the rest, so this
is for trials and tests; a deployment brings certificates of its own authority, in the same files.
"""

from __future__ import annotations

import datetime
import ipaddress
import re
from dataclasses import dataclass
from pathlib import Path

from cryptography import x509
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.asymmetric.types import PrivateKeyTypes, PublicKeyTypes
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from rocetap.errors import RocetapError
from rocetap.files import write_whole

__all__ = [
    "COLLECTOR", "EXPORTER", "Credentials", "PkiError", "check_credentials", "credentials",
    "expiry_times", "init", "issue",
]

EXPORTER = "exporter"
COLLECTOR = "collector"
DEFAULT_DAYS = 365
_AUTHORITY_DAYS = 3650
_NAME = re.compile(r"[A-Za-z0-9_]([A-Za-z0-9_.-]{0,251}[A-Za-z0-9_])?")
_LOOPBACK = (ipaddress.ip_address("127.0.0.1"), ipaddress.ip_address("::1"))


class PkiError(RocetapError):
    """A certificate or key that is missing, cannot be used, or would be overwritten."""


@dataclass(frozen=True)
class Credentials:
    """The three PEM files that one side of the export session needs."""

    authority: Path
    certificate: Path
    key: Path


def credentials(directory: Path, name: str) -> Credentials:
    """The files of `name` in a PKI folder; raises PkiError if one is missing."""
    files = Credentials(directory / "ca.pem", directory / f"{name}.pem", directory / f"{name}.key")
    for path in (files.authority, files.certificate, files.key):
        if not path.is_file():
            raise PkiError(
                f"{path} not found: make a development PKI with "
                f"`rocetap pki init --dir {directory} --exporter NAME --collector NAME`")
    return files


def check_credentials(files: Credentials, now: datetime.datetime) -> x509.Certificate:
    """The certificate, after checks that need no peer: readable, in its time, of this authority,
    with the right key. Raises PkiError with one line that says which file and why."""
    chain = _load_certificates(files.certificate)
    authorities = _load_certificates(files.authority)
    certificate = chain[0]
    for path, one in ((files.certificate, certificate), (files.authority, authorities[0])):
        if now > one.not_valid_after_utc:
            raise PkiError(f"{path} expired on {one.not_valid_after_utc:%Y-%m-%d %H:%M:%S} UTC: "
                           "issue a new certificate")
        if now < one.not_valid_before_utc:
            raise PkiError(f"{path} is not valid before "
                           f"{one.not_valid_before_utc:%Y-%m-%d %H:%M:%S} UTC: check this clock")
    if not any(_issued_by(certificate, issuer) for issuer in authorities + chain[1:]):
        raise PkiError(f"{files.certificate} was not issued by {files.authority}: "
                       "both must come from one authority")
    key = _load_key(files.key)
    if _public_octets(key.public_key()) != _public_octets(certificate.public_key()):
        raise PkiError(f"{files.key} is not the key of {files.certificate}")
    return certificate


def expiry_times(files: Credentials) -> dict[str, int]:
    """When validity ends, in seconds since 1970: "certificate", and "authority", of which the
    latest counts when the file holds several."""
    return {"certificate": _ends(_load_certificates(files.certificate)[:1]),
            "authority": _ends(_load_certificates(files.authority))}


def _ends(certificates: list[x509.Certificate]) -> int:
    return max(int(one.not_valid_after_utc.timestamp()) for one in certificates)


def init(directory: Path, exporter: str, collector: str, *, days: int = DEFAULT_DAYS,
         force: bool = False) -> list[Path]:
    """Makes the authority and both sides' certificates; returns the files written.

    The collector's certificate also names localhost, 127.0.0.1 and ::1, so that a trial on one
    machine needs no name service.
    """
    exporter_names, collector_names = _alternative_names(exporter), _alternative_names(collector)
    collector_names += [name for name in (x509.DNSName("localhost"),
                                          *(x509.IPAddress(one) for one in _LOOPBACK))
                        if name not in collector_names]
    _refuse_existing(directory, ("ca", EXPORTER, COLLECTOR), force)
    _make_folder(directory)
    key = ec.generate_private_key(ec.SECP256R1())
    authority = _authority(key)
    written = _write_pair(directory, "ca", authority, key)
    for file_name, name, names in ((EXPORTER, exporter, exporter_names),
                                   (COLLECTOR, collector, collector_names)):
        written += _issue(directory, file_name, name, names, authority, key, days)
    return written


def issue(directory: Path, name: str, *, days: int = DEFAULT_DAYS,
          force: bool = False) -> list[Path]:
    """Makes NAME.pem and NAME.key, valid for `days` from now; with 0 or fewer days the
    certificate has expired already, which serves tests."""
    names = _alternative_names(name)
    if name == "ca":
        raise PkiError("name 'ca' is the authority's own: give another name")
    authority_file, key_file = directory / "ca.pem", directory / "ca.key"
    for path in (authority_file, key_file):
        if not path.is_file():
            raise PkiError(f"{path} not found: run `rocetap pki init --dir {directory} "
                           "--exporter NAME --collector NAME` first")
    _refuse_existing(directory, (name,), force)
    authority, key = _load_certificates(authority_file)[0], _load_key(key_file)
    if not isinstance(key, ec.EllipticCurvePrivateKey):
        raise PkiError(f"{key_file} holds no elliptic-curve key: this command issues only from "
                       "authorities that `rocetap pki init` made")
    return _issue(directory, name, name, names, authority, key, days)


def _alternative_names(name: str) -> list[x509.GeneralName]:
    try:
        return [x509.IPAddress(ipaddress.ip_address(name))]
    except ValueError:
        pass
    if not _NAME.fullmatch(name) or ".." in name:
        raise PkiError(f"name {name!r}: use letters, digits, '.', '-' and '_', "
                       "as in probe-1.example, or an IP address")
    return [x509.DNSName(name)]


def _subject(name: str) -> x509.Name:
    # RFC 5280, upper bound ub-common-name is 64; the alternative name carries the whole.
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name[:64])])


def _builder(subject: x509.Name, issuer: x509.Name, key: ec.EllipticCurvePrivateKey,
             start: datetime.datetime, end: datetime.datetime) -> x509.CertificateBuilder:
    return (x509.CertificateBuilder()
            .subject_name(subject).issuer_name(issuer).public_key(key.public_key())
            .serial_number(x509.random_serial_number())
            .not_valid_before(start).not_valid_after(end)
            .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), False))


def _key_usage(*, signs_certificates: bool) -> x509.KeyUsage:
    return x509.KeyUsage(
        digital_signature=not signs_certificates, content_commitment=False,
        key_encipherment=False, data_encipherment=False, key_agreement=False,
        key_cert_sign=signs_certificates, crl_sign=signs_certificates, encipher_only=False,
        decipher_only=False)


def _authority(key: ec.EllipticCurvePrivateKey) -> x509.Certificate:
    start, end = _validity(_AUTHORITY_DAYS)
    # Authorities of two folders have two names, so that a mix-up is reported as one.
    identity = x509.SubjectKeyIdentifier.from_public_key(key.public_key()).digest.hex()[:8]
    subject = _subject(f"rocetap development authority {identity}")
    return (_builder(subject, subject, key, start, end)
            .add_extension(x509.BasicConstraints(ca=True, path_length=0), True)
            .add_extension(_key_usage(signs_certificates=True), True)
            .sign(key, hashes.SHA256()))


def _validity(days: int) -> tuple[datetime.datetime, datetime.datetime]:
    now = datetime.datetime.now(datetime.UTC).replace(microsecond=0)
    try:
        end = now + datetime.timedelta(days=days)
    except OverflowError:
        raise PkiError(f"validity of {days} days is out of range") from None
    if end.year >= 9999 or end.year < 1970:
        raise PkiError(f"validity of {days} days is out of range")
    # A few minutes of grace for a peer whose clock is behind.
    return min(now, end) - datetime.timedelta(minutes=10), end


def _issue(directory: Path, file_name: str, name: str, names: list[x509.GeneralName],
           authority: x509.Certificate, authority_key: ec.EllipticCurvePrivateKey,
           days: int) -> list[Path]:
    key = ec.generate_private_key(ec.SECP256R1())
    start, end = _validity(days)
    usage = x509.ExtendedKeyUsage(
        [ExtendedKeyUsageOID.CLIENT_AUTH, ExtendedKeyUsageOID.SERVER_AUTH])
    issuer_key = authority_key.public_key()
    certificate = (
        _builder(_subject(name), authority.subject, key, start, end)
        .add_extension(x509.BasicConstraints(ca=False, path_length=None), True)
        .add_extension(_key_usage(signs_certificates=False), True)
        .add_extension(usage, False)
        .add_extension(x509.SubjectAlternativeName(names), False)
        .add_extension(x509.AuthorityKeyIdentifier.from_issuer_public_key(issuer_key), False)
        .sign(authority_key, hashes.SHA256()))
    return _write_pair(directory, file_name, certificate, key)


def _make_folder(directory: Path) -> None:
    try:
        directory.mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError as error:
        raise PkiError(f"cannot make the folder {directory}: {error.strerror}") from None


def _refuse_existing(directory: Path, names: tuple[str, ...], force: bool) -> None:
    for name in names:
        for suffix in ("pem", "key"):
            path = directory / f"{name}.{suffix}"
            if path.exists() and not force:
                raise PkiError(f"{path} exists: give --force to replace it")


def _write_pair(directory: Path, name: str, certificate: x509.Certificate,
                key: ec.EllipticCurvePrivateKey) -> list[Path]:
    private = key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8,
                                serialization.NoEncryption())
    public = certificate.public_bytes(serialization.Encoding.PEM)
    return [_write(directory / f"{name}.key", private, 0o600),
            _write(directory / f"{name}.pem", public, 0o644)]


def _write(path: Path, content: bytes, mode: int) -> Path:
    try:
        write_whole(path, content, mode=mode)
    except RocetapError as error:
        raise PkiError(str(error)) from None
    return path


def _read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise PkiError(f"cannot read {path}: {error.strerror}") from None


def _load_certificates(path: Path) -> list[x509.Certificate]:
    try:
        return x509.load_pem_x509_certificates(_read(path))
    except ValueError:
        raise PkiError(f"{path} holds no PEM certificate") from None


def _load_key(path: Path) -> PrivateKeyTypes:
    try:
        return serialization.load_pem_private_key(_read(path), password=None)
    except (ValueError, TypeError):
        raise PkiError(f"{path} holds no unencrypted PEM private key") from None


def _issued_by(certificate: x509.Certificate, issuer: x509.Certificate) -> bool:
    try:
        certificate.verify_directly_issued_by(issuer)
    except (ValueError, TypeError, InvalidSignature):
        return False
    return True


def _public_octets(key: PublicKeyTypes) -> bytes:
    return key.public_bytes(serialization.Encoding.DER,
                            serialization.PublicFormat.SubjectPublicKeyInfo)
