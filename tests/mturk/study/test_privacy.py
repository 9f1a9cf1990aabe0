import errno
import hashlib
import hmac
import os
import stat

import pytest

from bws.base.problems import InputError
from mturk.pseudonyms import pseudonym
from mturk.study.ledger import Ledger
from mturk.study.privacy import destroy_key, key_path, pseudonym_namer, worker_namer
from mturk.study.settings import Settings

HERE = "http://127.0.0.1:8765"


@pytest.fixture
def ledger(tmp_path):
    with Ledger.open(tmp_path / "ledger.db", create=True) as book:
        book.start_study(HERE, Settings(), [], 0.0)
        yield book


def test_pseudonym_is_hmac_prefix():
    key = bytes(range(32))
    expected = hmac.new(key, "A1Ü".encode(), hashlib.sha256).hexdigest()[:16]
    assert pseudonym(key, "A1Ü") == f"w-{expected}"


def test_key_is_created_once_with_mode_600(ledger):
    name = worker_namer(ledger)
    path = key_path(ledger)
    assert str(path) == f"{ledger.path}.key"
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    key = bytes.fromhex(path.read_text())
    assert len(key) == 32
    assert name("A1") == pseudonym(key, "A1") == worker_namer(ledger)("A1") != name("A2")
    assert sorted(p.name for p in path.parent.iterdir() if "key" in p.name) == ["ledger.db.key"]


def test_pseudonyms_differ_between_ledgers(ledger, tmp_path):
    with Ledger.open(tmp_path / "other.db", create=True) as other:
        other.start_study(HERE, Settings(), [], 0.0)
        assert worker_namer(other)("A1") != worker_namer(ledger)("A1")


def test_ids_are_kept_if_configured(tmp_path):
    with Ledger.open(tmp_path / "ledger.db", create=True) as book:
        book.start_study(HERE, Settings(pseudonyms=False), [], 0.0)
        assert worker_namer(book)("A1") == "A1"
        assert not key_path(book).exists()
        assert pseudonym_namer(book)("A1").startswith("w-")


def test_missing_or_wrong_key_is_refused(ledger):
    worker_namer(ledger)
    path = key_path(ledger)
    right = path.read_text()
    path.write_text("00" * 32)
    with pytest.raises(
        InputError, match=r"ledger\.db\.key: is not the key of .*ledger\.db; restore"
    ):
        worker_namer(ledger)
    path.write_text("ab")
    with pytest.raises(InputError, match="is not a key; expected 64 hexadecimal digits"):
        worker_namer(ledger)
    path.unlink()
    with pytest.raises(InputError, match="the key is missing, so pseudonyms cannot be computed"):
        worker_namer(ledger)
    handle = os.open(path, os.O_CREAT | os.O_WRONLY, 0o600)
    os.write(handle, right.encode())
    os.close(handle)
    assert worker_namer(ledger)("A1") == pseudonym(bytes.fromhex(right), "A1")


@pytest.mark.skipif(os.name != "posix", reason="this system has no such permissions")
def test_key_readable_by_others_is_refused(ledger):
    worker_namer(ledger)
    key_path(ledger).chmod(0o640)
    with pytest.raises(InputError, match="is readable by other users"):
        worker_namer(ledger)


def test_destroyed_key_is_deleted(ledger):
    act = {"actor": "lab", "now": 12.5}
    assert not destroy_key(ledger, **act)
    worker_namer(ledger)
    assert destroy_key(ledger, **act)
    assert not key_path(ledger).exists()
    assert not destroy_key(ledger, **act)
    assert ledger.audit_entries() == [
        {"actor": "lab", "action": "purge key", "at": 12.5, "details": {}}
    ]


def test_failed_key_write_leaves_no_file(ledger, monkeypatch):
    def full(_):  # stands for a full disk
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr("mturk.study.privacy.os.fsync", full)
    with pytest.raises(OSError, match="No space left on device") as error:
        worker_namer(ledger)
    assert error.value.filename == str(key_path(ledger))
    assert not [path for path in key_path(ledger).parent.iterdir() if "key" in path.name]
