import logging
import os
import ssl

import pytest

from rocetap.collect.tls import ServerIdentity, TlsError, authorized_name, peer_names
from rocetap.pki import credentials
from support.certificates import Authority


def _identity(authority):
    files = credentials(authority.folder, "collector")
    return ServerIdentity(files.authority, files.certificate, files.key)


def _replace(authority, what, source):
    (authority.folder / what).write_bytes((authority.folder / source).read_bytes())
    # A write within the clock's grain must be seen all the same.
    stat = os.stat(authority.folder / what)
    os.utime(authority.folder / what, ns=(stat.st_atime_ns, stat.st_mtime_ns + 1_000_000))


def test_only_tls_13_and_only_with_a_client_certificate(shared_authority):
    context = _identity(shared_authority).context()
    assert context.minimum_version == ssl.TLSVersion.TLSv1_3
    assert context.verify_mode == ssl.CERT_REQUIRED


def test_the_same_context_while_files_stay(shared_authority):
    identity = _identity(shared_authority)
    assert identity.context() is identity.context()


def test_a_new_pair_is_read_and_an_unmatched_one_keeps_the_old(authority, caplog):
    """Certificate first, key later: in between the old pair stays, with one warning."""
    identity = _identity(authority)
    before, expires = identity.context(), identity.expires_ms
    authority.issue("next", days=9)
    _replace(authority, "collector.pem", "next.pem")
    with caplog.at_level(logging.INFO):
        assert identity.context() is before
        assert identity.context() is before
    assert [record.levelname for record in caplog.records] == ["WARNING"]
    assert "the certificate in use stays" in caplog.text
    assert identity.expires_ms == expires
    _replace(authority, "collector.key", "next.key")
    assert identity.context() is not before
    assert identity.expires_ms < expires


def test_files_that_vanish_keep_the_old_pair_with_one_warning(authority, caplog):
    identity = _identity(authority)
    before = identity.context()
    (authority.folder / "collector.key").unlink()
    assert identity.context() is before
    assert identity.context() is before
    assert len(caplog.records) == 1


def test_an_expired_certificate_is_one_clear_error(authority):
    authority.issue("collector", days=0)
    with pytest.raises(TlsError) as caught:
        _identity(authority)
    assert str(caught.value).startswith(f"{authority.folder / 'collector.pem'} expired on ")
    assert str(caught.value).endswith(" UTC: issue a new certificate")


def test_a_certificate_of_another_authority_is_one_clear_error(authority, tmp_path):
    other = Authority.make(tmp_path / "other")
    for file in ("collector.pem", "collector.key"):
        (authority.folder / file).write_bytes((other.folder / file).read_bytes())
    with pytest.raises(TlsError) as caught:
        _identity(authority)
    assert str(caught.value) == (
        f"{authority.folder / 'collector.pem'} was not issued by {authority.folder / 'ca.pem'}: "
        f"both must come from one authority")


def test_names_are_dns_names_and_addresses_else_the_common_name():
    both = {"subject": ((("commonName", "cn.example"),),),
            "subjectAltName": (("DNS", "a.example"), ("email", "x@y"), ("IP Address", "::1"))}
    assert peer_names(both) == ["a.example", "::1"]
    assert peer_names({"subject": ((("commonName", "cn.example"),),)}) == ["cn.example"]
    assert peer_names({}) == []


@pytest.mark.parametrize(("names", "allowed", "name"), [
    (["probe.example"], ["probe.example"], "probe.example"),
    (["PROBE.example"], ["probe.EXAMPLE"], "PROBE.example"),
    (["a", "b"], ["b"], "b"),
    (["probe.example.evil"], ["probe.example"], None),
    (["*.example"], ["probe.example"], None),
    (["probe.example"], ["*.example"], None),
    ([], ["probe.example"], None),
    (["probe.example"], [], None),
])
def test_whole_names_no_wildcards(names, allowed, name):
    assert authorized_name(names, allowed) == name
