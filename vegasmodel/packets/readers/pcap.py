"""Reads tcpdump captures (pcap, pcapng) of TCP over IPv4 or IPv6.

Times count from the first TCP packet. IP fragments and packets that are not TCP are skipped. A
capture that was made at the sender shows more than one that was made elsewhere;
``connections.py`` lists what other captures lack.
"""

from __future__ import annotations

import ipaddress
import struct

from vegasmodel.packets.readers import capture, connections_trace
from vegasmodel.packets.readers.connections import Connections
from vegasmodel.packets.readers.source import Source
from vegasmodel.packets.trace import Trace

matches = capture.matches

# These tables map link types (the numbers of pcap's LINKTYPE) to offsets in a captured frame, in
# bytes. Frames of three link types contain an EtherType: Ethernet (1) and Linux cooked capture,
# versions 1 and 2 (113, 276). Its offset is in the first table, that of the IP header in the
# second. Frames of the other link types contain none: raw IP (12, 14, 101, 228, 229) and the
# loopback of BSD (0, 108). The offset of their IP header is in the third table.
_ETHERTYPE_AT = {1: 12, 113: 14, 276: 0}
_IP_AFTER_ETHERTYPE = {1: 14, 113: 16, 276: 20}
_IP_WITHOUT_ETHERTYPE = {12: 0, 14: 0, 101: 0, 228: 0, 229: 0, 0: 4, 108: 4}
_VLAN = (0x8100, 0x88A8, 0x9100)  # EtherTypes of a VLAN tag
_EXTENSIONS = (0, 43, 60)  # types of IPv6's extension headers: hop by hop, routing, destination
_MOST_EXTENSIONS = 8  # so that a malformed packet does not take long
_USUAL_STAMP_OPTION = b"\x01\x01\x08\x0a"  # the usual layout of the timestamp option
FIN, SYN, RST, ACK = 1, 2, 4, 16  # bits of the flags in a TCP header
Found = tuple[tuple[bytes, bytes], int, int, int, int]  # the result of ``_tcp``
# fields that are read from the IPv4 header, the TCP header and the value of the timestamp option
_IPV4 = struct.Struct(">BxHHHxBxx4s4s").unpack_from
_TCP = struct.Struct(">HHIIBB").unpack_from
_STAMPS = struct.Struct(">II").unpack_from


def read(source: Source) -> Trace:
    """Read the whole capture.

    If the file is malformed, ``TraceError`` names the byte in the file, or the number of the
    packet, counted from 1.  A malformed TCP packet is skipped.
    """
    connections, n_cut = Connections(source), 0  # ``n_cut``: frames that end within the TCP header
    for packet_number, (time, link, frame, orig_len) in enumerate(capture.frames(source), 1):
        found = _tcp(source, link, frame, orig_len)
        if found is None:
            continue
        # positions in the frame, in bytes; the frame may be cut off before the packet's end
        addresses, tcp_start, packet_end, ip_start, ident = found
        if len(frame) < tcp_start + 20:
            n_cut += orig_len > len(frame)
            continue
        sport, dport, seq, ack_number, offset, flags = _TCP(frame, tcp_start)
        header = (offset >> 4) * 4
        size = packet_end - tcp_start - header
        if header < 20 or size < 0:
            continue
        place = f"packet {packet_number}"
        connections.clock(time, place)
        stamp, echo = _stamps(frame, tcp_start, header)
        key = ((addresses[0], sport), (addresses[1], dport))
        if flags & SYN:
            mss = _segment_size(frame, tcp_start, header)
            connections.syn(key, seq, second=bool(flags & ACK), mss=mss)
            seq += 1
        if size and not flags & RST:  # the data of a RST is a text message, not data of the flow
            flow = connections.data(
                key,
                seq,
                size,
                tcp_start - ip_start + header,
                place,
                echo=echo,
                stamp=stamp,
                ident=ident,
            )
            if flow is not None and not flow.total > size:  # the flow's first segment
                flow.options = 12 if stamp >= 0 else 0
                flow.loopback = _loopback(addresses)
        if flags & FIN:
            connections.fin(key, seq + size)
        if flags & (ACK | RST) == ACK:
            connections.ack(key[::-1], ack_number, stamp=stamp, ident=ident)
    if n_cut and not connections.all:
        source.fail(
            "",
            f"{n_cut} frames cut before the end of their TCP header",
            "whole TCP headers; capture with a larger -s",
        )
    doubts = {"whole-headers": f"{n_cut} frames end within their TCP header"} if n_cut else {}
    if source.cut_short:
        doubts["whole-file"] = "the file ends within a frame, so its end is missing"
    return connections_trace.make(
        connections,
        "pcap",
        lambda key: _name(*key),  # type: ignore[arg-type]  # made above
        {"format": "pcap or pcapng"},
        ("sent", "retransmits", "acks"),
        doubts=doubts,
    )


def _loopback(addresses: tuple[bytes, bytes]) -> bool:
    """Whether a packet with these addresses of sender and receiver has never left the machine."""
    return addresses[0] == addresses[1] or ipaddress.ip_address(addresses[0]).is_loopback


def _tcp(source: Source, link: int, frame: bytes, orig_len: int) -> Found | None:
    """Find the TCP header in a frame; ``None`` if it has none, or only a fragment of a packet.

    The result contains, in this order:

    - the IP addresses of the sender and the receiver,
    - three positions, in bytes from the start of the frame: where the TCP header begins, where the
      IP packet ends, and where the IP header begins,
    - the Identification field of the IPv4 header, or -1 for IPv6.

    ``orig_len`` is the length that the frame had on the wire.  ``frame`` may be shorter, because
    the capture may hold only the beginning of each frame.
    """
    ip = _ip_header(source, link, frame)
    if ip < 0 or len(frame) < ip + 20:
        return None
    first, length, ident, fragment, protocol, source_, destination = _IPV4(frame, ip)
    if first >> 4 == 4:  # the version of IP
        if protocol != 6 or fragment & 0x3FFF:  # not TCP, or a fragment (MF or an offset)
            return None
        # a length of 0 means that the network card will split the packet
        end = ip + (length or orig_len - ip)
        return (source_, destination), ip + (first & 15) * 4, end, ip, ident
    if first >> 4 == 6 and len(frame) >= ip + 40:
        return _in_ipv6(frame, ip, orig_len)
    return None


def _ip_header(source: Source, link: int, frame: bytes) -> int:
    """The position of the IP header in a frame, in bytes; -1 if the frame contains no IP packet.

    ``link`` is the link type. Raises ``TraceError`` if it is not known.
    """
    if link in _IP_WITHOUT_ETHERTYPE:
        return _IP_WITHOUT_ETHERTYPE[link]
    if link not in _ETHERTYPE_AT:
        source.fail("link type", link, "Ethernet, Linux cooked, loopback or raw IP")
    at, ip = _ETHERTYPE_AT[link], _IP_AFTER_ETHERTYPE[link]
    if len(frame) < ip:
        return -1
    kind = frame[at] << 8 | frame[at + 1]
    while kind in _VLAN and len(frame) > ip + 4:  # a tag of 4 bytes ends with the next EtherType
        kind, ip = int.from_bytes(frame[ip + 2 : ip + 4]), ip + 4
    return ip if kind in (0x0800, 0x86DD) else -1  # IPv4 or IPv6


def _in_ipv6(frame: bytes, ip: int, orig_len: int) -> Found | None:
    """Find the TCP header in a frame with an IPv6 header at the position ``ip``.

    The result is as for ``_tcp``: the two IP addresses, the positions of the TCP header, of the end
    of the IP packet and of the IP header, and -1, because IPv6 has no Identification field. It is
    ``None`` if the packet is not TCP. ``orig_len`` is the frame's length on the wire, in bytes.

    The IPv6 header has 40 bytes. Up to eight extension headers are skipped that may stand between
    it and the TCP header. Their first byte is the type of the next header. The second byte is the
    header's length in units of 8 bytes, without the first 8 bytes.
    """
    header_start, header_type = ip + 40, frame[ip + 6]  # of the header after the IPv6 header
    for _ in range(_MOST_EXTENSIONS):
        if header_type not in _EXTENSIONS or len(frame) < header_start + 2:
            break
        header_type, units = frame[header_start], frame[header_start + 1]
        header_start += (units + 1) * 8
    if header_type != 6:  # not TCP
        return None
    # the bytes after the IPv6 header; 0 means that the network card will split the packet
    length = (frame[ip + 4] << 8 | frame[ip + 5]) or orig_len - ip - 40
    source, destination = frame[ip + 8 : ip + 24], frame[ip + 24 : ip + 40]
    return (source, destination), header_start, ip + 40 + length, ip, -1


def _option(frame: bytes, tcp_start: int, header: int, kind: int, size: int) -> int:
    """The position in the frame of the value of a TCP option; 0 if the option is absent.

    ``kind`` is the option's number and ``size`` its length in bytes.  The TCP header begins at
    position ``tcp_start`` and has ``header`` bytes.
    """
    i, end = tcp_start + 20, min(tcp_start + header, len(frame))
    while i + 1 < end and frame[i]:  # the option 0 ends the list
        if frame[i] == 1:  # a byte of padding, without a length
            i += 1
            continue
        if frame[i] == kind and frame[i + 1] == size and i + size <= end:
            return i + 2
        i += max(frame[i + 1], 2)
    return 0


def _stamps(frame: bytes, tcp_start: int, header: int) -> tuple[int, int]:
    """The TCP timestamp of a segment and the timestamp that it echoes; both -1 if it has none.

    The TCP header begins at position ``tcp_start`` of the frame and has ``header`` bytes.
    """
    if header == 20:
        return -1, -1
    has_usual_layout = (
        frame[tcp_start + 20 : tcp_start + 24] == _USUAL_STAMP_OPTION
        and len(frame) >= tcp_start + 32
    )
    i = tcp_start + 24 if has_usual_layout else _option(frame, tcp_start, header, 8, 10)
    return _STAMPS(frame, i) if i else (-1, -1)


def _segment_size(frame: bytes, tcp_start: int, header: int) -> int:
    """The value of the MSS option, or 0.

    The TCP header begins at position ``tcp_start`` of the frame and has ``header`` bytes.
    """
    i = _option(frame, tcp_start, header, 2, 4)  # option 2, of 4 bytes
    return int.from_bytes(frame[i : i + 2]) if i else 0


def _name(sender: tuple[bytes, int], receiver: tuple[bytes, int]) -> str:
    """The name ``sender>receiver`` of a flow, from the IP address and the port of each."""

    def text(host: bytes, port: int) -> str:
        """The address and the port of one of them."""
        address = ipaddress.ip_address(host)
        return f"{address}:{port}" if address.version == 4 else f"[{address}]:{port}"

    return f"{text(*sender)}>{text(*receiver)}"
