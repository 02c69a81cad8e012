"""The development PKI: what lies in the files, and what is refused in one line."""

import datetime
import ipaddress
import ssl
import stat

import pytest
from cryptography import x509

from rocetap import pki
from rocetap.pki import Credentials, PkiError, check_credentials, credentials


def now():
    return datetime.datetime.now(datetime.UTC)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    directory = tmp_path_factory.mktemp("pki")
    pki.init(directory, "probe-1.example", "collector.example")
    return directory


def alternative_names(path):
    certificate = x509.load_pem_x509_certificate(path.read_bytes())
    names = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    return ([name.value for name in names if isinstance(name, x509.DNSName)],
            [str(name.value) for name in names if isinstance(name, x509.IPAddress)])


def test_init_writes_the_six_files_and_says_so(tmp_path):
    written = pki.init(tmp_path / "new" / "folder", "probe", "collector")
    assert sorted(path.name for path in written) == [
        "ca.key", "ca.pem", "collector.key", "collector.pem", "exporter.key", "exporter.pem"]
    assert sorted((tmp_path / "new" / "folder").iterdir()) == sorted(written)


def test_keys_are_their_owners_alone(folder):
    for path in folder.glob("*.key"):
        assert stat.S_IMODE(path.stat().st_mode) == 0o600, path


def test_names_are_alternative_names(folder):
    assert alternative_names(folder / "exporter.pem") == (["probe-1.example"], [])
    assert alternative_names(folder / "collector.pem") == (
        ["collector.example", "localhost"], ["127.0.0.1", "::1"])


def test_an_address_becomes_an_address_name_and_comes_once(tmp_path):
    pki.init(tmp_path, "2001:db8::7", "127.0.0.1")
    assert alternative_names(tmp_path / "exporter.pem") == ([], ["2001:db8::7"])
    assert alternative_names(tmp_path / "collector.pem") == (["localhost"], ["127.0.0.1", "::1"])
    assert ipaddress.ip_address("2001:db8::7")


@pytest.mark.parametrize("side", [pki.EXPORTER, pki.COLLECTOR])
def test_both_sides_pass_their_checks_and_load_into_tls(folder, side):
    files = credentials(folder, side)
    certificate = check_credentials(files, now())
    assert certificate.public_key().curve.name == "secp256r1"
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(files.certificate, files.key)
    context.load_verify_locations(files.authority)


def test_issue_adds_a_name_of_the_same_authority(folder):
    written = pki.issue(folder, "probe-2", days=3)
    assert [path.name for path in written] == ["probe-2.key", "probe-2.pem"]
    certificate = check_credentials(credentials(folder, "probe-2"), now())
    left = certificate.not_valid_after_utc - now()
    assert datetime.timedelta(days=2) < left <= datetime.timedelta(days=3)


def test_nothing_is_overwritten_unless_forced(tmp_path):
    pki.init(tmp_path, "probe", "collector")
    before = (tmp_path / "exporter.pem").read_bytes()
    with pytest.raises(PkiError) as caught:
        pki.init(tmp_path, "probe", "collector")
    assert str(caught.value) == f"{tmp_path}/ca.pem exists: give --force to replace it"
    assert (tmp_path / "exporter.pem").read_bytes() == before
    with pytest.raises(PkiError) as caught:
        pki.issue(tmp_path, "exporter")
    assert str(caught.value) == f"{tmp_path}/exporter.pem exists: give --force to replace it"
    pki.init(tmp_path, "probe", "collector", force=True)
    assert (tmp_path / "exporter.pem").read_bytes() != before
    check_credentials(credentials(tmp_path, pki.EXPORTER), now())


@pytest.mark.parametrize(
    "name", ["", "../x", "a/b", ".hidden", "two words", "a..b", "-x", "x" * 300])
def test_bad_names_are_refused(folder, name):
    with pytest.raises(PkiError) as caught:
        pki.issue(folder, name)
    assert str(caught.value) == (f"name {name!r}: use letters, digits, '.', '-' and '_', "
                                 "as in probe-1.example, or an IP address")


def test_the_authoritys_name_is_taken(folder):
    with pytest.raises(PkiError) as caught:
        pki.issue(folder, "ca", force=True)
    assert str(caught.value) == "name 'ca' is the authority's own: give another name"


def test_issue_without_an_authority_names_the_missing_file(tmp_path):
    with pytest.raises(PkiError) as caught:
        pki.issue(tmp_path, "probe")
    assert str(caught.value) == (
        f"{tmp_path}/ca.pem not found: run `rocetap pki init --dir {tmp_path} "
        "--exporter NAME --collector NAME` first")


@pytest.mark.parametrize("days", [10**7, -(10**7), 10**12])
def test_a_validity_beyond_the_calendar_is_refused(folder, days):
    with pytest.raises(PkiError) as caught:
        pki.issue(folder, "far", days=days)
    assert str(caught.value) == f"validity of {days} days is out of range"


def test_a_folder_that_cannot_be_made_is_one_line(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(PkiError) as caught:
        pki.init(tmp_path / "file" / "pki", "probe", "collector")
    assert str(caught.value) == f"cannot make the folder {tmp_path}/file/pki: Not a directory"


class TestChecks:
    """check_credentials: one line with the file and the reason."""

    def fails(self, files, at=None):
        with pytest.raises(PkiError) as caught:
            check_credentials(files, at or now())
        return str(caught.value)

    def test_missing_file(self, tmp_path):
        with pytest.raises(PkiError) as caught:
            credentials(tmp_path, pki.EXPORTER)
        assert str(caught.value) == (
            f"{tmp_path}/ca.pem not found: make a development PKI with "
            f"`rocetap pki init --dir {tmp_path} --exporter NAME --collector NAME`")

    def test_expired(self, folder):
        pki.issue(folder, "old", days=-1, force=True)
        message = self.fails(credentials(folder, "old"))
        assert message.startswith(f"{folder}/old.pem expired on ")
        assert message.endswith(" UTC: issue a new certificate")

    def test_not_yet_valid(self, folder):
        message = self.fails(credentials(folder, pki.EXPORTER), now() - datetime.timedelta(days=1))
        assert message.startswith(f"{folder}/exporter.pem is not valid before ")
        assert message.endswith(" UTC: check this clock")

    def test_foreign(self, folder, tmp_path):
        pki.init(tmp_path, "probe", "collector")
        files = Credentials(folder / "ca.pem", tmp_path / "exporter.pem", tmp_path / "exporter.key")
        assert self.fails(files) == (f"{tmp_path}/exporter.pem was not issued by {folder}/ca.pem: "
                                     "both must come from one authority")

    def test_another_key(self, folder):
        files = Credentials(folder / "ca.pem", folder / "exporter.pem", folder / "collector.key")
        assert self.fails(files) == (
            f"{folder}/collector.key is not the key of {folder}/exporter.pem")

    def test_garbage(self, folder, tmp_path):
        (tmp_path / "x.pem").write_text("hello")
        files = Credentials(folder / "ca.pem", tmp_path / "x.pem", folder / "exporter.key")
        assert self.fails(files) == f"{tmp_path}/x.pem holds no PEM certificate"
        files = Credentials(folder / "ca.pem", folder / "exporter.pem", tmp_path / "x.pem")
        assert self.fails(files) == f"{tmp_path}/x.pem holds no unencrypted PEM private key"

    def test_directory_in_place_of_a_file(self, folder, tmp_path):
        files = Credentials(folder / "ca.pem", tmp_path, folder / "exporter.key")
        assert self.fails(files) == f"cannot read {tmp_path}: Is a directory"
