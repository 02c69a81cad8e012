"""Certificates for tests of TLS: a development PKI, clients of it, and one without any SAN."""

from __future__ import annotations

import datetime
import ssl
from dataclasses import dataclass
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from rocetap import pki

__all__ = ["Authority", "common_name_only"]


@dataclass(frozen=True)
class Authority:
    """A PKI in a folder with an exporter and a collector of the given names."""

    folder: Path
    exporter: str = "probe-1.example"
    collector: str = "collector.example"

    @classmethod
    def make(cls, folder: Path, **names: str) -> Authority:
        authority = cls(folder, **names)
        pki.init(folder, authority.exporter, authority.collector)
        return authority

    def issue(self, name: str, days: int = 1) -> str:
        """NAME.pem and NAME.key in the folder; gives the name."""
        pki.issue(self.folder, name, days=days, force=True)
        return name

    def client(self, name: str | None = pki.EXPORTER, trust: Path | None = None) -> ssl.SSLContext:
        """What an exporter connects with: the files of `name`, or no certificate."""
        context = ssl.create_default_context(cafile=trust or self.folder / "ca.pem")
        context.minimum_version = ssl.TLSVersion.TLSv1_3
        if name is not None:
            context.load_cert_chain(self.folder / f"{name}.pem", self.folder / f"{name}.key")
        return context


def common_name_only(authority: Authority, name: str) -> str:
    """A client certificate with a common name and no subject alternative name; gives its file
    name."""
    issuer = x509.load_pem_x509_certificate((authority.folder / "ca.pem").read_bytes())
    issuer_key = serialization.load_pem_private_key(
        (authority.folder / "ca.key").read_bytes(), None)
    key = ec.generate_private_key(ec.SECP256R1())
    now = datetime.datetime.now(datetime.UTC)
    certificate = (x509.CertificateBuilder()
                   .subject_name(x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)]))
                   .issuer_name(issuer.subject).public_key(key.public_key())
                   .serial_number(x509.random_serial_number())
                   .not_valid_before(now - datetime.timedelta(minutes=1))
                   .not_valid_after(now + datetime.timedelta(days=1))
                   .sign(issuer_key, hashes.SHA256()))
    (authority.folder / "cn.pem").write_bytes(
        certificate.public_bytes(serialization.Encoding.PEM))
    (authority.folder / "cn.key").write_bytes(key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8,
        serialization.NoEncryption()))
    return "cn"
