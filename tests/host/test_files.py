"""What a command may replace: a regular file, and nothing else that stands at the place.

No test names a device of this machine: an error in the code under test would replace it.
"""

import os
import stat
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from rocetap.errors import RocetapError
from rocetap.files import is_replaceable, refuse_input, remove_written, write_whole, written


def mode(path):
    return stat.S_IMODE(path.stat().st_mode)


def device(path, minor):
    """A device node like /dev/null (3) or /dev/full (7) under a name of the test's own."""
    os.mknod(path, stat.S_IFCHR | 0o666, os.makedev(1, minor))
    return path


def has_devices(folder):
    """Whether this user may make device nodes there, and open them (not so on a nodev mount)."""
    try:
        device(folder / "probe", 3).write_bytes(b"")
    except OSError:
        return False
    return True


def test_a_new_file_has_the_content_and_the_umask(tmp_path):
    before = os.umask(0o027)
    try:
        write_whole(tmp_path / "x", "text é\n")
    finally:
        os.umask(before)
    assert (tmp_path / "x").read_bytes() == "text é\n".encode()
    assert mode(tmp_path / "x") == 0o640
    assert os.listdir(tmp_path) == ["x"]


def test_a_file_is_replaced_and_keeps_its_permissions(tmp_path):
    path = tmp_path / "x"
    path.write_text("old and longer")
    path.chmod(0o604)
    with path.open() as reader:
        write_whole(path, b"new")
        assert reader.read() == "old and longer", "whoever reads has the old file whole"
    assert path.read_text() == "new"
    assert mode(path) == 0o604


def test_a_mode_that_is_given_holds_for_old_and_new_files(tmp_path):
    (tmp_path / "old").write_text("x")
    for name in ("old", "new"):
        write_whole(tmp_path / name, b"key", mode=0o600)
        assert mode(tmp_path / name) == 0o600


def test_a_failure_in_the_middle_leaves_the_old_file_and_no_other(tmp_path):
    path = tmp_path / "x"
    path.write_text("old")

    def fail(error):
        with written(path) as stream:
            stream.write(b"half")
            raise error

    with pytest.raises(ZeroDivisionError):
        fail(ZeroDivisionError())
    with pytest.raises(RocetapError) as caught:
        fail(OSError(28, "No space left on device"))
    assert str(caught.value) == f"cannot write {path}: No space left on device"
    assert path.read_text() == "old"
    assert os.listdir(tmp_path) == ["x"]


@pytest.mark.parametrize("target", ["a file", "nothing yet"])
def test_a_symbolic_link_stays_and_its_target_is_written(tmp_path, target):
    (tmp_path / "deep").mkdir()
    place = tmp_path / "deep" / "place"
    if target == "a file":
        place.write_text("old")
    (tmp_path / "link").symlink_to("other")
    (tmp_path / "other").symlink_to("deep/place")
    write_whole(tmp_path / "link", b"new")
    assert place.read_text() == "new"
    assert [name for name in ("link", "other") if (tmp_path / name).is_symlink()] == [
        "link", "other"]
    assert os.listdir(tmp_path / "deep") == ["place"]
    remove_written(tmp_path / "link")
    assert not place.exists()
    assert (tmp_path / "link").is_symlink()


@pytest.mark.parametrize("through_link", [False, True])
def test_a_fifo_is_written_and_stays(tmp_path, through_link):
    fifo = path = tmp_path / "fifo"
    os.mkfifo(fifo)
    if through_link:
        path = tmp_path / "link"
        path.symlink_to(fifo)
    got = []
    reader = threading.Thread(
        target=lambda: got.append(fifo.read_bytes()), daemon=True)
    reader.start()
    write_whole(path, b"through")
    reader.join(10)
    assert got == [b"through"]
    remove_written(path)
    assert stat.S_ISFIFO(fifo.stat().st_mode)
    assert not is_replaceable(path)


def test_a_socket_and_a_folder_are_refused_and_stay(tmp_path):
    import socket

    place = tmp_path / "s"
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(place))
        with pytest.raises(RocetapError, match=r"cannot write .*/s: No such device or address"):
            write_whole(place, b"x")
        assert stat.S_ISSOCK(place.stat().st_mode)
    with pytest.raises(RocetapError) as caught:
        write_whole(tmp_path, b"x")
    assert str(caught.value) == f"cannot write {tmp_path}: Is a directory"
    remove_written(tmp_path)
    assert tmp_path.is_dir()


def test_a_device_is_written_and_stays(tmp_path):
    if not has_devices(tmp_path):   # a FIFO stands for it above
        return
    null, full = device(tmp_path / "null", 3), device(tmp_path / "full", 7)
    write_whole(null, b"x")
    with pytest.raises(RocetapError) as caught:
        write_whole(full, b"x")
    assert str(caught.value) == f"cannot write {full}: No space left on device"
    for one in (null, full):
        remove_written(one)
        assert stat.S_ISCHR(one.stat().st_mode)
    assert sorted(os.listdir(tmp_path)) == ["full", "null", "probe"]


def test_a_file_that_a_process_has_open_is_written_where_it_is(tmp_path):
    """As with `rocetap ... --output /dev/stdout > file`: a file moved into its place would leave
    the shell with the old one."""
    path = tmp_path / "x"
    with path.open("wb") as stream:
        before = path.stat().st_ino
        for name in (f"/dev/fd/{stream.fileno()}", f"/proc/{os.getpid()}/fd/{stream.fileno()}"):
            assert not is_replaceable(Path(name))
            write_whole(Path(name), b"direct")
            remove_written(Path(name))
    assert (path.stat().st_ino, path.read_bytes()) == (before, b"direct")


def test_an_input_is_refused_under_any_name_and_before_it_is_there(tmp_path):
    (tmp_path / "link").symlink_to("file")
    for _ in ("before it is there", "and after"):
        for output in ("file", "link", "../" + tmp_path.name + "/file"):
            with pytest.raises(RocetapError) as caught:
                refuse_input("--output", tmp_path / output, "the input", tmp_path / "file")
            assert str(caught.value) == (
                f"--output {tmp_path / output}: is the input; give another file")
        refuse_input("--output", tmp_path / "other", "the input", tmp_path / "file")
        (tmp_path / "file").touch()
    os.link(tmp_path / "file", tmp_path / "hard")
    with pytest.raises(RocetapError):
        refuse_input("--output", tmp_path / "hard", "the input", tmp_path / "file")


def test_links_in_a_circle_are_one_line(tmp_path):
    (tmp_path / "a").symlink_to("b")
    (tmp_path / "b").symlink_to("a")
    with pytest.raises(RocetapError) as caught:
        write_whole(tmp_path / "a", b"x")
    assert str(caught.value) == (
        f"cannot write {tmp_path}/a: Too many levels of symbolic links")


def test_without_the_right_nothing_is_replaced(tmp_path):
    """A file that may not be written is not replaced; one in a folder that takes no new file is
    written where it is. In a process of an unprivileged user, for root may do everything."""
    (tmp_path / "folder").mkdir()
    kept, open_one = tmp_path / "folder" / "kept", tmp_path / "folder" / "open"
    for path, rights in ((kept, 0o444), (open_one, 0o666)):
        path.write_text("old")
        path.chmod(rights)
    (tmp_path / "folder").chmod(0o555)
    code = ("import os, sys; from pathlib import Path; from rocetap.files import write_whole\n"
            "folder = os.open(sys.argv[1], os.O_RDONLY); os.fchdir(folder)\n"
            "if os.geteuid() == 0: os.setegid(65534); os.seteuid(65534)\n"
            "for name in ('open', 'kept', 'new'):\n"
            "    try: write_whole(Path(name), 'new'); print('written')\n"
            "    except Exception as error: print(error)\n")
    done = subprocess.run([sys.executable, "-c", code, str(tmp_path / "folder")],
                          capture_output=True, text=True, timeout=60, check=True)
    (tmp_path / "folder").chmod(0o755)
    assert done.stdout.splitlines() == [
        "written", "cannot write kept: Permission denied", "cannot write new: Permission denied"]
    assert (open_one.read_text(), kept.read_text()) == ("new", "old")
