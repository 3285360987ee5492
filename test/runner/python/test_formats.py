import io
import json
import os
import pickle
import struct
import sys
import tarfile
import threading
import zipfile

from support import FolderTest, patient

from crucible_runner.checkpoint.formats import check_file, check_folder
from crucible_runner.checkpoint.formats.base import File, build
from crucible_runner.checkpoint.records import looks_like_text


def _zip(names=("data.pkl", "data/0")):
    body = io.BytesIO()
    with zipfile.ZipFile(body, "w", allowZip64=True) as archive:
        for name in names:
            archive.writestr(name, b"x" * 300)
    return body.getvalue()


def _as_pytorch_writes(plain):
    """PyTorch puts the wide record and its locator before the narrow one in every file."""
    at = plain.rindex(b"PK\x05\x06")
    count, size, offset = struct.unpack_from("<10xHII", plain, at)
    wide = b"PK\x06\x06" + struct.pack("<QHHIIQQQQ", 44, 45, 45, 0, 0, count, count, size, offset)
    return plain[:at] + wide + b"PK\x06\x07" + struct.pack("<IQI", 0, at, 1) + plain[at:]


def _safetensors():
    header = json.dumps({"w": {"dtype": "F32", "shape": [100], "data_offsets": [0, 400]}}).encode()
    return struct.pack("<Q", len(header)) + header + bytes(400)


def _npy():
    header = b"{'descr': '<f4', 'fortran_order': False, 'shape': (10, 20), }".ljust(117) + b"\n"
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header + bytes(800)


def _hdf5():
    body = bytearray(b"\x89HDF\r\n\x1a\n" + bytes(2040))
    body[8], body[9], body[10] = 2, 8, 8
    struct.pack_into("<Q", body, 28, len(body))
    return bytes(body)


def _tar():
    body = io.BytesIO()
    with tarfile.open(fileobj=body, mode="w") as archive:
        info = tarfile.TarInfo("model.bin")
        info.size = 30_000
        archive.addfile(info, io.BytesIO(b"x" * info.size))
    return body.getvalue()


class FilesTest(FolderTest):
    def judged(self, name, body):
        with open(self.write(name, body, "wb"), "rb"):
            return check_file(self.at(name))

    def test_a_whole_file_proves_itself_and_one_that_is_cut_off_does_not(self):
        for name, body, is_cut_known in (
            ("model.pt", _zip(), True),
            ("model.ckpt", _as_pytorch_writes(_zip()), True),
            ("behind-something.zip", b"PK\x03\x04" + bytes(500) + _zip(), True),
            ("model.safetensors", _safetensors(), True),
            ("array.npy", _npy(), True),
            ("model.h5", _hdf5(), True),
            ("state.json", b'{"step": 5, "loss": [1, 2]}', True),
            ("all.tar", _tar(), True),
            ("model.txt", b"tree\nversion=v4\nTree=0\n\npandas_categorical:null\n", True),
            ("model.pkl", pickle.dumps({"w": b"x" * 900}, protocol=4), False),
        ):
            with self.subTest(name):
                self.assertTrue(self.judged(name, body).is_whole)
                for share in (0.3, 0.6, 0.7):
                    cut = self.judged(name, body[: int(len(body) * share)])
                    self.assertFalse(cut.is_whole if cut is not None else is_cut_known, share)

    def test_what_it_does_not_know_it_says_nothing_of(self):
        for name, body in (
            ("model.bin", bytes(100)),
            ("empty", b""),
            ("__0_0.distcp", _zip() + b"raw bytes"),
            ("odd.json", b"// a comment\n{}"),
            ("two.pkl", pickle.dumps(1, 4) + pickle.dumps(2, 4)),
            ("objects.npy", _npy().replace(b"<f4", b"|O ")),
        ):
            self.assertIsNone(self.judged(name, body), name)
        os.mkfifo(self.at("pipe"))
        self.assertIsNone(check_file(self.at("pipe")))


    def test_a_hostile_file_has_no_format_and_ends_no_check(self):
        digits = getattr(sys, "set_int_max_str_digits", lambda _: None)
        digits(0)
        self.addCleanup(digits, getattr(sys.int_info, "default_max_str_digits", 0))
        shape = b"{'descr': '<f4', 'fortran_order': False, 'shape': (%s)}"
        for name, body in (
            ("torn.npy", _npy_of(shape[:30])),
            ("zeros.npy", _npy_of(bytes(64))),
            ("nested.npy", _npy_of(b"(" * 9_000)),
            ("signs.npy", _npy_of(b"-" * 9_000 + b"1")),
            ("infinite.npy", _npy_of(shape % b"1e999,")),
            ("long-header.npy", _npy_of(shape % b"1," + b" " * 20_000)),
            ("header-of-holes.npy", b"\x93NUMPY\x02\x00" + struct.pack("<I", 3 << 30)),
            ("infinite.safetensors", struct.pack("<Q", 35) + b'{"w":{"data_offsets":[0,1e999]}}   ' + bytes(9)),
            ("decimal.pkl", b"\x80\x02I" + b"9" * 2_000 + b"\n."),
            ("decimal-long.pkl", b"\x80\x02L" + b"9" * 2_000 + b"L\n."),
        ):
            with self.subTest(name):
                self.assertIsNone(self.judged(name, body))

    def test_a_pipe_in_the_place_of_a_file_blocks_no_reader(self):
        file = File(self.write("ck/checkpoint", "text"))
        folder = build(self.at("ck"), {"checkpoint": 4})
        os.unlink(self.at("ck", "checkpoint"))
        os.mkfifo(self.at("ck", "checkpoint"))
        for read in (file.whole, lambda: folder.text("checkpoint"), lambda: looks_like_text(file.path)):
            thread = threading.Thread(target=_ignoring_errors, args=(read,), daemon=True)
            thread.start()
            thread.join(patient(5))
            self.assertFalse(thread.is_alive())


def _npy_of(header):
    return b"\x93NUMPY\x02\x00" + struct.pack("<I", len(header)) + header


def _ignoring_errors(read):
    try:
        read()
    except OSError:
        pass


class FoldersTest(FolderTest):
    def judged(self, folder, **files):
        sizes = {}
        for path, text in files.items():
            self.write("ck/" + path, text)
            sizes[path] = len(text)
        tree = build(self.at("ck"), sizes)
        for part in folder.split("/") if folder else []:
            tree = tree.folders[part]
        return [(verdict.is_whole, verdict.step) for verdict in check_folder(tree)]

    def test_a_folder_of_the_trainer_is_whole_with_its_state(self):
        before = {"checkpoint-5/model.safetensors": "m", "checkpoint-5/optimizer.pt": "o"}
        self.assertEqual(self.judged("checkpoint-5", **before), [])
        before["checkpoint-5/scheduler.pt"] = "s"
        self.assertEqual(self.judged("checkpoint-5", **before), [(False, None)])
        state = {"checkpoint-5/trainer_state.json": '{"global_step": 5}'}
        self.assertEqual(self.judged("checkpoint-5", **before, **state), [(True, 5)])

    def test_a_distributed_checkpoint_is_whole_with_its_metadata(self):
        self.assertEqual(self.judged("", **{"__0_0.distcp": "a"}), [(False, None)])
        self.assertEqual(self.judged("", **{"__0_0.distcp": "a", ".metadata": "m"}), [(True, None)])

    def test_deepspeed_and_megatron_name_the_newest_last(self):
        states = {"global_step10/mp_rank_00_model_states.pt": "a", "global_step20/mp_rank_00_model_states.pt": "b"}
        self.assertEqual(self.judged("", **states, latest="global_step10"), [(False, None)])
        self.assertEqual(self.judged("", **states, latest="global_step20\n"), [(True, 20)])
        named = {"iter_0000030/model.pt": "a", "latest_checkpointed_iteration.txt": "30"}
        self.assertEqual(self.judged("", **named), [(True, 30)])

    def test_every_shard_that_an_index_names_must_be_there(self):
        index = {"model.safetensors.index.json": json.dumps({"weight_map": {"a": "model-1.st", "b": "model-2.st"}})}
        self.assertEqual(self.judged("", **index, **{"model-1.st": "a"}), [(False, None)])
        self.assertEqual(self.judged("", **index, **{"model-1.st": "a", "model-2.st": "b"}), [])

    def test_tensorflow_names_a_prefix_whose_files_are_there(self):
        data = {"ckpt-3.data-00000-of-00001": "a", "ckpt-3.index": "i"}
        told = 'model_checkpoint_path: "ckpt-%d"\n'
        self.assertEqual(self.judged("", **data, checkpoint=told % 2), [(False, None)])
        self.assertEqual(self.judged("", **data, checkpoint=told % 3), [(True, 3)])

    def test_orbax_marks_what_it_has_committed(self):
        self.assertEqual(self.judged("7", **{"7/default/data": "d", "7/_CHECKPOINT_METADATA": "{}"}), [(True, 7)])
