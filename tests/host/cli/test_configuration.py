"""Settings from command line, environment and file: who goes before whom, and every error."""

from pathlib import Path

import pytest

from rocetap.cli.configuration import ConfigurationError, Setting, address, load, number

SETTINGS = (
    Setting("board", str),
    Setting("pki", Path),
    Setting("provision", str, "-", is_path=True),
    Setting("interval", float, 10.0, number(0.5, 60)),
    Setting("domain", int, None, number(0, 9)),
    Setting("allow", list, []),
    Setting("collector", str, "[::1]:1", address()),
    Setting("verbose", bool, False),
)
GOOD = {"board": "/dev/x", "pki": Path("pki")}


def loaded(given=None, text=None, environment=None, folder=None):
    file = None
    if text is not None:
        file = folder / "rocetap.toml"
        file.write_text(text)
    return load("export", SETTINGS, given or {}, file, environment or {})


def problems(**arguments):
    with pytest.raises(ConfigurationError) as caught:
        loaded(**arguments)
    return str(caught.value).splitlines()


def test_defaults():
    assert loaded(GOOD) == {**GOOD, "provision": "-", "interval": 10.0, "domain": None,
                            "allow": [], "collector": "[::1]:1", "verbose": False}


def test_the_command_line_goes_before_the_environment_and_that_before_the_file(tmp_path):
    text = '[export]\nboard = "f"\npki = "f"\ninterval = 1\ndomain = 1\n'
    environment = {"ROCETAP_BOARD": "e", "ROCETAP_PKI": "e", "ROCETAP_INTERVAL": "2"}
    values = loaded({"board": "c", "domain": None}, text, environment, tmp_path)
    assert (values["board"], values["pki"], values["interval"], values["domain"]) == (
        "c", Path("e"), 2.0, 1)


def test_every_kind_in_a_file_and_its_paths_are_relative_to_it(tmp_path):
    values = loaded(text='''
[collect]
other = true
[export]   # ours
board = "/dev/ttyUSB0"
pki = "keys"
"provision" = "plan/a.toml"
interval = 5
allow = ["a", "b"]
verbose = true
''', folder=tmp_path)
    assert values == {"board": "/dev/ttyUSB0", "pki": tmp_path / "keys",
                      "provision": str(tmp_path / "plan/a.toml"), "interval": 5.0, "domain": None,
                      "allow": ["a", "b"], "collector": "[::1]:1", "verbose": True}
    assert isinstance(values["interval"], float)


def test_standard_input_is_no_path(tmp_path):
    assert loaded(GOOD, '[export]\nprovision = "-"\n', folder=tmp_path)["provision"] == "-"


@pytest.mark.parametrize(("text", "value"), [
    ("true", True), ("1", True), ("YES", True), ("no", False), ("0", False), ("", False)])
def test_truth_in_the_environment(text, value):
    assert loaded(GOOD, environment={"ROCETAP_VERBOSE": text})["verbose"] is value


ITEMS = (Setting("limit", list, [], each=lambda one: None if "=" in one else "no ="),
         Setting("names", list, []), Setting("name", str, "x"))


def test_every_wrong_text_of_a_list_is_told_with_its_line(tmp_path):
    file = tmp_path / "x.toml"
    file.write_text("""[collect]
names = ["a",
         " ",   # blank
         ""]
limit = ["a=1", "b", "c=1",
  'd',
  "e"]
name = ""
""")
    with pytest.raises(ConfigurationError) as caught:
        load("collect", ITEMS, {}, file, {})
    assert str(caught.value).splitlines() == [
        f"{file}:5: limit b: no =", f"{file}:6: limit d: no =", f"{file}:7: limit e: no =",
        f"{file}:3: names ' ': must not be empty", f"{file}:4: names '': must not be empty",
        f"{file}:8: name is empty; give a text or leave it out"]


def test_wrong_texts_of_the_other_places():
    with pytest.raises(ConfigurationError) as caught:
        load("collect", ITEMS, {"names": ["x", ""], "name": ""}, None, {"ROCETAP_LIMIT": "y z=1"})
    assert str(caught.value).splitlines() == [
        "ROCETAP_LIMIT y: no =", "--names '': must not be empty",
        "--name is empty; give a text or leave it out"]


def test_a_list_in_the_environment():
    assert loaded(GOOD, environment={"ROCETAP_ALLOW": "a, b c,"})["allow"] == ["a", "b", "c"]


def test_every_error_is_told_with_its_place(tmp_path):
    text = '''exporter = 1

[export]
bord = "x"
pki = 3
interval = 0.1
domain = true
zzz = "red"
[export2]
'''
    file = tmp_path / "rocetap.toml"
    assert problems(text=text, folder=tmp_path, given={"collector": "::1"},
                    environment={"ROCETAP_VERBOSE": "perhaps", "ROCETAP_ALLOW": "x"}) == [
        f"{file}:1: unknown table 'exporter', known are export, collect",
        f"{file}:9: unknown table 'export2', known are export, collect",
        f"{file}:4: unknown setting 'bord'; is board meant?",
        f"{file}:5: pki is 3, must be a text in quotes",
        f"{file}:7: domain is true, must be a whole number",
        f"{file}:8: unknown setting 'zzz'; known are board, pki, provision, interval, domain, "
        "allow, collector, verbose",
        f"no board: give --board or ROCETAP_BOARD, or board in [export] of {file}",
        f"{file}:6: interval is 0.1, must be 0.5 to 60",
        "--collector is ::1, more than one colon is ambiguous; put an IPv6 address in brackets, "
        "as in [::1]:4740",
        "ROCETAP_VERBOSE is 'perhaps', must be true or false"]


@pytest.mark.parametrize(("environment", "line"), [
    ({"ROCETAP_INTERVAL": "x"}, "ROCETAP_INTERVAL is 'x', must be a number"),
    ({"ROCETAP_INTERVAL": "70"}, "ROCETAP_INTERVAL is 70.0, must be 0.5 to 60"),
    ({"ROCETAP_INTERVAL": "nan"}, "ROCETAP_INTERVAL is nan, must be 0.5 to 60"),
    ({"ROCETAP_DOMAIN": "1.5"}, "ROCETAP_DOMAIN is '1.5', must be a whole number")])
def test_errors_of_the_environment(environment, line):
    assert problems(given=GOOD, environment=environment) == [line]


@pytest.mark.parametrize("text", ["domain = " + "9" * 5000, "x = " + "[" * 5000 + "]" * 5000])
def test_a_file_that_the_parser_gives_up_on_is_no_traceback(tmp_path, text):
    found = problems(given=GOOD, text=f"[export]\n{text}\n", folder=tmp_path)
    assert [line.startswith(f"{tmp_path}/rocetap.toml: is not TOML: ") for line in found] == [True]


@pytest.mark.parametrize(("text", "lines"), [
    ("export = 3\n", ["{file}:1: export must be a table; write [export]"]),
    ("[export]\nx\n", ["{file}:2: is not TOML: Expected '=' after a key in a key/value pair (at "
                       "line 2, column 2)"]),
    ("[[export]]\n", ["{file}:1: export must be a table; write [export]"])])
def test_files_of_another_form(tmp_path, text, lines):
    assert problems(given=GOOD, text=text, folder=tmp_path) == [
        line.format(file=tmp_path / "rocetap.toml") for line in lines]


def test_a_file_that_is_not_there(tmp_path):
    with pytest.raises(ConfigurationError) as caught:
        load("export", SETTINGS, GOOD, tmp_path / "no.toml", {})
    assert str(caught.value) == f"{tmp_path}/no.toml: cannot be read: No such file or directory"


def test_a_file_that_is_not_utf8(tmp_path):
    (tmp_path / "x.toml").write_bytes(b"[export]\n\xff")
    with pytest.raises(ConfigurationError) as caught:
        load("export", SETTINGS, GOOD, tmp_path / "x.toml", {})
    assert str(caught.value) == f"{tmp_path}/x.toml: octet 9 is not UTF-8"
