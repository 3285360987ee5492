"""File formats of libraries, as far as a pretended training needs them, with the standard library alone."""

import io
import json
import struct
import zipfile
from typing import Dict, List, Tuple

import lab

_PARTS = ("model", "optimizer")


def write_zip_slowly(path: str, state: Dict[str, object]) -> None:
    """As torch.save and Keras write: a zip archive whose end record comes last."""
    _archive_slowly(path, [("archive/data/0", state["model"]), ("archive/data/1", state["optimizer"]),
                           ("archive/data.pkl", b"%d" % state["step"])])


def read_zip(path: str) -> Dict[str, object]:
    with zipfile.ZipFile(path) as archive:
        model, optimizer = (archive.read("archive/data/%d" % number) for number in (0, 1))
        return {"step": int(archive.read("archive/data.pkl")), "model": model, "optimizer": optimizer}


def write_npz_slowly(path: str, state: Dict[str, object]) -> None:
    """As numpy.savez writes."""
    arrays = [(name + ".npy", _npy(state[name])) for name in _PARTS]
    _archive_slowly(path, arrays + [("step.npy", _npy(b"%d" % state["step"]))])


def read_npz(path: str) -> Dict[str, object]:
    with zipfile.ZipFile(path) as archive:
        model, optimizer, step = (_of_npy(archive.read(name + ".npy")) for name in (*_PARTS, "step"))
        return {"step": int(step), "model": model, "optimizer": optimizer}


def _archive_slowly(path: str, members: List[Tuple[str, bytes]]) -> None:
    with open(path, "wb") as file, zipfile.ZipFile(file, "w", zipfile.ZIP_STORED) as archive:
        for name, data in members:
            archive.writestr(name, data)
            file.flush()
            lab.pause(0.5)


def _npy(data: bytes) -> bytes:
    header = "{'descr': '|u1', 'fortran_order': False, 'shape': (%d,), }" % len(data)
    padded = header.ljust(117) + "\n"
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(padded)) + padded.encode() + data


def _of_npy(data: bytes) -> bytes:
    return data[10 + struct.unpack("<H", data[8:10])[0] :]


def safetensors_bytes(tensors: Dict[str, bytes]) -> bytes:
    header, offset = {}, 0
    for name, data in tensors.items():
        header[name] = {"dtype": "U8", "shape": [len(data)], "data_offsets": [offset, offset + len(data)]}
        offset += len(data)
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    return struct.pack("<Q", len(text)) + text + b"".join(tensors.values())


def write_safetensors(path: str, tensors: Dict[str, bytes]) -> None:
    with open(path, "wb") as file:
        file.write(safetensors_bytes(tensors))


def read_safetensors(path: str) -> Dict[str, bytes]:
    with open(path, "rb") as file:
        data = file.read()
    size = struct.unpack("<Q", data[:8])[0]
    header, body = json.loads(data[8 : 8 + size].decode()), data[8 + size :]
    if max(each["data_offsets"][1] for each in header.values()) != len(body):
        raise ValueError("Error while deserializing header: incomplete metadata, file not fully covered")
    return {name: body[slice(*each["data_offsets"])] for name, each in header.items()}


def tensors_of(state: Dict[str, object]) -> Dict[str, bytes]:
    return {"model": state["model"], "optimizer": state["optimizer"], "step": b"%d" % state["step"]}


def state_of(tensors: Dict[str, bytes]) -> Dict[str, object]:
    return {"step": int(tensors["step"]), "model": tensors["model"], "optimizer": tensors["optimizer"]}


def distcp_bytes(tensors: List[bytes]) -> Tuple[bytes, List[Tuple[int, int]]]:
    """As torch.distributed.checkpoint writes: an archive for each tensor, one after the other. Their places are in a file next to them."""
    data, places = b"", []
    for tensor in tensors:
        archive = io.BytesIO()
        with zipfile.ZipFile(archive, "w", zipfile.ZIP_STORED) as file:
            file.writestr("archive/data/0", tensor)
        places.append((len(data), len(archive.getvalue())))
        data += archive.getvalue()
    return data, places


def of_distcp(data: bytes, places: List[Tuple[int, int]]) -> List[bytes]:
    archives = (zipfile.ZipFile(io.BytesIO(data[start : start + size])) for start, size in places)
    return [archive.read("archive/data/0") for archive in archives]
