"""Files, by Python's own modules and by C."""

import ctypes
import fcntl
import mmap
import os
import shutil
import sqlite3
import struct
import tempfile
import zipfile
from typing import Any

from replay.isolation.battery.registry import World, act

libc: Any = ctypes.CDLL(None, use_errno=True)


@act()
def open_to_write(w: World) -> None:
    open(w.out / "made", "w").close()


@act()
def open_to_append(w: World) -> None:
    with open(w.there, "a") as file:
        file.write("x")


@act()
def open_in_place(w: World) -> None:
    with open(w.there, "r+b") as file:
        file.write(b"x")


@act()
def path_write_text(w: World) -> None:
    w.there.write_text("x")


@act()
def os_open(w: World) -> None:
    os.open(w.out / "made", os.O_WRONLY | os.O_CREAT)


@act()
def os_open_by_folder_descriptor(w: World) -> None:
    os.chdir(w.scratch)  # where the same name would be free
    os.open("made", os.O_WRONLY | os.O_CREAT, dir_fd=os.open(w.out, os.O_RDONLY))


@act()
def os_open_unnamed(w: World) -> None:
    descriptor = os.open(w.out, os.O_TMPFILE | os.O_RDWR)
    libc.linkat(-100, f"/proc/self/fd/{descriptor}".encode(), -100, str(w.out / "made").encode(), 0x400)


@act()
def os_open_through_proc(w: World) -> None:
    folder = os.open(w.out, os.O_RDONLY)
    os.open(f"/proc/self/fd/{folder}/made", os.O_WRONLY | os.O_CREAT)


@act()
def os_open_path_again(w: World) -> None:
    """A descriptor that can do nothing is opened anew, to write."""
    entry = os.open(w.there, os.O_PATH)
    os.write(os.open(f"/proc/self/fd/{entry}", os.O_WRONLY), b"x")


@act()
def read_descriptor_opened_again(w: World) -> None:
    with open(w.there) as file:
        os.write(os.open(f"/dev/fd/{file.fileno()}", os.O_WRONLY), b"x")


@act()
def mmap_shared(w: World) -> None:
    with open(w.there, "r+b") as file:
        mmap.mmap(file.fileno(), 0)[0:1] = b"x"


@act()
def symlink_in_scratch(w: World) -> None:
    link = w.scratch / f"link-{os.getpid()}"
    os.symlink(w.there, link)
    link.write_text("x")


@act()
def folder_symlink_in_scratch(w: World) -> None:
    link = w.scratch / f"folder-{os.getpid()}"
    os.symlink(w.out, link)
    (link / "made").write_text("x")


@act()
def hard_link_in_scratch(w: World) -> None:
    link = w.scratch / f"hard-{os.getpid()}"
    os.link(w.there, link)
    link.write_text("x")


@act()
def os_link(w: World) -> None:
    os.link(w.there, w.out / "made")


@act()
def os_symlink(w: World) -> None:
    os.symlink("there", w.out / "made")


@act()
def os_rename(w: World) -> None:
    os.rename(w.there, w.out / "made")


@act()
def os_replace_from_scratch(w: World) -> None:
    mine = w.scratch / f"mine-{os.getpid()}"
    mine.write_text("x")
    os.replace(mine, w.there)


@act()
def os_rename_into_scratch(w: World) -> None:
    os.rename(w.there, w.scratch / f"taken-{os.getpid()}")


@act()
def os_remove(w: World) -> None:
    os.remove(w.there)


@act()
def os_remove_by_folder_descriptor(w: World) -> None:
    os.remove("there", dir_fd=os.open(w.out, os.O_RDONLY))


@act()
def os_rmdir(w: World) -> None:
    os.rmdir(w.out / "folder" / "inner")


@act()
def os_mkdir(w: World) -> None:
    os.mkdir(w.out / "made")


@act()
def os_truncate(w: World) -> None:
    os.truncate(w.there, 0)


@act()
def os_mkfifo(w: World) -> None:
    os.mkfifo(w.out / "made")


@act()
def os_mknod(w: World) -> None:
    os.mknod(w.out / "made")


@act()
def os_chmod(w: World) -> None:
    os.chmod(w.there, 0o777)


@act()
def os_fchmod_of_a_file_that_is_read(w: World) -> None:
    with open(w.there) as file:
        os.fchmod(file.fileno(), 0o777)


@act()
def os_chown(w: World) -> None:
    os.chown(w.there, 12345, 12345)


@act()
def os_utime(w: World) -> None:
    os.utime(w.there, (1, 1))


@act()
def os_setxattr(w: World) -> None:
    os.setxattr(w.there, "user.mark", b"x")


@act()
def os_copy_file_range(w: World) -> None:
    source, target = os.open(w.there, os.O_RDONLY), os.open(w.out / "made", os.O_WRONLY | os.O_CREAT)
    os.copy_file_range(source, target, 4)


@act()
def os_sendfile(w: World) -> None:
    source, target = os.open(w.there, os.O_RDONLY), os.open(w.out / "made", os.O_WRONLY | os.O_CREAT)
    os.sendfile(target, source, 0, 4)


@act()
def shutil_copy(w: World) -> None:
    shutil.copy2(w.there, w.out / "made")


@act()
def shutil_copytree(w: World) -> None:
    shutil.copytree(w.out / "folder", w.out / "made")


@act()
def shutil_rmtree(w: World) -> None:
    shutil.rmtree(w.out / "folder")


@act()
def shutil_move(w: World) -> None:
    shutil.move(w.there, w.out / "made")


@act()
def tempfile_outside(w: World) -> None:
    tempfile.NamedTemporaryFile(dir=w.out, delete=False).close()


@act()
def zip_extracted(w: World) -> None:
    archive = w.scratch / f"{os.getpid()}.zip"
    with zipfile.ZipFile(archive, "w") as made:
        made.writestr("made", "x")
    zipfile.ZipFile(archive).extractall(w.out)


@act()
def sqlite_connect(w: World) -> None:
    sqlite3.connect(w.out / "made.db").execute("create table t (a)")


@act()
def sqlite_attach(w: World) -> None:
    sqlite3.connect(":memory:").executescript(f"attach '{w.out}/made.db' as other; create table other.t (a)")


@act()
def sqlite_vacuum_into(w: World) -> None:
    db = sqlite3.connect(":memory:")
    db.execute("create table t (a)")
    db.execute(f"vacuum into '{w.out}/made.db'")


@act(needs="_dbm")
def dbm_ndbm(w: World) -> None:
    import dbm.ndbm

    dbm.ndbm.open(str(w.out / "made"), "c")["a"] = b"x"


@act(needs="_gdbm")
def dbm_gnu(w: World) -> None:
    import dbm.gnu

    dbm.gnu.open(str(w.out / "made"), "c")["a"] = b"x"


@act(needs="readline")
def readline_history(w: World) -> None:
    import readline

    readline.add_history("x")
    readline.write_history_file(str(w.out / "made"))


@act()
def faulthandler_file(w: World) -> None:
    import faulthandler

    faulthandler.dump_traceback(open(w.out / "made", "w"))


@act()
def c_open(w: World) -> None:
    libc.open(str(w.out / "made").encode(), os.O_WRONLY | os.O_CREAT, 0o644)


@act()
def c_creat(w: World) -> None:
    libc.creat(str(w.out / "made").encode(), 0o644)


@act()
def c_openat(w: World) -> None:
    libc.openat(os.open(w.out, os.O_RDONLY), b"made", os.O_WRONLY | os.O_CREAT, 0o644)


@act()
def c_openat2(w: World) -> None:
    how = struct.pack("=QQQ", os.O_WRONLY | os.O_CREAT, 0o644, 0)
    libc.syscall(437, -100, str(w.out / "made").encode(), how, ctypes.c_size_t(24))


@act()
def c_fopen(w: World) -> None:
    libc.fopen.restype = ctypes.c_void_p
    libc.fopen(str(w.out / "made").encode(), b"w")


@act()
def c_unlink(w: World) -> None:
    libc.unlink(str(w.there).encode())


@act()
def c_rename(w: World) -> None:
    libc.rename(str(w.there).encode(), str(w.out / "made").encode())


@act()
def c_exchange(w: World) -> None:
    libc.renameat2(-100, str(w.there).encode(), -100, str(w.out / "locked").encode(), 2)


@act()
def c_mkdir(w: World) -> None:
    libc.mkdir(str(w.out / "made").encode(), 0o755)


@act()
def c_mkfifo(w: World) -> None:
    libc.mkfifo(str(w.out / "made").encode(), 0o644)


@act()
def c_truncate(w: World) -> None:
    libc.truncate(str(w.there).encode(), 0)


@act()
def c_chmod(w: World) -> None:
    libc.chmod(str(w.there).encode(), 0o777)


@act()
def c_fchmod(w: World) -> None:
    libc.fchmod(os.open(w.there, os.O_RDONLY), 0o777)


@act()
def c_fchmodat(w: World) -> None:
    libc.fchmodat(os.open(w.out, os.O_RDONLY), b"there", 0o777, 0)


@act()
def c_chown(w: World) -> None:
    libc.chown(str(w.there).encode(), 12345, 12345)


@act()
def c_lchown(w: World) -> None:
    libc.lchown(str(w.there).encode(), 12345, 12345)


@act()
def c_utime(w: World) -> None:
    libc.utime(str(w.there).encode(), None)
    libc.utime(str(w.there).encode(), struct.pack("=qq", 1, 1))


@act()
def c_utimensat(w: World) -> None:
    libc.utimensat(-100, str(w.there).encode(), struct.pack("=qqqq", 1, 0, 1, 0), 0)


@act()
def c_futimens(w: World) -> None:
    libc.futimens(os.open(w.there, os.O_RDONLY), struct.pack("=qqqq", 1, 0, 1, 0))


@act()
def c_setxattr(w: World) -> None:
    libc.setxattr(str(w.there).encode(), b"user.mark", b"x", ctypes.c_size_t(1), 0)


@act()
def c_fsetxattr(w: World) -> None:
    libc.fsetxattr(os.open(w.there, os.O_RDONLY), b"user.mark", b"x", ctypes.c_size_t(1), 0)


@act()
def c_inode_flags(w: World) -> None:
    """No-dump, by ioctl on a file that is opened for reading."""
    fcntl.ioctl(os.open(w.there, os.O_RDONLY), 0x40086602, struct.pack("=l", 0x40))


@act()
def c_inode_version(w: World) -> None:
    fcntl.ioctl(os.open(w.there, os.O_RDONLY), 0x40087602, struct.pack("=l", 4242))
    w.confess()


@act()
def c_open_by_handle(w: World) -> None:
    handle = ctypes.create_string_buffer(struct.pack("=Ii", 128, 0) + bytes(128))
    mount = ctypes.c_int()
    if libc.name_to_handle_at(-100, str(w.there).encode(), handle, ctypes.byref(mount), 0) == 0:
        descriptor = libc.open_by_handle_at(os.open(w.out, os.O_RDONLY), handle, os.O_WRONLY)
        os.write(descriptor, b"x")


@act()
def c_mount(w: World) -> None:
    if libc.mount(b"none", str(w.out / "folder").encode(), b"tmpfs", 0, None) == 0:
        libc.umount(str(w.out / "folder").encode())
        w.confess()
