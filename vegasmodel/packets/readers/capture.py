"""Reads the frames of pcap and pcapng files one at a time, in bounded memory.

The library dpkt is not used for this. It trusts the length that a block of the file states, and a
negative length makes dpkt read the whole file into memory. Also, dpkt supports only one network
interface per file.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator

from vegasmodel.packets.readers.source import Source

MAX_FRAME = 1 << 18  # bytes: tcpdump's own limit
MAX_INTERFACES = 1024  # of a section of a pcapng file; a damaged file may seem to have many more

# pcap: the four bytes (magic number) with which the file may begin, and what they say of it: the
# byte order as the module ``struct`` writes it, and the seconds per tick of the packets' times
_MAGIC = {
    b"\xd4\xc3\xb2\xa1": ("<", 1e-6),
    b"\xa1\xb2\xc3\xd4": (">", 1e-6),
    b"\x4d\x3c\xb2\xa1": ("<", 1e-9),
    b"\xa1\xb2\x3c\x4d": (">", 1e-9),
}
# pcapng: the type of the block with which a section of the file begins, and the bytes by which this
# block gives the byte order of its section
_SECTION = b"\x0a\x0d\x0d\x0a"
_ORDER = {b"\x4d\x3c\x2b\x1a": "<", b"\x1a\x2b\x3c\x4d": ">"}
# types of other blocks: an interface, and three forms of a packet, of which the simple has no time
_INTERFACE, _OLD_PACKET, _SIMPLE, _PACKET = 1, 2, 3, 6
_RESOLUTION, _OFFSET = 9, 14  # numbers of options in the block of an interface

# time in s, link type (number of pcap's LINKTYPE), captured bytes, length on the wire in bytes
Frame = tuple[float, int, bytes, int]


def matches(head: bytes) -> bool:
    """Whether the file begins like a pcap or pcapng file."""
    return head[:4] in _MAGIC or (head[:4] == _SECTION and head[8:12] in _ORDER)


def frames(source: Source) -> Iterator[Frame]:
    """Yield the frames of a pcap or pcapng file.

    A frame has the time (s), the link type, the captured bytes, and the length on the wire in
    bytes.  If the file ends within a frame, that frame is left out and ``source.cut_short`` is set.
    Raises ``TraceError`` if the file is malformed.
    """
    if not matches(source.head):
        source.fail("byte 0", source.head[:4], "the magic number of pcap or pcapng")
    source.file.seek(source.start)
    if source.head[:4] == _SECTION:
        return _blocks(source)
    return _records(source)


def _records(source: Source) -> Iterator[Frame]:
    """Yield the frames of a pcap file, each as a ``Frame``.

    The file begins with a header of 24 bytes. Its last four bytes hold the link type. A header of
    16 bytes stands before each frame. It holds four numbers: the time in whole seconds, the rest of
    the time in ticks, the bytes captured of the frame, and the frame's length on the wire.
    """
    read = source.file.read
    header = read(24)
    if len(header) < 24:
        source.fail("byte 0", header[:16], "a pcap header of 24 bytes")
    order, tick = _MAGIC[header[:4]]
    link = struct.unpack(order + "I", header[20:24])[0] & 0xFFFF
    unpack, position = struct.Struct(order + "IIII").unpack, 24
    source.cut_short = True  # stays so if the function returns at a frame that is not complete
    while len(record := read(16)) == 16:
        seconds, ticks, size, orig_len = unpack(record)
        if size > MAX_FRAME:
            source.fail(f"byte {position}", size, f"a frame of at most {MAX_FRAME} bytes")
        frame = read(size)
        if len(frame) < size:
            return
        position += 16 + size
        # the length on the wire is at least the bytes captured, whatever the header says
        yield seconds + ticks * tick, link, frame, orig_len if orig_len > size else size
    source.cut_short = len(record) > 0  # the file ends within the header of a frame


def _blocks(source: Source) -> Iterator[Frame]:
    """Yield the frames of a pcapng file.

    The file consists of blocks.  A block states its length twice, at its beginning and at its end.
    The length at the end is ignored.
    """
    read, position = source.file.read, 0  # of the block in the file, in bytes
    order, interfaces = "<", list[tuple[int, float, int]]()  # of the section
    source.cut_short = True  # the file ends inside a block; the last line corrects this if not
    while len(head := read(8)) == 8:
        if head[:4] == _SECTION:
            magic = read(4)
            order, interfaces = _ORDER.get(magic, ""), []
            if not order:
                source.fail(f"byte {position}", magic, "a byte-order magic")
            head += magic
        kind, size = struct.unpack(order + "II", head[:8])
        if size < len(head) + 4 or size > 2 * MAX_FRAME or size % 4:
            source.fail(f"byte {position}", size, f"a block of 12 to {2 * MAX_FRAME} bytes")
        body = read(size - len(head))
        if len(body) < size - len(head):
            return
        if kind == _INTERFACE:
            if len(interfaces) == MAX_INTERFACES:
                source.fail(f"byte {position}", kind, f"at most {MAX_INTERFACES} interfaces")
            interfaces.append(_interface(source, order, position, body[:-4]))
        elif kind in (_PACKET, _OLD_PACKET):
            yield _packet(source, order, position, kind, body[:-4], interfaces)
        elif kind == _SIMPLE:
            source.fail(f"byte {position}", "simple packet block", "packets with a time")
        position += size
    source.cut_short = len(head) > 0


def _interface(source: Source, order: str, position: int, body: bytes) -> tuple[int, float, int]:
    """Parse the block of a pcapng file that describes a network interface.

    ``body`` is the content of the block, and ``position`` the place of the block in the file, in
    bytes. ``order`` is the file's byte order, as the module ``struct`` writes it. Returns the link
    type, the seconds per clock tick, and an offset in s, which is added to the times of all packets
    from this interface.
    """
    if len(body) < 8:
        source.fail(f"byte {position}", body, "an interface of 8 bytes or more")
    link, tick, offset, i = struct.unpack(order + "H", body[:2])[0], 1e-6, 0, 8
    while i + 4 <= len(body):
        code, size = struct.unpack(order + "HH", body[i : i + 4])
        value = body[i + 4 : i + 4 + size]
        if code == _RESOLUTION and len(value) == 1:
            # the highest bit chooses the base, 2 or 10; the other bits are the exponent's magnitude
            tick = (2.0 if value[0] & 128 else 10.0) ** -(value[0] & 127)
        elif code == _OFFSET and len(value) == 8:
            offset = struct.unpack(order + "q", value)[0]
        if code == 0:  # the end of the options
            break
        i += 4 + (size + 3) // 4 * 4  # values are padded to a multiple of 4 bytes
    return link, tick, offset


def _packet(
    source: Source,
    order: str,
    position: int,
    kind: int,
    body: bytes,
    interfaces: list[tuple[int, float, int]],
) -> Frame:
    """Parse a block of a pcapng file that holds a packet.

    ``kind`` is the block's type and ``body`` its content; the block begins at byte ``position`` of
    the file. ``order`` is the byte order, as the module ``struct`` writes it. ``interfaces`` has
    what ``_interface`` returns, for each interface that the section of the file has described so
    far.
    """
    if len(body) < 20:
        source.fail(f"byte {position}", body, "a packet block of 20 bytes or more")
    interface, high, low, size, orig_len = struct.unpack(order + "IIIII", body[:20])
    if kind == _OLD_PACKET:  # its interface has 2 bytes; a count of drops follows
        interface = struct.unpack(order + "H", body[:2])[0]
    if interface >= len(interfaces):
        source.fail(f"byte {position}", interface, f"an interface below {len(interfaces)}")
    if size > len(body) - 20:
        source.fail(f"byte {position}", size, f"a frame of at most {len(body) - 20} bytes")
    link, tick, offset = interfaces[interface]
    return offset + ((high << 32) | low) * tick, link, body[20 : 20 + size], max(orig_len, size)
