import errno
import os
import shutil
import threading
import time
from unittest import mock

from support import FolderTest

from crucible_runner.store.file_store import FileStore, path_of_url
from crucible_runner.store.base import StoreError, StoreRefused, part_of
from crucible_runner.store.opening import open_store


class FileStoreTest(FolderTest):
    def setUp(self):
        super().setUp()
        self.store = FileStore(self.folder)

    def left_over(self):
        return os.listdir(self.at(".tmp"))

    def test_writes_only_into_a_root_with_the_mark_of_its_deployment(self):
        store = FileStore(self.folder, is_marked=True)
        self.assertRaisesRegex(StoreError, "is empty or was emptied", store.put, "a", b"1")
        self.assertRaises(StoreError, store.get, "a")
        self.assertEqual(os.listdir(self.folder), [])
        mark = os.path.join(self.folder, "deployment.json")
        for deployment in ("dep-0123456789", "dep-zzzzzzzzzz"):
            with open(mark, "w") as file:
                file.write('{"id": "%s"}' % deployment)
            if deployment == "dep-0123456789":
                store.put("a", b"1")
        self.assertRaisesRegex(StoreError, "another deployment", store.put, "b", b"1")
        self.assertRaisesRegex(StoreError, "another deployment", store.put_if_absent, "b", b"1")
        self.assertRaisesRegex(StoreError, "another deployment", store.delete, "a")

    def test_puts_gets_lists_and_deletes(self):
        self.store.put("jobs/a/one", b"1")
        self.store.put("jobs/a/one", b"11")
        self.store.put("jobs/a/deep/two", b"2")
        self.assertEqual(self.store.get("jobs/a/one"), b"11")
        self.assertIsNone(self.store.get("jobs/a/three"))
        self.assertIsNone(self.store.get("jobs/a/deep"))
        self.assertEqual(self.store.list("jobs/a/"), ["jobs/a/one"])
        self.assertEqual(self.store.folders("jobs/a/"), ["deep"])
        self.assertEqual(self.store.list("jobs/b/"), [])
        self.store.delete("jobs/a/deep/two")
        self.store.delete("jobs/a/deep/two")
        self.assertEqual(self.store.folders("jobs/a/"), [])
        self.assertEqual(self.left_over(), [])

    def test_hears_the_date_of_each_file_that_it_writes(self):
        dates = []
        self.store.on_date(dates.append)
        self.store.put("a/b", b"1")
        self.assertEqual(dates, [int(os.stat(self.at("a/b")).st_mtime * 1000)])

    def test_knows_a_refusal_from_an_absence(self):
        self.store.put("a/b", b"1")
        for number, kind in ((errno.EACCES, StoreRefused), (errno.EROFS, StoreRefused), (errno.EIO, StoreError), (errno.ESTALE, StoreError)):
            with mock.patch("os.open", side_effect=OSError(number, "no")):
                with self.assertRaises(StoreError) as caught:
                    self.store.put("a/b", b"2")
            self.assertIs(type(caught.exception), kind)

    def test_tells_the_age_of_a_document_whatever_the_clock_of_this_machine_says(self):
        self.store.put("a", b"1")
        hour = time.time() - 3_600
        os.utime(os.path.join(self.folder, "a"), (hour, hour))
        with mock.patch("time.time", lambda: hour + 30 * 86_400):
            self.assertLess(abs(self.store.age_ms("a") - 3_600_000), 60_000)
        self.assertIsNone(self.store.age_ms("b"))
        self.assertEqual(self.left_over(), [])

    def test_puts_if_absent_once(self):
        self.assertTrue(self.store.put_if_absent("a/b", b"first"))
        self.assertFalse(self.store.put_if_absent("a/b", b"second"))
        self.assertEqual(self.store.get("a/b"), b"first")
        self.assertEqual(self.left_over(), [])

    def race(self, count=8):
        won = []

        def put(number):
            if self.store.put_if_absent("a/b", b"%d" % number):
                won.append(number)

        threads = [threading.Thread(target=put, args=(number,)) for number in range(count)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual(len(won), 1)
        self.assertEqual(self.store.get("a/b"), b"%d" % won[0])
        self.assertEqual(self.left_over(), [])

    def test_of_many_at_once_one_wins(self):
        self.race()

    def test_of_many_at_once_one_wins_where_there_are_no_links(self):
        with mock.patch("os.link", side_effect=OSError(errno.EPERM, "no links here")):
            self.race()

    def test_a_claim_of_a_dead_process_is_broken(self):
        import hashlib

        os.mkdir(self.at(".tmp"))
        claim = self.at(".tmp", hashlib.sha256(b"a/b").hexdigest() + ".claim")
        self.write(claim[len(self.folder) + 1 :], "")
        with mock.patch("os.link", side_effect=OSError(errno.EPERM, "no links here")), mock.patch(
            "crucible_runner.store.file_turn._PATIENCE_SECONDS", 0.1
        ):
            self.assertTrue(self.store.put_if_absent("a/b", b"1"))

    def test_writes_in_place_of_an_empty_folder_and_never_takes_one_for_a_document(self):
        for key in ("a/put", "a/once", "a/full/other"):
            os.makedirs(os.path.join(self.folder, key))
        self.store.put("a/put", b"1")
        self.assertTrue(self.store.put_if_absent("a/once", b"1"))
        self.assertFalse(self.store.put_if_absent("a/once", b"2"))
        self.assertEqual([self.store.get(key) for key in ("a/put", "a/once")], [b"1", b"1"])
        self.assertRaises(ValueError, self.store.put_if_absent, "a/full", b"1")

    def test_folders_that_vanish_meanwhile_are_made_again(self):
        rename = os.rename

        def prune_first(old, new):
            with mock.patch("os.rename", rename):
                if not hasattr(self, "is_pruned"):
                    self.is_pruned = True
                    raise FileNotFoundError(errno.ENOENT, "pruned")
                rename(old, new)

        with mock.patch("os.rename", prune_first):
            self.store.put("a/b/c", b"1")
        self.assertEqual(self.store.get("a/b/c"), b"1")

    def test_puts_and_deletes_of_many_at_once_do_not_hinder_each_other(self):
        errors = []

        def work(number):
            try:
                for turn in range(200):
                    key = "a/b/c%d/d/%d" % (turn % 2, number)
                    self.store.put_if_absent(key, b"1")
                    self.store.delete(key)
            except Exception as error:
                errors.append(error)

        threads = [threading.Thread(target=work, args=(number,)) for number in range(6)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual(errors, [])
        self.assertEqual(self.left_over(), [])

    def test_a_folder_pruned_while_it_is_made_is_made_again(self):
        mkdir, pruned = os.mkdir, []

        def prune(path):
            if not pruned and path == self.at("a", "b"):
                pruned.append(path)
                os.rmdir(self.at("a"))
            mkdir(path)

        with mock.patch("os.mkdir", prune):
            self.store.put("a/b/c", b"1")
        self.assertEqual(self.store.get("a/b/c"), b"1")
        self.assertNotEqual(pruned, [])

    def test_a_folder_that_always_vanishes_is_given_up(self):
        with mock.patch("os.mkdir", side_effect=FileNotFoundError(errno.ENOENT, "pruned")):
            self.assertRaisesRegex(StoreError, "pruned|No such", self.store.put, "a/b", b"1")

    def test_what_will_never_work_is_no_reason_to_try_again(self):
        self.store.put("a", b"1")
        self.store.put("b/c", b"1")
        self.assertRaisesRegex(ValueError, "Not a directory", self.store.put, "a/b/c", b"2")
        self.assertRaisesRegex(ValueError, "Is a directory", self.store.put, "b", b"2")
        self.assertRaisesRegex(ValueError, "name too long", self.store.put, "x" * 256, b"2")
        with mock.patch("os.rename", side_effect=OSError(errno.EINVAL, "Invalid argument")):
            self.assertRaisesRegex(ValueError, "Invalid argument", self.store.put, "no:colons", b"2")
        self.assertEqual(self.left_over(), [])

    def test_a_root_that_is_no_folder_may_become_one_again(self):
        self.write("file", "")
        self.assertRaises(StoreError, FileStore(self.at("file")).put, "a", b"1")

    def test_a_root_that_vanishes_in_the_midst_is_not_made(self):
        self.store.put("a", b"1")
        with mock.patch.object(FileStore, "_check_root", lambda _: shutil.rmtree(self.folder, True)):
            self.assertRaises(StoreError, self.store.put, "b/c", b"2")
        self.assertFalse(os.path.exists(self.folder))

    def test_uploads_in_parts_of_any_order(self):
        upload = self.store.upload("a/big", 6)
        upload.put_part(3, part_of(b"def"))
        upload.put_part(0, part_of(b"abc"))
        self.assertIsNone(self.store.get("a/big"))
        upload.commit()
        upload.abort()
        download = self.store.download("a/big")
        read = [b"".join(download.blocks(*span)) for span in ((2, 3), (4, 100), (6, 1))]
        self.assertEqual((download.size, *read), (6, b"cde", b"ef", b""))
        download.close()
        self.assertIsNone(self.store.download("a/small"))

    def test_an_aborted_upload_leaves_nothing(self):
        upload = self.store.upload("a/big", 6)
        upload.put_part(0, part_of(b"abc"))
        upload.abort()
        self.assertIsNone(self.store.get("a/big"))
        self.assertEqual(self.left_over(), [])

    def test_a_store_that_is_gone_is_not_an_empty_one(self):
        store = FileStore(self.at("unmounted"))
        for ask in (
            lambda: store.get("a"),
            lambda: store.list("a/"),
            lambda: store.folders("a/"),
            lambda: store.download("a"),
            lambda: store.delete("a"),
            lambda: store.put("a", b""),
            lambda: store.put_if_absent("a", b""),
        ):
            self.assertRaises(StoreError, ask)
        self.assertFalse(os.path.exists(self.at("unmounted")))

    def test_a_full_disk_is_a_store_error_and_leaves_nothing(self):
        with mock.patch("os.pwrite", side_effect=OSError(errno.ENOSPC, "No space left on device")):
            with self.assertRaisesRegex(StoreError, "No space left"):
                self.store.put("a/b", b"1")
        self.assertEqual(self.left_over(), [])

    def test_refuses_keys_that_lead_elsewhere(self):
        for key in ("", "/a", "a//b", "../a", "a/./b", ".tmp/a", "a\0b"):
            self.assertRaises(ValueError, self.store.get, key)

    def test_urls(self):
        self.assertEqual(path_of_url("file:///srv/a%20b/"), "/srv/a b")
        self.assertEqual(path_of_url("file://localhost/srv"), "/srv")
        for url in ("file://host/srv", "file:///", "file:///a?b"):
            self.assertRaises(ValueError, path_of_url, url)
        self.assertRaisesRegex(ValueError, "file://, s3://", open_store, "ftp://bucket")
        self.assertIsInstance(open_store("file://" + self.folder), FileStore)
